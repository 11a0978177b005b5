package machines_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
)

// planOf plans and returns the planned value; errors fail the test.
func planOf(t *testing.T, resource string, prior *tftypes.Value, config tftest.Config) tftypes.Value {
	t.Helper()

	typ := tftest.TypeOf(t, resource)

	resp := tftest.Plan(t, resource, prior, tftest.ValueOf(t, typ, config))
	if refusedBy(resp.Diagnostics) {
		t.Fatal(tftest.Show(resp.Diagnostics))
	}

	plan, err := resp.PlannedState.Unmarshal(typ)
	if err != nil {
		t.Fatal(err)
	}

	return plan
}

// The plan of a create lists its operations even while the secrets are not generated yet, and keeps every known
// value.
func TestPlan_create(t *testing.T) {
	t.Parallel()

	plan := planOf(t, "talosop_control_plane", nil, tftest.With(tftest.BaseControlPlane(), tftest.Unknown{}, "secrets"))

	want := []string{
		"apply configuration to cp-1: installs Talos v1.13.0 on /dev/sda, reboots, joins as control plane",
		"apply configuration to cp-2: installs Talos v1.13.0 on /dev/sda, reboots, joins as control plane",
		"apply configuration to cp-3: installs Talos v1.13.0 on /dev/sda, reboots, joins as control plane",
		"bootstrap etcd on cp-1",
	}
	if got := tftest.TextsOf(t, tftest.AttributeOf(t, plan, "operations")); !slices.Equal(got, want) {
		t.Errorf("operations are %q", got)
	}

	for name, known := range map[string]bool{"phase": false, "observed": false, "id": true, "version_contract": true} {
		if got := tftest.AttributeOf(t, plan, name); got.IsKnown() != known {
			t.Errorf("%s is %s", name, got)
		}
	}

	handle := tftest.AttributeOf(t, plan, "cluster")
	for name, known := range map[string]bool{"phase": false, "secrets": false, "name": true, "endpoint": true,
		"talos_endpoints": true} {
		if got := tftest.AttributeOf(t, handle, name); got.IsKnown() != known {
			t.Errorf("cluster.%s is %s", name, got)
		}
	}

	unnamed := planOf(t, "talosop_control_plane", nil,
		tftest.With(tftest.BaseControlPlane(), tftest.Unknown{}, "machines", "cp-2", "address"))
	if got := tftest.TextsOf(t, tftest.AttributeOf(t, unnamed, "operations")); !slices.Equal(got, want) {
		t.Errorf("with an unknown address operations are %s", got)
	}
}

// A version is the same with and without its v: state keeps the first spelling.
func TestPlan_versionsWithoutV(t *testing.T) {
	t.Parallel()

	bare := func(config tftest.Config) tftest.Config {
		for _, name := range []string{"talos_version", "kubernetes_version"} {
			if version, ok := config[name].(string); ok {
				config[name] = strings.TrimPrefix(version, "v")
			}
		}

		return config
	}

	for kind, config := range map[string]func() tftest.Config{
		"talosop_control_plane": tftest.BaseControlPlane, "talosop_worker": fullWorker, "talosop_cluster": tftest.BaseCluster,
	} {
		with, without := settledState(t, kind, config()), settledState(t, kind, bare(config()))

		if plan := planOf(t, kind, &with, bare(config())); !plan.Equal(with) {
			diff, err := with.Diff(plan)
			t.Errorf("%s: without the v it plans %v %v", kind, diff, err)
		}

		if plan := planOf(t, kind, &without, config()); !plan.Equal(without) {
			diff, err := without.Diff(plan)
			t.Errorf("%s: with the v it plans %v %v", kind, diff, err)
		}

		if got := tftest.Text(t, without, "talos_version"); got != "1.13.0" {
			t.Errorf("%s: state has %s", kind, got)
		}
	}

	if got := tftest.Text(t, tftest.AttributeOf(t, settledState(t, "talosop_cluster", bare(tftest.BaseCluster())),
		"cluster"),
		"talos_version"); got != "v1.13.0" {
		t.Errorf("the handle has %s", got)
	}
}

// A plan without a difference changes nothing, and one that touches no machine keeps the observations.
func TestPlan_withoutChanges(t *testing.T) {
	t.Parallel()

	for resource, config := range map[string]func() tftest.Config{
		"talosop_control_plane": fullControlPlane, "talosop_worker": fullWorker, "talosop_cluster": fullCluster,
	} {
		prior := settledState(t, resource, config())

		if plan := planOf(t, resource, &prior, config()); !plan.Equal(prior) {
			diff, err := prior.Diff(plan)
			t.Errorf("%s: an unchanged configuration plans %v %v", resource, diff, err)
		}

		plan := planOf(t, resource, &prior, tftest.With(config(), "1h", "timeouts", "create"))
		for _, name := range []string{"phase", "observed", "id"} {
			if got := tftest.AttributeOf(t, plan, name); !got.Equal(tftest.AttributeOf(t, prior, name)) {
				t.Errorf("%s: with other timeouts %s is %s", resource, name, got)
			}
		}

		if got := tftest.TextsOf(t, tftest.AttributeOf(t, plan, "operations")); len(got) > 0 {
			t.Errorf("%s: with other timeouts operations are %q", resource, got)
		}
	}
}

// Changes that talosop makes to running machines.
func TestPlan_updates(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		change func(tftest.Config) tftest.Config
		want   []string
		// unproven is a machine whose record keeps nothing that identifies its hardware.
		unproven string
	}{
		"machine added": {
			change: func(c tftest.Config) tftest.Config {
				return tftest.With(c, tftest.Config{"address": "10.0.0.14", "install": tftest.Config{"disk": "/dev/vda"}},
					"machines",
					"cp-9")
			},
			want: []string{"apply configuration to cp-9: installs Talos v1.13.0 on /dev/vda, reboots, joins as " +
				"control plane"},
		},
		"label": {
			change: func(c tftest.Config) tftest.Config {
				return tftest.With(c, []any{"machine:\n  nodeLabels:\n    rack: b2"}, "machines", "cp-2", "config_patches")
			},
		},
		"addresses": {
			change: func(c tftest.Config) tftest.Config { return tftest.With(c, "10.0.0.77", "machines", "cp-2", "address") },
			want:   []string{"find cp-2 at 10.0.0.77"},
		},
		"other hardware": {
			change: func(c tftest.Config) tftest.Config {
				return tftest.With(c, "4c4c4544-0042-3510-8053-000000000000", "machines", "cp-2", "uuid")
			},
			unproven: "cp-2",
		},
		"the hardware it is known to be": {
			change: func(c tftest.Config) tftest.Config { return tftest.With(c, uuidOf("cp-2"), "machines", "cp-2", "uuid") },
			want:   []string{"look at the machines again"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			prior := settledState(t, "talosop_control_plane", tftest.BaseControlPlane())
			plan := planOf(t, "talosop_control_plane", &prior, test.change(tftest.BaseControlPlane()))

			if got := tftest.TextsOf(t, tftest.AttributeOf(t, plan, "operations")); test.want != nil &&
				!slices.Equal(got, test.want) {
				t.Errorf("operations are %q, want %q", got, test.want)
			}

			if got := tftest.AttributeOf(t, plan, "phase"); !got.Equal(tftest.AttributeOf(t, prior, "phase")) {
				t.Errorf("phase is %s", got)
			}

			if test.unproven != "" {
				shown := tftest.FieldsOf(t, tftest.AttributeOf(t, plan, "observed"))[test.unproven]
				for _, name := range []string{"uuid", "stage"} {
					if got := tftest.AttributeOf(t, shown, name); got.IsKnown() {
						t.Errorf("%s of %s stays %s", name, test.unproven, got)
					}
				}

				if tftest.AttributeOf(t, plan, "record").IsKnown() {
					t.Error("the record stays")
				}
			}
		})
	}
}

// A resource that is not Ready has a plan to continue, and its dependents wait.
func TestPlan_resumesAnUnfinishedRun(t *testing.T) {
	t.Parallel()

	for _, phase := range []string{"Provisioning", "Bootstrapping", "Joining", "Degraded"} {
		settled := settledState(t, "talosop_control_plane", tftest.BaseControlPlane())

		prior, err := tftypes.Transform(settled, func(at *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
			if at.LastStep() == tftypes.AttributePathStep(tftypes.AttributeName("phase")) {
				return tftypes.NewValue(tftypes.String, phase), nil
			}

			return v, nil
		})
		if err != nil {
			t.Fatal(err)
		}

		plan := planOf(t, "talosop_control_plane", &prior, tftest.BaseControlPlane())

		for name, value := range map[string]tftypes.Value{
			"phase":         tftest.AttributeOf(t, plan, "phase"),
			"cluster.phase": tftest.AttributeOf(t, tftest.AttributeOf(t, plan, "cluster"), "phase"),
		} {
			if value.IsKnown() {
				t.Errorf("in phase %s the plan has %s = %s", phase, name, value)
			}
		}
	}
}

// Impossible changes are refused before anything happens.
func TestPlan_refusedChanges(t *testing.T) {
	t.Parallel()

	other, err := secretstest.Generate()
	if err != nil {
		t.Fatal(err)
	}

	otherSecrets, err := other.YAML()
	if err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct {
		config tftest.Config
		At     string
		says   []string
	}{
		"Talos version": {
			config: tftest.With(tftest.With(tftest.BaseControlPlane(), "v1.12.6", "talos_version"), "v1.12", "version_contract"),
			At:     `AttributeName("talos_version")`,
			says:   []string{"[talos_downgrade]", "cp-1, cp-2 and cp-3 run Talos v1.13.0", "the older v1.12.6"},
		},
		"Kubernetes version": {
			config: tftest.With(tftest.BaseControlPlane(), "v1.34.1", "kubernetes_version"),
			At:     `AttributeName("kubernetes_version")`,
			says:   []string{"Kubernetes v1.35.2 runs", "cannot be downgraded from v1.35 to v1.34"},
		},
		"contract": {
			config: tftest.With(tftest.BaseControlPlane(), "v1.12", "version_contract"),
			At:     `AttributeName("version_contract")`, says: []string{"[contract_change]", "from v1.13 to v1.12"},
		},
		"removal": {
			config: tftest.With(tftest.BaseControlPlane(), tftest.Config{"cp-7": tftest.Config{"address": "10.0.0.17"}},
				"machines"),
			At: `AttributeName("machines")`, says: []string{"cp-1, cp-2 and cp-3 would leave", "Keep cp-1 and apply"},
		},
		"secrets": {
			config: tftest.With(tftest.BaseControlPlane(), string(otherSecrets), "secrets"),
			At:     `AttributeName("secrets")`, says: []string{"[secrets_changed]", "-replace"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			typ := tftest.TypeOf(t, "talosop_control_plane")
			prior := settledState(t, "talosop_control_plane", tftest.BaseControlPlane())
			prior = withDigests(t, prior)

			resp := tftest.Plan(t, "talosop_control_plane", &prior, tftest.ValueOf(t, typ, test.config))
			tftest.ExpectMistake(t, resp.Diagnostics, test.At, test.says, false)
		})
	}
}

// withDigests gives every observed machine a digest of no configuration, so that a plan finds a difference on all of
// them.
func withDigests(t *testing.T, state tftypes.Value) tftypes.Value {
	t.Helper()

	for name := range tftest.Remembered(t, state) {
		state = seen(t, state, name, "config_digest", "sha256:old")
	}

	return state
}

// Another spelling of the same secrets is no change.
func TestPlan_respelledSecretsAreNoChange(t *testing.T) {
	t.Parallel()

	prior := settledState(t, "talosop_control_plane", tftest.BaseControlPlane())
	plan := planOf(t, "talosop_control_plane", &prior,
		tftest.With(tftest.BaseControlPlane(), "# kept in a safe\n"+tftest.Bundle(), "secrets"))

	if got := tftest.TextsOf(t, tftest.AttributeOf(t, plan, "operations")); len(got) > 0 {
		t.Errorf("operations are %q", got)
	}
}

// A change to another cluster replaces it; an explicit default does not.
func TestPlan_replacements(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		was, config tftest.Config
		Replace     bool
	}{
		"name":               {config: tftest.With(tftest.BaseControlPlane(), "other", "name")},
		"name not known yet": {config: tftest.With(tftest.BaseControlPlane(), tftest.Unknown{}, "name")},
		"pod network": {config: tftest.With(tftest.BaseControlPlane(), []any{"10.50.0.0/16"}, "pod_cidrs"),
			Replace: true},
		"default pod network":     {config: tftest.With(tftest.BaseControlPlane(), []any{"10.244.0.0/16"}, "pod_cidrs")},
		"default service network": {config: tftest.With(tftest.BaseControlPlane(), []any{"10.96.0.0/12"}, "service_cidrs")},
		"pod network by patch": {config: tftest.With(tftest.BaseControlPlane(),
			[]any{"cluster: {network: {podSubnets: [10.50.0.0/16]}}\n"}, "cluster_config_patches"), Replace: true},
		"service network by patch": {config: tftest.With(tftest.BaseControlPlane(),
			[]any{"cluster: {network: {serviceSubnets: [10.50.0.0/16]}}\n"}, "config_patches"), Replace: true},
		"domain by patch of a machine": {config: tftest.With(tftest.BaseControlPlane(), tftest.Config{"cp-1": tftest.Config{
			"address":        "10.0.0.11",
			"config_patches": []any{"cluster: {network: {dnsDomain: other.local}}\n"}}}, "machines"), Replace: true},
		"default networks by patch": {config: tftest.With(tftest.BaseControlPlane(),
			[]any{"cluster: {network: {podSubnets: [10.244.0.0/16], serviceSubnets: [10.96.0.0/12]}}\n"}, "config_patches")},
		"DNS domain":         {config: tftest.With(tftest.BaseControlPlane(), "other.local", "dns_domain"), Replace: true},
		"default DNS domain": {config: tftest.With(tftest.BaseControlPlane(), "cluster.local", "dns_domain")},
		"certificate names":  {config: tftest.With(tftest.BaseControlPlane(), []any{"kube.example.org"}, "cert_sans")},
		"pod network from the attribute to a patch": {was: tftest.With(tftest.BaseControlPlane(), []any{"10.50.0.0/16"},
			"pod_cidrs"),
			config: tftest.With(tftest.BaseControlPlane(), []any{"cluster: {network: {podSubnets: [10.50.0.0/16]}}\n"},
				"config_patches")},
		"domain from a patch to the attribute": {
			was: tftest.With(tftest.BaseControlPlane(), []any{"cluster: {network: {dnsDomain: other.local}}\n"},
				"cluster_config_patches"),
			config: tftest.With(tftest.BaseControlPlane(), "other.local", "dns_domain")},
		"attribute under a patch that stays": {
			was: tftest.With(tftest.BaseControlPlane(), []any{"cluster: {network: {dnsDomain: other.local}}\n"},
				"config_patches"),
			config: tftest.With(tftest.With(tftest.BaseControlPlane(), []any{"cluster: {network: {dnsDomain: other.local}}\n"},
				"config_patches"),
				"third.local", "dns_domain")},
	} {
		was := test.was
		if was == nil {
			was = tftest.BaseControlPlane()
		}

		// With protection the plan refuses it: TestPlan_modeIsProtected.
		prior := settledState(t, "talosop_control_plane", tftest.With(was, false, "deletion_protection"))

		resp := tftest.Plan(t, "talosop_control_plane", &prior,
			tftest.ValueOf(t, tftest.TypeOf(t, "talosop_control_plane"), tftest.With(test.config, false, "deletion_protection")))
		if diagnostics := tftest.Show(resp.Diagnostics); refusedBy(resp.Diagnostics) || test.Replace != strings.Contains(diagnostics,
			"[cluster_destroyed]") || !test.Replace && diagnostics != "" {
			t.Errorf("%s: %s", name, diagnostics)
		}

		if got := len(resp.RequiresReplace) > 0; got != test.Replace {
			t.Errorf("%s: replaces %v", name, resp.RequiresReplace)
		}
	}
}

// On metal another name changes the configuration of running machines, and the ID follows.
func TestPlan_renamedCluster(t *testing.T) {
	t.Parallel()

	prior := withDigests(t, settledState(t, "talosop_control_plane", tftest.BaseControlPlane()))
	plan := planOf(t, "talosop_control_plane", &prior, tftest.With(tftest.BaseControlPlane(), "other", "name"))

	got := tftest.TextsOf(t, tftest.AttributeOf(t, plan, "operations"))
	if len(got) != 3 || got[0] != "apply configuration to cp-1 (no reboot): cluster.clusterName" {
		t.Errorf("operations are %q", got)
	}

	for _, name := range []tftypes.Value{tftest.AttributeOf(t, plan, "id"),
		tftest.AttributeOf(t, tftest.AttributeOf(t, plan, "cluster"), "name")} {
		if !name.Equal(tftypes.NewValue(tftypes.String, "other")) {
			t.Errorf("the cluster is called %s", name)
		}
	}
}

// Another spelling of a network or a domain is the same one, and no machine is changed.
func TestPlan_spellings(t *testing.T) {
	t.Parallel()

	networks := func(pods, services string) tftest.Config {
		return tftest.With(tftest.With(tftest.BaseControlPlane(), []any{pods, "10.20.0.0/16"}, "pod_cidrs"),
			[]any{services, "10.30.0.0/16"},
			"service_cidrs")
	}

	for name, test := range map[string]struct{ before, after tftest.Config }{
		"networks": {networks("fd00:10::/64", "fd00:20::/112"), networks("FD00:10:0::/64", "FD00:0020::0/112")},
		"domain": {tftest.With(tftest.BaseControlPlane(), "example.local", "dns_domain"),
			tftest.With(tftest.BaseControlPlane(), "Example.Local", "dns_domain")},
		"default domain": {tftest.BaseControlPlane(), tftest.With(tftest.BaseControlPlane(), "Cluster.LOCAL", "dns_domain")},
	} {
		prior := settledState(t, "talosop_control_plane", test.before)

		resp := tftest.Plan(t, "talosop_control_plane", &prior, tftest.ValueOf(t, tftest.TypeOf(t, "talosop_control_plane"),
			test.after))
		if len(resp.Diagnostics) > 0 || len(resp.RequiresReplace) > 0 {
			t.Fatalf("%s: it is replaced for %v: %s", name, resp.RequiresReplace, tftest.Show(resp.Diagnostics))
		}

		plan := planOf(t, "talosop_control_plane", &prior, test.after)
		if got := tftest.TextsOf(t, tftest.AttributeOf(t, plan, "operations")); len(got) > 0 {
			t.Errorf("%s: operations are %q", name, got)
		}

		if got := tftest.AttributeOf(t, plan, "observed"); !got.Equal(tftest.AttributeOf(t, prior, "observed")) {
			t.Errorf("%s: observed is %s", name, got)
		}
	}

	swapped := tftest.With(tftest.BaseControlPlane(), []any{"10.20.0.0/16", "fd00:10::/64"}, "pod_cidrs")
	prior := settledState(t, "talosop_control_plane",
		tftest.With(tftest.BaseControlPlane(), []any{"fd00:10::/64", "10.20.0.0/16"}, "pod_cidrs"))

	resp := tftest.Plan(t, "talosop_control_plane", &prior, tftest.ValueOf(t, tftest.TypeOf(t, "talosop_control_plane"),
		swapped))
	if len(resp.RequiresReplace) == 0 {
		t.Error("another family as the first replaces nothing")
	}
}

// A schematic given by content equals the one given by ID: in the installed image, on the machines, and in a plan.
func TestPlan_schematicByContent(t *testing.T) {
	t.Parallel()

	const (
		kind      = "talosop_cluster"
		id        = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
		content   = "customization:\n  systemExtensions:\n    officialExtensions:\n      - siderolabs/qemu-guest-agent\n"
		respelled = "# again\n{customization: {systemExtensions: {officialExtensions: [siderolabs/qemu-guest-agent]}}}"
		elsewhere = "customization: {systemExtensions: {officialExtensions: [siderolabs/iscsi-tools]}}"
	)

	by := func(schematic string) tftest.Config {
		return tftest.With(tftest.With(tftest.BaseCluster(), schematic, "control_plane", "schematic"), schematic, "workers",
			"gpu", "schematic")
	}

	settled := func(schematic string) tftypes.Value {
		prior := settledState(t, kind, by(schematic))
		for _, machine := range []string{"cp-1", "cp-2", "cp-3", "gpu/w-1"} {
			prior = seen(t, prior, machine, "schematic", id)
		}

		return prior
	}

	for name, texts := range map[string][2]string{
		"content for its id": {id, content}, "id for its content": {content, id}, "another spelling": {content, respelled},
	} {
		prior := settled(texts[0])

		resp := tftest.Plan(t, kind, &prior, tftest.ValueOf(t, tftest.TypeOf(t, kind), by(texts[1])))
		if len(resp.Diagnostics) > 0 {
			t.Fatalf("%s: %s", name, tftest.Show(resp.Diagnostics))
		}

		if plan := planOf(t, kind, &prior, by(texts[1])); !plan.Equal(prior) {
			diffs, _ := plan.Diff(prior)
			t.Errorf("%s is a change: %v", name, diffs)
		}
	}

	prior := settled(content)

	got := tftest.TextsOf(t, tftest.AttributeOf(t, planOf(t, kind, &prior, by(elsewhere)), "operations"))
	if !slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, ": schematic ") }) {
		t.Errorf("another content: operations are %q", got)
	}
}

// No plan can remove a protected resource.
func TestPlan_deletionProtection(t *testing.T) {
	t.Parallel()

	typ := tftest.TypeOf(t, "talosop_control_plane")
	prior := settledState(t, "talosop_control_plane", tftest.BaseControlPlane())
	null := tftypes.NewValue(typ, nil)

	destroy, err := tftest.Server(t).PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: "talosop_control_plane", PriorState: tftest.Dynamic(t, prior), ProposedNewState: tftest.Dynamic(t, null),
		Config: tftest.Dynamic(t, null),
	})
	if err != nil {
		t.Fatal(err)
	}

	tftest.ExpectMistake(t, destroy.Diagnostics, `AttributeName("deletion_protection")`,
		[]string{"[deletion_protection]", `"prod"`, "destroyed"}, false)

	unprotected := settledState(t, "talosop_control_plane", tftest.With(tftest.BaseControlPlane(), false,
		"deletion_protection"))

	allowed, err := tftest.Server(t).PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: "talosop_control_plane", PriorState: tftest.Dynamic(t, unprotected),
		ProposedNewState: tftest.Dynamic(t, null),
		Config:           tftest.Dynamic(t, null),
	})
	if err != nil {
		t.Fatal(err)
	}

	if refusedBy(allowed.Diagnostics) {
		t.Error(tftest.Show(allowed.Diagnostics))
	}
}

// A refused plan of -replace lists what it would wipe, and so does the plan that allows it.
func TestPlan_replaceOption(t *testing.T) {
	t.Parallel()

	const (
		kind = "talosop_control_plane"
		says = "reset control plane cp-2"
	)

	typ, null := tftest.TypeOf(t, kind), tftypes.NewValue(tftest.TypeOf(t, kind), nil)
	prior := settledState(t, kind, tftest.BaseControlPlane())
	server := tftest.Server(t)

	update, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: kind, PriorState: tftest.Dynamic(t, prior), ProposedNewState: tftest.Dynamic(t, prior),
		Config:       tftest.Dynamic(t, tftest.ValueOf(t, typ, tftest.BaseControlPlane())),
		PriorPrivate: []byte(`{"deletion_protection":"dHJ1ZQ=="}`),
	})
	if err != nil || len(update.Diagnostics) > 0 {
		t.Fatal(err, tftest.Show(update.Diagnostics))
	}

	create, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: kind, PriorState: tftest.Dynamic(t, null),
		ProposedNewState: tftest.Dynamic(t, tftest.ValueOf(t, typ, tftest.BaseControlPlane())),
		Config:           tftest.Dynamic(t, tftest.ValueOf(t, typ, tftest.BaseControlPlane())), PriorPrivate: update.PlannedPrivate,
	})
	if err != nil {
		t.Fatal(err)
	}

	tftest.ExpectMistake(t, create.Diagnostics, `AttributeName("deletion_protection")`,
		[]string{`"prod"`, "replaced, and its machines reset", says}, false)

	unprotected := tftest.Plan(t, kind, &prior, tftest.ValueOf(t, typ, tftest.With(tftest.BaseControlPlane(), false,
		"deletion_protection")))
	if diagnostics := tftest.Show(unprotected.Diagnostics); refusedBy(unprotected.Diagnostics) ||
		!strings.Contains(diagnostics, "[deletion_protection_disabled]") || !strings.Contains(diagnostics, says) {
		t.Error(diagnostics)
	}

	preserving := tftest.Plan(t, kind, &prior,
		tftest.ValueOf(t, typ, tftest.With(tftest.With(tftest.BaseControlPlane(), false, "deletion_protection"), "preserve",
			"on_destroy")))
	if len(preserving.Diagnostics) > 0 {
		t.Error(tftest.Show(preserving.Diagnostics))
	}
}
