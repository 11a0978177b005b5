package cluster_test

import (
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// eye observes the model as lifecycle's observer observes machines: with its own memory, which is empty when a run
// begins.
type eye struct {
	site   *site
	want   cluster.Spec
	states map[string]step.MachineState
	views  map[string]etcdstate.View
	peers  []cluster.Machine
	// manifests is the version of the synced bootstrap manifests.
	manifests string
}

func newEye(s *site, want cluster.Spec) *eye {
	return &eye{site: s, want: want, states: map[string]step.MachineState{}, views: map[string]etcdstate.View{}}
}

func (e *eye) machines() []cluster.Machine { return slices.Concat(e.want.Known(), e.peers) }

func (e *eye) machine(name string) cluster.Machine {
	all := e.machines()

	return all[slices.IndexFunc(all, func(m cluster.Machine) bool { return m.Name == name })]
}

func (e *eye) observe() cluster.Snapshot {
	have := cluster.Snapshot{Time: e.site.now, Machines: map[string]step.MachineState{},
		Peers: map[string]step.MachineState{}}

	for _, m := range e.machines() {
		e.ask(m)
		have.Machines[m.Name] = e.states[m.Name]
	}

	have.Etcd = e.etcd()
	have.Kubernetes = e.kubernetes()
	have.Kubernetes.Manifests = e.manifests

	if have.Kubernetes.Reachable {
		have.Kubernetes.KubeProxy = e.site.proxy
	}
	have.Etcd.Views = map[string]etcdstate.View{}

	for _, m := range e.machines() { // and not former peers
		if v, ok := e.views[m.Name]; ok {
			have.Etcd.Views[v.Member] = v
		}
	}

	var peers []cluster.Machine

	for _, member := range cluster.Unowned(e.want, have) {
		name := cluster.PeerName(member)

		for _, m := range e.site.members {
			if m.id == member.ID {
				peers = append(peers, cluster.MachineAt(name, step.ControlPlane, m.peer))
			}
		}

		if s, asked := e.states[name]; asked {
			have.Peers[member.ID] = s
		}
	}

	if have.Etcd.Known {
		e.peers = peers
	}

	return have
}

// ask asks one machine.
func (e *eye) ask(m cluster.Machine) {
	old := e.states[m.Name]
	if old.Busy != "" {
		return
	}

	fresh := e.site.answer(m)
	if b := e.site.podOf(m); b != nil && m.Container {
		fresh = e.site.podAnswer(b, fresh)
		fresh.Current = fresh.Current && b.version == m.TalosVersion // the image shows it
	}

	fresh.Since = old.Since

	if old.Access != fresh.Access || old.Stage != fresh.Stage || old.Since.IsZero() {
		fresh.Since = e.site.now
	}

	without := fresh.Access == step.Maintenance || fresh.Access == step.Member && fresh.EtcdService.WithoutData() &&
		!fresh.BootstrapRequested
	fresh.BootstrapSent, fresh.Upgraded, fresh.RebootedFrom, fresh.Pulled = old.BootstrapSent, old.Upgraded,
		old.RebootedFrom, old.Pulled
	fresh.Upgraded.Booted = old.Upgraded.Booted || old.Upgraded.Version != "" && fresh.BootID != "" &&
		fresh.BootID != old.Upgraded.BootID
	fresh.KubeletRestarted = old.KubeletRestarted
	fresh.WasMember = old.WasMember || fresh.Access == step.Member
	fresh.FirstBoot = old.FirstBoot && !without
	fresh.Fresh = (old.Fresh && (fresh.Answers() || fresh.FirstBoot) || without) && !fresh.BootstrapSent && !fresh.BootstrapRequested &&
		!fresh.EtcdService.ProvesData()
	fresh.Resetting = old.Resetting && (fresh.Access != step.Member || old.Access == step.Member)

	if fresh.NodeName == "" {
		fresh.NodeName = old.NodeName
	}

	if fresh.Access == step.Unreachable {
		fresh.UUID = old.UUID
	}

	e.states[m.Name] = fresh

	delete(e.views, m.Name)

	if b := e.site.at(m.Address); b != nil && m.Role == step.ControlPlane && fresh.Access == step.Member &&
		e.site.etcdUp(b) {
		e.views[m.Name] = e.site.view(b)
	}
}

// answer is the observation of a machine.
func (s *site) answer(m cluster.Machine) step.MachineState {
	b := s.at(m.Address)

	switch {
	case b == nil:
		return step.MachineState{Access: step.Unreachable, Cause: "no route to host"}
	case b.foreign:
		return step.MachineState{Access: step.Foreign, Cause: "unknown authority"}
	case b.impostor:
		return step.MachineState{Access: step.Maintenance, Stage: step.StageMaintenance}
	case b.life == maintenance:
		return step.MachineState{Access: step.Maintenance, Stage: step.StageMaintenance, UUID: b.uuid}
	}

	state := step.MachineState{
		Access: step.Member, Stage: step.Stage(b.life), UUID: b.uuid, BootID: fmt.Sprint(b.uuid, "/", b.boot),
		TalosVersion: b.version,
		Schematic:    b.schematic, Platform: "metal", Role: step.Worker, NodeName: b.name, ConfigDigest: b.digest,
		Ready:  s.well(b) && !s.noCNI,
		Images: b.kube.images, StagedDigest: b.staged,
	}

	if !state.Ready {
		state.Unmet = s.unmet(b)
	}

	if b.needsReboot && b.digest != newDigest {
		state.RebootFor = []string{"machine.sysctls"}
	}

	if b.controlPlane {
		state.Role, state.EtcdService, state.BootstrapRequested = step.ControlPlane, s.etcdService(b), b.asked
		if b.data {
			state.RestoredAt = b.restored
		}

		state.StaticPods = map[string]string{}

		for _, c := range staticPods {
			state.StaticPods[string(c)] = b.kube.images[c]
		}
	}

	return state
}

// unmet are the Talos conditions that a machine does not meet.
func (s *site) unmet(b *box) []string {
	var unmet []string
	if b.controlPlane && !b.kube.podsWork() {
		unmet = append(unmet, "staticPods: kube-system/kube-apiserver-"+b.name+" not ready")
	}

	if !b.kube.works(kubenames.Kubelet) {
		unmet = append(unmet, "services: kubelet not healthy")
	}

	if n := s.nodeOf(b); n == nil || !s.ready(n) || len(unmet) == 0 {
		unmet = append(unmet, "nodeReady: node is not ready")
	}

	return unmet
}

func (s *site) etcdService(b *box) step.ServiceState {
	switch {
	case s.etcdUp(b):
		return step.ServiceRunning
	case b.left:
		return step.ServiceFinished
	case !b.data:
		return step.ServicePreparing
	default:
		return "Starting"
	}
}

// view is etcd as one member sees it.
func (s *site) view(b *box) etcdstate.View {
	v := etcdstate.View{Member: b.member, Versions: s.etcdVersionsOf(b)}

	for _, m := range s.members {
		v.Members = append(v.Members, m.id)

		if v.Leader == "" && !m.learner && s.etcdUp(m.box) && s.quorum() {
			v.Leader = m.id
		}
	}

	slices.Sort(v.Members)

	if s.alarm {
		v.Alarms = []string{"NOSPACE on " + s.members[0].id}
	}

	if s.split && v.Leader != "" && b.member != v.Leader {
		v.Leader = b.member
	}

	return v
}

func (e *eye) etcd() etcdstate.State {
	for _, m := range e.machines() {
		state := e.states[m.Name]
		if m.Role != step.ControlPlane || state.Access != step.Member || state.Busy != "" ||
			state.EtcdService.WithoutData() {
			continue
		}

		if b := e.site.at(m.Address); b == nil || !e.site.etcdUp(b) || !e.site.quorum() {
			continue
		}

		known := etcdstate.State{Known: true}
		for _, m := range e.site.members {
			known.Members = append(known.Members, etcdstate.Member{
				ID: m.id, Name: m.box.name, Learner: m.learner, PeerURLs: []string{"https://" + m.peer + ":2380"},
			})
		}

		return known
	}

	return etcdstate.State{Cause: "no leader"}
}

func (e *eye) kubernetes() kubestate.State {
	if !e.site.api() {
		return kubestate.State{Cause: "connection refused"}
	}

	state := kubestate.State{Reachable: true, Owners: map[string]string{}}
	for _, n := range e.site.nodes {
		node := kubestate.Node{
			Name: n.name, Addresses: []string{n.box.addr}, Ready: e.site.ready(n), Unschedulable: n.ours || n.foreign,
			Cordoned: n.ours, TalosVersion: n.box.version,
			ControlPlane: n.box.controlPlane, KubeletVersion: e.site.versionOf(n.box.kube.shown[kubenames.Kubelet].Image),
		}

		for _, c := range staticPods {
			pod, shown := n.box.kube.shown[c]
			if !shown {
				continue
			}

			if node.StaticPods == nil {
				node.StaticPods = map[string]kubestate.StaticPod{}
			}

			node.StaticPods[string(c)] = pod
		}

		state.Nodes = append(state.Nodes, node)

		if n.box.others {
			state.Owners[n.name] = "another"
		}
	}

	return state
}
