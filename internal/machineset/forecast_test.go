package machineset

import (
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// atRest is a set and its record in which nothing is left to do.
func atRest(t *testing.T, options ...option) (Set, Record) {
	t.Helper()

	p := aSet(t, options...)

	files, diags := p.RenderForPlan()
	if diags.HasError() {
		t.Fatal(diags)
	}

	r := recordOf(p)
	r.Manifests = runsKubernetes

	for name, m := range p.Machines {
		r.member(name, func(s *step.MachineState) {
			s.ConfigDigest, s.TalosVersion, s.Stage, s.Ready, s.BootID = files.Machines[name].ConfigDigest, runsTalos, step.StageRunning, true, "boot"
			s.Images, s.Keys, s.NodeName, s.Platform = files.Machines[name].Images, files.Machines[name].Keys, files.Machines[name].WantedNode, "metal"
		})
		r.Seen.Change(name, func(seen *record.Machine) { seen.Address = m.Address })
	}

	return p, r
}

// The forecast of an update has every decision about a change.
func TestForecastUpdate(t *testing.T) {
	t.Parallel()

	reboots := func(m *Machine) {
		m.Config.Patches = []string{"machine: {files: [{path: /var/a, op: create, content: b}]}"}
	}
	sick := func(name string) func(r *Record) {
		return func(r *Record) {
			r.Seen.Change(name, func(m *record.Machine) { m.Drift = record.Drift{{Kind: record.NotReady, Found: "no disk"}} })
		}
	}

	for name, test := range map[string]struct {
		more   []option
		prior  []option
		record func(r *Record)
		codes  []string
		lines  []string
		want   Forecast // idle, resumes, leaves, makes, leaves Kubernetes, upgrades unmanaged
	}{
		"nothing":          {want: Forecast{Idle: true, LeavesKubernetes: true}},
		"not finished":     {record: func(r *Record) { r.Phase = cluster.Degraded }, lines: []string{lookAgain}, want: Forecast{Resumes: true, LeavesKubernetes: true}},
		"restored before":  {more: []option{restores("file:a")}, record: func(r *Record) { r.RestoredFrom = "file:a" }, want: Forecast{Idle: true, LeavesKubernetes: true}},
		"restored again":   {more: []option{restores("file:a")}, codes: []string{`Error control_plane.machines["cp-1"]: change_refused`}, want: Forecast{LeavesKubernetes: true}},
		"other keys":       {more: []option{secrets(rotatedSecrets(t))}, want: Forecast{LeavesKubernetes: true}},
		"it waits":         {record: sick("batch/w-1"), lines: []string{"wait for batch/w-1"}, want: Forecast{Resumes: true, LeavesKubernetes: true}},
		"an address":       {more: []option{machine("batch/w-1", func(m *Machine) { m.Address = "10.0.1.7" })}, lines: []string{"find batch/w-1 at 10.0.1.7"}, want: Forecast{LeavesKubernetes: true}},
		"a reboot":         {more: []option{machine("batch/w-1", reboots)}, codes: []string{"Warning: machines_reboot"}, want: Forecast{LeavesKubernetes: true}},
		"one that rejoins": {more: []option{machine("batch/w-1", func(m *Machine) { m.Rejoin = true })}, codes: []string{"Warning: rejoin_enabled"}, want: Forecast{Idle: true, LeavesKubernetes: true}},
		"one more":         {more: []option{machine("batch/w-2", func(m *Machine) { m.Through = true })}, prior: []option{without("batch/w-2")}, codes: []string{"Warning: maintenance_unreachable"}, want: Forecast{Makes: true, LeavesKubernetes: true}},
		"one less":         {more: []option{without("batch/w-2")}, codes: []string{"Warning: machines_wiped"}, want: Forecast{Leaves: true, LeavesKubernetes: true}},
		"one that is another's": {more: []option{without("batch/w-2")}, record: func(r *Record) { r.member("batch/w-2", func(s *step.MachineState) { s.Claimed = true }) },
			codes: []string{"Warning: machines_of_others"}, lines: []string{"forget batch/w-2, which another resource owns: nothing is sent to it"}, want: Forecast{Leaves: true, LeavesKubernetes: true}},
		"Kubernetes":          {more: []option{kubernetes("v1.36.0")}},
		"Kubernetes, unready": {more: []option{kubernetes("v1.36.0")}, record: func(r *Record) { r.member("batch/w-1", func(s *step.MachineState) { s.Ready = false }) }, codes: []string{"Warning: kubernetes_awaits_machines"}},
		"Kubernetes, unseen":  {more: []option{kubernetes("v1.36.0")}, record: func(r *Record) { r.member("batch/w-1", func(s *step.MachineState) { s.Images = nil }) }},
		"Kubernetes back":     {more: []option{kubernetes("v1.34.1")}, codes: []string{"Error kubernetes_version: kubernetes_change"}},
		"an image ahead": {more: []option{machine("batch/w-1", func(m *Machine) {
			m.Config.Patches = []string{"machine: {kubelet: {image: ghcr.io/siderolabs/kubelet:v1.36.0}}"}
		})}, codes: []string{`Error workers["batch"].machines["w-1"]: image_ahead`}},
		"Talos back":         {more: []option{talos("v1.13.6")}, codes: []string{"Error control_plane.talos_version: talos_downgrade", `Error workers["batch"].talos_version: talos_downgrade`}},
		"a contract":         {more: []option{contract("v1.12")}, codes: []string{"Error version_contract: contract_change"}},
		"isolation":          {more: []option{func(p *Set) { p.Settings.Isolated = true }}, codes: []string{"Error isolated: isolation_change"}},
		"all control planes": {more: []option{without("cp-1"), machine("cp-9", func(m *Machine) { m.Address = "10.0.0.9" })}, codes: []string{"Error control_plane.machines: no_control_plane_left"}, want: Forecast{Leaves: true, Makes: true}},
		"secrets":            {more: []option{secretsNew}, codes: []string{"Error secrets: secrets_changed"}},
		"a snapshot":         {more: []option{restores(snapshotName)}, codes: []string{"Error restore_from.key: snapshot_of_other_cluster"}},
		"a place that is taken": {more: []option{machine("batch/w-1", func(m *Machine) { m.Address = "10.0.1.2" }), machine("batch/w-2", func(m *Machine) { m.Address = "10.0.1.9" }), func(p *Set) { p.LastLook = &LastLook{} }},
			codes: []string{`Error workers["batch"].machines["w-1"].address: address_of_other_machine`}},
		"the role of another":        {more: []option{without("cp-1"), machine("batch/w-1", func(m *Machine) { m.Address = "10.0.0.1" })}, codes: []string{`Error workers["batch"].machines["w-1"]: machine_role_change`}, want: Forecast{Leaves: true}},
		"unknown":                    {more: []option{valuesUnknown, without("cp-1"), machine("batch/w-1", func(m *Machine) { m.Address = "10.0.0.1" })}, want: Forecast{UpgradesUnmanaged: true, Leaves: true}},
		"unknown secrets":            {more: []option{secretsUnknown}},
		"nodes that no resource has": {more: []option{func(p *Set) { p.Unmanaged = &UnmanagedUpgrade{Selects: func(map[string]string) bool { return true }} }}, want: Forecast{Idle: true, LeavesKubernetes: true}},
	} {
		base := []option{controlPlanes(1), workers("batch", 2)}

		p := aSet(t, append(slices.Clone(base), test.more...)...)
		for machine, m := range p.Machines {
			if m.Group == nil { // it is new
				m.Group, m.Key = p.groupOf(machine), machine
				m.Config = p.Machines["batch/w-1"].Config
				p.Machines[machine] = m
			}
		}

		prior, r := atRest(t, append(slices.Clone(base), test.prior...)...)
		if test.record != nil {
			test.record(&r)
		}

		f, found := p.ForecastUpdate(prior, r, cluster.DefaultPolicy())
		expect(t, name, once(found), test.codes)

		got := Forecast{Idle: f.Idle, Resumes: f.Resumes, Leaves: f.Leaves, Makes: f.Makes, LeavesKubernetes: f.LeavesKubernetes, UpgradesUnmanaged: f.UpgradesUnmanaged}
		same(t, name, got, test.want)

		for _, line := range test.lines {
			if !slices.Contains(f.Operations, line) {
				t.Errorf("%s: operations %q, want %q", name, f.Operations, line)
			}
		}

		if (f.Operations == nil) != (f.Machines == nil) || len(test.lines) == 1 && test.lines[0] == lookAgain && len(f.Operations) != 1 {
			t.Errorf("%s: operations %q", name, f.Operations)
		}
	}
}

// The attributes of a machine stay while it is at rest, and are unknown otherwise.
func TestForecastMachines_withoutSteps(t *testing.T) {
	t.Parallel()

	nothing := step.Shown{Texts: map[step.Field]string{}}
	p, r := atRest(t, controlPlanes(1), workers("batch", 1))
	files, _ := p.RenderForPlan()
	same(t, "at rest", PriorState{Record: r}.forecastMachines(p, files, nil), map[string]MachineForecast{
		"cp-1": {From: "cp-1", Shown: nothing}, "batch/w-1": {From: "batch/w-1", Shown: nothing}})

	r.member("cp-1", func(s *step.MachineState) { s.Ready = false })
	r.Seen["cp-1"] = record.Machine{Address: "10.0.0.7", Drift: record.Drift{{Kind: record.NoNode}}}
	same(t, "not at rest", PriorState{Record: r}.forecastMachines(p, files, nil)["cp-1"],
		MachineForecast{From: "cp-1", Shown: step.Shown{Open: []step.Field{step.FieldReady, step.FieldDrift},
			Texts: map[step.Field]string{step.FieldAddress: "10.0.0.1"}}})
}

// A create names its operations even while secrets are unknown, and refuses another cluster's snapshot.
func TestForecastCreate(t *testing.T) {
	t.Parallel()

	through := machine("batch/w-1", func(m *Machine) { m.Through = true })

	for name, test := range map[string]struct {
		more  []option
		knows bool
		codes []string
	}{
		"known":            {knows: true},
		"secrets unknown":  {more: []option{secretsNew}, knows: true},
		"machines unknown": {more: []option{machinesUnknown}},
		"snapshot unknown": {more: []option{func(p *Set) { p.Unknown.Note(UnknownSnapshot, true) }}},
		"a snapshot":       {more: []option{restores(snapshotName)}, knows: true, codes: []string{"Error restore_from.key: snapshot_of_other_cluster"}},
		"through":          {more: []option{through}, knows: true, codes: []string{"Warning: maintenance_unreachable"}},
		"an image ahead": {more: []option{machine("batch/w-1", func(m *Machine) {
			m.Config.Patches = []string{"machine: {kubelet: {image: ghcr.io/siderolabs/kubelet:v1.36.0}}"}
		})}, knows: true,
			codes: []string{`Error workers["batch"].machines["w-1"]: image_ahead`}},
	} {
		f, found := aSet(t, append([]option{controlPlanes(1), workers("batch", 1)}, test.more...)...).ForecastCreate(cluster.DefaultPolicy())
		expect(t, name, found, test.codes)
		same(t, name, len(f.Operations) > 2, test.knows)
		same(t, name, f.Makes && f.Resumes, true)
	}
}
