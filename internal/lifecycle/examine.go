package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

// Examine observes the machines of want, etcd as each of its members sees it, and the Kubernetes API, once and in
// parallel. Members that want does not know are asked at the addresses from etcd. A runner without Kubernetes skips
// it.
//
// It changes nothing, and waits only for answers. What did not answer when the context ended is missing in the
// snapshot.
func (r *Runner) Examine(ctx context.Context, want cluster.Spec) cluster.Snapshot {
	o := newObserver(r, want).withViews()

	var nodes <-chan struct{} = closed
	if r.Kubernetes != nil {
		nodes, _ = o.askKubernetes(ctx)
	}

	o.askOnce(ctx, o.known)

	have := o.snapshot()
	etcd := o.listed(ctx, have)
	have.Etcd = etcd

	// Finds the other control planes and asks them.
	o.addViews(&have)
	o.askOnce(ctx, o.peers)

	<-nodes

	have = o.snapshot()
	have.Etcd = etcd
	have.Time = time.Now()

	o.addViews(&have)

	return have
}

// askOnce asks machines and waits for all answers.
func (o *observer) askOnce(ctx context.Context, machines []cluster.Machine) {
	var asked []<-chan struct{}

	for _, m := range machines {
		answered, _ := o.askMachine(ctx, m)
		asked = append(asked, answered)
	}

	for _, answered := range asked {
		<-answered
	}
}

// listed reads the member list. It first asks machines whose member has a leader, then those without a view: Talos
// also asks the members of other machines (Talos 1.13, internal/pkg/etcd NewClientFromControlPlaneIPs). A member
// without a leader would not answer before its timeout.
func (o *observer) listed(ctx context.Context, have cluster.Snapshot) etcdstate.State {
	var led, silent []cluster.Machine

	state := etcdstate.State{}

	for _, m := range o.machines() {
		s := have.Machines[m.Name]
		if m.Role != step.ControlPlane || s.Access != step.Member || s.EtcdService.WithoutData() {
			continue
		}

		switch view, seen := o.views[m.Name]; {
		case !seen:
			silent = append(silent, m)
		case view.Leader == "":
			state.Cause = fmt.Sprintf("member %s on %s has no leader", view.Member, m.Address)
		default:
			led = append(led, m)
		}
	}

	for _, m := range slices.Concat(led, silent) {
		members, err := o.runner.Fleet.Machine(m).EtcdMembers(ctx)
		if err == nil {
			return etcdstate.State{Known: true, Members: members}
		}

		state.Cause = m.Address + ": " + err.Error()
	}

	return state
}
