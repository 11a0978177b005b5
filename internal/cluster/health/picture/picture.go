// Package picture renders the health of a cluster for a pull request comment: as Markdown and as SVG.
//
// A picture depends only on the observation, and on the time only when a certificate is about to expire. The owner of
// a machine controls its names and messages, so neither rendering lets them become markup. [Markdown] puts them into
// code spans, which have no links, mentions or references. [SVG] escapes them.
package picture

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// Observation is the input of a picture.
type Observation struct {
	Name, Endpoint string
	Health         health.Cluster
	// Operations are those of a plan, in order; nil where they are unknown.
	Operations []string
}

// A GitHub comment has at most 65,536 characters, and its reader one screen.
const (
	mostRows       = 40
	longestText    = 300
	longestSummary = 1000
)

// page is the content of both renderings.
type page struct {
	name, state string
	status      health.Status
	summary     string
	facts       []fact
	tables      []table
}

type fact struct {
	label string
	text  []cell
}

type table struct {
	heading string
	columns []column
	rows    []row
	// more is how many rows were omitted.
	more int
	// marked tables show the status of each row.
	marked bool
	// folded tables are collapsed at first.
	folded bool
}

type column struct {
	name string
	// width in the SVG.
	width int
}

type row struct {
	status health.Status
	cells  []cell
}

// cell is a text; a quoted one is external, and any other comes from this package.
type cell struct {
	text   string
	quoted bool
}

func word(text string) cell { return cell{text: text} }

// quoted is an external text in one line; a dash where it is empty.
func quoted(text string) cell {
	if text = OneLine(text, longestText); text == "" {
		return word("–")
	}

	return cell{text: text, quoted: true}
}

// pageOf lays out an observation.
func pageOf(o Observation) page {
	h := o.Health
	p := page{name: OneLine(o.Name, longestText), state: h.State(), summary: OneLine(h.Summary(), longestSummary),
		facts: []fact{{"Endpoint", []cell{quoted(o.Endpoint)}}, {"Machines", []cell{word(counts(h.Machines))}},
			{"etcd", etcdFact(h.Etcd)}}}

	switch {
	case h.Healthy():
		p.status = health.True
	case h.Reached:
		p.status = health.False
	default:
		p.status = health.Unknown
	}

	listed := slices.ContainsFunc(h.Conditions, func(c health.Condition) bool {
		return c.Name == health.KubernetesAPI && c.Status == health.True
	})

	for _, role := range []step.Role{step.ControlPlane, step.Worker} {
		p.add(machinesTable(h, role, listed))
	}

	if o.Operations != nil {
		p.add(operationsTable(o.Operations))
	}

	p.add(certificatesTable(h.Certificates))
	p.add(conditionsTable(h))

	return p
}

// add skips a table without rows. In a long table it omits the last rows, first those without trouble.
func (p *page) add(t table) {
	for i := len(t.rows) - 1; i >= 0 && len(t.rows) > mostRows && t.marked; i-- {
		if t.rows[i].status == health.True {
			t.rows = slices.Delete(t.rows, i, i+1)
			t.more++
		}
	}

	if over := len(t.rows) - mostRows; over > 0 {
		t.rows = t.rows[:mostRows]
		t.more += over
	}

	if len(t.rows) > 0 {
		p.tables = append(p.tables, t)
	}
}

// counts is the number of observed machines, by role.
func counts(machines []health.Machine) string {
	n := map[step.Role]int{}
	unwell := 0

	for _, m := range machines {
		n[m.Role]++

		if m.Status != health.True {
			unwell++
		}
	}

	text := counted(n[step.ControlPlane], "control plane") + ", " + counted(n[step.Worker], "worker")
	if unwell > 0 {
		text += fmt.Sprintf("; %d of them not known to be healthy", unwell)
	}

	return text
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}

	return strconv.Itoa(n) + " " + what
}

// etcdFact is the health of etcd as a whole.
func etcdFact(etcd health.Etcd) []cell {
	if etcd.Cause != "" {
		return []cell{word("members unknown: "), quoted(etcd.Cause)}
	}

	text := []cell{word(fmt.Sprintf("%s, quorum %d", counted(len(etcd.Members), "member"), etcd.Quorum))}

	for _, m := range etcd.Members {
		if m.Leader {
			text = append(text, word(", leader "), quoted(m.NameOrID()))
		}
	}

	for i, alarm := range etcd.Alarms {
		before := ", "
		if i == 0 {
			before = ", alarms: "
		}

		text = append(text, word(before), quoted(alarm))
	}

	return text
}

// machinesTable lists the machines of a role; listed is true when the nodes of the cluster are known.
func machinesTable(h health.Cluster, role step.Role, listed bool) table {
	t := table{heading: "Workers", marked: true,
		columns: []column{{"Worker", 292}, {"Talos", 78}, {"Kubernetes", 82}, {"Node", 276}}}
	if role == step.ControlPlane {
		t.heading = "Control planes"
		t.columns = []column{{"Control plane", 166}, {"Stage", 126}, {"Talos", 78}, {"Kubernetes", 82}, {"Node", 154},
			{"etcd", 122}}
	}

	for _, m := range h.Machines {
		if m.Role != role {
			continue
		}

		version := ""
		if m.Node != nil {
			version = m.Node.KubeletVersion
		}

		cells := []cell{quoted(m.Title), quoted(m.TalosVersion), quoted(version), nodeCell(m.Node, listed)}
		if role == step.ControlPlane {
			cells = append(slices.Insert(cells, 1, quoted(m.Talos)), memberCell(m.Member, h.Etcd.Cause == ""))
		}

		t.rows = append(t.rows, row{m.Status, cells})
	}

	return t
}

func nodeCell(n *kubestate.Node, listed bool) cell {
	switch {
	case n == nil && listed:
		return word("no node")
	case n == nil:
		return word("unknown")
	}

	text := "Ready"
	if !n.Ready {
		text = "not Ready" + cluster.Because(n.ReadyReason)
	}

	switch {
	case n.Unschedulable && n.Cordoned:
		text += ", cordoned by talosop"
	case n.Unschedulable:
		text += ", cordoned"
	}

	if n.Staged {
		text += ", configuration staged for its next boot"
	}

	if n.Ready {
		return word(text)
	}

	return quoted(text)
}

func memberCell(m *health.Member, listed bool) cell {
	switch {
	case m == nil && listed:
		return word("no member")
	case m == nil:
		return word("unknown")
	case m.Learner:
		return word("learner")
	case len(m.Errors) > 0 && m.Leader:
		return quoted("leader: " + strings.Join(m.Errors, ", "))
	case len(m.Errors) > 0:
		return quoted(strings.Join(m.Errors, ", "))
	case m.Leader:
		return word("leader")
	default:
		return word("follower")
	}
}

func operationsTable(operations []string) table {
	t := table{heading: "Pending operations", columns: []column{{"", 30}, {"Operation", 698}}}

	for i, operation := range operations {
		t.rows = append(t.rows, row{health.True, []cell{word(strconv.Itoa(i + 1)), quoted(operation)}})
	}

	if len(operations) == 0 {
		t.rows = []row{{health.True, []cell{word("–"), word("none")}}}
	}

	return t
}

// certificatesTable lists the certificates that are due. It omits the expiry of all others, because Talos renews some
// of them twice a day.
func certificatesTable(certificates []health.Certificate) table {
	t := table{heading: "Expiring certificates", marked: true,
		columns: []column{{"Certificate", 166}, {"Of", 286}, {"Valid until", 276}}}

	for _, c := range certificates {
		if c.Due {
			t.rows = append(t.rows, row{health.False,
				[]cell{quoted(c.Name), quoted(c.Server), word(c.NotAfter.UTC().Format(time.RFC3339))}})
		}
	}

	return t
}

func conditionsTable(h health.Cluster) table {
	t := table{heading: "Conditions", marked: true, folded: h.Healthy(),
		columns: []column{{"Condition", 166}, {"Status", 78}, {"Reason", 484}}}

	for _, c := range h.Conditions {
		t.rows = append(t.rows, row{c.Status, []cell{word(c.Name), word(string(c.Status)), quoted(c.Reason)}})
	}

	return t
}
