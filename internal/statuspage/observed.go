package statuspage

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// Observation is a cluster as observed from outside, and what its resources know beyond that.
type Observation struct {
	Name, Endpoint string
	Health         health.Cluster
	// Talos and Kubernetes are the versions of the cluster; empty when unknown.
	Talos, Kubernetes string
	// Pools are the names of workers by pool; workers outside of them form a group of their own.
	Pools map[string][]string
	// Drift has the differences of machines from the last apply, by name; nil when unknown.
	Drift map[string][]string
	// Backups are the newest first, and Operations those of a plan; nil when unknown.
	Backups    []Backup
	Operations []string
	// Machines are those of the resources of an apply, with the names that the apply uses.
	Machines []Expected
	// index is that of Machines.
	index map[string]Expected
}

// Observed is a page of an observation at a time.
func Observed(o Observation, at time.Time) Page {
	return Page{Time: at, Clusters: []Cluster{o.cluster()}}
}

func (o Observation) cluster() Cluster {
	c := Cluster{Name: o.Name, Endpoint: o.Endpoint, State: o.state(), Etcd: etcdOf(o.Health.Etcd),
		Backups: o.Backups, Operations: o.Operations}
	workers := map[string][]Machine{}

	for _, m := range o.Health.Machines {
		if m.Role == step.ControlPlane {
			c.ControlPlanes = append(c.ControlPlanes, o.machine(m))
		} else {
			pool := o.poolOf(m)
			workers[pool] = append(workers[pool], o.machine(m))
		}
	}

	for _, name := range slices.Sorted(maps.Keys(workers)) {
		slices.SortStableFunc(workers[name], func(a, b Machine) int { return inOrder(a.Name, b.Name) })
		c.Pools = append(c.Pools, Pool{Name: name, Machines: workers[name]})
	}

	// Workers outside of all pools come last.
	if len(c.Pools) > 0 && c.Pools[0].Name == "" {
		c.Pools = append(c.Pools[1:], c.Pools[0])
	}

	if o.Drift != nil {
		c.Drift = []Drift{}
	}

	for _, name := range slices.Sorted(maps.Keys(o.Drift)) {
		if lines := o.Drift[name]; len(lines) > 0 {
			c.Drift = append(c.Drift, Drift{name, lines})
		}
	}

	c.Versions = o.versions(c)

	for _, cert := range o.Health.Certificates {
		c.Certificates = append(c.Certificates, certificateOf(cert))
	}

	for _, condition := range o.Health.Conditions {
		c.Conditions = append(c.Conditions, Condition{Name: condition.Name, State: stateOf(condition.Status),
			Reason: condition.Reason, Since: condition.Since})
	}

	return c
}

// state is the state of a cluster as a whole: an unreachable one is unknown.
func (o Observation) state() State {
	switch {
	case o.Health.Healthy():
		return Good
	case !o.Health.Reached:
		return Unknown
	default:
		return Bad
	}
}

func stateOf(s health.Status) State {
	switch s {
	case health.True:
		return Good
	case health.False:
		return Bad
	case health.Unknown:
	}

	return Unknown
}

func (o Observation) poolOf(m health.Machine) string {
	if e, known := o.known(m); known {
		return e.Pool
	}

	for _, pool := range slices.Sorted(maps.Keys(o.Pools)) {
		if slices.Contains(o.Pools[pool], m.Name) {
			return pool
		}
	}

	return ""
}

func (o Observation) machine(m health.Machine) Machine {
	out := Machine{Name: cmp.Or(m.Name, m.Address), Address: m.Address, Talos: m.TalosVersion}
	if e, known := o.known(m); known {
		out.Name = e.Name
	}

	if out.Name == out.Address {
		out.Address = ""
	}

	// A machine that left the cluster still runs a Talos.
	if m.Node == nil && m.Member == nil {
		out.Talos = ""
	}

	out.Problems = append(talosProblems(m), nodeProblems(m.Node, o.nodesKnown())...)

	if m.Node != nil {
		out.Kubernetes = m.Node.KubeletVersion
	}

	if m.Role == step.ControlPlane {
		out.Member = memberOf(m.Member)

		// The member of a silent machine is silent too.
		if !m.Silent {
			out.Problems = append(out.Problems, memberProblems(m.Member, o.Health.Etcd.Cause == "")...)
		}
	}

	if len(o.Drift[out.Name]) > 0 {
		out.Problems = append(out.Problems, Problem{Drifted, "differs from the last apply"})
	}

	for _, v := range []struct{ product, runs, wanted string }{
		{"Talos", out.Talos, o.Talos}, {"Kubernetes", out.Kubernetes, o.Kubernetes},
	} {
		if v.runs != "" && v.wanted != "" && v.runs != v.wanted {
			out.Problems = append(out.Problems, Problem{Other, v.product + " " + v.runs})
		}
	}

	return out
}

func (o Observation) nodesKnown() bool { return o.Health.Staged != nil }

func talosProblems(m health.Machine) []Problem {
	switch {
	case m.Silent:
		return []Problem{{Silent, m.Talos}}
	case m.Talos != "" && m.Talos != string(step.StageRunning):
		return []Problem{{Broken, m.Talos}}
	default:
		return nil
	}
}

func nodeProblems(n *kubestate.Node, known bool) []Problem {
	switch {
	case n == nil && known:
		return []Problem{{Broken, "no Kubernetes node"}}
	case n == nil:
		return []Problem{{NotKnown, "node not known"}}
	}

	var out []Problem

	if !n.Ready {
		out = append(out, Problem{Broken, "node is not Ready" + cluster.Because(n.ReadyReason)})
	}

	switch {
	case n.HeldBack():
		out = append(out, Problem{Cordoned, "cordoned by talosop"})
	case n.Unschedulable:
		out = append(out, Problem{Cordoned, "cordoned"})
	}

	if n.Staged {
		out = append(out, Problem{Waiting, "has a configuration for its next boot"})
	}

	return out
}

func memberOf(m *health.Member) Member {
	switch {
	case m == nil:
		return ""
	case m.Learner:
		return Learner
	case m.Leader:
		return Leader
	default:
		return Follower
	}
}

func memberProblems(m *health.Member, known bool) []Problem {
	switch {
	case m == nil && known:
		return []Problem{{Broken, "no etcd member"}}
	case m == nil:
		return []Problem{{NotKnown, "etcd member not known"}}
	case len(m.Errors) > 0:
		return []Problem{{Broken, "etcd member: " + strings.Join(m.Errors, ", ")}}
	default:
		return nil
	}
}

func etcdOf(e health.Etcd) *Etcd {
	out := &Etcd{Members: len(e.Members), Quorum: e.Quorum, Cause: e.Cause, Alarms: e.Alarms}

	for _, m := range e.Members {
		if len(m.Errors) == 0 {
			out.Healthy++
		}
	}

	return out
}

// versions counts what the machines of a cluster run.
func (o Observation) versions(c Cluster) []Version {
	talos, kubernetes := map[string]int{}, map[string]int{}

	for _, m := range c.machines() {
		talos[m.Talos]++
		kubernetes[m.Kubernetes]++
	}

	return []Version{{"Talos", o.Talos, counted(talos)}, {"Kubernetes", o.Kubernetes, counted(kubernetes)}}
}

func counted(machines map[string]int) []VersionCount {
	var out []VersionCount

	for version, n := range machines {
		out = append(out, VersionCount{version, n})
	}

	slices.SortFunc(out, func(a, b VersionCount) int {
		return cmp.Or(cmp.Compare(b.Machines, a.Machines), strings.Compare(a.Version, b.Version))
	})

	return out
}

// inOrder compares names as people do: w-9 is before w-10.
func inOrder(a, b string) int {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}

	x, y := digitsFrom(a, i), digitsFrom(b, i)
	if x == "" || y == "" {
		return strings.Compare(a, b)
	}

	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

// digitsFrom are the digits of a name around a position.
func digitsFrom(name string, at int) string {
	digit := func(i int) bool { return i < len(name) && name[i] >= '0' && name[i] <= '9' }

	from, to := at, at
	for from > 0 && digit(from-1) {
		from--
	}

	for digit(to) {
		to++
	}

	return strings.TrimLeft(name[from:to], "0")
}

// machines are all machines of a cluster.
func (c Cluster) machines() []Machine {
	out := slices.Clone(c.ControlPlanes)
	for _, p := range c.Pools {
		out = append(out, p.Machines...)
	}

	return out
}

// renewedOften is the longest lifetime of certificates that Talos renews all the time: those of its API last a day.
const renewedOften = 7 * 24 * time.Hour

func certificateOf(c health.Certificate) Certificate {
	return Certificate{Name: c.Name, Server: c.Server, Until: c.NotAfter, Due: c.Due,
		Renewed: c.NotAfter.Sub(c.NotBefore) < renewedOften}
}
