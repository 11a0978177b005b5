package machineset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// Examination compares the configurations of machines with those of state. Several goroutines call it.
type Examination struct {
	// Wanted renders the configurations of state, when the first machine differs.
	Wanted func() (Rendered, error)

	Mu sync.Mutex
	// Differs is where the configurations of machines differ.
	Differs map[string]record.Drift
}

// NewExamination compares with the configurations of a set whose machines were recorded.
func NewExamination(p Set, seen Record) *Examination {
	return &Examination{Differs: map[string]record.Drift{},
		Wanted: sync.OnceValues(p.WithRecorded(seen).WithNames(seen).Configurations)}
}

// Expect sets the expected configuration of each machine: the recorded one, so that an unchanged machine is not
// compared. A machine that differed the last time is compared with state. So is a locked one, and so are all machines
// unless the last run applied state to every one of them. Examples are an import and an update that did not finish.
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

// ExpectImages sets the expected Kubernetes images of each machine: those of state. They need not be known for a
// machine that is as the last run left it.
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

// Look records where a configuration differs from that of state, and lists the fields that need a reboot to repair.
func (e *Examination) Look(machine, _ string, active []byte) ([]string, error) {
	files, err := e.Wanted()
	if err != nil {
		// This build cannot render the settings in state. The next plan renders them again and reports the error.
		return nil, nil
	}

	drift, err := driftOfConfiguration(files.Configs[machine], active)
	if err != nil {
		return nil, err
	}

	e.Mu.Lock()
	defer e.Mu.Unlock()

	e.Differs[machine] = drift

	return nil, nil
}

func driftOfConfiguration(wanted, active []byte) (drift record.Drift, err error) {
	changes, err := machineconfig.Diff(wanted, active)
	if err != nil {
		return nil, err
	}

	drift = driftAt(changes)

	unreadable, err := pki.UnreadableWith(wanted, active)
	for _, key := range unreadable {
		drift = append(drift, record.Difference{Kind: record.UnreadableSecrets, Found: key.String(),
			Wanted: key.Digest()})
	}

	return drift, err
}

func driftAt(changes []machineconfig.Change) (drift record.Drift) {
	for _, change := range changes {
		drift = append(drift, record.Difference{Kind: record.ConfigurationDiffers, Place: &change.Place})
	}

	return drift
}

// DriftOf is how machines that answered differ from state. configurations is how their configurations do.
func DriftOf(
	p Set, want cluster.Spec, have cluster.Snapshot, configurations map[string]record.Drift,
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
			differs := configurations[m.Name]
			if state.StagedDigest != "" && state.StagedDigest == m.ConfigDigest {
				differs = nil // it is as requested, and waits
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

// driftOfImages compares the Kubernetes images with those of the configuration. A configuration names no image where
// Talos chooses it.
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

// driftOfRunning finds components that run in another version than their image.
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

// driftOfOwner finds machines that another resource took over, and owner marks that are not authentic. A node without
// a mark belongs to an unclaimed machine: an imported one, or one that registered again.
func driftOfOwner(m cluster.Machine, want cluster.Spec, have cluster.Snapshot) record.Drift {
	node, registered := have.NodeOf(m)
	if !registered {
		return nil
	}

	if owner := have.Kubernetes.Owners[node.Name]; owner != "" && owner != want.Owner {
		return record.Drift{{Kind: record.OwnedByAnother}}
	}

	// A mark of this resource without a proof counts as missing: the next run writes it.
	if owner, unproven := have.Kubernetes.Unproven[node.Name]; unproven && owner != want.Owner {
		return record.Drift{{Kind: record.MarkUnproven, Found: fmt.Sprintf("%.*s", longestOwner, owner)}}
	}

	return nil
}

// longestOwner limits what is recorded of an owner that any client may have written: resource IDs have 26 characters.
const longestOwner = 40

// missing is what a member lacks in the cluster, as far as it was observed.
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

// warnedElsewhere are the kinds of drift that have their own warnings.
var warnedElsewhere = []record.Kind{record.NotOnHost, record.OthersWork, record.HostStays, record.NotReady,
	record.EtcdNotHealthy}

// WarnOfDrift warns about machines that differ from what was applied last. Missing and unrepairable objects of a host
// cluster have their own warnings.
func WarnOfDrift(drift map[string]record.Drift) finding.List {
	var lines, machines []string

	for _, name := range slices.Sorted(maps.Keys(drift)) {
		for _, difference := range drift[name].Without(warnedElsewhere...) {
			lines, machines = append(lines, name+": "+difference.String()), append(machines, name)
		}
	}

	if len(lines) == 0 {
		return nil
	}

	return finding.List{machinesDrifted.With(finding.Args{"machines": distinct(machines), "differences": lines})}
}

// Unexpected warns about differences that no plan repairs, because they may be intentional.
func Unexpected(p Set, want cluster.Spec, have cluster.Snapshot) finding.List {
	var (
		diags           finding.List
		cordoned, nodes []string
	)

	for _, m := range want.Machines {
		if node, ok := have.NodeOf(m); ok && node.Unschedulable && !node.Cordoned {
			cordoned, nodes = append(cordoned, m.Name), append(nodes, fmt.Sprintf("%s (node %s)", m.Name, node.Name))
		}
	}

	if len(cordoned) > 0 {
		diags.Append(nodesCordoned.With(finding.Args{"cluster": want.Name, "machines": cordoned, "nodes": nodes}))
	}

	if unknown := unknownMembers(p, want, have); len(unknown) > 0 {
		diags.Append(etcdMembersUnlisted.With(finding.Args{"cluster": want.Name, "members": unknown}))
	}

	return diags
}

// unknownMembers lists the etcd members that belong to no machine of a resource with the whole control plane, and
// whose nodes no other resource owns.
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
