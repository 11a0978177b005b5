package cluster_test

import (
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// observer observes the model as lifecycle's observer observes machines: with its own memory, which is empty when a run
// begins.
type observer struct {
	site   *site
	want   cluster.Spec
	states map[string]step.MachineState
	views  map[string]etcdstate.View
	peers  []cluster.Machine
	// manifests is the version of the synced bootstrap manifests.
	manifests string
	// apiUp is whether Kubernetes answered last, since apiSince, and owners those of nodes by its last answer. Only the end
	// of a cluster goes by them.
	apiUp    bool
	apiSince time.Time
	owners   map[string]string
	destroys bool
}

func newObserver(s *site, want cluster.Spec) *observer {
	return &observer{site: s, want: want, states: map[string]step.MachineState{}, views: map[string]etcdstate.View{}}
}

func (o *observer) machines() []cluster.Machine { return slices.Concat(o.want.Known(), o.peers) }

func (o *observer) machine(name string) cluster.Machine {
	all := o.machines()

	return all[slices.IndexFunc(all, func(m cluster.Machine) bool { return m.Name == name })]
}

func (o *observer) observe() cluster.Snapshot {
	have := cluster.Snapshot{Time: o.site.now, Machines: map[string]step.MachineState{},
		Peers: map[string]step.MachineState{}}

	for _, m := range o.machines() {
		o.ask(m)
		have.Machines[m.Name] = o.states[m.Name]
	}

	if !o.destroys { // an end does not go by etcd
		have.Etcd = o.etcd()
	}

	have.Kubernetes = o.kubernetes()
	have.Kubernetes.Manifests = o.manifests

	if have.Kubernetes.Reachable {
		have.Kubernetes.KubeProxy = o.site.proxy
	}
	have.Etcd.Views = map[string]etcdstate.View{}

	for _, m := range o.machines() { // and not former peers
		if v, ok := o.views[m.Name]; ok {
			have.Etcd.Views[v.Member] = v
		}
	}

	var peers []cluster.Machine

	for _, member := range cluster.Unowned(o.want, have) {
		name := cluster.PeerName(member)

		for _, m := range o.site.members {
			if m.id == member.ID {
				peers = append(peers, cluster.MachineAt(name, step.ControlPlane, m.peer))
			}
		}

		if s, asked := o.states[name]; asked {
			have.Peers[member.ID] = s
		}
	}

	if have.Etcd.Known {
		o.peers = peers
	}

	return have
}

// ask asks one machine.
func (o *observer) ask(m cluster.Machine) {
	old := o.states[m.Name]
	if old.Busy != "" {
		return
	}

	fresh := o.site.answer(m)
	if b := o.site.podOf(m); b != nil && m.Container {
		fresh = o.site.podAnswer(b, fresh)
		fresh.Current = fresh.Current && b.version == m.TalosVersion // the image shows it
	}

	fresh.Since = old.Since

	if old.Access != fresh.Access || old.Stage != fresh.Stage || old.Since.IsZero() {
		fresh.Since = o.site.now
	}

	without := fresh.Access == step.Maintenance || fresh.Access == step.Member && fresh.EtcdService.WithoutData() &&
		!fresh.BootstrapRequested
	fresh.BootstrapSent, fresh.Upgraded, fresh.RebootedFrom, fresh.Pulled = old.BootstrapSent, old.Upgraded,
		old.RebootedFrom, old.Pulled
	fresh.Upgraded.Booted = old.Upgraded.Booted || old.Upgraded.Version != "" && fresh.BootID != "" &&
		fresh.BootID != old.Upgraded.BootID
	fresh.KubeletRestarted = old.KubeletRestarted

	if fresh.BootID == "" || fresh.BootID == old.BootID {
		fresh.StampsBefore = old.StampsBefore
	}

	fresh.WasMember = old.WasMember || fresh.Access == step.Member
	fresh.Started = old.Started ||
		fresh.Access == step.Member && (fresh.Stage == step.StageRunning || fresh.EtcdService != "")
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

	o.states[m.Name] = fresh

	delete(o.views, m.Name)

	if b := o.site.at(m.Address); b != nil && m.Role == step.ControlPlane && fresh.Access == step.Member &&
		o.site.etcdUp(b) {
		o.views[m.Name] = o.site.view(b)
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
		Access: step.Member, Stage: step.Stage(b.life), UUID: b.uuid, BootID: b.bootID(),
		TalosVersion: b.version,
		Schematic:    b.schematic, Platform: "metal", Role: step.Worker, NodeName: b.name, ConfigDigest: b.digest,
		Ready:  s.well(b) && !s.noCNI,
		Images: b.kube.images, StagedDigest: b.staged, Keys: b.keys,
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
			state.StaticPods[string(c)] = stamp(b.kube.images[c], b.kube.keys)
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

func (o *observer) etcd() etcdstate.State {
	for _, m := range o.machines() {
		state := o.states[m.Name]
		if m.Role != step.ControlPlane || state.Access != step.Member || state.Busy != "" ||
			state.EtcdService.WithoutData() {
			continue
		}

		if b := o.site.at(m.Address); b == nil || !o.site.etcdUp(b) || !o.site.quorum() {
			continue
		}

		known := etcdstate.State{Known: true}
		for _, m := range o.site.members {
			known.Members = append(known.Members, etcdstate.Member{
				ID: m.id, Name: m.box.name, Learner: m.learner, PeerURLs: []string{"https://" + m.peer + ":2380"},
			})
		}

		return known
	}

	return etcdstate.State{Cause: "no leader"}
}

func (o *observer) kubernetes() kubestate.State {
	state := o.listed()
	if !o.destroys {
		return state
	}

	if o.apiSince.IsZero() || o.apiUp != state.Reachable {
		o.apiUp, o.apiSince = state.Reachable, o.site.now
	}

	if state.Reachable {
		o.owners = state.Owners
	}

	state.Since, state.Owners = o.apiSince, o.owners

	return state
}

// listed is the answer of Kubernetes.
func (o *observer) listed() kubestate.State {
	if !o.site.api() {
		return kubestate.State{Cause: "connection refused"}
	}

	state := kubestate.State{Reachable: true, Owners: map[string]string{}}
	for _, n := range o.site.nodes {
		node := kubestate.Node{
			Name: n.name, Addresses: []string{n.box.addr}, Keys: n.keys, Ready: o.site.ready(n), Unschedulable: n.ours || n.foreign,
			Cordoned: n.ours, TalosVersion: n.box.version, Soak: n.soak, BootID: n.box.bootID(),
			Staged:       n.staged == n.box.bootID(),
			ControlPlane: n.box.controlPlane, KubeletVersion: o.site.versionOf(n.box.kube.shown[kubenames.Kubelet].Image),
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

		if n.marked {
			state.Owners[n.name] = o.want.Owner
		}

		if n.box.others {
			state.Owners[n.name] = "another"
		}
	}

	return state
}
