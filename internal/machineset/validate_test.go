package machineset

import (
	"errors"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// Machines of one set are distinguished by their places and their hardware.
func TestValidateMachines(t *testing.T) {
	t.Parallel()

	const at = `Error workers["batch"].machines["w`

	is := func(change func(m *Machine)) option { return machine("batch/w-2", change) }
	other := func(change func(m *Machine)) option { return machine("batch/w-1", change) }
	plane := controlPlanes(1)

	for name, test := range map[string]struct {
		more []option
		want string
		says string
	}{
		"two machines":                  {},
		"one address":                   {more: []option{is(func(m *Machine) { m.Address = "::ffff:10.0.1.1" })}, want: `-2"].address: duplicate_machine`, says: "other: batch/w-1\n"},
		"no address":                    {more: []option{is(func(m *Machine) { m.Address = "https://10.0.1.2" })}, want: `-2"].address: invalid_address`, says: "value: https://10.0.1.2\n"},
		"unknown addresses":             {more: []option{is(func(m *Machine) { m.Address = "" }), other(func(m *Machine) { m.Address = "" })}},
		"one hardware":                  {more: []option{is(func(m *Machine) { m.UUID = "AAAA" }), other(func(m *Machine) { m.UUID = "aaaa" })}, want: `-2"].uuid: duplicate_machine`, says: "other: batch/w-1\n"},
		"other hardware":                {more: []option{is(func(m *Machine) { m.UUID = "AAAA" }), other(func(m *Machine) { m.UUID = "bbbb" })}},
		"one endpoint":                  {more: []option{is(func(m *Machine) { m.Endpoint = "nat:4001" }), other(func(m *Machine) { m.Endpoint = "NAT:4001" })}, want: `-2"].talos_endpoint: duplicate_machine`, says: "other: batch/w-1\nvalue: nat:4001\n"},
		"a port of the address":         {more: []option{is(func(m *Machine) { m.Endpoint = "10.0.1.2:0" })}, want: `-2"].address: invalid_address`, says: "a port from 1"},
		"no endpoint":                   {more: []option{is(func(m *Machine) { m.Endpoint = "nat:0" })}, want: `-2"].talos_endpoint: invalid_address`, says: "a port from 1"},
		"the address of another":        {more: []option{is(func(m *Machine) { m.Endpoint = "10.0.1.1:50000" })}, want: `-2"].talos_endpoint: duplicate_machine`, says: "other: batch/w-1\n"},
		"the address of one elsewhere":  {more: []option{is(func(m *Machine) { m.Endpoint = "10.0.1.1:50000" }), other(func(m *Machine) { m.Endpoint = "nat:1" })}},
		"its own address":               {more: []option{is(func(m *Machine) { m.Endpoint = "10.0.1.2:50000" })}},
		"one place to wait":             {more: []option{is(func(m *Machine) { m.WaitsAt = "a" }), other(func(m *Machine) { m.WaitsAt = "a" })}, want: `-2"].maintenance_address: duplicate_machine`},
		"a control plane of the handle": {more: []option{joins("10.0.1.2:50000")}, want: `-2"].address: duplicate_machine`, says: "other: a control plane of the cluster\nvalue: 10.0.1.2\n"},
		"another one of the handle":     {more: []option{joins("10.0.0.9")}},
		"not in a handle":               {more: []option{func(p *Set) { p.Endpoints = []string{"10.0.1.2"} }}},
		"a key that is no host name":    {more: []option{is(func(m *Machine) { m.Key = "w_2" })}, want: "", says: "value: batch-w_2\n"},
		"with a host name":              {more: []option{is(func(m *Machine) { m.Key, m.OwnHostname = "w_2", true })}},
		"in a pod network":              {more: []option{is(func(m *Machine) { m.Address = "10.244.0.7" }), withFacts}, want: `-2"].address: address_in_network`, says: "network: pod\nprefix: 10.244.0.0/16\n"},
		"through no control plane":      {more: []option{is(func(m *Machine) { m.Through = true }), joins()}, want: `-2"].access: through_without_control_plane`},
		"through those of the handle":   {more: []option{is(func(m *Machine) { m.Through = true }), joins("10.0.0.9")}},
		"through some that are unknown": {more: []option{is(func(m *Machine) { m.Through = true }), joins(), func(p *Set) { p.Unknown.Note(UnknownEndpoints, true) }}},
		"through its own":               {more: []option{is(func(m *Machine) { m.Through = true }), plane}},
		"through, and by itself":        {more: []option{is(func(m *Machine) { m.Through, m.Endpoint = true, "nat:1" }), plane}, want: `-2"].access: through_with_endpoint`, says: "endpoint: nat:1\n"},
	} {
		p := aSet(t, append([]option{workers("batch", 2)}, test.more...)...)

		found := validateMachines(p)
		if test.want == "" && test.says == "" {
			expect(t, name, found, nil)

			continue
		}

		if len(found) != 1 || !contains(codes(found)[0], at+test.want) || !contains(args(found[0]), test.says) {
			t.Errorf("%s: %+v, want %s", name, found, at+test.want)
		}
	}

	p := aSet(t, controlPlanes(1), joins("10.0.0.1"), machine("cp-1", func(m *Machine) { m.Through = true }))
	expect(t, "through, a control plane", validateMachines(p), []string{`Error control_plane.machines["cp-1"].access: through_on_control_plane`})
	expect(t, "a control plane of the handle", validateMachines(aSet(t, controlPlanes(1), joins("10.0.0.1"))), nil)
}

// Versions of Talos, Kubernetes, contracts and images fit together.
func TestValidateVersions(t *testing.T) {
	t.Parallel()

	const (
		plain  = "factory.talos.dev/metal-installer/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba:"
		signed = "factory.talos.dev/metal-installer-secureboot/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba:"
		image  = `Error control_plane.machines["cp-1"].install.image: invalid_setting`
	)

	installs := func(image string) option {
		return machine("cp-1", func(m *Machine) { m.OwnImage, m.OwnInstall, m.Config.Install.Image = true, true, image })
	}
	secure := group("cp-1", func(g *Group) { g.SecureBoot = true })

	for name, test := range map[string]struct {
		more []option
		want []string
		says string
	}{
		"known":                {},
		"none":                 {more: []option{talos("")}},
		"no version":           {more: []option{talos("next")}, want: []string{"talos_version: invalid_setting"}},
		"newer":                {more: []option{talos("v1.99.0")}, want: []string{"Error control_plane.talos_version: invalid_setting"}, says: "v1.10 to v1.14"},
		"newer, may be":        {more: []option{talos("v1.99.0"), func(p *Set) { p.Unknown.Note(UnknownChanges, true) }}, want: []string{"Warning control_plane.talos_version: talos_untested"}},
		"newer, asked for":     {more: []option{talos("v1.99.0"), changing(func(c *Changes) { c.AllowUntested = true })}, want: []string{"Warning control_plane.talos_version: talos_untested"}},
		"Kubernetes too new":   {more: []option{talos("v1.12.4"), kubernetes("v1.36.0"), contract("")}, want: []string{"Error kubernetes_version: invalid_setting"}},
		"no Kubernetes":        {more: []option{kubernetes("latest")}},
		"a newer contract":     {more: []option{talos("v1.12.4")}, want: []string{"Error version_contract: invalid_setting"}},
		"an image":             {more: []option{installs(plain + runsTalos)}},
		"an image of another":  {more: []option{installs(plain + "v1.13.0")}, want: []string{image}, says: `"v1.13.0" as the version`},
		"an image of none":     {more: []option{installs("registry.test/mine:latest")}},
		"an image not signed":  {more: []option{installs(plain + runsTalos), secure}, want: []string{image}, says: "not signed"},
		"an image signed":      {more: []option{installs(signed + runsTalos), secure}},
		"an image of a mirror": {more: []option{installs("registry.test/mine:" + runsTalos), secure}},
		"an image of a group":  {more: []option{machine("cp-1", func(m *Machine) { m.Config.Install.Image = plain + "v1.13.0" })}},
		"no image":             {more: []option{installs("://")}},
	} {
		found := validateVersions(aSet(t, append([]option{controlPlanes(1)}, test.more...)...))
		if len(found) != len(test.want) {
			t.Errorf("%s: %q, want %q", name, codes(found), test.want)

			continue
		}

		for i, want := range test.want {
			if !contains(codes(found)[i], want) || !contains(found[i].Detail, test.says) {
				t.Errorf("%s: %+v, want %q", name, found[i], want)
			}
		}
	}
}

// All errors are reported at once, as far as values are known.
func TestValidate(t *testing.T) {
	t.Parallel()

	label := func(m *Machine) { m.Config.Hostname = "no name!" }
	wrong := func(p *Set) { p.Settings.Endpoint = "no" }

	for name, test := range map[string]struct {
		more []option
		want []string
	}{
		"valid":              {},
		"valid, in part":     {more: []option{valuesUnknown}},
		"settings":           {more: []option{wrong}, want: []string{"Error endpoint: invalid_setting"}},
		"settings, in part":  {more: []option{wrong, valuesUnknown}, want: []string{"Error endpoint: invalid_setting"}},
		"no machines":        {more: []option{without("cp-1"), wrong}, want: []string{"Error endpoint: invalid_setting"}},
		"a machine, in part": {more: []option{machine("cp-1", label), valuesUnknown}, want: []string{`Error control_plane.machines["cp-1"]`}},
		"META": {more: []option{machine("cp-1", func(m *Machine) { m.Meta.Values = map[string]string{"no key": "a"} })},
			want: []string{`Error control_plane.machines["cp-1"].meta`}},
		"META, in part": {more: []option{valuesUnknown, machine("cp-1", func(m *Machine) { m.Meta.Values = map[string]string{"no key": "a"} })},
			want: []string{`Error control_plane.machines["cp-1"].meta`}},
		"versions": {more: []option{talos("next"), each(func(m *Machine) { m.Config.TalosVersion = "" })}, want: []string{"Error control_plane.talos_version"}},
		"one node name": {more: []option{workers("batch", 1), machine("batch/w-1", func(m *Machine) { m.Config.Hostname = "cp-1" })},
			want: []string{`Error control_plane.machines["cp-1"].hostname`}},
		"machines": {more: []option{machine("cp-1", func(m *Machine) { m.Address = "a:b:c" })}, want: []string{`Error control_plane.machines["cp-1"].address`}},
	} {
		found := aSet(t, append([]option{controlPlanes(1)}, test.more...)...).Validate()
		if len(found) != len(test.want) {
			t.Errorf("%s: %q, want %q", name, codes(found), test.want)

			continue
		}

		for i, want := range test.want {
			if !contains(codes(found)[i], want) {
				t.Errorf("%s: %+v, want %q", name, found[i], want)
			}
		}
	}

	isolated := aSet(t, pods(0, 1), joins("10.0.0.9"), func(p *Set) { p.Settings.Isolated = true })
	if found := codes(isolated.Validate()); len(found) == 0 || found[len(found)-1] != "Error cluster.isolated: isolated_pool" {
		t.Errorf("a pool of an isolated cluster: %q", found)
	}
}

func TestValidateSecrets(t *testing.T) {
	t.Parallel()

	expect(t, "valid", aSet(t).ValidateSecrets(), nil)
	expect(t, "unknown", aSet(t, secretsUnknown, restores(snapshotName)).ValidateSecrets(), nil)
	expect(t, "no bundle", aSet(t, secrets("cluster: {}")).ValidateSecrets(), []string{"Error secrets: invalid_secrets"})
	expect(t, "of another", aSet(t, restores(snapshotName)).ValidateSecrets(), []string{"Error restore_from.key: snapshot_of_other_cluster"},
		"found: 0123456789abcdef\n")
}

func TestValidateImage(t *testing.T) {
	t.Parallel()

	const id = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"

	for _, test := range []struct{ schematic, platform, want, says string }{
		{}, {schematic: id, platform: "aws"}, {schematic: "customization: {}\n"},
		{schematic: id[:63] + "X", want: "schematic: invalid_schematic_id"},
		{schematic: "customization: [a", want: "schematic: invalid_schematic_content"},
		{platform: "no platform!", want: "platform: unknown_platform", says: "value: no platform!\n"},
	} {
		g := &Group{Role: step.Worker, At: aSet(t, controlPlanes(1)).Groups[0].At, Schematic: test.schematic, Platform: test.platform}

		var want []string
		if test.want != "" {
			want = []string{"Error control_plane." + test.want}
		}

		expect(t, test.schematic+test.platform, g.ValidateImage(), want, test.says)
	}
}

// An error is shown at the attribute of the setting.
func TestLocate(t *testing.T) {
	t.Parallel()

	set := []option{controlPlanes(1), workers("batch", 1)}

	for _, test := range []struct {
		field, machine, want string
		more                 option
	}{
		{field: "", machine: "cp-1", want: `control_plane.machines["cp-1"]`},
		{field: "", want: "machines"},
		{field: "endpoint", want: "endpoint"},
		{field: "endpoint", want: "cluster.endpoint", more: joins("a")},
		{field: "cni.urls[0]", want: "cni.urls[0]"},
		{field: "talos_version_contract", want: "version_contract"},
		{field: "talos_version", machine: "batch/w-1", want: `workers["batch"].talos_version`},
		{field: "patches[1]", want: "cluster_config_patches[1]"},
		{field: "patches[1]", want: "cluster.config_patches[1]", more: joins("a")},
		{field: "pool.patches[1]", machine: "batch/w-1", want: `workers["batch"].config_patches[1]`},
		{field: "pool.system_volumes", machine: "batch/w-1", want: `workers["batch"].system_volumes`},
		{field: "machine.patches[1]", machine: "batch/w-1", want: `workers["batch"].machines["w-1"].config_patches[1]`},
		{field: "machine.hostname", machine: "cp-1", want: `control_plane.machines["cp-1"].hostname`},
		{field: "machine.install.disk", machine: "cp-1", want: "control_plane.install.disk"},
		{field: "machine.install.disk", machine: "cp-1", want: `control_plane.machines["cp-1"].install.disk`, more: each(func(m *Machine) { m.OwnInstall = true })},
		{field: `machine.system_volumes["ETCD"]`, machine: "cp-1", want: `control_plane.system_volumes["ETCD"]`},
		{field: "machine.system_volumes", machine: "cp-1", want: `control_plane.machines["cp-1"].system_volumes`, more: each(func(m *Machine) { m.OwnVolumes = true })},
		{field: "machine.workload_isolation", machine: "cp-1", want: "control_plane.workload_isolation"},
		{field: "machine.image_verification", machine: "cp-1", want: "control_plane.image_verification"},
		{field: `clusters["prod"].patches[0]`, want: `clusters["prod"].patches[0]`, more: joins("a")},
	} {
		p := aSet(t, set...)
		if test.more != nil {
			test.more(&p)
		}

		at := p.locate(&machineconfig.FieldError{Field: test.field}, p.groupOf(test.machine), test.machine)
		same(t, test.field, at.String(), test.want)
	}

	host := aSet(t, pods(1, 1))
	for field, want := range map[string]string{"machine": "control_plane.replicas", "machine.patches[1]": `control_plane.replica_config_patches["0"][1]`,
		"machine.hostname": "control_plane.replicas", "machine.workload_isolation": "control_plane.workload_isolation"} {
		same(t, field, host.locate(&machineconfig.FieldError{Field: field}, nil, "cp-0").String(), want)
	}

	same(t, "all pods", host.machinePath("").String(), "replicas")
	same(t, "one machine", aSet(t, onlyMachine(step.Worker, false)).machinePath("m-1").String(), "")
	same(t, "where control planes are", aSet(t, set...).controlPlanePath().String(), "control_plane.machines")
	same(t, "where their pods are", host.controlPlanePath().String(), "control_plane.replicas")
	same(t, "where none are", aSet(t, workers("batch", 1)).controlPlanePath().String(), "machines")

	for attribute, want := range map[string][2]string{"": {"host", "cluster.host"}, "image": {"host.image", "cluster.host.image"},
		"endpoint.type": {"host.endpoint.type", "cluster.host.endpoint.type"}, "pod.storage": {"host.pod.storage", "pod"},
		"pod_cidrs": {"pod_cidrs", "pod_cidrs"}, "service_cidrs": {"service_cidrs", "service_cidrs"}} {
		same(t, attribute, host.FindingPath(attribute).String(), want[0])
		same(t, attribute, aSet(t, joins("a")).FindingPath(attribute).String(), want[1])
	}
}

// Errors without an attribute name the machine, and errors of the provider configuration are reported there.
func TestProblems(t *testing.T) {
	t.Parallel()

	p := aSet(t, controlPlanes(1), workers("batch", 1))
	mistake := func(field string) error {
		return &machineconfig.FieldError{Field: field, Found: "a", Fix: "correct it"}
	}
	plain := errors.New("broken")

	same(t, "none", p.problems("cp-1", nil), nil)
	same(t, "of the cluster", p.problems("", plain).Error(), "broken")
	same(t, "of a machine", p.problems("cp-1", plain).Error(), "machine cp-1: broken")

	for name, test := range map[string]struct {
		err  error
		want string
		says string
	}{
		"plain":           {err: plain, want: "Error: configuration_failed", says: "broken"},
		"of a group":      {err: p.problems("batch/w-1", mistake("pool.patches[0]")), want: `Error workers["batch"].config_patches[0]: invalid_setting`, says: "machines: batch/w-1\n"},
		"of a machine":    {err: p.problems("batch/w-1", mistake("machine.hostname")), want: `Error workers["batch"].machines["w-1"].hostname: invalid_setting`, says: "found: a\n"},
		"of the provider": {err: p.problems("", mistake(`clusters["prod"].meta`)), want: `Error clusters["prod"].meta: invalid_setting`, says: "it is in `clusters` of the provider"},
	} {
		found := FieldDiagnostics(p, test.err)
		if len(found) != 1 || !contains(codes(found)[0], test.want) || !contains(args(found[0]), test.says) {
			t.Errorf("%s: %+v, want %q", name, found, test.want)
		}
	}
}
