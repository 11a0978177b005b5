package health

import (
	"cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

// MachineReady is the condition of one machine of a resource: it is a working part of its cluster, with its node and,
// on a control plane, its etcd member.
const MachineReady = "MachineReady"

// Trouble is one reason why machines of a resource are not Ready.
type Trouble struct {
	// Condition is the name of the condition that is not True.
	Condition string
	// Machine is the name of the machine in the spec; empty for the cluster as a whole.
	Machine string
	// Reason depends on the state of the cluster and not on the time.
	Reason string
}

// OfEtcd is true for trouble with etcd as a whole.
func (t Trouble) OfEtcd() bool {
	return t.Condition == EtcdQuorum || t.Condition == EtcdAgreement || t.Condition == EtcdNoAlarms
}

// TroublesOf lists what keeps the machines of a spec from being Ready: the Kubernetes API, etcd where the spec has
// control planes, and each of its machines. The conditions are those of Of for what the resource owns. A broken
// machine of another resource is trouble of that resource, unless etcd loses its quorum. Otherwise two resources
// could wait for each other forever.
//
// API servers that are not ready are trouble of control planes, while none is ready. Nodes that a user cordoned and
// certificates that are due do not count: the first is intentional, and the second still works.
func TroublesOf(want cluster.Spec, have cluster.Snapshot) []Trouble {
	var troubles []Trouble

	// Network errors differ between observations.
	have.Etcd.Cause, have.Kubernetes.Cause = "", ""

	if !want.OwnsControlPlane() {
		have.Kubernetes.Unready = nil
	}

	conditions := []Condition{kubernetesAPI(have.Kubernetes)}
	if want.OwnsControlPlane() {
		conditions = append(conditions, ownEtcd(want, have)...)
	}

	for _, c := range conditions {
		if c.Status != True {
			troubles = append(troubles, Trouble{Condition: c.Name, Reason: c.Reason})
		}
	}

	for _, m := range want.Machines {
		if reason := machineTrouble(want, have, m); reason != "" {
			troubles = append(troubles, Trouble{Condition: MachineReady, Machine: m.Name, Reason: reason})
		}
	}

	return troubles
}

// SilentEndpoint reports whether the endpoint of a resource does not answer while its control planes do: kubeconfigs
// do not work, although all machines are Ready. No run can change that, so TroublesOf does not include it.
func SilentEndpoint(want cluster.Spec, have cluster.Snapshot) bool {
	return want.OwnsControlPlane() && have.Kubernetes.Reachable && have.Kubernetes.Endpoint.Silent()
}

// ownEtcd evaluates etcd as the control planes of a spec see it. Their own members are evaluated with their machines.
func ownEtcd(want cluster.Spec, have cluster.Snapshot) []Condition {
	etcd, planes := have.Etcd, planesOf(want, have)
	etcd.Views = map[string]etcdstate.View{}

	for _, m := range want.Machines {
		id := have.Machines[m.Name].MemberID
		if view, asked := have.Etcd.Views[id]; asked {
			etcd.Views[id] = view
		}
	}

	h := Etcd{Alarms: alarms(etcd)}
	if etcd.Known {
		h.Quorum = etcdstate.Majority(voters(etcd.Members))
	} else {
		h.Cause = unlisted(planes, etcd)
	}

	conditions := []Condition{etcdQuorum(h, etcd)}

	// Without any view these are unknown.
	if following(etcd) > 0 {
		conditions = append(conditions, etcdAgreement(etcd), etcdNoAlarms(h, etcd))
	}

	return conditions
}

// machineTrouble says what a machine lacks to be a working part of its cluster. A silent Talos API alone proves
// nothing: its node and its etcd member show its state.
func machineTrouble(want cluster.Spec, have cluster.Snapshot, m cluster.Machine) string {
	switch have.Machines[m.Name].Access {
	case step.Unreachable, step.Unobserved:
		return silentTrouble(have, m)
	case step.Member:
		return cmp.Or(cluster.NotReady(want, have, m), memberTrouble(have, m), cordonTrouble(have, m))
	case step.Maintenance, step.Gone, step.Foreign:
	}

	return cluster.NotReady(want, have, m)
}

// silentTrouble is machineTrouble for a machine that does not answer.
func silentTrouble(have cluster.Snapshot, m cluster.Machine) string {
	if m.Role == step.ControlPlane {
		return "does not respond, and neither does its etcd member"
	}

	if node, registered := have.NodeOf(m); registered && !node.Ready {
		return "does not respond, and its node " + node.Name + " is not Ready"
	}

	return ""
}

// memberTrouble is the trouble that the member of a control plane reports about itself. Alarms concern the whole
// cluster.
func memberTrouble(have cluster.Snapshot, m cluster.Machine) string {
	member, joined := have.MemberOf(m)
	if m.Role != step.ControlPlane || have.Etcd.Views == nil || !joined {
		return ""
	}

	view, asked := have.Etcd.Views[member.ID]
	view.Alarms = nil

	switch errs := viewErrors(view); {
	case !asked:
		return "its etcd member does not report its status"
	case view.Leader == "":
		return "its etcd member has no leader" // its other errors follow from that
	case len(errs) > 0:
		return "its etcd member reports: " + listed(errs)
	default:
		return ""
	}
}

// cordonTrouble reports a node that talosop cordoned and did not uncordon, as after a killed run.
func cordonTrouble(have cluster.Snapshot, m cluster.Machine) string {
	if node, registered := have.NodeOf(m); registered && node.Unschedulable && node.Cordoned {
		return "its node " + node.Name + " is cordoned by talosop"
	}

	return ""
}
