package machineset

import (
	"fmt"
	"path"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/healthcheck"
	"github.com/talosop/terraform-provider-talosop/internal/hook"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

func changesAt(paths ...fieldpath.Path) []machineconfig.Change {
	var changes []machineconfig.Change
	for _, path := range paths {
		changes = append(changes, machineconfig.Change{Place: fieldpath.Place{Document: "v1alpha1", Path: path}, Kind: machineconfig.Changed})
	}

	return changes
}

// Steps are listed in order, with how the machines are reached, and a summary where there are many.
func TestOperationsOf(t *testing.T) {
	t.Parallel()

	upgrade := func(machine string) step.Step {
		return step.Upgrade{Machine: machine, From: "v1.13.6", To: "v1.14.1", Evacuation: step.Evacuation{Drain: true}}
	}
	uncordon := func(machine string) step.Step { return step.Uncordon{Machine: machine, Node: path.Base(machine)} }
	pull := func(machine, version string) step.Step { return step.PullImages{Machine: machine, Version: version} }
	through := machine("batch/w-1", func(m *Machine) { m.Through = true })

	component := func(machine string, of kubenames.Component) step.Step {
		return step.UpgradeComponent{Machine: machine, Component: of, From: string(of) + ":v1.35.2", Image: string(of) + ":v1.36.0"}
	}

	together := func(machine string) step.Step {
		return component(machine, kubenames.KubeScheduler).(step.UpgradeComponent).And(
			step.ComponentChange{Component: kubenames.Kubelet, From: "kubelet:v1.35.2", Image: "kubelet:v1.36.0"})
	}

	for name, test := range map[string]struct {
		more    []option
		steps   []step.Step
		kept    []step.Kept
		leaving []cluster.Machine
		want    []string
	}{
		"nothing":              {want: []string{}},
		"an uncordon":          {steps: []step.Step{uncordon("cp-1")}, want: []string{"uncordon node cp-1"}},
		"an uncordon after it": {steps: []step.Step{upgrade("cp-1"), uncordon("cp-1"), uncordon("cp-2")}, want: []string{"upgrade Talos on cp-1: v1.13.6 -> v1.14.1 (drain, reboot)", "uncordon node cp-2"}},
		"pulls": {steps: []step.Step{pull("a", "v1"), pull("b", "v1"), pull("c", "v2"), uncordon("d"), pull("e", "v2")},
			want: []string{"pull the images of Kubernetes v1 on a and b", "pull the images of Kubernetes v2 on c", "uncordon node d", "pull the images of Kubernetes v2 on e"}},
		"a pull before an upgrade": {steps: []step.Step{pull("a", "v1.36.0"), pull("b", "v1.36.0"), component("a", kubenames.Kubelet)},
			want: []string{"pull the images of Kubernetes v1.36.0 on b", "upgrade kubelet on a: v1.35.2 -> v1.36.0"}},
		"upgrades": {steps: []step.Step{upgrade("cp-1"), uncordon("cp-1"), upgrade("cp-2"), upgrade("w-1"), step.Upgrade{Machine: "w-2", From: "v1.13.6", To: "v1.14.1"}},
			want: []string{"upgrade Talos on cp-1, cp-2 and w-1: v1.13.6 -> v1.14.1 (drain, reboot)", "upgrade Talos on w-2: v1.13.6 -> v1.14.1 (reboot)"}},
		"lost data": {steps: []step.Step{step.Upgrade{Machine: "a", Container: true, Loses: true, Replace: "x"}, step.Upgrade{Machine: "b", Container: true, Loses: true, Replace: "x"}},
			want: []string{"replace pod of a (its data goes with it): x", "replace pod of b (its data goes with it): x"}},
		"kept":                {kept: []step.Kept{{Step: uncordon("a"), Reason: "a is locked"}}, want: []string{"held, a is locked: uncordon node a"}},
		"through":             {more: []option{through}, steps: []step.Step{uncordon("batch/w-1"), uncordon("cp-1")}, want: []string{"reach batch/w-1 through control planes", "uncordon node w-1", "uncordon node cp-1"}},
		"one that leaves":     {steps: []step.Step{uncordon("x")}, leaving: []cluster.Machine{{Name: "x", Wanted: cluster.Wanted{Through: true}}, {Name: "y", Wanted: cluster.Wanted{Through: true}}}, want: []string{"reach x through control planes", "uncordon node x"}},
		"a gateway":           {more: []option{func(p *Set) { p.Gateway = "proxy" }}, steps: []step.Step{uncordon("cp-1")}, want: []string{"reach everything by way of proxy", "uncordon node cp-1"}},
		"a gateway of no use": {more: []option{func(p *Set) { p.Gateway = "proxy" }}, want: []string{}},
		"a gateway of pods":   {more: []option{pods(0, 1), func(p *Set) { p.Gateway = "proxy" }}, steps: []step.Step{uncordon("cp-1")}, want: []string{"uncordon node cp-1"}},
		"checks": {more: []option{changing(func(c *Changes) { c.HealthChecks = []healthcheck.Check{{Name: "a"}, {Name: "b"}} })}, steps: []step.Step{upgrade("cp-1")},
			want: []string{"wait for the health checks a and b before a machine goes out of service, and once it is back", "upgrade Talos on cp-1: v1.13.6 -> v1.14.1 (drain, reboot)"}},
		"checks of no use": {more: []option{changing(func(c *Changes) { c.HealthChecks = []healthcheck.Check{{Name: "a"}} })}, steps: []step.Step{uncordon("cp-1")}, want: []string{"uncordon node cp-1"}},
		"hooks": {more: []option{changing(func(c *Changes) { c.Hooks = someHooks(); c.HooksUnknown = true })}, steps: []step.Step{upgrade("cp-1")},
			want: []string{"run the hooks a and c before a machine goes out of service, and once it is back", "run the hook d before the first machine goes out of service",
				"run the hooks, which are known after apply", "upgrade Talos on cp-1: v1.13.6 -> v1.14.1 (drain, reboot)"}},
		"hooks of pools": {more: []option{changing(func(c *Changes) { c.Hooks = someHooks() })}, steps: []step.Step{step.Upgrade{Machine: "batch/w-1", From: "v1.13.6", To: "v1.14.1"}},
			want: []string{"run the hook b after the last machine is back", "run the hook c before a machine goes out of service, and once it is back",
				"upgrade Talos on batch/w-1: v1.13.6 -> v1.14.1 (reboot)"}},
		"hooks of no use": {more: []option{changing(func(c *Changes) { c.Hooks = someHooks(); c.HooksUnknown = true })}, steps: []step.Step{uncordon("cp-1")}, want: []string{"uncordon node cp-1"}},
		"begun hooks":     {more: []option{func(p *Set) { p.StartedHooks = []string{"a", "b"} }}, steps: []step.Step{uncordon("cp-1")}, want: []string{"end the hooks a and b, which an earlier apply began", "uncordon node cp-1"}},
		"API servers": {steps: []step.Step{step.UpgradeComponent{Machine: "cp-1", Component: kubenames.KubeAPIServer, From: "a:v1.35.2", Image: "a:v1.35.1", Awaits: true}},
			want: []string{"API servers go back once no kubelet of the cluster is newer, those of other resources included; else in a later apply", "take kube-apiserver on cp-1 back: v1.35.2 -> v1.35.1"}},
		"components": {steps: []step.Step{component("cp-1", kubenames.KubeAPIServer), component("cp-2", kubenames.KubeAPIServer), component("cp-1", kubenames.KubeScheduler), component("cp-2", kubenames.KubeScheduler), component("cp-1", kubenames.Kubelet), component("cp-2", kubenames.Kubelet), component("w-1", kubenames.Kubelet)},
			want: []string{"upgrade kube-apiserver and kube-scheduler on cp-1 and cp-2: v1.35.2 -> v1.36.0", "upgrade kubelet on cp-1, cp-2 and w-1: v1.35.2 -> v1.36.0"}},
		"components together": {steps: []step.Step{component("cp-1", kubenames.KubeAPIServer), component("cp-2", kubenames.KubeAPIServer), together("cp-1"), together("cp-2"), component("w-1", kubenames.Kubelet)},
			want: []string{"upgrade kube-apiserver and kube-scheduler on cp-1 and cp-2: v1.35.2 -> v1.36.0", "upgrade kubelet on cp-1, cp-2 and w-1: v1.35.2 -> v1.36.0"}},
		"components of one": {steps: []step.Step{component("a", kubenames.KubeAPIServer), component("a", kubenames.KubeScheduler), step.UpgradeComponent{Machine: "a", Component: kubenames.Kubelet, From: "k:v1.35.2", Image: "k:v1.36.0", Evacuation: step.Evacuation{Drain: true}}},
			want: []string{"upgrade kube-apiserver and kube-scheduler on a: v1.35.2 -> v1.36.0", "upgrade kubelet on a: v1.35.2 -> v1.36.0 (drain)"}},
	} {
		p := aSet(t, append([]option{controlPlanes(2), workers("batch", 1)}, test.more...)...)
		same(t, name, p.OperationsOf(test.steps, test.kept, test.leaving), test.want)
	}

	var many []step.Step
	for i := range (longRollout - 4) / 2 {
		name := fmt.Sprintf("w-%d", i)
		many = append(many, upgrade(name), step.WriteMeta{Machine: name, Keys: "0x0c"})
	}

	many = append(many, step.Reset{Machine: "old"}, step.ApplyConfig{Machine: "new", Access: step.Maintenance, Role: step.Worker},
		step.UpgradeComponent{Machine: "w-0", Component: kubenames.Kubelet, From: "k:v1.35.2", Image: "k:v1.36.0"})
	same(t, "not many", len(aSet(t).OperationsOf(many, nil, nil)), longRollout-1)

	lines := aSet(t).OperationsOf(append(many, step.Upgrade{Machine: "pod", From: "v1.14.1", To: "v1.14.1", Container: true}), nil, nil)
	same(t, "many", len(lines), longRollout+1)
	same(t, "the summary", lines[0], "in all: 12 operations on 7 machines; 1 joins, Talos v1.13.6 -> v1.14.1, Kubernetes v1.35.2 -> v1.36.0, "+
		"4 are drained, 4 reboot, 1 gets another pod, 1 is reset")
}

// A line names the changes in a configuration, and an upgrade that is held keeps the image in it.
func TestPlacesOf(t *testing.T) {
	t.Parallel()

	apply := step.ApplyConfig{Machine: "a", Access: step.Member}
	image, sysctl := fieldpath.Path{"machine", "install", "image"}, fieldpath.Path{"machine", "sysctls", "a"}

	var many []fieldpath.Path
	for i := range mostPlaces + 2 {
		many = append(many, fieldpath.Path{"machine", fmt.Sprintf("a%d", i)})
	}

	places := func(s step.Step, paths ...fieldpath.Path) string {
		return placesOf(s, map[string][]machineconfig.Change{"a": changesAt(paths...)})
	}
	same(t, "some", contains(places(apply, sysctl), "machine.sysctls"), true)
	same(t, "none", places(apply), "")
	same(t, "a machine that joins", places(step.ApplyConfig{Machine: "a", Access: step.Maintenance}, sysctl), "")
	same(t, "another step", places(step.Uncordon{Machine: "a"}, sysctl), "")
	same(t, "many", contains(places(apply, many...), ", 2 more"), true)
	same(t, "just enough", contains(places(apply, many[:mostPlaces]...), "more"), false)

	for name, test := range map[string]struct {
		before step.Step
		paths  []fieldpath.Path
		lines  int
	}{
		"only the image": {before: step.Upgrade{Machine: "a"}, paths: []fieldpath.Path{image}, lines: 1},
		"more":           {before: step.Upgrade{Machine: "a"}, paths: []fieldpath.Path{image, sysctl}, lines: 2},
		"of another":     {before: step.Upgrade{Machine: "b"}, paths: []fieldpath.Path{image}, lines: 2},
	} {
		kept := []step.Kept{{Step: test.before}, {Step: apply}}
		same(t, name, len(keptLines(kept, map[string][]machineconfig.Change{"a": changesAt(test.paths...)})), test.lines)
	}
}

// An upgrade includes its image in the configuration: no line is about that alone, and no other line names it.
func TestLinesOf_upgradesIncludeTheirImage(t *testing.T) {
	t.Parallel()

	image, sysctl := fieldpath.Path{"machine", "install", "image"}, fieldpath.Path{"machine", "sysctls", "a"}
	upgrade := func(machine string) step.Step { return step.Upgrade{Machine: machine, From: "v1", To: "v2"} }
	apply := func(machine, reboot string) step.Step {
		return step.ApplyConfig{Machine: machine, Access: step.Member, Reboot: reboot}
	}
	changes := map[string][]machineconfig.Change{"a": changesAt(image), "b": changesAt(image), "c": changesAt(image, sysctl)}

	same(t, "only the image", linesOf([]step.Step{upgrade("a"), apply("a", ""), upgrade("b"), apply("b", "")}, changes),
		[]string{"upgrade Talos on a and b: v1 -> v2 (reboot)"})
	same(t, "before a downgrade", linesOf([]step.Step{apply("a", ""), upgrade("a")}, changes),
		[]string{"upgrade Talos on a: v1 -> v2 (reboot)"})
	same(t, "more", linesOf([]step.Step{upgrade("c"), apply("c", "")}, changes),
		[]string{"upgrade Talos on c: v1 -> v2 (reboot)", "apply configuration to c (no reboot): machine.sysctls.a"})
	same(t, "with a reboot", linesOf([]step.Step{upgrade("a"), apply("a", "x")}, changes),
		[]string{"upgrade Talos on a: v1 -> v2 (reboot)", "apply configuration to a (reboot for x)"})
	same(t, "without an upgrade", len(linesOf([]step.Step{apply("a", "")}, changes)), 1)
	same(t, "changes that are not known", len(linesOf([]step.Step{upgrade("a"), apply("a", "")}, nil)), 2)
	same(t, "the changes stay", len(changes["a"]), 1)
}

// textsOf are the lines of operations without a step.
func textsOf(operations []preparation) (lines []string) {
	for _, op := range operations {
		lines = append(lines, op.text)
	}

	return lines
}

// A summary counts the machines of repairs on the host cluster, which have no step.
func TestSummaryOf_countsMachinesWithoutSteps(t *testing.T) {
	t.Parallel()

	p := aSet(t, pods(longRollout, 0))
	r := PriorState{Record: recordOf(p)}

	for _, name := range p.Names() {
		r.Seen[name] = record.Machine{Drift: record.Drift{{Kind: record.HostDiffers, Found: "a pod"}, {Kind: record.HostDiffers, Found: "a volume"}}}
	}

	lines := p.operationsOf(p.hostChanges(p, r), nil, nil, nil)
	same(t, "lines", len(lines), longRollout+1)
	same(t, "the summary", lines[0], "in all: 12 operations on 12 machines")
	same(t, "a line", lines[1], "repair on the host cluster, for cp-0: a pod; a volume")
}

// Bookkeeping needs no step on a machine.
func TestBookkeeping(t *testing.T) {
	t.Parallel()

	p := aSet(t, controlPlanes(2))
	r := PriorState{Record: recordOf(p).WithLeftToOthers([]string{"cp-1", "cp-2"}), Renamed: map[string]string{"cp-2": "b", "cp-1": "a"},
		Moved: map[string]string{"cp-1": "10.0.0.7"}, Removed: []cluster.Machine{{Name: "cp-2"}}}
	same(t, "lines", textsOf(r.bookkeeping(p)), []string{"record a as cp-1", "record b as cp-2", "find cp-1 at 10.0.0.1",
		"forget cp-2, which another resource owns: nothing is sent to it"})
}

// Running extensions that an upgrade does not install are named.
func TestWarnOfLostExtensions(t *testing.T) {
	t.Parallel()

	const id = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"

	for name, test := range map[string]struct {
		installer  string
		extensions []string
		container  bool
		lost       string
	}{
		"none":              {},
		"the plain one":     {installer: "ghcr.io/siderolabs/installer:v1.14.1", lost: "batch/w-1: iscsi-tools, qemu"},
		"one without one":   {installer: "factory.talos.dev/metal-installer/" + id + ":v1.14.1", extensions: []string{"siderolabs/qemu"}, lost: "batch/w-1: iscsi-tools\n"},
		"one with all":      {installer: "factory.talos.dev/metal-installer/" + id + ":v1.14.1", extensions: []string{"siderolabs/qemu", "siderolabs/iscsi-tools"}},
		"one not known":     {installer: "factory.talos.dev/metal-installer/" + id + ":v1.14.1"},
		"another schematic": {installer: "factory.talos.dev/metal-installer/" + id[1:] + "0:v1.14.1", extensions: []string{}},
		"another publisher": {installer: "registry.test/mine:v1.14.1"},
		"no image":          {installer: "://"},
		"a pod":             {installer: "ghcr.io/siderolabs/installer:v1.14.1", container: true},
	} {
		p := aSet(t, workers("batch", 2), group("batch/w-1", func(g *Group) { g.Schematic, g.Extensions = id, test.extensions }))
		r := recordOf(p).member("batch/w-1", func(s *step.MachineState) { s.Extensions = []string{"iscsi-tools", "qemu"} })

		var want []string
		if test.lost != "" {
			want = []string{"Warning: extensions_removed"}
		}

		steps := []step.Step{step.Upgrade{Machine: "batch/w-1", Installer: test.installer, Container: test.container}}
		expect(t, name, PriorState{Record: r}.warnOfLostExtensions(p, steps), want, test.lost)
	}
}

// Schematics that the configuration has only the ID of are read from a factory, once their content is known. The same
// schematic changes nothing, whatever its extensions are called.
func TestWarnOfSchematics(t *testing.T) {
	t.Parallel()

	const id, plain = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515", "ghcr.io/siderolabs/installer:v1.14.1"

	p := aSet(t, workers("batch", 4), group("batch/w-1", func(g *Group) { g.Schematic = id }))
	r := recordOf(p)

	for name, running := range map[string][]string{"batch/w-1": {"gvisor"}, "batch/w-2": {"gvisor"}, "batch/w-3": nil} {
		r = r.member(name, func(s *step.MachineState) { s.Extensions = running })
	}

	r = r.member("batch/w-4", func(s *step.MachineState) { s.Schematic, s.Extensions = id, []string{"agent"} })

	var steps []step.Step
	for name := range r.Machines {
		steps = append(steps, step.Upgrade{Machine: name, Installer: "f.example.com/metal-installer/" + id + ":v1.14.1"})
	}

	changes := PriorState{Record: r}.schematicChanges(p, steps)
	if len(changes) != 3 || changes[0].ID != id || changes[0].Registry != "f.example.com" {
		t.Fatalf("the changes are %v", changes)
	}

	if found := (PriorState{Record: r}).schematicChanges(p, []step.Step{step.Upgrade{Machine: "batch/w-1", Installer: plain}}); found != nil {
		t.Errorf("an image with known content: %v", found)
	}

	expect(t, "unknown", WarnOfSchematics(changes, nil), nil, "")
	expect(t, "known", WarnOfSchematics(changes, map[string][]string{id: {"siderolabs/agent", "siderolabs/gvisor"}}),
		[]string{"Warning: extensions_change"}, "batch/w-1 and batch/w-2: + agent (schematic ce4c980550dd…)")
	expect(t, "none", WarnOfSchematics(changes, map[string][]string{id: {}}),
		[]string{"Warning: extensions_change"}, "batch/w-1 and batch/w-2: - gvisor (schematic ce4c980550dd…)")
}

// The impact of steps names each machine once in a set, and by Once in one set of disruptions.
func TestImpactOf(t *testing.T) {
	t.Parallel()

	drain := step.Evacuation{Drain: true}
	got := ImpactOf([]step.Step{
		step.Upgrade{Machine: "b", From: "v1", To: "v2", Evacuation: drain}, step.Upgrade{Machine: "a", From: "v1", To: "v2"},
		step.ApplyConfig{Machine: "b", Access: step.Member, Reboot: "x"}, step.Upgrade{Machine: "p", Container: true},
		step.Reset{Machine: "c", Role: step.ControlPlane, Last: true, Evacuation: drain}, step.Uncordon{Machine: "d"},
		step.UpgradeComponent{Machine: "a", Evacuation: drain}, step.UpgradeComponent{Machine: "e", Evacuation: drain},
		step.ApplyConfig{Machine: "f", Access: step.Member, Reboot: "x", Evacuation: drain},
		step.Upgrade{Machine: "q", Container: true, Loses: true},
	}, []cluster.Machine{{Name: "c"}})
	same(t, "impact", got, Impact{Drained: []string{"a", "b", "c", "e", "f"}, Rebooted: []string{"a", "b", "f"}, Upgraded: []string{"a", "b"},
		KubernetesUpgraded: []string{"a", "e"}, Wiped: []string{"c", "q"}, Removed: []string{"c"}, PodsReplaced: []string{"p", "q"}, EndsCluster: true})
	same(t, "once", got.Once(), Impact{Drained: []string{"e"}, Rebooted: []string{"f"}, Upgraded: []string{"a", "b"},
		KubernetesUpgraded: []string{"a", "e"}, Wiped: []string{"q"}, Removed: []string{"c"}, PodsReplaced: []string{"p"}, EndsCluster: true})
	same(t, "the sets stay", len(got.Drained), 5)
	same(t, "one of many", ImpactOf([]step.Step{step.Reset{Machine: "c", Role: step.ControlPlane}}, nil), Impact{Wiped: []string{"c"}})
}

// Machines that cannot be reached while they wait must configure themselves.
func TestWarnOfWaiting(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		change func(m *Machine)
		access step.Access
		warned bool
	}{
		"through":         {change: func(m *Machine) { m.Through = true }, access: step.Maintenance, warned: true},
		"through, runs":   {change: func(m *Machine) { m.Through = true }, access: step.Member},
		"directly":        {change: func(*Machine) {}, access: step.Maintenance},
		"waits elsewhere": {change: func(m *Machine) { m.Through, m.WaitsAt = true, "10.0.0.7" }, access: step.Maintenance},
	} {
		var want []string
		if test.warned {
			want = []string{"Warning: maintenance_unreachable"}
		}

		p := aSet(t, workers("batch", 1), joins("10.0.0.9"), machine("batch/w-1", test.change))
		expect(t, name, p.warnOfWaiting([]step.Step{step.ApplyConfig{Machine: "batch/w-1", Access: test.access}, step.Uncordon{Machine: "batch/w-1"}}), want, "machines: batch/w-1\n")
	}
}

// What only the apply knows is reported as what happens if values stay.
func TestAssuming(t *testing.T) {
	t.Parallel()

	const warned = "Warning: plan_incomplete"

	kept := map[string]MachineForecast{"cp-1": {Shown: step.Shown{
		Texts: map[step.Field]string{step.FieldAddress: "a", step.FieldUUID: "u"}}}}
	refusal := finding.Finding{Severity: finding.Error, Summary: "Unsupported change"}

	for name, test := range map[string]struct {
		likely Forecast
		found  finding.List
		exact  bool
		more   option
		same   bool
		want   []string
		says   string
	}{
		"exact":             {likely: Forecast{Operations: []string{"a"}, Machines: kept}, exact: true, same: true},
		"exact, some leave": {likely: Forecast{Operations: []string{"a"}, Machines: kept, Leaves: true}, exact: true, want: []string{warned}, says: "operations: a"},
		"nothing":           {likely: Forecast{Idle: true, Operations: []string{"a"}, Machines: kept}},
		"no operations":     {likely: Forecast{Machines: kept}},
		"a refusal":         {likely: Forecast{Machines: kept}, found: finding.List{{Severity: finding.Warning, Summary: "w"}, refusal}, want: []string{"Warning: w", warned}},
		"other hardware":    {likely: Forecast{Idle: true, Machines: kept}, more: each(func(m *Machine) { m.AnyHardware = true }), want: []string{warned}, says: "operations: cp-1 is reset"},
	} {
		p := aSet(t, controlPlanes(2), valuesUnknown)
		if test.more != nil {
			test.more(&p)
		}

		f, found := p.Assuming(Forecast{}, test.likely, test.found, []string{"x"}, test.exact)
		expect(t, name, found, test.want)

		if test.says != "" && !contains(args(found[0]), test.says) {
			t.Errorf("%s: %s", name, args(found[0]))
		}

		if test.same {
			same(t, name, f, test.likely)

			continue
		}

		same(t, name+": a new machine", f.Machines["cp-2"].NoRecord, true)

		if test.more == nil {
			same(t, name+": what stays", f.Machines["cp-1"].Texts, map[step.Field]string{step.FieldUUID: "u"})
			same(t, name+": the forecast itself", len(test.likely.Machines["cp-1"].Texts), 2)
		} else {
			same(t, name+": what may be another", f.Machines["cp-1"], MachineForecast{NoRecord: true})
		}
	}

	same(t, "pods", aSet(t, pods(1, 0)).anythingMayChange(map[string]MachineForecast{"cp-0": {From: "a"}})["cp-0"], MachineForecast{NoRecord: true})
	same(t, "nothing foreseen", len(aSet(t, controlPlanes(1)).anythingMayChange(nil)), 0)

	located := aSet(t, valuesUnknown, machinesUnknown).Located()
	same(t, "located", located.Unknown, Unknown(0))
}

// Nodes that a killed apply may have left behind are named.
func TestWarnOfStrays(t *testing.T) {
	t.Parallel()

	want, have := withoutDrift()
	want.Owner = "mine"
	have.Kubernetes.Nodes = append(have.Kubernetes.Nodes, kubestate.Node{Name: "old", Addresses: []string{"10.0.0.7"}}, kubestate.Node{Name: "own", ControlPlane: true})
	have.Kubernetes.Owners = map[string]string{"own": "mine"}

	const own, joined = "Warning: nodes_not_in_state", "Warning: nodes_joined"

	expect(t, "not reported", WarnOfStrays(want, have, nil), []string{own}, "nodes: own (, control plane)\n")
	expect(t, "known", WarnOfStrays(want, have, []kubestate.Node{{Name: "old"}}), []string{own})

	have.Kubernetes.Owners["own"] = "another"
	expect(t, "joined", WarnOfStrays(want, have, []kubestate.Node{}), []string{joined}, "nodes: old (10.0.0.7, worker)\n")
}

// someHooks are hooks of both scopes, with one part and two.
func someHooks() []hook.Hook {
	part := &hook.Action{}

	return []hook.Hook{
		{Name: "a", Scope: hook.Machine, Pools: []string{hook.ControlPlanes}, Before: part, After: part},
		{Name: "b", Scope: hook.Rollout, Pools: []string{"batch"}, After: part},
		{Name: "c", Scope: hook.Machine, Before: part, After: part},
		{Name: "d", Scope: hook.Rollout, Pools: []string{hook.ControlPlanes, "other"}, Before: part},
	}
}
