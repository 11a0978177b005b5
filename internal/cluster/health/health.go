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
