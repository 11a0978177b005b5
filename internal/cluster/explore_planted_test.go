package cluster_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// planner is [cluster.Plan], or another one with the same arguments.
type planner func(cluster.Spec, cluster.Snapshot, cluster.Policy) cluster.Decision

// planted is a fault of the planner, or of the run that does not confirm its steps.
type planted struct {
	plan        func(planner, cluster.Spec, cluster.Snapshot, cluster.Policy) cluster.Decision
	unconfirmed bool
}

// sees is a planner that sees something else than what was observed.
func sees(change func(*cluster.Spec, *cluster.Snapshot, *cluster.Policy)) planted {
	return planted{unconfirmed: true, plan: func(plan planner, want cluster.Spec, have cluster.Snapshot, p cluster.Policy,
	) cluster.Decision {
		have.Machines, have.Kubernetes.Nodes = maps.Clone(have.Machines), slices.Clone(have.Kubernetes.Nodes)
		want.Machines, want.Pools = slices.Clone(want.Machines), maps.Clone(want.Pools)
		change(&want, &have, &p)

		return plan(want, have, p)
	}}
}

// decides is a planner that decides something else.
func decides(change func(*cluster.Decision, cluster.Spec, cluster.Snapshot)) planted {
	return planted{unconfirmed: true, plan: func(plan planner, want cluster.Spec, have cluster.Snapshot, p cluster.Policy,
	) cluster.Decision {
		d := plan(want, have, p)
		change(&d, want, have)

		return d
	}}
}

// replaced changes each step of a kind.
func replaced[S step.Step](d *cluster.Decision, by func(S) []step.Step) {
	var steps []step.Step

	for _, op := range d.Steps {
		if s, is := op.(S); is {
			steps = append(steps, by(s)...)
		} else {
			steps = append(steps, op)
		}
	}

	d.Steps = steps
}

// idle is true for a member on which no step of a decision runs.
func idle(d *cluster.Decision, have cluster.Snapshot, name string) bool {
	s := have.Machines[name]

	return s.Access == step.Member && s.Busy == "" &&
		!slices.ContainsFunc(d.Steps, func(op step.Step) bool { return op.On() == name })
}

// plantedFaults are faults of the planner, each with the change in which it shows, the shape of the cluster, and what
// the model says about it.
var plantedFaults = map[string]struct {
	change string
	shape  [3]int
	fault  planted
	found  string
}{
	"1: etcd begins twice": {"create", [3]int{2, 0, 0}, decides(
		func(d *cluster.Decision, _ cluster.Spec, have cluster.Snapshot) {
			if s := have.Machines["cp-2"]; idle(d, have, "cp-2") && s.EtcdService == step.ServicePreparing && have.Etcd.Known {
				d.Steps = append(d.Steps, step.Bootstrap{Machine: "cp-2"})
			}
		}), "has an etcd"},
	"2: two control planes at once": {"upgrade", [3]int{3, 0, 0}, decides(
		func(d *cluster.Decision, _ cluster.Spec, have cluster.Snapshot) {
			replaced(d, func(s step.Upgrade) []step.Step {
				other := s
				if other.Machine, other.Node = "cp-2", "cp-2"; s.Machine != "cp-1" || !idle(d, have, "cp-2") {
					return []step.Step{s}
				}

				return []step.Step{s, other}
			})
		}), "is disrupted"},
	"2: without a quorum": {"upgrade", [3]int{3, 0, 1}, sees(
		func(_ *cluster.Spec, have *cluster.Snapshot, _ *cluster.Policy) {
			believesAlive(have, "cp-3")
		}), "of 3 members work"},
	"3: more workers than the budget": {"upgrade", [3]int{1, 2, 0}, sees(
		func(want *cluster.Spec, _ *cluster.Snapshot, _ *cluster.Policy) {
			want.Pools[""] = cluster.Budget{Count: 2}
		}), "and 1 may be"},
	"4: reset before it left etcd": {"shrink", [3]int{3, 0, 0}, decides(
		func(d *cluster.Decision, _ cluster.Spec, _ cluster.Snapshot) {
			replaced(d, func(s step.LeaveEtcd) []step.Step {
				return []step.Step{step.Reset{Machine: s.Machine, Role: step.ControlPlane, Evacuation: s.Evacuation}}
			})
		}), "before it left etcd"},
	"4: a healthy member is expelled": {"shrink", [3]int{3, 0, 0}, decides(
		func(d *cluster.Decision, _ cluster.Spec, _ cluster.Snapshot) {
			replaced(d, func(s step.LeaveEtcd) []step.Step {
				return []step.Step{step.RemoveMember{Machine: s.Machine, Member: s.Member, Via: "cp-1"}}
			})
		}), "which works"},
	"5: sent to another machine": {"configuration", [3]int{1, 1, 1}, sees(
		func(_ *cluster.Spec, have *cluster.Snapshot, _ *cluster.Policy) {
			believesAlive(have, "w-1")
		}), "does not answer"},
	"9: never ends": {"upgrade", [3]int{1, 0, 0}, decides(
		func(d *cluster.Decision, _ cluster.Spec, _ cluster.Snapshot) {
			replaced(d, func(s step.Uncordon) []step.Step {
				return []step.Step{step.TakeOwnership{Machine: s.Machine, Node: s.Node}}
			})
		}), "no end can be reached"},
	"10: skips a minor version": {"upgrade over two minors", [3]int{1, 0, 0}, decides(
		func(d *cluster.Decision, want cluster.Spec, _ cluster.Snapshot) {
			replaced(d, func(s step.Upgrade) []step.Step {
				s.To = want.Machines[0].TalosVersion

				return []step.Step{s}
			})
		}), "skips a minor version"},
	"10: a rollback goes unnoticed": {"upgrade", [3]int{1, 0, 1}, sees(
		func(_ *cluster.Spec, have *cluster.Snapshot, _ *cluster.Policy) {
			s := have.Machines["cp-1"]
			s.Upgraded = step.UpgradeMark{}
			have.Machines["cp-1"] = s
		}), "although it succeeded"},
	"11: uncordons for others": {"configuration", [3]int{1, 1, 1}, sees(
		func(_ *cluster.Spec, have *cluster.Snapshot, _ *cluster.Policy) {
			for i, n := range have.Kubernetes.Nodes {
				have.Kubernetes.Nodes[i].Cordoned = n.Unschedulable
			}
		}), "not talosop's to uncordon"},
	"11: leaves a node cordoned": {"upgrade", [3]int{1, 0, 0}, decides(
		func(d *cluster.Decision, _ cluster.Spec, _ cluster.Snapshot) {
			replaced(d, func(step.Uncordon) []step.Step { return nil })
		}), "cordoned by talosop"},
	"20: reports what it did not do": {"grow", [3]int{1, 1, 0}, decides(
		func(d *cluster.Decision, _ cluster.Spec, _ cluster.Snapshot) {
			if len(d.Steps) == 0 {
				d.Holds = nil
			}
		}), "done, but"},
	"22: a kubelet is newer than API servers": {"kubernetes", [3]int{1, 1, 0}, decides(
		func(d *cluster.Decision, want cluster.Spec, _ cluster.Snapshot) {
			replaced(d, func(s step.UpgradeComponent) []step.Step {
				image := kubenames.Kubelet

				return []step.Step{step.UpgradeComponent{Machine: "w-1", Role: step.Worker, Component: image, OnNode: "w-1",
					From: "registry.k8s.io/kubelet:v1.35.4", Image: want.Machines[1].Images[image]}}
			})
		}), "newer than an API server"},
	"rotation: a key is used before all accept it": {"rotate", [3]int{1, 1, 0}, decides(
		func(d *cluster.Decision, want cluster.Spec, _ cluster.Snapshot) {
			replaced(d, func(s step.ApplyConfig) []step.Step {
				for _, m := range want.Machines {
					if m.Name == s.Machine {
						s.Keys.Talos = m.Keys.Talos
					}
				}

				return []step.Step{s}
			})
		}), "refuses"},
	"canary: others change first": {"upgrade with a canary", [3]int{1, 2, 0}, sees(
		func(want *cluster.Spec, _ *cluster.Snapshot, _ *cluster.Policy) {
			want.Canary = cluster.Canary{}
		}), "before canary"},
	"destroy: a control plane goes first": {"destroy", [3]int{1, 1, 0}, sees(
		func(want *cluster.Spec, _ *cluster.Snapshot, _ *cluster.Policy) {
			want.Machines = want.Machines[:1]
		}), "before w-1 was reset"},
}

// believesAlive makes a silent control plane or worker one that works, as if its last answer were still true.
func believesAlive(have *cluster.Snapshot, name string) {
	if s := have.Machines[name]; s.Access == step.Unreachable && s.RebootedFrom == "" {
		like := have.Machines["cp-1"]
		like.UUID, like.NodeName, like.Busy, like.Run = s.UUID, name, "", s.Run
		like.Role = step.ControlPlane

		if strings.HasPrefix(name, "w") {
			like.Role, like.EtcdService, like.StaticPods, like.ConfigDigest = step.Worker, "", nil, "old"
		}

		have.Machines[name] = like

		for i, n := range have.Kubernetes.Nodes {
			have.Kubernetes.Nodes[i].Ready = n.Ready || n.Name == name
		}

		if member, is := have.MemberOf(cluster.MachineAt(name, step.ControlPlane, "")); is {
			view := have.Etcd.Views["m1"]
			view.Member = member.ID
			have.Etcd.Views = with(have.Etcd.Views, member.ID, view)
		}
	}
}

// TestExploration_findsPlantedFaults proves the exploration: each invariant has a faulty planner that it finds.
func TestExploration_findsPlantedFaults(t *testing.T) {
	const states = 4000

	for name, c := range plantedFaults {
		t.Run(name, func(t *testing.T) {
			_, found := explore(func() *world {
				w := explored[c.change](c.shape[0], c.shape[1], c.shape[2])
				w.planted = c.fault

				return w
			}, states)

			if found == nil {
				t.Fatal("not found")
			}

			if wrong, _, _ := strings.Cut(string(found.Comment), "\n"); !strings.Contains(wrong, c.found) {
				t.Errorf("found for another reason than %q: %s", c.found, found.Comment)
			}
		})
	}
}
