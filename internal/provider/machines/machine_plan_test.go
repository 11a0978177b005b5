package machines_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
)

// fullMachine is a configuration with every argument set.
func fullMachine() tftest.Config {
	base := fullWorker()

	for name, v := range poolArguments("cp-1", "10.0.0.11") {
		if name == "machines" {
			machines, _ := v.(tftest.Config)
			one, _ := machines["cp-1"].(tftest.Config)

			for argument, v := range one {
				base[argument] = v
			}
		}
	}

	delete(base, "machines")
	delete(base, "max_unavailable")
	maps.Copy(base, tftest.Config{"role": "controlplane", "name": "cp-1", "bootstrap": true})

	return base
}

// The plan of a create lists the operations on the one machine: only a machine with bootstrap = true bootstraps
// etcd.
func TestMachine_planOfCreate(t *testing.T) {
	t.Parallel()

	const install = ": installs Talos v1.13.0 on /dev/sda, reboots, joins as "

	for name, test := range map[string]struct {
		config     tftest.Config
		operations []string
	}{
		"founder": {
			tftest.BaseMachine(), []string{"apply configuration to cp-1" + install + "control plane", "bootstrap etcd on cp-1"},
		},
		"founder without secrets yet": {
			tftest.With(tftest.BaseMachine(), tftest.Unknown{}, "cluster", "secrets"),
			[]string{"apply configuration to cp-1" + install + "control plane", "bootstrap etcd on cp-1"},
		},
		"joining control plane": {
			tftest.With(tftest.BaseMachine(), false, "bootstrap"),
			[]string{"apply configuration to cp-1" + install + "control plane"},
		},
		"worker": {
			tftest.With(tftest.With(tftest.With(tftest.BaseMachine(), nil, "bootstrap"), "worker", "role"), []any{"10.0.0.12"},
				"cluster",
				"talos_endpoints"),
			[]string{"apply configuration to cp-1" + install + "worker"},
		},
		"unknown role": {tftest.With(tftest.BaseMachine(), tftest.Unknown{}, "role"), []string{"(known after apply)"}},
		"unknown name": {tftest.With(tftest.BaseMachine(), tftest.Unknown{}, "name"), []string{"(known after apply)"}},
	} {
		if got := tftest.TextsOf(t, tftest.AttributeOf(t, planOf(t, "talosop_machine", nil, test.config),
			"operations")); !slices.Equal(got,
			test.operations) {
			t.Errorf("%s: operations are %q, want %q", name, got, test.operations)
		}
	}
}

// The endpoint of a cluster that the same plan creates is no machine that joins later: both would wait for each
// other.
func TestMachine_endpointThatHasNotJoined(t *testing.T) {
	t.Parallel()

	joining := func() tftest.Config {
		return tftest.With(tftest.With(tftest.BaseMachine(), false, "bootstrap"), "https://10.0.0.11:6443", "cluster",
			"endpoint")
	}

	for name, test := range map[string]struct {
		config  tftest.Config
		refused bool
	}{
		"of a cluster that is made first": {tftest.With(joining(), tftest.Unknown{}, "cluster", "phase"), true},
		"of a cluster that is there":      {tftest.With(joining(), "Ready", "cluster", "phase"), false},
		"of a cluster that it begins": {tftest.With(tftest.With(joining(), tftest.Unknown{}, "cluster", "phase"), true,
			"bootstrap"), false},
		"another one": {tftest.With(tftest.With(joining(), tftest.Unknown{}, "cluster", "phase"), "https://10.0.0.12:6443",
			"cluster",
			"endpoint"), false},
	} {
		resp := tftest.Plan(t, "talosop_machine", nil, tftest.ValueOf(t, tftest.TypeOf(t, "talosop_machine"), test.config))

		if diagnostics := tftest.Show(resp.Diagnostics); strings.Contains(diagnostics, "[endpoint_of_machine]") != test.refused {
			t.Errorf("%s: %s", name, diagnostics)
		}
	}
}

// Another role replaces the machine; another name, or another bootstrap owner, does not.
func TestMachine_replacements(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		config  tftest.Config
		Replace bool
	}{
		"role": {tftest.With(tftest.With(tftest.BaseMachine(), nil, "bootstrap"), "worker", "role"), true},
		"cluster": {tftest.With(tftest.With(tftest.BaseMachine(), "other", "cluster", "name"), otherSecrets(t), "cluster",
			"secrets"),
			true},
		"name of the cluster": {tftest.With(tftest.BaseMachine(), "other", "cluster", "name"), false},
		"name":                {tftest.With(tftest.BaseMachine(), "cp-9", "name"), false},
		"bootstrap":           {tftest.With(tftest.BaseMachine(), nil, "bootstrap"), false},
		"address":             {tftest.With(tftest.BaseMachine(), "10.0.0.12", "address"), false},
		"unknown role":        {tftest.With(tftest.BaseMachine(), tftest.Unknown{}, "role"), false},
	} {
		prior := settledState(t, "talosop_machine", tftest.BaseMachine())

		resp := tftest.Plan(t, "talosop_machine", &prior, tftest.ValueOf(t, tftest.TypeOf(t, "talosop_machine"), test.config))
		if refusedBy(resp.Diagnostics) && name != "role" && name != "cluster" {
			t.Errorf("%s: %s", name, tftest.Show(resp.Diagnostics))
		}

		if got := len(resp.RequiresReplace) > 0; got != test.Replace {
			t.Errorf("%s: replaces %v", name, resp.RequiresReplace)
		}

		if name != "name" && name != "bootstrap" {
			continue
		}

		plan, err := resp.PlannedState.Unmarshal(tftest.TypeOf(t, "talosop_machine"))
		if err != nil {
			t.Fatal(err)
		}

		want := map[string][]string{"name": {"record cp-1 as cp-9"}, "bootstrap": {}}[name]
		if got := tftest.TextsOf(t, tftest.AttributeOf(t, plan, "operations")); !slices.Equal(got, want) {
			t.Errorf("%s: operations are %q", name, got)
		}
	}
}

// otherSecrets are those of another cluster.
func otherSecrets(t *testing.T) string {
	t.Helper()

	other, err := secretstest.Generate()
	if err != nil {
		t.Fatal(err)
	}

	secrets, err := other.YAML()
	if err != nil {
		t.Fatal(err)
	}

	return string(secrets)
}

func TestMachine_invalidConfiguration(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		config tftest.Config
		At     string
		says   []string
	}{
		"worker that begins etcd": {
			tftest.With(tftest.BaseMachine(), "worker", "role"), `AttributeName("bootstrap")`, []string{"[bootstrap_on_worker]"},
		},
		"bootstrap without its address": {
			tftest.With(tftest.BaseMachine(), []any{"10.0.0.12"}, "cluster", "talos_endpoints"),
			`AttributeName("cluster").AttributeName("talos_endpoints")`,
			[]string{"[bootstrap_not_listed]", `"10.0.0.11"`},
		},
		"bootstrap without a list": {
			tftest.With(tftest.BaseMachine(), nil, "cluster", "talos_endpoints"), `AttributeName("cluster").AttributeName("talos_endpoints")`,
			[]string{"all control planes"},
		},
		"control plane beside none": {
			tftest.With(tftest.With(tftest.BaseMachine(), nil, "bootstrap"), []any{}, "cluster", "talos_endpoints"),
			`AttributeName("cluster").AttributeName("talos_endpoints")`,
			[]string{"[control_planes_missing_in_handle]"},
		},
		"control plane that a handle by hand does not list": {
			tftest.With(tftest.With(tftest.BaseMachine(), nil, "bootstrap"), []any{"10.0.0.12"}, "cluster", "talos_endpoints"),
			`AttributeName("cluster").AttributeName("talos_endpoints")`, []string{"[control_plane_not_listed]", `"10.0.0.11"`},
		},
		"unknown role": {tftest.With(tftest.BaseMachine(), "control-plane", "role"), `AttributeName("role")`,
			[]string{"controlplane", "worker"}},
		"name": {tftest.With(tftest.BaseMachine(), "cp 1", "name"), `AttributeName("name")`, []string{"at most 63 letters"}},
		"address": {tftest.With(tftest.BaseMachine(), "https://10.0.0.11", "address"), `AttributeName("address")`,
			[]string{"without a scheme"}},
		"disk": {
			tftest.With(tftest.BaseMachine(), nil, "install"), `AttributeName("install").AttributeName("disk")`, []string{"no disk"},
		},
		"patch": {
			tftest.With(tftest.BaseMachine(), []any{"- nonsense"}, "config_patches"), `AttributeName("config_patches").ElementKeyInt(0)`,
			[]string{"Found"},
		},
		"worker at the address of a control plane": {
			tftest.With(tftest.With(tftest.BaseMachine(), "worker", "role"), nil, "bootstrap"), `AttributeName("address")`,
			[]string{"a control plane of the cluster"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tftest.ExpectMistake(t, tftest.Validate(t, "talosop_machine", test.config), test.At, test.says, false)
		})
	}

	if diagnostics := tftest.Validate(t, "talosop_machine", tftest.BaseMachine()); len(diagnostics) > 0 {
		t.Errorf("a configuration without mistakes: %s", tftest.Show(diagnostics))
	}
}

// A destroy lists what happens to a machine of a living cluster, and nothing about a protected one.
func TestMachine_planOfDestroy(t *testing.T) {
	t.Parallel()

	typ := tftest.TypeOf(t, "talosop_machine")
	null := tftypes.NewValue(typ, nil)

	destroyOf := func(server tfprotov6.ProviderServer, state tftypes.Value) []*tfprotov6.Diagnostic {
		resp, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
			TypeName: "talosop_machine", PriorState: tftest.Dynamic(t, state),
			ProposedNewState: tftest.Dynamic(t, null), Config: tftest.Dynamic(t, null),
		})
		if err != nil {
			t.Fatal(err)
		}

		return resp.Diagnostics
	}

	destroyIn := func(server tfprotov6.ProviderServer, config tftest.Config) []*tfprotov6.Diagnostic {
		return destroyOf(server, settledState(t, "talosop_machine", config))
	}

	destroy := func(config tftest.Config) []*tfprotov6.Diagnostic { return destroyIn(tftest.Server(t), config) }

	protected := func() tftest.Config { return tftest.With(tftest.BaseMachine(), true, "deletion_protection") }
	at := `AttributeName("deletion_protection")`

	for _, one := range []tftest.Config{tftest.With(tftest.BaseMachine(), false, "deletion_protection"), protected()} {
		tftest.ExpectMistake(t, destroy(one), "",
			[]string{"[machines_destroyed]", "remove control plane cp-1 from etcd", "delete node cp-1"}, true)
	}

	last := tftest.With(protected(), []any{"10.0.0.11"}, "cluster", "talos_endpoints")
	tftest.ExpectMistake(t, destroy(last), at, []string{"[deletion_protection_last_plane]", `"prod/cp-1"`, "destroyed"}, false)

	// A machine that another resource has taken over is neither reset nor protected.
	taken := seen(t, settledState(t, "talosop_machine", last), "cp-1", "drift",
		record.Drift{{Kind: record.OwnedByAnother}})

	warnings := destroyOf(tftest.Server(t), taken)
	if len(warnings) != 1 || !strings.Contains(tftest.Show(warnings), "[machines_of_others]") {
		t.Errorf("a machine of another resource: %s", tftest.Show(warnings))
	}

	// The last one of all that the same plan destroys.
	server := tftest.Server(t)
	for _, d := range destroyIn(server, protected()) {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			t.Errorf("the first of two: %s", tftest.Show([]*tfprotov6.Diagnostic{d}))
		}
	}

	tftest.ExpectMistake(t, slices.DeleteFunc(destroyIn(server, tftest.With(protected(), "10.0.0.12", "address")),
		func(d *tfprotov6.Diagnostic) bool { return d.Severity == tfprotov6.DiagnosticSeverityWarning }), at,
		[]string{"together with all other control planes"}, false)
}

// Two machines that swap their addresses in one plan are unchanged. A machine that moves from one resource to
// another is refused.
func TestMachine_planOfTwoResources(t *testing.T) {
	t.Parallel()

	typ := tftest.TypeOf(t, "talosop_machine")
	machine := func(name, address string) tftypes.Value {
		return tftest.ValueOf(t, typ, tftest.With(tftest.With(tftest.With(tftest.BaseMachine(), nil, "bootstrap"), name,
			"name"), address, "address"))
	}
	settled := func(v tftypes.Value) *tftypes.Value {
		state := settledState(t, "talosop_machine", tftest.With(tftest.BaseMachine(), nil, "bootstrap"))

		var values, given map[string]tftypes.Value
		tftest.Must(t, state.As(&values))
		tftest.Must(t, v.As(&given))

		values["name"], values["address"] = given["name"], given["address"]
		state = tftypes.NewValue(typ, values)

		return &state
	}

	one, other := machine("cp-1", "10.0.0.11"), machine("cp-2", "10.0.0.12")
	server := tftest.Server(t)

	for _, resp := range []*tfprotov6.PlanResourceChangeResponse{
		tftest.PlanBy(t, server, "talosop_machine", settled(one), machine("cp-1", "10.0.0.12")),
		tftest.PlanBy(t, server, "talosop_machine", settled(other), machine("cp-2", "10.0.0.11")),
	} {
		if refusedBy(resp.Diagnostics) {
			t.Errorf("an exchange of addresses: %s", tftest.Show(resp.Diagnostics))
		}
	}

	server = tftest.Server(t)
	pool := settledState(t, "talosop_control_plane", tftest.BaseControlPlane())
	smaller := tftest.With(tftest.BaseControlPlane(), nil, "machines", "cp-1")

	resp := tftest.PlanBy(t, server, "talosop_control_plane", &pool,
		tftest.ValueOf(t, tftest.TypeOf(t, "talosop_control_plane"), smaller))
	if refusedBy(resp.Diagnostics) {
		t.Fatalf("a smaller control plane: %s", tftest.Show(resp.Diagnostics))
	}

	resp = tftest.PlanBy(t, server, "talosop_machine", nil, machine("cp-1", "10.0.0.11"))
	if !refusedBy(resp.Diagnostics) || !strings.Contains(tftest.Show(resp.Diagnostics), "[machine_planned_twice]") {
		t.Errorf("a machine of both: %s", tftest.Show(resp.Diagnostics))
	}
}

// An import takes one machine, and learns its role from the control planes.
func TestMachine_importIDs(t *testing.T) {
	t.Parallel()

	for id, says := range map[string]string{
		`{"secrets": "s", "machines": {"w-1": "10.0.0.21"}}`:                                                       "control_plane is missing",
		`{"secrets": "s", "control_plane": {"cp-1": "10.0.0.11"}}`:                                                 "machines is missing",
		`{"secrets": "s", "control_plane": {"cp-1": "10.0.0.11"}, "machines": {"a": "10.0.0.1", "b": "10.0.0.2"}}`: "the one machine",
		`{"secrets": "s", "control_plane": {"cp-1": "10.0.0.11"}, "machines": {"a": "10.0.0.1"}, "name": "b"}`:     "no other name",
	} {
		if _, err := clusterimport.ParseImport(id, clusterimport.OfMachine); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: the error is %v, want %q", id, err, says)
		}
	}

	for address, role := range map[string]step.Role{"fd00::11": step.ControlPlane, "fd00::21": step.Worker} {
		request := clusterimport.Request{ControlPlane: map[string]string{"cp-1": "FD00:0::11"},
			Machines: map[string]string{"m": address}}
		if got := request.RoleOfMachine(); got != role {
			t.Errorf("the machine at %s is a %s", address, got)
		}
	}
}

// Updates of a control plane next to those of other resources, which count as healthy.
func TestMachine_planOfUpdates(t *testing.T) {
	t.Parallel()

	const otherOne = "4c4c4544-0042-3510-8053-000000000000"

	same := func(_ *testing.T, state tftypes.Value) tftypes.Value { return state }
	wiped := func(t *testing.T, state tftypes.Value) tftypes.Value {
		t.Helper()

		return degraded(t, seen(t, state, "cp-1", "stage", "maintenance"))
	}
	alone := func(c tftest.Config) tftest.Config {
		return tftest.With(c, []any{"10.0.0.11"}, "cluster", "talos_endpoints")
	}

	const (
		join = "apply configuration to cp-1: installs Talos v1.13.0 on /dev/sda, reboots, joins as control " +
			"plane"
		expel  = "remove etcd member member-of-cp-1 of cp-1%s through control plane 10.0.0.12"
		forget = "delete node cp-1 from Kubernetes"
		away   = "[only_control_plane_reboots]"
	)

	for name, test := range map[string]struct {
		before, after tftest.Config
		since         func(*testing.T, tftypes.Value) tftypes.Value
		operations    []string
		warns         string
	}{
		"repaired": {tftest.BaseMachine(), tftest.BaseMachine(), wiped, []string{fmt.Sprintf(expel, ""), forget, join}, ""},
		"repaired, not the founder": {
			tftest.With(tftest.BaseMachine(), nil, "bootstrap"), tftest.With(tftest.BaseMachine(), nil, "bootstrap"), wiped,
			[]string{fmt.Sprintf(expel, ""), forget, join}, "",
		},
		"exchanged": {
			tftest.BaseMachine(), tftest.With(tftest.BaseMachine(), otherOne, "uuid"), same,
			[]string{fmt.Sprintf(expel, machineset.ReplacedSuffix), join}, "",
		},
		"upgraded": {
			tftest.With(tftest.BaseMachine(), "v1.13.0", "talos_version"), tftest.With(tftest.BaseMachine(), "v1.13.2",
				"talos_version"), same,
			[]string{"upgrade Talos on cp-1: v1.13.0 -> v1.13.2 (drain, wait for volumes, reboot)"}, "",
		},
		"the only one is upgraded": {
			alone(tftest.BaseMachine()), tftest.With(alone(tftest.BaseMachine()), "v1.13.2", "talos_version"), same,
			[]string{"upgrade Talos on cp-1: v1.13.0 -> v1.13.2 (reboot)"}, away,
		},
	} {
		prior := test.since(t, settledState(t, "talosop_machine", test.before))
		resp := tftest.Plan(t, "talosop_machine", &prior, tftest.ValueOf(t, tftest.TypeOf(t, "talosop_machine"), test.after))

		if refusedBy(resp.Diagnostics) {
			t.Errorf("%s: %s", name, tftest.Show(resp.Diagnostics))

			continue
		}

		plan, err := resp.PlannedState.Unmarshal(tftest.TypeOf(t, "talosop_machine"))
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(test.operations, tftest.TextsOf(t, tftest.AttributeOf(t, plan, "operations"))); diff != "" {
			t.Errorf("%s: operations differ (-want +got):\n%s", name, diff)
		}

		if got := tftest.Show(resp.Diagnostics); !strings.Contains(got, test.warns) || test.warns != away &&
			strings.Contains(got, away) {
			t.Errorf("%s: warned is %s", name, got)
		}
	}
}
