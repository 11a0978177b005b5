package cluster

import (
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// rollout is one round of changes to running machines.
type rollout struct {
	want   Spec
	have   Snapshot
	policy Policy
	// upgrades are the next ones of machines.
	upgrades map[string]step.Upgrade
	// kubernetes is the version in configurations of machines without images.
	kubernetes string
	// keys are the next keys of machines.
	keys keyPlan
	// hops are those that come first, and locked those of machines that do not make them.
	hops, locked hops
	// etcd is the versions of all its members.
	etcd etcdstate.Together
	// canary is what machines outside the canary pool wait for.
	canary canaryTurn
}

// hop is the next minor version of all machines that need one: every machine finishes it before the first one
// continues.
type hop struct {
	// target is the version, empty where there is none, and until says which machine must do what before others
	// continue.
	target, until string
}

// hops are the first ones among upgrades and among downgrades.
type hops struct{ up, down hop }

// canaryTurn is what the machines outside the canary pool wait for; its zero value is nothing.
type canaryTurn struct {
	waits string
	// soak is the step that ends the wait; nil while it runs, or something else is left to do.
	soak step.Step
}

// keyPlan decides the next keys of machines from the keys of all machines of the cluster.
type keyPlan struct {
	want Spec
	have Snapshot
	all  rotation.Cluster
	// blind is true while the machines outside the spec are unknown.
	blind bool
}
