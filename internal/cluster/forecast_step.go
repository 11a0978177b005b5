package cluster

import (
	"maps"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// stepModel is the model of a forecast in which a step runs on a machine.
type stepModel struct {
	have *Snapshot
	want Spec
	on   Machine
}

var _ step.Model = stepModel{}

func (h stepModel) Change(change func(*step.MachineState)) {
	state := h.have.Machines[h.on.Name]
	change(&state)
	h.have.Machines[h.on.Name] = state
}

func (h stepModel) Etcd(change func(*etcdstate.State)) { change(&h.have.Etcd) }

func (h stepModel) Kubernetes(change func(*kubestate.State)) { change(&h.have.Kubernetes) }

func (h stepModel) Configure(op step.ApplyConfig) { h.have.configure(h.want, h.on, op) }

func (h stepModel) Upgrade(op step.Upgrade) { h.have.upgrade(h.want, h.on, op) }

func (h stepModel) WriteMeta() {
	h.Change(func(s *step.MachineState) { s.Meta = maps.Clone(h.on.Meta) })
}

func (h stepModel) BeginEtcd() {
	h.have.Etcd.Known, h.have.Kubernetes.Reachable = true, true
	h.Change(func(s *step.MachineState) { s.BootstrapSent = true })
	h.Settle()
	h.have.joinAll(h.want)
}

func (h stepModel) Settle() { settle(h.want, h.have, h.on) }

func (h stepModel) Wipe(gone bool) { h.have.wipe(h.on, gone) }

func (h stepModel) Cordon(node string, cordoned bool) { h.have.cordon(node, cordoned) }

func (h stepModel) Own(node string) { h.have.mark(node, h.want.Owner) }

func (h stepModel) RemoveMember(id string) { h.have.removeMember(id) }
