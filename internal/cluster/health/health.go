// Package health evaluates the observed health of a cluster and its etcd: for monitoring, and for the phase of the
// resources that own its machines.
package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// Cluster is the health of a cluster for a client that only monitors it. Nothing is planned from it. It also
// evaluates what a plan ignores, such as a node that its owner cordoned.
type Cluster struct {
	// Conditions are always all of them, in a fixed order.
	Conditions []Condition
	// Etcd is the source of the conditions about etcd.
	Etcd Etcd
	// Certificates are the observed ones.
	Certificates []Certificate
	// Machines are the observed ones: control planes, then workers.
	Machines []Machine
	// Unmanaged are the nodes among them without a resource, by name; nil when Kubernetes does not answer.
	Unmanaged []kubestate.Node
	// Nodes are all of them, by name; nil when Kubernetes does not answer.
	Nodes []kubestate.Node
	// Staged names the nodes whose machines have a configuration for their next boot, as recorded by the last apply; nil
	// when Kubernetes does not answer.
	Staged []string
	// Reached is true when a control plane or the Kubernetes API answered.
	Reached bool
	// Silent names what did not answer, and the network error, which differs between observations.
	Silent []string
}

// Condition is one statement about a cluster; True is good.
type Condition struct {
	Name   string
	Status Status
	// Reason names what is wrong, or counts what is right. It depends on the state of the cluster and not on the time.
	Reason string
	// Since is the last change of the condition according to its source; zero where the source does not report it.
	Since time.Time
}

// Status is the status of a condition, as in Kubernetes.
type Status string

// The statuses. Unknown means that the source was not reached.
const (
	True    Status = "True"
	False   Status = "False"
	Unknown Status = "Unknown"
)

// The names of the conditions, in their order.
const (
	TalosAPIReachable  = "TalosAPIReachable"
	ControlPlanesReady = "ControlPlanesReady"
	EtcdQuorum         = "EtcdQuorum"
	EtcdMembersHealthy = "EtcdMembersHealthy"
	EtcdAgreement      = "EtcdAgreement"
	EtcdNoAlarms       = "EtcdNoAlarms"
	KubernetesAPI      = "KubernetesAPI"
	EndpointReachable  = "EndpointReachable"
	NodesReady         = "NodesReady"
	NodesSchedulable   = "NodesSchedulable"
	CertificatesValid  = "CertificatesValid"
)

// Of evaluates a snapshot that has views of etcd. The machines of want are control planes; those that only etcd knows
// are evaluated with them.
func Of(want cluster.Spec, have cluster.Snapshot, expiry Expiry) Cluster {
	planes := planesOf(want, have)
	h := Cluster{Etcd: OfEtcd(want, have), Reached: have.Kubernetes.Reachable,
		Certificates: certificatesOf(planes, have, expiry), Unmanaged: cluster.Unmanaged(want, have),
		Nodes: have.Kubernetes.Nodes, Staged: stagedOn(have.Kubernetes)}

	h.Conditions = append(h.Conditions, talosAPIReachable(planes), controlPlanesReady(planes))
	h.Conditions = append(h.Conditions, h.Etcd.Conditions...)
	h.Conditions = append(h.Conditions, kubernetesAPI(have.Kubernetes), endpointReachable(have.Kubernetes.Endpoint),
		nodesReady(have.Kubernetes), nodesSchedulable(have.Kubernetes),
		certificatesValid(planes, have, h.Certificates))

	h.Reached = h.Reached || slices.ContainsFunc(planes, func(p plane) bool { return p.state.Access == step.Member })
	h.Machines = machinesOf(planes, have, h.Etcd)
	h.Silent = h.Etcd.Silent

	if !have.Kubernetes.Reachable {
		h.Silent = append(slices.Clone(h.Silent), "Kubernetes API: "+cmp.Or(have.Kubernetes.Cause, notInTime))
	} else if e := have.Kubernetes.Endpoint; e.Silent() {
		h.Silent = append(slices.Clone(h.Silent), "endpoint "+e.URL+": "+e.Cause)
	}

	return h
}

// notInTime is the cause of a silence without an error.
const notInTime = "timed out waiting for a response"

// Healthy is true when every condition is.
func (h Cluster) Healthy() bool { return allTrue(h.Conditions) }

// Summary is Ready, or Degraded or Unreachable with the conditions that are not True.
func (h Cluster) Summary() string {
	var wrong []string

	for _, c := range h.Conditions {
		if c.Status != True {
			wrong = append(wrong, fmt.Sprintf("%s is %s (%s)", c.Name, c.Status, c.Reason))
		}
	}

	if len(wrong) == 0 {
		return h.State()
	}

	return h.State() + ": " + strings.Join(wrong, "; ")
}

// State is Ready, Degraded, or Unreachable when nothing answered.
func (h Cluster) State() string {
	switch {
	case h.Healthy():
		return string(cluster.Ready)
	case !h.Reached:
		return Unreachable
	default:
		return string(cluster.Degraded)
	}
}

// Unreachable is the state of a cluster that did not answer.
const Unreachable = "Unreachable"

func allTrue(conditions []Condition) bool {
	return !slices.ContainsFunc(conditions, func(c Condition) bool { return c.Status != True })
}

// plane is one control plane: from the spec, or known only from etcd.
type plane struct {
	title string
	// name is that of its node or its member; empty when neither is known. address may be empty too.
	name, address string
	state         step.MachineState
	// member is the ID of its etcd member; empty when unknown.
	member string
}

// planesOf lists the control planes ordered by their titles. A machine that answers at two addresses, such as a
// shared one, is listed once.
func planesOf(want cluster.Spec, have cluster.Snapshot) []plane {
	var planes []plane

	seen := map[string]bool{}

	for _, m := range cluster.OfRole(want.Machines, step.ControlPlane) {
		state := have.Machines[m.Name]

		if state.Access == step.Member && state.NodeName != "" {
			if seen[state.NodeName] {
				continue
			}

			seen[state.NodeName] = true
		}

		member, _ := have.MemberOf(m)
		planes = append(planes, plane{title: titled(cmp.Or(member.Name, state.NodeName), m.Address), state: state,
			name: cmp.Or(state.NodeName, member.Name), address: m.Address, member: member.ID})
	}

	for _, member := range cluster.Unowned(want, have) {
		state := have.Peers[member.ID]
		planes = append(planes, plane{title: titled(member.NameOrID(), member.Host()), state: state,
			name: cmp.Or(state.NodeName, member.Name), address: member.Host(), member: member.ID})
	}

	slices.SortStableFunc(planes, func(a, b plane) int { return strings.Compare(a.title, b.title) })

	return planes
}

// titled names a machine by its name and address, as far as they are known.
func titled(name, address string) string {
	switch {
	case name == "" || name == address:
		return address
	case address == "":
		return name
	default:
		return name + " (" + address + ")"
	}
}

// absence says why a machine is not a part of its cluster; empty when it is. known is false when that cannot be
// decided.
func (p plane) absence() (reason string, known bool) {
	switch p.state.Access {
	case step.Member:
		return "", true
	case step.Maintenance:
		return "waits in maintenance mode", true
	case step.Foreign:
		return "responds with another identity", true
	case step.Gone:
		return "does not exist", true
	case step.Unreachable, step.Unobserved:
		return "does not respond", false
	default:
		return string(p.state.Access), false
	}
}

// unready says why Talos does not run properly on a control plane; empty when it does. known is false when that
// cannot be decided.
func (p plane) unready() (reason string, known bool) {
	if absence, known := p.absence(); absence != "" {
		return absence, known
	}

	switch s := p.state; {
	case s.Role == step.Worker:
		return "is a worker", true
	case s.Stage != step.StageRunning:
		return "is in stage " + string(s.Stage), true
	case !s.Ready:
		return "is not ready" + cluster.Because(strings.Join(s.Unmet, ", ")), true
	default:
		return "", true
	}
}

func talosAPIReachable(planes []plane) Condition {
	var bad []string

	for _, p := range planes {
		if reason, _ := p.absence(); reason != "" {
			bad = append(bad, p.title+" "+reason)
		}
	}

	if len(planes) == 0 {
		return Condition{Name: TalosAPIReachable, Status: Unknown, Reason: "no known control plane"}
	}

	return judged(TalosAPIReachable, bad, nil, fmt.Sprintf("reachable control planes: %d", len(planes)))
}

func controlPlanesReady(planes []plane) Condition {
	var bad, unsure []string

	for _, p := range planes {
		switch reason, known := p.unready(); {
		case reason == "":
		case known:
			bad = append(bad, p.title+" "+reason)
		default:
			unsure = append(unsure, p.title+" "+reason)
		}
	}

	if len(planes) == 0 {
		unsure = append(unsure, "no known control plane")
	}

	return judged(ControlPlanesReady, bad, unsure, fmt.Sprintf("ready control planes: %d", len(planes)))
}

func kubernetesAPI(k kubestate.State) Condition {
	var bad []string
	if !k.Reachable {
		bad = []string{"the Kubernetes API does not list the nodes"}
	}

	for _, s := range k.Unready {
		bad = append(bad, cmp.Or(s.URL, "kube-apiserver")+" is not ready"+cluster.Because(strings.Join(s.Checks, ", ")))
	}

	return judged(KubernetesAPI, bad, nil, "the Kubernetes API lists the nodes")
}

func endpointReachable(e kubestate.Endpoint) Condition {
	c := Condition{Name: EndpointReachable, Status: True, Reason: "the endpoint responds"}

	switch {
	case e.OutOfReach:
		c.Reason = "the endpoint is not checked: unreachable_endpoints of the provider lists it"
	case e.Silent():
		c.Status, c.Reason = False, e.URL+" does not respond"
	case !e.Asked:
		c.Status, c.Reason = Unknown, "the endpoint was not checked"
	}

	return c
}

func stagedOn(k kubestate.State) []string {
	if !k.Reachable {
		return nil
	}

	names := []string{}

	for _, n := range k.Nodes {
		if n.Staged {
			names = append(names, n.Name)
		}
	}

	return names
}

func nodesReady(k kubestate.State) Condition {
	var (
		bad   []string
		all   moments
		wrong moments
	)

	for _, n := range k.Nodes {
		all = append(all, n.ReadySince)

		if !n.Ready {
			bad = append(bad, n.Name+cluster.Because(n.ReadyReason))
			wrong = append(wrong, n.ReadySince)
		}
	}

	c := ofNodes(NodesReady, k, bad, fmt.Sprintf("Ready nodes: %d", len(k.Nodes)))

	// All are Ready since the last one is, and not all since the first one is not.
	switch c.Status {
	case True:
		c.Since = all.last()
	case False:
		c.Since = wrong.first()
	case Unknown:
	}

	return c
}

func nodesSchedulable(k kubestate.State) Condition {
	var (
		bad   []string
		wrong moments
	)

	for _, n := range k.Nodes {
		if !n.Unschedulable {
			continue
		}

		by := ""
		if n.Cordoned {
			by = "cordoned by talosop"
		}

		bad = append(bad, n.Name+cluster.Because(by))
		wrong = append(wrong, n.UnschedulableSince)
	}

	c := ofNodes(NodesSchedulable, k, bad, fmt.Sprintf("schedulable nodes: %d", len(k.Nodes)))
	if c.Status == False {
		c.Since = wrong.first()
	}

	return c
}

// ofNodes is a condition that is False for the nodes in bad.
func ofNodes(name string, k kubestate.State, bad []string, good string) Condition {
	var unsure []string

	switch {
	case !k.Reachable:
		unsure = []string{"the Kubernetes API does not list the nodes"}
	case len(k.Nodes) == 0:
		unsure = []string{"there are no nodes"}
	}

	return judged(name, bad, unsure, good)
}

// judged is False for bad parts, otherwise Unknown for unsure parts, otherwise True.
func judged(name string, bad, unsure []string, good string) Condition {
	switch {
	case len(bad) > 0:
		return Condition{Name: name, Status: False, Reason: listed(slices.Concat(bad, unsure))}
	case len(unsure) > 0:
		return Condition{Name: name, Status: Unknown, Reason: listed(unsure)}
	default:
		return Condition{Name: name, Status: True, Reason: good}
	}
}

// listed joins the parts of a reason; it names the first ones of many.
func listed(parts []string) string {
	const most = 20

	if more := len(parts) - most; more > 0 {
		parts = append(slices.Clone(parts[:most]), fmt.Sprintf("%d more", more))
	}

	return strings.Join(parts, ", ")
}

// moments are times; a zero time is unknown.
type moments []time.Time

func (m moments) first() time.Time { return m.chosen(time.Time.Before) }

func (m moments) last() time.Time { return m.chosen(time.Time.After) }

// chosen is zero unless all of them are known.
func (m moments) chosen(better func(time.Time, time.Time) bool) time.Time {
	var best time.Time

	for _, t := range m {
		switch {
		case t.IsZero():
			return time.Time{}
		case best.IsZero() || better(t, best):
			best = t
		}
	}

	return best
}
