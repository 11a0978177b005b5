package statuspage

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The views are what the template shows: texts that are ready to print, with their marks.

type pageView struct {
	Title string
	Style template.CSS
	// Reload is the pause until the browser loads the page again, in seconds; zero for never.
	Reload   int
	Clusters []clusterView
}

type clusterView struct {
	Mark     kind
	Headline string
	Facts    []fact
	Alerts   []conditionView
	Run      *runView
	Map      *mapView
	Versions []versionView

	Drift        *driftView
	Operations   *operationsView
	Backups      *backupsView
	Certificates *certificatesView
	Conditions   *conditionsView
	Note         string
}

type fact struct{ Label, Text string }

// marks are the symbols of a state.
var marks = map[State]kind{Good: {noProblems, "Good"}, Bad: {Broken, "Bad"}, Unknown: {NotKnown, "Unknown"}}

// The pauses between two loads of the page of an apply, in seconds: a later resource of the apply may still begin.
const reloadRunning, reloadEnded = 2, 30

func viewOf(p Page) pageView {
	v := pageView{Style: template.CSS(style)} //nolint:gosec // it is a file of this package

	for _, c := range p.Clusters {
		view := c.view(p.Time)
		v.Clusters = append(v.Clusters, view)

		switch {
		case c.Run == nil:
		case c.Run.running():
			v.Reload = reloadRunning
		default:
			v.Reload = cmp.Or(v.Reload, reloadEnded)
		}
	}

	titles := make([]string, len(v.Clusters))
	for i, c := range v.Clusters {
		titles[i] = c.Headline
	}

	v.Title = strings.Join(titles, "; ")

	return v
}

func (c Cluster) view(now time.Time) clusterView {
	v := clusterView{Mark: marks[c.State], Headline: c.headline(), Facts: c.facts(now), Map: c.mapView()}

	if c.Run != nil {
		v.Mark = c.Run.mark()
		v.Run = c.Run.view(now)
		v.Note = c.Run.note()
	}

	for _, condition := range c.Conditions {
		if condition.State != Good {
			v.Alerts = append(v.Alerts, condition.view())
		}
	}

	for _, version := range c.Versions {
		if len(version.Running) == 1 && version.Running[0].Version == "" {
			continue // no machine reports it
		}

		v.Versions = append(v.Versions, version.view())
	}

	v.Drift, v.Operations = driftOf(c.Drift), operationsOf(c.Operations)
	v.Backups, v.Certificates = backupsOf(c.Backups, now), certificatesOf(c.Certificates, now)
	v.Conditions = conditionsOf(c.Conditions)

	return v
}

// headline is the state of a cluster in one sentence.
func (c Cluster) headline() string {
	name := text(c.Name)

	if c.Run != nil {
		return c.Run.headline(name)
	}

	switch c.State {
	case Good:
		return "Cluster " + name + " is healthy"
	case Bad:
		return "Cluster " + name + " is degraded"
	case Unknown:
	}

	return "Cluster " + name + " does not respond"
}

func (c Cluster) facts(now time.Time) []fact {
	var out []fact

	unhealthy, others := 0, 0

	for _, m := range c.machines() {
		if m.unhealthy() {
			unhealthy++
		}

		if slices.ContainsFunc(m.Problems, func(p Problem) bool { return p.Kind == Other }) {
			others++
		}
	}

	workers := 0
	for _, p := range c.Pools {
		workers += len(p.Machines)
	}

	if len(c.ControlPlanes)+workers > 0 {
		out = append(out, fact{"Control planes", strconv.Itoa(len(c.ControlPlanes))}, fact{"Workers", strconv.Itoa(workers)})
	}

	if unhealthy > 0 {
		out = append(out, fact{"Not healthy", strconv.Itoa(unhealthy)})
	}

	if others > 0 {
		out = append(out, fact{"Another version", strconv.Itoa(others)})
	}

	if c.Etcd != nil && c.Etcd.Members > 0 {
		out = append(out, fact{"etcd members healthy", fmt.Sprintf("%d of %d", c.Etcd.Healthy, c.Etcd.Members)})
	}

	if c.Run != nil {
		return append(out, fact{"Started", c.Run.Began.UTC().Format(clock)}, fact{"Written", now.UTC().Format(clock)})
	}

	return append(out, fact{"As of", now.UTC().Format(date) + " (UTC)"})
}

// The forms of times on a page.
const (
	date   = "2 January 2006"
	clock  = "15:04:05 UTC"
	minute = "2006-01-02 15:04"
)

type versionView struct {
	Product, Version, Text string
	// Progress is true while machines run other versions: On of Of run the wanted one.
	Progress bool
	On, Of   int
}

func (v Version) view() versionView {
	out := versionView{Product: v.Product, Version: text(v.Wanted)}

	var others []string

	for _, r := range v.Running {
		out.Of += r.Machines

		switch {
		case r.Version == v.Wanted && v.Wanted != "":
			out.On = r.Machines
		case r.Version == "":
			others = append(others, fmt.Sprintf("unknown on %d", r.Machines))
		default:
			others = append(others, fmt.Sprintf("%s on %d", text(r.Version), r.Machines))
		}
	}

	switch {
	case len(others) == 0:
		out.Text = "on " + countOf(out.Of, "machine")
	case v.Wanted == "":
		out.Text = strings.Join(others, ", ")
	default:
		out.Progress = true
		out.Text = fmt.Sprintf("on %d of %s; %s", out.On, countOf(out.Of, "machine"), strings.Join(others, ", "))
	}

	return out
}

// countOf is a number of things.
func countOf(n int, what string) string {
	if n != 1 {
		what += "s"
	}

	return strconv.Itoa(n) + " " + what
}

type mapView struct {
	Endpoint     string
	ControlPlane *groupView
	Pools        []groupView
	Legend       []kind
}

type groupView struct {
	Title, Text string
	// Wide is true for a group whose machines are drawn small.
	Wide     bool
	Machines []machineView
}

type machineView struct {
	Mark          kind
	Name, Address string
	Member        Member
	Problems      []string
}

func (c Cluster) mapView() *mapView {
	if len(c.ControlPlanes)+len(c.Pools) == 0 {
		return nil
	}

	v := &mapView{Endpoint: text(c.Endpoint)}

	if len(c.ControlPlanes) > 0 {
		group := groupOf("Control plane", c.ControlPlanes)
		group.Text = c.Etcd.text()
		v.ControlPlane = &group
	}

	for _, p := range c.Pools {
		title := "Workers"
		if p.Name != "" {
			title = "Pool " + text(p.Name)
		}

		group := groupOf(title, p.Machines)
		group.Text = poolText(p.Machines)
		v.Pools = append(v.Pools, group)
	}

	for _, k := range kinds {
		if slices.ContainsFunc(c.machines(), func(m Machine) bool { return m.kind() == k }) {
			v.Legend = append(v.Legend, k)
		}
	}

	// Symbols of machines that all work need no explanation.
	if len(v.Legend) == 1 && v.Legend[0].Kind == noProblems {
		v.Legend = nil
	}

	return v
}

// many is how many machines of a group are drawn as small boxes without addresses.
const many = 24

// groupOf draws machines. In a large group those with problems come first.
func groupOf(title string, machines []Machine) groupView {
	g := groupView{Title: title, Wide: len(machines) > many}

	for _, m := range machines {
		v := machineView{Mark: m.kind(), Name: text(m.Name), Address: text(m.Address), Member: m.Member}
		if g.Wide {
			v.Address = ""
		}

		for _, p := range m.Problems {
			v.Problems = append(v.Problems, text(p.Text))
		}

		g.Machines = append(g.Machines, v)
	}

	if g.Wide {
		slices.SortStableFunc(g.Machines, func(a, b machineView) int {
			return cmp.Compare(slices.Index(kinds, a.Mark), slices.Index(kinds, b.Mark))
		})
	}

	return g
}

func poolText(machines []Machine) string {
	healthy := 0

	for _, m := range machines {
		if !m.unhealthy() {
			healthy++
		}
	}

	if healthy == len(machines) {
		return countOf(len(machines), "machine")
	}

	return fmt.Sprintf("%d of %s healthy", healthy, countOf(len(machines), "machine"))
}

// text is etcd in one line.
func (e *Etcd) text() string {
	switch {
	case e == nil:
		return ""
	case e.Cause != "":
		return "etcd members not known: " + text(e.Cause)
	}

	out := fmt.Sprintf("%d of %s healthy, quorum %d", e.Healthy, countOf(e.Members, "etcd member"), e.Quorum)

	switch spare := e.Healthy - e.Quorum; {
	case spare > 0:
		out += fmt.Sprintf(", %d may fail", spare)
	default:
		out += ", none may fail"
	}

	for _, alarm := range e.Alarms {
		out += ", alarm " + text(alarm)
	}

	return out
}
