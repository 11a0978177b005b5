package machineset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// Drift is how machines differ from what was applied last. It is told by a refresh, as
// text without values, and read back where a plan has to know whether putting a
// configuration right takes a reboot.

const (
	// DriftConfig begins what is told of a configuration.
	DriftConfig = "configuration: "
	// DriftImage begins what is told of an image of Kubernetes.
	DriftImage = "image of "
	// DriftWiped is told of a machine that lost its configuration.
	DriftWiped = "it waits in maintenance mode, without a configuration"
	// DriftMember is told of a control plane without a member in etcd.
	DriftMember = "it has no member in etcd"
	// DriftNode is told of a machine without a node in Kubernetes.
	DriftNode = "it has no node in Kubernetes"
	driftGone = "the host cluster has neither a pod nor volumes of it"
	// DriftHost begins what is told of a container whose objects on the host cluster differ.
	DriftHost = "host cluster: "
	// driftStays is told of a container's claims, and is nothing that an apply puts right.
	driftStays = "host cluster, left as it is: "
	// driftLost is told of a container as DriftHost is, and is nothing that is put right before a step.
	driftLost = "its volumes can never be used again, and its data is lost"
)

// Examination compares the configurations that machines have with those of state. It is
// asked from several goroutines.
type Examination struct {
	// Wanted is the configurations that state stands for. They are rendered when the first
	// machine differs.
	Wanted func() (Rendered, error)

	Mu     sync.Mutex
	Places map[string][]machineconfig.Place
}

// NewExamination compares with the configurations of a set whose machines were recorded.
func NewExamination(p Set, record Record) *Examination {
	return &Examination{Places: map[string][]machineconfig.Place{},
		Wanted: sync.OnceValues(p.WithPeers(record.Peers).Configurations)}
}

// Expect says which configuration each machine is taken to have: the recorded one, so that
// a machine which still has it need not be compared. One that differed the last time is
// compared with that of state. So are all machines unless the last run left every one of
// them with what state says: an import, or an update that did not finish.
func (e *Examination) Expect(machines []cluster.Machine, recorded Record) {
	for i, m := range machines {
		machines[i].ConfigDigest = recorded.Machines[m.Name].ConfigDigest

		drifted := slices.ContainsFunc(recorded.Drift[m.Name],
			func(d string) bool { return strings.HasPrefix(d, DriftConfig) })
		if !drifted && recorded.Phase == cluster.Ready {
			continue
		}

		if files, err := e.Wanted(); err == nil {
			machines[i].ConfigDigest = files.Digests[m.Name]
		}
	}
}

// ExpectImages says which images of Kubernetes each machine is taken to have: those of state,
// which need not be known of a machine that has what the last run left it with.
func (e *Examination) ExpectImages(machines []cluster.Machine, have cluster.Snapshot, recorded Record) {
	for i, m := range machines {
		state := have.Machines[m.Name]
		if state.Access != cluster.Member || state.Images == nil {
			continue
		}

		drifted := slices.ContainsFunc(recorded.Drift[m.Name],
			func(d string) bool { return strings.HasPrefix(d, DriftImage) })
		if !drifted && recorded.Phase == cluster.Ready && maps.Equal(recorded.Machines[m.Name].Images, state.Images) {
			continue
		}

		if files, err := e.Wanted(); err == nil {
			machines[i].Images = files.Images[m.Name]
		}
	}
}

// Look notes where a configuration differs from that of state, and lists the fields that
// take a reboot to put it right.
func (e *Examination) Look(machine string, active []byte) ([]string, error) {
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

	var places []machineconfig.Place

	for _, c := range changes {
		places = append(places, c.Place)
	}

	e.Mu.Lock()
	defer e.Mu.Unlock()

	e.Places[machine] = places

	return nil, nil
}

// driftedPlace is the place that state says a configuration differs in. Another kind of drift has none.
func driftedPlace(stored string) (machineconfig.Place, bool) {
	text, ok := strings.CutPrefix(stored, DriftConfig)
	if !ok {
		return machineconfig.Place{}, false
	}

	place, err := machineconfig.ParsePlace(text)

	return place, err == nil
}

func driftOfConfiguration(places []machineconfig.Place) []string {
	var drift []string

	for _, place := range places {
		drift = append(drift, DriftConfig+place.String())
	}

	return drift
}

// DriftOf tells how machines that answered differ from what state says of them.
func DriftOf(want cluster.Spec, have cluster.Snapshot, places map[string][]machineconfig.Place) map[string][]string {
	drift := map[string][]string{}

	for _, m := range want.Machines {
		switch state := have.Machines[m.Name]; state.Access {
		case cluster.Maintenance:
			drift[m.Name] = []string{DriftWiped}
		case cluster.Gone:
			drift[m.Name] = []string{driftGone}
		case cluster.Member:
			drift[m.Name] = slices.Concat(driftOfAddress(m, state), driftOfTalos(m, state), driftOfImages(m, state),
				driftOfRunning(m, have), driftOfConfiguration(places[m.Name]), missing(m, have))
		default:
		}
	}

	return drift
}

func driftOfAddress(m cluster.Machine, s cluster.MachineState) []string {
	if s.FoundAt == "" {
		return nil
	}

	return []string{fmt.Sprintf("address: it answers at %s, not at %s", s.FoundAt, m.Address)}
}

func driftOfTalos(m cluster.Machine, s cluster.MachineState) []string {
	var drift []string

	if s.TalosVersion != "" && s.TalosVersion != m.TalosVersion {
		drift = append(drift, fmt.Sprintf("Talos: %s runs, not %s", s.TalosVersion, m.TalosVersion))
	}

	if m.Schematic != "" && s.Schematic != m.Schematic {
		drift = append(drift, fmt.Sprintf("schematic: %s runs, not %s", cluster.ShortID(cmp.Or(s.Schematic, "none")),
			cluster.ShortID(m.Schematic)))
	}

	return drift
}

// driftOfImages compares the images of Kubernetes with those of the configuration. A
// configuration that leaves an image to Talos names none.
func driftOfImages(m cluster.Machine, s cluster.MachineState) []string {
	var drift []string

	for _, c := range componentsOf(m.Images) {
		if s.Images != nil && s.Images[c] != m.Images[c] {
			drift = append(drift, fmt.Sprintf("%s%s: %s, not %s", DriftImage, c, cmp.Or(s.Images[c], "that of Talos"),
				m.Images[c]))
		}
	}

	return drift
}

// driftOfRunning tells which components run in another version than their images have.
func driftOfRunning(m cluster.Machine, have cluster.Snapshot) []string {
	var drift []string

	node, registered := have.NodeOf(m)
	if !registered {
		return nil
	}

	images := have.Machines[m.Name].Images
	other := runningOtherwise(images, RunningOn(node))

	for _, c := range componentsOf(other) {
		drift = append(drift, fmt.Sprintf("%s: %s runs, and its image is %s", c, other[c], images[c]))
	}

	return drift
}

// missing tells what a member lacks in the cluster, as far as somebody answered for it.
func missing(m cluster.Machine, have cluster.Snapshot) []string {
	var lacks []string

	if m.Role == cluster.ControlPlane && have.Etcd.Known {
		if _, ok := have.MemberOf(m); !ok {
			lacks = append(lacks, DriftMember)
		}
	}

	if have.Kubernetes.Reachable {
		if _, ok := have.NodeOf(m); !ok {
			lacks = append(lacks, DriftNode)
		}
	}

	return lacks
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

	if unknown := unknownMembers(p, want, have); len(unknown) > 0 {
		diags.Append(finding.Warn("etcd has members that are not listed here",
			"They count for the majority that etcd needs, and this resource does not touch "+
				"them. That is as it should be for control planes of other resources, such as talosop_machine, and of those that "+
				"somebody else keeps. When the machine "+
				"of a member is gone for good, `talosctl etcd remove-member` removes it; make sure first that nothing else owns "+
				"it.\n  - "+strings.Join(unknown, "\n  - ")))
	}

	return diags
}

// unknownMembers lists the members of etcd that belong to no machine of a resource which
// has the whole control plane.
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
		if !known[member.ID] {
			unknown = append(unknown, fmt.Sprintf("%s (%s)", cmp.Or(member.Name, "not started"), member.ID))
		}
	}

	return unknown
}
