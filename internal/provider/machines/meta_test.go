package machines_test

import (
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

func TestMeta_invalidConfiguration(t *testing.T) {
	t.Parallel()

	const machine = `AttributeName("machines").ElementKeyString("cp-1").AttributeName("meta")`

	for name, test := range map[string]struct {
		meta tftest.Config
		At   string
		says []string
	}{
		"a key of Talos": {
			meta: tftest.Config{"0x06": "A"},
			At:   machine + `.ElementKeyString("0x06")`, says: []string{`"0x06"`, "user_1 (0x0c)", "belong to Talos"},
		},
		"a key twice": {
			meta: tftest.Config{"0x0c": "a", "user_1": "b"},
			At:   machine + `.ElementKeyString("user_1")`, says: []string{"key 0x0c again", "each key once"},
		},
		"no network": {
			meta: tftest.Config{"network": "dhcp please"},
			At:   machine + `.ElementKeyString("network")`, says: []string{"not a network configuration", "YAML with addresses"},
		},
		"no network, with other values unknown": {
			meta: tftest.Config{"network": "dhcp please", "user_1": tftest.Unknown{}},
			At:   machine + `.ElementKeyString("network")`, says: []string{"not a network configuration"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			tftest.ExpectMistake(t, tftest.Validate(t, "talosop_control_plane",
				tftest.With(tftest.BaseControlPlane(), test.meta, "machines", "cp-1", "meta")), test.At, test.says, false)
		})
	}
}

// The keys are known before their values, so that both passes of a plan list the same operations.
func TestMeta_planOfCreate(t *testing.T) {
	t.Parallel()

	for name, network := range map[string]any{"known": "links: [{name: eth0}]", "unknown": tftest.Unknown{}} {
		config := tftest.With(tftest.BaseControlPlane(), tftest.Config{"network": network, "13": "blue"}, "machines", "cp-2",
			"meta")
		operations := tftest.TextsOf(t, tftest.AttributeOf(t, planOf(t, "talosop_control_plane", nil, config), "operations"))

		if want := []string{"bootstrap etcd on cp-1",
			"write META 0x0a, 0x0d of cp-2 (its network changes at once)"}; len(operations) != 5 ||
			!slices.Equal(operations[3:], want) {
			t.Errorf("with a network that is %s operations are %q", name, operations)
		}
	}

	config := tftest.With(tftest.BaseControlPlane(), tftest.Unknown{}, "machines", "cp-2", "meta")
	if got := tftest.AttributeOf(t, planOf(t, "talosop_control_plane", nil, config), "operations"); got.IsKnown() {
		t.Errorf("with unknown keys operations are %s", got)
	}
}

func TestMeta_planOfUpdates(t *testing.T) {
	t.Parallel()

	config := func(values any) tftest.Config {
		return tftest.With(tftest.BaseControlPlane(), values, "machines", "cp-2", "meta")
	}

	for name, test := range map[string]struct {
		was, is any
		want    []string
	}{
		"another name": {was: tftest.Config{"user_1": "a"}, is: tftest.Config{"0x0c": "a"}, want: []string{}},
		"key added": {was: tftest.Config{"user_1": "a"}, is: tftest.Config{"user_1": "a", "user_2": "b"},
			want: []string{"write META 0x0d of cp-2"}},
		"value changed": {was: tftest.Config{"user_1": "a"}, is: tftest.Config{"user_1": "b"},
			want: []string{"write META 0x0c of cp-2"}},
		"key removed": {was: tftest.Config{"user_1": "a", "user_2": "b"}, is: tftest.Config{"user_1": "a"},
			want: []string{}},
		"all removed":  {was: tftest.Config{"user_1": "a"}, want: []string{}},
		"first values": {is: tftest.Config{"user_1": "a", "user_3": ""}, want: []string{"write META 0x0c, 0x0e of cp-2"}},
		// What a refresh leaves of a network that another client overwrote.
		"drift": {was: tftest.Config{"network": "no network any more"}, is: tftest.Config{"network": "links: [{name: eth0}]"},
			want: []string{"write META 0x0a of cp-2 (its network changes at once)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			prior := settledState(t, "talosop_control_plane", config(test.was))
			plan := planOf(t, "talosop_control_plane", &prior, config(test.is))

			if got := tftest.TextsOf(t, tftest.AttributeOf(t, plan, "operations")); !slices.Equal(got, test.want) {
				t.Errorf("operations are %q, want %q", got, test.want)
			}

			if got := tftest.AttributeOf(t, plan, "observed"); !got.Equal(tftest.AttributeOf(t, prior, "observed")) {
				t.Errorf("what is recorded of the machines changes: %s", got)
			}
		})
	}
}

// META is written with the cluster. A change by another client is drift that the next apply overwrites, and a key
// that is removed from the configuration stays.
func TestAccMeta_isRepaired(t *testing.T) {
	testenv.BeforeRelease(t, "TestMeta_isWrittenAndRepaired", "TestAccProvidedMachines")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 2)
		worker := s.Workers[1]

		with := func(meta string) string {
			return sitetest.SecretsHCL + s.ControlPlaneHCL("") + s.WorkersOf(s.Workers[:1], "") + `
resource "talosop_worker" "rack" {
  name          = "rack"
  cluster       = talosop_control_plane.this.cluster
  talos_version = "v1.13.0"
  install       = { disk = "/dev/sda" }
  machines      = { w-rack = { address = "` + worker.Address().String() + `", meta = ` + meta + ` } }
}
`
		}

		holds := func(key uint8, value string) func() {
			return func() {
				if got, ok := worker.Meta()[key]; !ok || got != value {
					t.Errorf("META 0x%02x is %q, want %q", key, got, value)
				}
			}
		}

		operations := func(want ...knownvalue.Check) resource.ConfigPlanChecks {
			return resource.ConfigPlanChecks{
				PreApply: []plancheck.PlanCheck{
					plancheck.ExpectKnownValue("talosop_worker.rack", tfjsonpath.New("operations"), knownvalue.ListExact(want))},
				PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
			}
		}

		first, both := `{ user_1 = "rack-1" }`, `{ user_1 = "rack-1", "0x0e" = "blue" }`

		sitetest.UnitTest(t, cli, resource.TestCase{
			ProtoV6ProviderFactories: sitetest.QuickProviders(),
			Steps: []resource.TestStep{
				{Config: with(first), ConfigPlanChecks: resource.ConfigPlanChecks{
					PreApply: []plancheck.PlanCheck{
						plancheck.ExpectKnownValue("talosop_worker.rack", tfjsonpath.New("operations").AtSliceIndex(1),
							knownvalue.StringExact("write META 0x0c of w-rack")),
					},
					PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
				}},
				{PreConfig: holds(0x0c, "rack-1"), Config: with(both),
					ConfigPlanChecks: operations(knownvalue.StringExact("write META 0x0e of w-rack"))},
				{
					PreConfig: func() {
						holds(0x0e, "blue")()
						worker.SetMeta(0x0e, "red")
						worker.DeleteMeta(0x0c)
						worker.SetMeta(0x0d, "not ours")
					},
					RefreshState:       true,
					ExpectNonEmptyPlan: true,
				},
				{
					Config: with(both), ConfigPlanChecks: operations(knownvalue.StringExact("write META 0x0c, 0x0e of w-rack")),
					ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue("talosop_worker.rack",
						tfjsonpath.New("machines").AtMapKey("w-rack").AtMapKey("meta"), knownvalue.MapExact(map[string]knownvalue.Check{
							"user_1": knownvalue.StringExact("rack-1"), "0x0e": knownvalue.StringExact("blue"),
						}))},
				},
				{
					PreConfig: func() { holds(0x0c, "rack-1")(); holds(0x0e, "blue")(); s.ForgetCalls() },
					Config:    with(first), ConfigPlanChecks: operations(),
				},
			},
		})

		// After the last removal, only the reset at the end wrote META.
		if got := s.CallsTo("MetaWrite"); len(got) > 0 {
			t.Errorf("META was written when a key was taken out: %v", got)
		}

		for key, value := range map[uint8]string{0x0c: "rack-1", 0x0d: "not ours", 0x0e: "blue"} {
			holds(key, value)()
		}
	})
}
