package step

import (
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// Model is a cluster in which a forecast runs a step on a machine, with what the machine then does by itself.
type Model interface {
	// Change changes the observation of the machine.
	Change(change func(*MachineState))
	// Etcd and Kubernetes change the observation of these.
	Etcd(change func(*etcdstate.State))
	Kubernetes(change func(*kubestate.State))

	// Configure gives the machine its configuration, and Upgrade another Talos, or another pod.
	Configure(op ApplyConfig)
	Upgrade(op Upgrade)
	// WriteMeta gives it the wanted META values.
	WriteMeta()
	// BeginEtcd makes the machine the first member of a new etcd.
	BeginEtcd()
	// Settle makes the machine a working part of its cluster.
	Settle()
	// Wipe removes everything from the machine; gone where nothing is left of it.
	Wipe(gone bool)
	// Cordon makes a node unschedulable, or schedulable again. Own marks it as owned by the resource.
	Cordon(node string, cordoned bool)
	Own(node string)
	// RemoveMember takes a member out of etcd.
	RemoveMember(id string)
}

// Forecast runs a step on its machine in a model.
func Forecast(op Step, m Model) { op.forecast(m) }

// did records in a model what a step records on its machine when it ends.
func did(op Step, m Model) { m.Change(func(s *MachineState) { op.ends(s, s.Since) }) }

// Field is an observed attribute of a machine. The rest of the record is only known after an apply.
type Field string

// The fields.
const (
	FieldAddress           Field = "address"
	FieldUUID              Field = "uuid"
	FieldStage             Field = "stage"
	FieldReady             Field = "ready"
	FieldTalosVersion      Field = "talos_version"
	FieldKubernetesVersion Field = "kubernetes_version"
	FieldNodeName          Field = "node_name"
	FieldDrift             Field = "drift"
)

// Shown is what steps change in the attributes of a machine. What it does not name stays as it is.
type Shown struct {
	// Joins is true when the machine becomes a working part of its cluster, or does so again.
	Joins bool
	// Open are the fields that may change to values that only the apply knows.
	Open []Field
	// Texts are fields whose value the plan knows.
	Texts map[Field]string
}

// Add records what a step changes.
func (f *Shown) Add(op Step) { op.shows(f) }
