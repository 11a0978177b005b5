package release

import (
	"cmp"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/helm/postrender"
	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
)

// Name identifies a release of a cluster.
type Name struct{ Namespace, Name string }

// Options are Helm's options beside chart and values.
type Options struct {
	// CreateNamespace makes the namespace when there is none. It is never removed.
	CreateNamespace bool
	// Wait until the objects are ready, with WaitForJobs also until Jobs are complete.
	Wait, WaitForJobs bool
	// Timeout bounds each wait for objects, and each hook; 5 min by default.
	Timeout time.Duration
	// RollbackOnFailure takes a failed upgrade back to the last revision that was deployed, and
	// a failed first install away.
	RollbackOnFailure bool
	// SkipCRDs leaves the crds folder of the chart alone; UpgradeCRDs applies it before upgrades too,
	// which Helm by itself does not. IncludeCRDs makes the folder part of the release.
	SkipCRDs, UpgradeCRDs, IncludeCRDs bool
	// DisableHooks runs no hooks, in removals either.
	DisableHooks bool
	// SkipSchemaValidation trusts the values.
	SkipSchemaValidation bool
	// TakeOwnership takes objects over that exist and belong to no release or another one.
	TakeOwnership bool
	// Force replaces objects that cannot be updated.
	Force bool
	// CleanupOnFail removes what a failed upgrade created.
	CleanupOnFail bool
	// EnableDNS lets templates resolve names.
	EnableDNS bool
	// SubNotes renders the notes of subcharts too.
	SubNotes bool
	// Reuse is how the values of the revision before are used.
	Reuse Reuse
	// MaxHistory is how many revisions are kept, 0 for all.
	MaxHistory int
	// Description of the revision, Helm's own when empty.
	Description string
}

// recordVersion is a record as it was read.
type recordVersion struct{ name, version string }

// String returns a text such as kube-system/cilium.
func (n Name) String() string { return n.Namespace + "/" + n.Name }

// Spec is a release as it is wanted.
type Spec struct {
	Name
	// Values are the user's, merged; those of the chart are not in them.
	Values map[string]any
	// Secrets are texts that are never shown.
	Secrets values.Secrets
	// Patches change the rendered chart.
	Patches []postrender.Patch
	Options Options
}

// defaultTimeout is Helm's (Helm 3.21, cmd/helm/install.go).
const defaultTimeout = 5 * time.Minute

func (o Options) timeout() time.Duration { return cmp.Or(o.Timeout, defaultTimeout) }

// Reuse of the values of the revision before.
type Reuse string

// What becomes of the values of the revision before.
const (
	// ReuseNothing uses only the given values.
	ReuseNothing Reuse = ""
	// ReuseValues takes them, and the defaults of the chart of that time, below the given ones.
	ReuseValues Reuse = "reuse"
	// ReuseUserValues takes them, with the defaults of the new chart, below the given ones.
	ReuseUserValues Reuse = "reset_then_reuse"
)

// Rendering is what a chart becomes with its values, on a cluster.
type Rendering struct {
	// Objects of the release, and those of its hooks, which come and go.
	Objects, Hooks []diff.Object
	// Definitions of the crds folder that an apply manages: it creates missing ones, and with UpgradeCRDs changes
	// all to match the chart. With IncludeCRDs they are among the objects.
	Definitions []diff.Object
	// AppVersion and Notes as the chart has them. Notes may hold secrets.
	AppVersion, Notes string
}

// Observation is the state of a release in its cluster.
type Observation struct {
	// History of the release, oldest first; empty when there is none.
	History []Revision
	// records are those that it was read of, in the same order.
	records []recordVersion
}

// Last is the newest revision.
func (o Observation) Last() (last Revision, exists bool) {
	if len(o.History) == 0 {
		return Revision{}, false
	}

	return o.History[len(o.History)-1], true
}

// Deployed is the newest revision that is deployed, which a failed upgrade leaves behind the
// newest one.
func (o Observation) Deployed() (deployed Revision, exists bool) {
	for _, r := range slices.Backward(o.History) {
		if r.Status == Deployed {
			return r, true
		}
	}

	return Revision{}, false
}

func (o Observation) revision(number int) (found Revision, exists bool) {
	i := slices.IndexFunc(o.History, func(r Revision) bool { return r.Number == number })
	if i < 0 {
		return Revision{}, false
	}

	return o.History[i], true
}

// Statuses of revisions (Helm 3.21, release/status.go).
const (
	Deployed        = "deployed"
	Failed          = "failed"
	Superseded      = "superseded"
	PendingInstall  = "pending-install"
	PendingUpgrade  = "pending-upgrade"
	PendingRollback = "pending-rollback"
	Uninstalling    = "uninstalling"
	Uninstalled     = "uninstalled"
	// Unreadable is the status of a revision whose record cannot be read. Helm has no such status:
	// it leaves such records out.
	Unreadable = "unreadable"
)

// Revision is one entry of Helm's history of a release.
type Revision struct {
	Number int
	// Status is Helm's status, such as deployed or pending-upgrade.
	Status string
	// Inputs is the mark of what went in ([Inputs]), empty when talosop did not make it.
	Inputs string
	// Removing is whether talosop began to uninstall it.
	Removing bool
	// Former is the status that it had before it was begun to be uninstalled, which then was not
	// finished; empty when that is not known.
	Former string
	// Chart that was rendered.
	ChartName, ChartVersion, AppVersion string
	// Values of the user. They may hold secrets.
	Values map[string]any
	// Objects of the manifest.
	Objects     []diff.Object
	Description string
	// FirstDeployed of the release, LastDeployed of the revision, and Deleted when it was begun to
	// be uninstalled.
	FirstDeployed, LastDeployed, Deleted time.Time
	// Made is when the record was made, by the clock of the cluster.
	Made time.Time
	// Changed is when the client behind the revision last wrote something.
	Changed time.Time
	// Notes may hold secrets.
	Notes string
}

// Intent is the purpose of an apply.
type Intent struct {
	// Create takes no release for granted: one that exists is only taken over with Adopt, or when it
	// is what an earlier run with the same wish made or began.
	Create, Adopt bool
	// Repair runs an upgrade even though the release has what is wanted, because its objects were
	// seen to differ.
	Repair bool
}

// Depth is how closely drift is detected.
type Depth string

// Depths of drift detection.
const (
	// DepthObjects compares every object with its wanted form.
	DepthObjects Depth = "objects"
	// DepthPresence checks whether every object is there.
	DepthPresence Depth = "presence"
	// DepthRelease reads no objects.
	DepthRelease Depth = "release"
)

// Ignore leaves objects or fields out of drift detection: what controllers change by
// themselves.
type Ignore struct {
	// Kind, Name and Namespace are patterns of [path.Match]; an empty one matches everything.
	Kind, Name, Namespace string
	// Paths of fields, such as spec.replicas or data; each stands for all that is below it, and *
	// for any one field or element. Without paths the whole object is left out.
	Paths []string
}

// DriftOptions describe how drift is detected.
type DriftOptions struct {
	// Release whose revision it is.
	Release Name
	Depth   Depth
	Ignore  []Ignore
	// Secrets are texts that are never shown.
	Secrets values.Secrets
}

// RemoveOptions describe a removal.
type RemoveOptions struct {
	// KeepHistory leaves Helm's records, with the status uninstalled.
	KeepHistory bool
	// newest is the record of the removed revision, with KeepHistory. forgets is whether the records are still
	// deleted, after the objects that Helm does not know.
	newest  string
	forgets bool
	// DisableHooks runs no hooks.
	DisableHooks bool
	// Wait until the objects are gone.
	Wait bool
	// Propagation is background (also when empty), foreground or orphan.
	Propagation string
	// Timeout bounds the wait for objects, and each hook; 5 min by default.
	Timeout time.Duration
	// Secrets are texts that are never shown.
	Secrets values.Secrets
}

// Outcome is the result of an apply.
type Outcome struct {
	// Done are the finished actions in order, such as "recovered revision 3, which an interrupted run left
	// pending-upgrade" or "upgraded to revision 4".
	Done []string
	// Notices are messages for the user that are not failures, such as objects of failed revisions that could not
	// be removed.
	Notices []string
	// Now is the release after it, also when the apply failed and the release could be read.
	Now Observation
	// Unseen means that an apply failed and the state of the release is unknown; Now is the state before it.
	Unseen bool
	// Left is what a failed installation has left in the cluster although there is no release, each by its name.
	Left []string
}
