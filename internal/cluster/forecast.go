package cluster

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// Assume is the snapshot for a Terraform plan: the recorded state of each machine, and maintenance mode for
// unrecorded ones. The control planes of other resources are assumed to work in a cluster with etcd. It does no I/O,
// so both planning passes of one apply agree.
func Assume(want Spec, recorded map[string]step.MachineState) Snapshot {
	if lostOnRecord(want, recorded) {
		return assumeLost(want, recorded)
	}

	have := Snapshot{Machines: map[string]step.MachineState{}, Kubernetes: kubestate.State{Owners: map[string]string{}}}
	want.NodesBecomeReady = want.NodesBecomeReady || readyOnRecord(recorded)
	founded := want.Bootstrapped || !want.OwnsBootstrap() || foundedOnRecord(want, recorded)

	for _, m := range slices.Concat(want.all(), want.Removed) {
		s, ok := recorded[m.Name]
		if !ok {
			s = waiting(m)
		}

		have.Machines[m.Name] = s

		switch {
		case s.Access == step.Member && founded:
			settle(want, &have, m) // an observed boot finishes
			have.keepOutOfEtcd(m, s)
		case s.Access != step.Member:
			leaveBehind(&have, m)
		}
	}

	lost, _ := quorumLost(want, recorded)
	lives := (want.Bootstrapped || !want.OwnsBootstrap()) && len(lost) == 0

	for _, m := range want.OtherControlPlanes {
		have.Machines[m.Name] = step.MachineState{Access: step.Maintenance, Stage: step.StageMaintenance}

		if lives {
			have.Machines[m.Name] = step.MachineState{Access: step.Member, Role: step.ControlPlane}
			settle(want, &have, m)
		}
	}

	have.Etcd.Known, have.Kubernetes.Reachable = lives, lives

	if lives {
		have.addUnmanaged(want, recorded)
	}

	return have
}

// waiting is a machine without a record: it waits for its first configuration, and has the right identity.
func waiting(m Machine) step.MachineState {
	return step.MachineState{Access: step.Maintenance, Stage: step.StageMaintenance, UUID: m.UUID}
}

// keepOutOfEtcd leaves a control plane that was observed to have left etcd without a member in the model.
func (s *Snapshot) keepOutOfEtcd(m Machine, seen step.MachineState) {
	if m.Role != step.ControlPlane || seen.EtcdService != step.ServiceFinished {
		return
	}

	state := s.Machines[m.Name]
	state.EtcdService, state.MemberID = step.ServiceFinished, ""
	s.Machines[m.Name] = state
	s.removeMember(memberIn(m))
}

// readyOnRecord reports whether a machine was observed ready, which requires a Ready node (Talos 1.13) and therefore
// a network of any kind.
func readyOnRecord(recorded map[string]step.MachineState) bool {
	for _, s := range recorded {
		if s.Access == step.Member && s.Ready {
			return true
		}
	}

	return false
}

// foundedOnRecord reports whether a control plane was observed running, which requires etcd (Talos 1.13). A worker
// runs without a cluster too.
func foundedOnRecord(want Spec, recorded map[string]step.MachineState) bool {
	return slices.ContainsFunc(want.everyControlPlane(), func(m Machine) bool {
		s := recorded[m.Name]

		return s.Access == step.Member && s.Stage == step.StageRunning
	})
}

// lostOnRecord reports whether a restore is wanted for an etcd of which no control plane is recorded to have data:
// none was observed running. A configured one that waits for etcd is booting until then (Talos 1.13).
func lostOnRecord(want Spec, recorded map[string]step.MachineState) bool {
	runs := func(m Machine) bool {
		s := recorded[m.Name]

		return s.Access == step.Member && (s.Stage == step.StageRunning || newlyRestored(want, s))
	}

	return want.RestoreFrom != "" && want.OwnsBootstrap() && want.Bootstrapped &&
		!slices.ContainsFunc(want.everyControlPlane(), runs)
}

// assumeLost is Assume for that case: etcd and Kubernetes do not answer, and workers stay as they are.
func assumeLost(want Spec, recorded map[string]step.MachineState) Snapshot {
	have := Snapshot{Machines: map[string]step.MachineState{}, Kubernetes: kubestate.State{Owners: map[string]string{}},
		networked: readyOnRecord(recorded)}

	for _, m := range slices.Concat(want.all(), want.Removed) {
		s, ok := recorded[m.Name]

		switch {
		case !ok:
			s = waiting(m)
		case s.Access == step.Member && m.Role == step.ControlPlane:
			s.Stage, s.EtcdService = step.StageBooting, step.ServicePreparing
		default:
			s.Ready = false // until Kubernetes answers again
		}

		have.Machines[m.Name] = s
	}

	return have
}

// Forecast lists every step, in order, of a run from this snapshot if every machine does what it is asked. It runs
// the planner against a model of the machines until nothing is left. It assumes that waits succeed, and lists what
// the run does afterward. Steps that depend on what only the network knows are absent.
//
// last is the decision after these steps. It is Done when nothing else is left and nothing has to be waited for.
// Otherwise it says what holds the run, and what refuses the rest. It has steps only when the plan did not finish
// within the rounds of any valid plan, which is a bug of the planner.
func Forecast(want Spec, have Snapshot, p Policy) (steps []step.Step, last Decision) {
	want = want.Ordered().afterControlPlanes(have)
	steps, last = forecast(want, have, p, math.MaxInt, func(s Snapshot) Decision { return Plan(want, s, p) })

	return markAwaiting(want, steps), last
}

// Next lists the next steps, at least most if there are as many, of a run that decides so, as [Forecast] does.
func Next(want Spec, have Snapshot, p Policy, most int, decide func(Snapshot) Decision) []step.Step {
	steps, _ := forecast(want, have, p, most, decide)

	return steps
}

// ForecastTeardown is Forecast for PlanTeardown.
func ForecastTeardown(want Spec, have Snapshot, p Policy) (steps []step.Step, last Decision) {
	want = want.Ordered()

	return forecast(want, have, p, math.MaxInt, func(s Snapshot) Decision { return PlanTeardown(want, s, p) })
}

// forecast runs the planner on a model until nothing is left, or until it has most steps.
func forecast(
	want Spec, have Snapshot, p Policy, most int, decide func(Snapshot) Decision,
) (steps []step.Step, last Decision) {
	var (
		model  = have.clone()
		waited []step.Hold
		waits  int
	)

	// Each round finishes at least one step on a machine, and a machine has few. Only a repeating rule reaches the
	// bound.
	for range 20 * (len(want.Known()) + 1) * (1 + len(want.Kubernetes.Via)) {
		last = decide(model)
		if len(last.Steps) == 0 {
			waited = mergeHolds(waited, last.Holds)

			if last.Done() || len(last.Refusals) > 0 || waits == mostWaits || !model.await(want, p) {
				break
			}

			waits++

			continue
		}

		for _, s := range last.Steps {
			model.advance(want, s)
		}

		if steps = append(steps, last.Steps...); len(steps) >= most {
			break
		}
	}

	last.Holds = waited

	return steps, last
}

func (s Snapshot) clone() Snapshot {
	s.Machines = maps.Clone(s.Machines)
	s.Etcd.Members = slices.Clone(s.Etcd.Members)
	s.Kubernetes.Nodes, s.nodes = slices.Clone(s.Kubernetes.Nodes), nil

	return s
}

// advance changes the model as a step changes the machines, including what they then do by themselves.
func (s *Snapshot) advance(want Spec, op step.Step) {
	m, _ := want.Find(op.On())
	step.Forecast(op, stepModel{have: s, want: want, on: m})
}

// upgrade gives a machine of the model another Talos, or another pod.
func (s *Snapshot) upgrade(want Spec, m Machine, op step.Upgrade) {
	state := started(m, s.Machines[m.Name])
	state.Boot()
	state.Current = !m.Platform().Installed && op.To == m.TalosVersion
	state.TalosVersion = op.To
	s.tellTalos(m, op.To)

	if op.Schematic != "" {
		state.Schematic = op.Schematic
	}

	if m.Extensions != nil {
		state.Extensions = m.Extensions
	}

	state.Upgraded = step.UpgradeMark{BootID: state.BootID, Version: op.To, Schematic: op.Schematic}
	s.Machines[m.Name] = state
	s.noteStaged(m)
	s.takeOut(op.Evacuation)
	s.loseData(m, op)
	s.Etcd.Run(state.MemberID, m.etcdWith(op.To))
	s.joinAll(want)

	if have := etcdVersions(want, *s); have.GoesBack && have.Newest == have.Data {
		s.Etcd.EndDowngrade() // as the last downgraded member does (etcd 3.6, CancelDowngradeIfNeeded)
	}
}

// configure gives a machine of the model its configuration. A machine in maintenance mode is installed and joins. A
// member continues, after a reboot where it needs one.
func (s *Snapshot) configure(want Spec, m Machine, op step.ApplyConfig) {
	state := s.Machines[m.Name]
	fresh := state.Access == step.Maintenance
	named := m.Images

	if op.Kubernetes != "" {
		named = m.Images.At(want.Kubernetes.Version, op.Kubernetes)
	}

	if op.Staged != "" {
		state.StagedDigest, state.RebootFor = op.Digest, nil
		s.Machines[m.Name] = state
		s.noteStaged(m)

		return
	}

	state.StagedDigest = ""
	state.Access, state.ConfigDigest, state.Role, state.RebootFor = step.Member, op.Digest, m.Role, nil
	state.Keys = op.Keys

	if !fresh {
		state.Boot()
	}

	if fresh {
		state.Fresh, state.Stage, state.EtcdService = true, step.StageBooting, step.ServicePreparing
		state.TalosVersion, state.Schematic = m.TalosVersion, m.Schematic
		state.NodeName = cmp.Or(m.WantedNode, state.NodeName)
		state.Images = named
	}

	if !fresh && state.Images != nil && len(state.Images) < len(named) {
		named = maps.Clone(named)
		maps.Copy(named, state.Images)
		state.Images = named
	}

	s.Machines[m.Name] = state
	s.noteStaged(m)
	s.takeOut(op.Evacuation)
	s.joinAll(want)
}

// run runs the kubelet and the static pods of a machine's configuration on its node, as far as the model has them.
func (s *Snapshot) run(m Machine) {
	images := s.Machines[m.Name].Images
	version, known := kubenames.ImageVersion(images[kubenames.Kubelet])

	s.onNodeOf(m, func(n *kubestate.Node) {
		if known {
			n.KubeletVersion = version
		}

		n.StaticPods = maps.Clone(n.StaticPods)
		for name, pod := range n.StaticPods {
			if image := images[kubenames.Component(name)]; image != "" {
				pod.Image, pod.Ready = image, true
				n.StaticPods[name] = pod
			}
		}
	})
}

// onNode changes a node of the model, if it exists.
func (s *Snapshot) onNode(name string, change func(n *kubestate.Node)) {
	for i := range s.Kubernetes.Nodes {
		if n := &s.Kubernetes.Nodes[i]; n.Name == name {
			change(n)
		}
	}
}

// onNodeOf changes the node of a machine of the model, if it has one.
func (s *Snapshot) onNodeOf(m Machine, change func(n *kubestate.Node)) {
	if node, ok := s.NodeOf(m); ok {
		s.onNode(node.Name, change)
	}
}

// unproven gives a node of the model an owner mark that is not authentic.
func (s *Snapshot) unproven(node string) {
	s.Kubernetes.Unproven = maps.Clone(s.Kubernetes.Unproven)
	if s.Kubernetes.Unproven == nil {
		s.Kubernetes.Unproven = map[string]string{}
	}

	s.Kubernetes.Unproven[node] = ""
}

func (s *Snapshot) mark(node, owner string) {
	s.Kubernetes.Owners = maps.Clone(s.Kubernetes.Owners)
	if s.Kubernetes.Owners == nil {
		s.Kubernetes.Owners = map[string]string{}
	}

	if owner != "" {
		s.Kubernetes.Owners[node] = owner
	}

	s.Kubernetes.Unproven = maps.Clone(s.Kubernetes.Unproven)
	delete(s.Kubernetes.Unproven, node)
}

// noteStaged records on a model node whether a configuration waits for the next boot. A run does that, and no plan
// shows it because it changes nothing.
func (s *Snapshot) noteStaged(m Machine) {
	s.onNodeOf(m, func(n *kubestate.Node) { n.Staged = s.Machines[m.Name].StagedDigest != "" })
}

// takeOut takes a machine of the model out of service.
func (s *Snapshot) takeOut(e step.Evacuation) {
	s.cordon(e.Node, true)

	if e.Soaks {
		s.onNode(e.Node, func(n *kubestate.Node) { n.Soak.Due = true })
	}
}

func (s *Snapshot) cordon(node string, cordoned bool) {
	s.onNode(node, func(n *kubestate.Node) {
		if n.Cordoned == n.Unschedulable { // otherwise another client cordoned it
			n.Unschedulable, n.Cordoned = cordoned, cordoned
		}
	})
}

// wipe removes everything from a machine of the model; nothing is left of a deleted pod.
func (s *Snapshot) wipe(m Machine, deleted bool) {
	s.lose(m)

	state := waiting(m)
	state.NodeName = s.Machines[m.Name].NodeName

	if deleted {
		state.Access, state.Stage = step.Gone, ""
	}

	s.Machines[m.Name] = state
}

// lose turns the node of a machine of the model into one without a kubelet.
func (s *Snapshot) lose(m Machine) {
	s.onNodeOf(m, func(n *kubestate.Node) { n.Ready = false })
}

func (s *Snapshot) removeMember(id string) {
	s.Etcd.Members = slices.DeleteFunc(s.Etcd.Members, func(e etcdstate.Member) bool { return e.ID == id })
	s.agree()
}

// agree makes the members of the model know each other, if they were asked.
func (s *Snapshot) agree() {
	if s.Etcd.Views == nil {
		return
	}

	var (
		ids    []string
		leader string
	)

	for _, e := range s.Etcd.Members {
		ids = append(ids, e.ID)

		if leads := s.Etcd.Views[e.ID].Leader == e.ID; leads || leader == "" && !e.Learner {
			leader = e.ID
		}
	}

	slices.Sort(ids)

	views := map[string]etcdstate.View{}

	for _, id := range ids {
		view := s.Etcd.Views[id]
		view.Member, view.Members, view.Leader = id, ids, leader
		views[id] = view
	}

	s.Etcd.Views = views
}

// joinAll lets every configured machine join a cluster with etcd, when the spec has no control plane to ask.
func (s *Snapshot) joinAll(want Spec) {
	if !s.Etcd.Known && (want.OwnsControlPlane() || !s.Kubernetes.Reachable) {
		return
	}

	for _, m := range want.Machines {
		if state := s.Machines[m.Name]; state.Access == step.Member && (state.Stage != step.StageRunning || !state.Ready) {
			settle(want, s, m)
		}
	}
}

// settle makes a machine of the model a working part of its cluster.
func settle(want Spec, s *Snapshot, m Machine) {
	state := s.Machines[m.Name]
	state.Stage, state.Ready, state.Unmet = step.StageRunning, true, nil

	if m.Platform().Moves {
		state.Addresses = []string{m.Address}
		s.announce(m)
	}

	if m.Role == step.ControlPlane {
		state.EtcdService = step.ServiceRunning

		if _, ok := s.MemberOf(m); !ok {
			s.Etcd.Members = append(s.Etcd.Members,
				etcdstate.Member{ID: memberIn(m), Name: cmp.Or(state.NodeName, m.Name),
					PeerURLs: []string{"https://" + hostInURL(m.Address) + ":2380"}})
			s.agree()
		}
	}

	if state.NodeName == "" {
		state.NodeName = m.Name
	}

	s.Machines[m.Name] = state

	node, registered := s.NodeOf(m)
	if !registered {
		node = kubestate.Node{Name: state.NodeName, Addresses: []string{m.Address}, ControlPlane: m.Role == step.ControlPlane,
			Soak: kubestate.Soak{Due: state.Soaks || want.IsCanary(m) && !m.InService}}
	}

	owner := want.Owner
	if state.Claimed {
		owner = anotherResource
	}

	if state.MarkUnproven {
		s.unproven(node.Name)
	} else {
		s.mark(node.Name, owner)
	}

	node.Ready, node.Staged = node.Ready || nodesBecomeReady(want, *s), state.StagedDigest != ""
	named := func(n kubestate.Node) bool { return n.Name == node.Name }
	s.Kubernetes.Nodes = append(slices.DeleteFunc(s.Kubernetes.Nodes, named),
		node)
	s.run(m)
}

// leaveBehind adds to the model what the cluster still has of a machine that lost its configuration or is gone: its
// recorded member and node.
func leaveBehind(s *Snapshot, m Machine) {
	name := s.Machines[m.Name].NodeName
	if name == "" && !m.Platform().NamesNode { // otherwise it may never have existed
		name = m.NodeName
	}

	if m.MemberID != "" {
		s.Etcd.Members = append(s.Etcd.Members,
			etcdstate.Member{ID: m.MemberID, Name: name, PeerURLs: []string{"https://" + hostInURL(m.Address) + ":2380"}})
	}

	if name != "" {
		s.Kubernetes.Nodes = append(s.Kubernetes.Nodes, kubestate.Node{Name: name, Addresses: []string{m.Address}})
	}
}

// memberIn is the ID of a machine's member in the model.
func memberIn(m Machine) string { return cmp.Or(m.MemberID, m.Name) }

// tellTalos sets the Talos version on the node of a machine of the model.
func (s *Snapshot) tellTalos(m Machine, version string) {
	if m.unmanaged() {
		s.onNode(m.NodeName, func(n *kubestate.Node) { n.TalosVersion = version })
	}
}
