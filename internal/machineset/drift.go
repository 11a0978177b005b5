package machineset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// Examination compares the configurations that machines have with those of state. It is
// asked from several goroutines.
type Examination struct {
	// Wanted is the configurations that state stands for. They are rendered when the first
	// machine differs.
	Wanted func() (Rendered, error)

	Mu     sync.Mutex
	Places map[string][]fieldpath.Place
}

// NewExamination compares with the configurations of a set whose machines were recorded.
func NewExamination(p Set, seen Record) *Examination {
	return &Examination{Places: map[string][]fieldpath.Place{},
		Wanted: sync.OnceValues(p.WithRecorded(seen).WithNames(seen).Configurations)}
}

// Expect says which configuration each machine is taken to have: the recorded one, so that
// a machine which still has it need not be compared. One that differed the last time is
// compared with that of state. So are those that are locked, and all machines unless the last run left every one of
// them with what state says: an import, or an update that did not finish.
func (e *Examination) Expect(machines []cluster.Machine, recorded Record) {
	for i, m := range machines {
		machines[i].ConfigDigest = recorded.Machines[m.Name].ConfigDigest

		if !recorded.Seen[m.Name].Drift.Has(record.ConfigurationDiffers) && recorded.Phase == cluster.Ready && !m.Locked {
			continue
		}

		if files, err := e.Wanted(); err == nil {
			machines[i].ConfigDigest = files.Machines[m.Name].ConfigDigest
		}
	}
}

// ExpectImages says which images of Kubernetes each machine is taken to have: those of state,
// which need not be known of a machine that has what the last run left it with.
func (e *Examination) ExpectImages(machines []cluster.Machine, have cluster.Snapshot, recorded Record) {
	for i, m := range machines {
		state := have.Machines[m.Name]
		if state.Access != step.Member || state.Images == nil {
			continue
		}

		if !recorded.Seen[m.Name].Drift.Has(record.ImageDiffers) && recorded.Phase == cluster.Ready &&
			maps.Equal(recorded.Machines[m.Name].Images, state.Images) {
			continue
		}

		if files, err := e.Wanted(); err == nil {
			machines[i].Images = files.Machines[m.Name].Images
		}
	}
}

// Look notes where a configuration differs from that of state, and lists the fields that
// take a reboot to put it right.
func (e *Examination) Look(machine, _ string, active []byte) ([]string, error) {
	files, err := e.Wanted()
	if err != nil {
		// The settings in state make no configuration in this build: nothing can be told,
		// and the next plan renders them again and says what is wrong.
		return nil, nil
	}

	changes, err := machineconfig.Diff(files.Configs[machine], active)
	if err != nil {
		return nil, err
	}

	var places []fieldpath.Place

	for _, c := range changes {
		places = append(places, c.Place)
	}

	e.Mu.Lock()
	defer e.Mu.Unlock()

	e.Places[machine] = places

	return nil, nil
}

func driftOfConfiguration(places []fieldpath.Place) record.Drift {
	var drift record.Drift

	for _, place := range places {
		drift = append(drift, record.Difference{Kind: record.ConfigurationDiffers, Place: &place})
	}

	return drift
}

// DriftOf tells how machines that answered differ from what state says of them.
func DriftOf(
	p Set, want cluster.Spec, have cluster.Snapshot, places map[string][]fieldpath.Place,
) map[string]record.Drift {
	drift := map[string]record.Drift{}

	for _, m := range want.Machines {
		switch state := have.Machines[m.Name]; state.Access {
		case step.Maintenance:
			drift[m.Name] = record.Drift{{Kind: record.Wiped}}
			if !m.Proven(state) {
				drift[m.Name] = record.Drift{{Kind: record.Unproven}}
			}

			if m.Role == step.ControlPlane && len(cluster.OtherNodesAtWork(want, have)) > 0 {
				drift[m.Name] = append(drift[m.Name], record.Difference{Kind: record.OthersWork})
			}
		case step.Gone:
			drift[m.Name] = record.Drift{{Kind: record.NotOnHost}}
		case step.Member:
			differs := driftOfConfiguration(places[m.Name])
			if state.StagedDigest != "" && state.StagedDigest == m.ConfigDigest {
				differs = nil // it is what was asked for, and waits
			}

			drift[m.Name] = slices.Concat(driftOfAddress(m, state), driftOfTalos(m, state), driftOfImages(m, state),
				driftOfRunning(m, have), differs, p.Machines[m.Name].Meta.drift(state.Meta),
				missing(m, have), driftOfOwner(m, want, have))
		default:
		}
	}

	return drift
}

func driftOfAddress(m cluster.Machine, s step.MachineState) record.Drift {
	if s.FoundAt == "" {
		return nil
	}

	return record.Drift{{Kind: record.AddressDiffers, Found: s.FoundAt, Wanted: m.Address}}
}

func driftOfTalos(m cluster.Machine, s step.MachineState) record.Drift {
	var drift record.Drift

	if s.TalosVersion != "" && s.TalosVersion != m.TalosVersion {
		drift = append(drift, record.Difference{Kind: record.TalosDiffers, Found: s.TalosVersion, Wanted: m.TalosVersion})
	}

	if m.Schematic != "" && s.Schematic != m.Schematic {
		drift = append(drift, record.Difference{Kind: record.SchematicDiffers, Found: s.Schematic, Wanted: m.Schematic})
	}

	return drift
}

// driftOfImages compares the images of Kubernetes with those of the configuration. A
// configuration that leaves an image to Talos names none.
func driftOfImages(m cluster.Machine, s step.MachineState) record.Drift {
	var drift record.Drift

	for _, c := range componentsOf(m.Images) {
		if s.Images != nil && s.Images[c] != m.Images[c] {
			drift = append(drift, record.Difference{Kind: record.ImageDiffers, Component: c,
				Found: s.Images[c], Wanted: m.Images[c]})
		}
	}

	return drift
}

// driftOfRunning tells which components run in another version than their images have.
func driftOfRunning(m cluster.Machine, have cluster.Snapshot) record.Drift {
	var drift record.Drift

	node, registered := have.NodeOf(m)
	if !registered {
		return nil
	}

	images := have.Machines[m.Name].Images
	other := runningOtherwise(images, RunningOn(node))

	for _, c := range componentsOf(other) {
		drift = append(drift, record.Difference{Kind: record.RunsOther, Component: c, Found: other[c],
			Wanted: images[c]})
	}

	return drift
}

// driftOfOwner tells that another resource has taken a machine over, or that the owner mark is not authentic. A node
// without a mark is that of a machine that no resource has claimed: that of an import, or one that registered again.
func driftOfOwner(m cluster.Machine, want cluster.Spec, have cluster.Snapshot) record.Drift {
	node, registered := have.NodeOf(m)
	if !registered {
		return nil
	}

	if owner := have.Kubernetes.Owners[node.Name]; owner != "" && owner != want.Owner {
		return record.Drift{{Kind: record.OwnedByAnother}}
	}

	// One that only lacks its proof is as good as none: the next run writes it.
	if owner, unproven := have.Kubernetes.Unproven[node.Name]; unproven && owner != want.Owner {
		return record.Drift{{Kind: record.MarkUnproven, Found: fmt.Sprintf("%.*s", longestOwner, owner)}}
	}

	return nil
}

// longestOwner is how much is recorded of an owner that anyone may have written: ids of resources have 26 characters.
const longestOwner = 40

// missing tells what a member lacks in the cluster, as far as somebody answered for it.
func missing(m cluster.Machine, have cluster.Snapshot) record.Drift {
	var lacks record.Drift

	if m.Role == step.ControlPlane && have.Etcd.GoesBack != "" {
		lacks = append(lacks, record.Difference{Kind: record.EtcdGoesBack, Wanted: have.Etcd.GoesBack})
	}

	if m.Role == step.ControlPlane && have.Etcd.Known {
		if _, ok := have.MemberOf(m); !ok {
			kind := record.NoMember
			if have.Machines[m.Name].EtcdService == step.ServiceFinished {
				kind = record.LeftEtcd
			}

			lacks = append(lacks, record.Difference{Kind: kind})
		}
	}

	if have.Kubernetes.Reachable {
		if _, ok := have.NodeOf(m); !ok {
			lacks = append(lacks, record.Difference{Kind: record.NoNode})
		}
	}

	return lacks
}

// untold are the kinds of drift that have warnings of their own.
var untold = []record.Kind{record.NotOnHost, record.OthersWork, record.HostStays, record.NotReady,
	record.EtcdNotHealthy}

// WarnOfDrift tells how machines differ from what was applied last. What is gone from a host cluster, and what stays as
// it is there, have warnings of their own.
func WarnOfDrift(drift map[string]record.Drift) finding.List {
	var lines []string

	for _, name := range slices.Sorted(maps.Keys(drift)) {
		for _, difference := range drift[name].Without(untold...) {
			lines = append(lines, name+": "+difference.String())
		}
	}

	if len(lines) == 0 {
		return nil
	}

	return finding.List{finding.Warn("Machines differ from what was applied last",
		finding.Report{Now: lines, Next: "What is configured wins: `operations` of the plan says what the next apply does " +
			"about it. To keep a difference, put it into the configuration."}.String())}
}

// Unexpected warns of what is not as talosop left it and what no plan puts right, because
// somebody may have meant it.
func Unexpected(p Set, want cluster.Spec, have cluster.Snapshot) finding.List {
	var (
		diags    finding.List
		cordoned []string
	)

	for _, m := range want.Machines {
		if node, ok := have.NodeOf(m); ok && node.Unschedulable && !node.Cordoned {
			cordoned = append(cordoned, fmt.Sprintf("%s (node %s)", m.Name, node.Name))
		}
	}

	if len(cordoned) > 0 {
		diags.Append(finding.Warn("Nodes are cordoned by others",
			"These nodes take no new pods, and it was not talosop that made them so. They are left "+
				"as they are; `kubectl uncordon` gives them back.\n  - "+strings.Join(cordoned, "\n  - ")))
	}

	diags.Append(otherFirmware(p, want, have)...)

	if unknown := unknownMembers(p, want, have); len(unknown) > 0 {
		diags.Append(finding.Warn("etcd has members that are not listed here",
			"They count for the majority that etcd needs, and this resource does not touch them. That is as it should be for "+
				"control planes of other resources, such as talosop_machine, and of those that somebody else keeps. When the "+
				"machine of a member is gone for good, `talosctl etcd remove-member` removes it; make sure first that nothing "+
				"else owns it.\n  - "+strings.Join(unknown, "\n  - ")))
	}

	return diags
}

// unknownMembers lists the members of etcd that belong to no machine of a resource which
// has the whole control plane, and whose nodes no other resource has marked as its own.
func unknownMembers(p Set, want cluster.Spec, have cluster.Snapshot) []string {
	if !p.TakesCluster() || !have.Etcd.Known {
		return nil
	}

	known := map[string]bool{}

	for _, m := range want.Known() {
		if member, ok := have.MemberOf(m); ok {
			known[member.ID] = true
		}

		known[m.MemberID] = true
	}

	var unknown []string

	for _, member := range have.Etcd.Members {
		if !known[member.ID] && have.Kubernetes.Owners[member.Name] == "" {
			unknown = append(unknown, fmt.Sprintf("%s (%s)", cmp.Or(member.Name, "not started"), member.ID))
		}
	}

	return unknown
}
