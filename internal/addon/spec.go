package addon

import (
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/addon/charts"
	"github.com/talosop/terraform-provider-talosop/internal/addon/manifest"
	"github.com/talosop/terraform-provider-talosop/internal/addon/postrender"
	"github.com/talosop/terraform-provider-talosop/internal/addon/values"
)

// Name tells the releases of a cluster apart.
type Name struct{ Namespace, Name string }

// String is such as kube-system/cilium.
func (n Name) String() string { return n.Namespace + "/" + n.Name }

// Spec is a release as it is wanted.
type Spec struct {
	Name
	// Values are the user's, merged; those of the chart are not in them.
	Values map[string]any
	// Secrets are the texts that are shown to nobody.
	Secrets values.Secrets
	// Patches change what the chart rendered.
	Patches []postrender.Patch
	Options Options
}

// Options are what Helm is asked for beside chart and values.
type Options struct {
	// CreateNamespace makes the namespace when there is none. It is never removed.
	CreateNamespace bool
	// Wait until the objects are ready, with WaitForJobs also until Jobs are complete.
	Wait, WaitForJobs bool
	// Timeout bounds each wait for objects, and each hook.
	Timeout time.Duration
	// RollbackOnFailure takes a failed upgrade back to the last revision that was deployed, and
	// a failed first install away.
	RollbackOnFailure bool
	// SkipCRDs leaves the crds folder of the chart alone; UpgradeCRDs applies it before upgrades too,
	// which Helm by itself does not. IncludeCRDs makes the folder part of the release.
	SkipCRDs, UpgradeCRDs, IncludeCRDs bool
	// DisableHooks runs no hooks, in removals either.
	DisableHooks bool
	// DisableOpenAPIValidation and SkipSchemaValidation trust manifests and values.
	DisableOpenAPIValidation, SkipSchemaValidation bool
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
	// Reuse says what becomes of the values of the revision before.
	Reuse Reuse
	// MaxHistory is how many revisions are kept, 0 for all.
	MaxHistory int
	// Description of the revision, Helm's own when empty.
	Description string
}

// Reuse of the values of the revision before.
type Reuse string

// What becomes of the values of the revision before.
const (
	// ReuseNothing takes the given values alone.
	ReuseNothing Reuse = ""
	// ReuseValues takes them, and the defaults of the chart of that time, below the given ones.
	ReuseValues Reuse = "reuse"
	// ReuseUserValues takes them, with the defaults of the new chart, below the given ones.
	ReuseUserValues Reuse = "reset_then_reuse"
)

// Rendering is what a chart becomes with its values, on a cluster.
type Rendering struct {
	// Objects of the release, and those of its hooks, which come and go.
	Objects, Hooks []manifest.Object
	// AppVersion and Notes as the chart has them. Notes may hold secrets.
	AppVersion, Notes string
}

// Observation is a release as its cluster has it.
type Observation struct {
	// History of the release, oldest first; empty when there is none.
	History []Revision
}

// Revision is one entry of Helm's history of a release.
type Revision struct {
	Number int
	// Status as Helm has it, such as deployed or pending-upgrade.
	Status string
	// Inputs is the mark of what went in ([Inputs]), empty when talosop did not make it.
	Inputs string
	// Chart that was rendered.
	ChartName, ChartVersion, AppVersion string
	// Values of the user. They may hold secrets.
	Values map[string]any
	// Objects of the manifest.
	Objects     []manifest.Object
	Description string
	// FirstDeployed of the release, LastDeployed of the revision.
	FirstDeployed, LastDeployed time.Time
	Notes                       string
}

// Outcome is what an apply did.
type Outcome struct {
	// Done in the order in which it was done, each such as "recovered revision 3, which an
	// interrupted run left pending-upgrade" or "upgraded to revision 4".
	Done []string
	// Now is the release after it, also when the apply failed and the release could be read.
	Now Observation
}

// Package is a chart that was fetched.
type Package = charts.Package
