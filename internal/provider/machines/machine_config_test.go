package machines_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	machinespkg "github.com/talosop/terraform-provider-talosop/internal/provider/machines"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// joining is a worker of a pool, with the settings of its pool and its cluster.
func joining(base tftest.Config) tftest.Config {
	return tftest.With(tftest.Without(base, "machines", "w-2"), "w-1", "machines", "w-1", "hostname")
}

// fullMachineConfig is a configuration with every argument set, as in fullWorker.
func fullMachineConfig() (pool, data tftest.Config) {
	system := func() tftest.Config {
		return tftest.Config{"secure_boot": false, "image_verification": []any{tftest.Config{"image": "*", "skip": true}},
			"system_volumes": tftest.Config{"EPHEMERAL": tftest.Config{"max_size": "50GiB", "encryption_keys": tftest.Config{
				"0": tftest.Config{"passphrase": "battery staple"}}}}}
	}

	pool, data = fullWorker(), fullWorker()
	maps.Copy(pool, system())

	machines, _ := data["machines"].(tftest.Config)
	one, _ := machines["w-1"].(tftest.Config)

	patches := []any{}
	for _, from := range []tftest.Config{data, one} {
		more, _ := from["config_patches"].([]any)
		patches = append(patches, more...)
	}

	return pool, tftest.Config{"cluster": data["cluster"], "talos_version": data["talos_version"],
		"schematic": data["schematic"], "platform": data["platform"], "install": one["install"], "hostname": "w-1",
		"config_patches": patches, "role": "worker", "allow_untested": true,
		"secure_boot": system()["secure_boot"], "image_verification": system()["image_verification"],
		"system_volumes": system()["system_volumes"]}
}

// renderedBy is the configuration of the only machine of a planned resource.
func renderedBy(t *testing.T, name string, config tftest.Config) string {
	t.Helper()

	r := map[string]func() resource.Resource{
		"talosop_worker": machinespkg.NewWorkerResource, "talosop_machine": machinespkg.NewMachineResource}[name]()

	var described resource.SchemaResponse
	r.Schema(t.Context(), resource.SchemaRequest{}, &described)

	var (
		plan    = tfsdk.Plan{Raw: planOf(t, name, nil, config), Schema: described.Schema}
		workers machinespkg.WorkerModel
		single  machinespkg.OneMachineModel
		set     machineset.Set
		diags   diag.Diagnostics
	)

	if name == "talosop_worker" {
		diags = plan.Get(t.Context(), &workers)
		written, more := workers.MachineSet(t.Context())
		set, diags = written.Set, append(diags, more...)
	} else {
		diags = plan.Get(t.Context(), &single)
		written, more := single.MachineSet(t.Context())
		set, diags = written.Set, append(diags, more...)
	}

	if diags.HasError() {
		t.Fatal(diags)
	}

	rendered, err := set.Configurations()
	tftest.Must(t, err)

	if len(rendered.Configs) != 1 {
		t.Fatalf("%d machines", len(rendered.Configs))
	}

	return string(rendered.Configs[set.Names()[0]])
}

// The data source renders what the resources send, byte for byte, and shows no secret of it.
func TestMachineConfig_isWhatResourcesSend(t *testing.T) {
	t.Parallel()

	type same struct {
		kind           string
		resource, data tftest.Config
	}

	cases := map[string]same{}
	for _, contract := range []string{"v1.11", "v1.12", "v1.13", "v1.14"} {
		pinned := func(base tftest.Config) tftest.Config {
			return tftest.With(tftest.With(base, contract, "cluster", "version_contract"), "v1.14.0", "talos_version")
		}

		cases["worker "+contract] = same{"talosop_worker", joining(pinned(tftest.BaseWorker())),
			tftest.With(pinned(tftest.BaseMachineConfig()), "w-1", "hostname")}
		cases["control plane "+contract] = same{"talosop_machine", pinned(tftest.BaseMachine()),
			tftest.With(tftest.With(pinned(tftest.BaseMachineConfig()), "cp-1", "hostname"), "controlplane", "role")}
	}

	workers, data := fullMachineConfig()
	cases["everything"] = same{"talosop_worker", workers, data}

	secrets := append(tf.MasksOf(tftest.Bundle()), "correct horse", "battery staple")

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			state, diags := tftest.ReadData(t, "talosop_machine_config", test.data)
			if len(diags) > 0 {
				t.Fatal(tftest.Show(diags))
			}

			got := tftest.TextsIn(t, state, "config", "redacted", "digest")
			if want := renderedBy(t, test.kind, test.resource); got["config"] != want {
				t.Errorf("the resource sends\n%s\nand the data source has\n%s", want, got["config"])
			}

			for _, secret := range secrets {
				if strings.Contains(got["redacted"], strings.TrimSpace(secret)) {
					t.Errorf("redacted shows a secret of %d characters", len(secret))
				}
			}

			if !strings.Contains(got["redacted"], "(sensitive value)") || !strings.Contains(got["redacted"], "10.0.0.10:6443") ||
				!strings.HasPrefix(got["digest"], "sha256:") {
				t.Errorf("the digest is %s, and redacted is\n%s", got["digest"], got["redacted"])
			}
		})
	}
}

// Without a host name the platform names each machine with the configuration.
func TestMachineConfig_leavesTheHostNameToThePlatform(t *testing.T) {
	t.Parallel()

	for contract, wants := range map[string]string{"v1.11": "stableHostname: true", "v1.13": "auto: stable",
		"v1.14": "auto: stable"} {
		config := tftest.With(tftest.With(tftest.BaseMachineConfig(), contract, "cluster", "version_contract"), "v1.14.0",
			"talos_version")

		state, diags := tftest.ReadData(t, "talosop_machine_config", config)
		if len(diags) > 0 {
			t.Fatal(tftest.Show(diags))
		}

		if got := tftest.TextsIn(t, state, "config")["config"]; !strings.Contains(got, wants) ||
			strings.Contains(got, " hostname:") ||
			strings.Contains(got, "\nhostname:") {
			t.Errorf("contract %s:\n%s", contract, got)
		}
	}
}

func TestMachineConfig_refuses(t *testing.T) {
	t.Parallel()

	inHandle := `AttributeName("cluster").`

	for name, test := range map[string]struct {
		config tftest.Config
		at     string
		says   []string
	}{
		"containers": {tftest.With(tftest.With(tftest.BaseMachineConfig(), "container", "cluster", "mode"),
			tftest.Config{"namespace": "talos"},
			"cluster", "host"), inHandle + `AttributeName("mode")`, []string{"talosop_worker"}},
		"version": {tftest.With(tftest.BaseMachineConfig(), "1.13", "talos_version"), `AttributeName("talos_version")`,
			[]string{"v1.13"}},
		"untested": {tftest.With(tftest.BaseMachineConfig(), "v1.99.0", "talos_version"), `AttributeName("talos_version")`,
			[]string{"allow_untested"}},
		"contract": {tftest.With(tftest.BaseMachineConfig(), "v1.14", "cluster", "version_contract"),
			inHandle + `AttributeName("version_contract")`, []string{"v1.14"}},
		"no contract": {tftest.Without(tftest.BaseMachineConfig(), "cluster", "version_contract"),
			inHandle + `AttributeName("version_contract")`, nil},
		"no version of Kubernetes": {tftest.Without(tftest.BaseMachineConfig(), "cluster", "kubernetes_version"),
			inHandle + `AttributeName("kubernetes_version")`, nil},
		"secrets": {tftest.With(tftest.BaseMachineConfig(), "certs: {}", "cluster", "secrets"), inHandle + `AttributeName("secrets")`,
			[]string{"talosop_secrets"}},
		"role":      {tftest.With(tftest.BaseMachineConfig(), "master", "role"), `AttributeName("role")`, []string{"controlplane"}},
		"host name": {tftest.With(tftest.BaseMachineConfig(), "No Name", "hostname"), `AttributeName("hostname")`, []string{`"No Name"`}},
		"disk": {tftest.With(tftest.BaseMachineConfig(), tftest.Config{"size": "> 1TB"}, "install", "disk_selector"),
			`AttributeName("install").AttributeName("disk_selector")`, []string{`"/dev/sda"`}},
		"schematic": {tftest.With(tftest.BaseMachineConfig(), "abc", "schematic"), `AttributeName("schematic")`, []string{"64 lowercase"}},
		"platform":  {tftest.With(tftest.BaseMachineConfig(), "No Platform", "platform"), `AttributeName("platform")`, []string{"nocloud"}},
		"patch": {tftest.With(tftest.BaseMachineConfig(), []any{"machine: {}", "just words"}, "config_patches"),
			`AttributeName("config_patches").ElementKeyInt(1)`, []string{"Allowed"}},
		"volume": {tftest.With(tftest.BaseMachineConfig(), "much", "system_volumes", "EPHEMERAL", "max_size"),
			`AttributeName("system_volumes").ElementKeyString("EPHEMERAL").AttributeName("max_size")`, []string{`"much"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, diags := tftest.ReadData(t, "talosop_machine_config", test.config)
			tftest.ExpectMistake(t, diags, test.at, test.says, false)
		})
	}
}

// An unknown value is checked once it is known: the CLIs read a data source when all of it is known.
func TestMachineConfig_unknown(t *testing.T) {
	t.Parallel()

	typ, server := tftest.Schemas(t).DataSourceSchemas["talosop_machine_config"].ValueType(), tftest.Server(t)
	_, full := fullMachineConfig()

	tried := tftest.EveryUnknown(t, tftest.ValueOf(t, typ, full), func(at *tftypes.AttributePath, v tftypes.Value) {
		resp, err := server.ValidateDataResourceConfig(t.Context(), &tfprotov6.ValidateDataResourceConfigRequest{
			TypeName: "talosop_machine_config", Config: tftest.Dynamic(t, v)})
		tftest.Must(t, err)

		if len(resp.Diagnostics) > 0 {
			t.Errorf("unknown %s: %s", at, tftest.Show(resp.Diagnostics))
		}
	})

	if tried < 40 {
		t.Errorf("only %d values were tried", tried)
	}
}

// The data source also uses the secrets and patches of a cluster in the provider's configuration. An unknown one is
// an error of a plan: a data source has no unknown values.
func TestMachineConfig_withTheProvidersClusters(t *testing.T) {
	t.Parallel()

	typ := tftest.Schemas(t).DataSourceSchemas["talosop_machine_config"].ValueType()
	read := func(secrets any) *tfprotov6.ReadDataSourceResponse {
		server := tftest.Serve(t, tftest.Config{"clusters": tftest.Config{"prod": tftest.Config{"secrets": secrets,
			"config_patches": []any{"machine: {nodeLabels: {of: all}}"}, "machines": tftest.Config{"w-1": tftest.Config{
				"config_patches": []any{"machine: {nodeLabels: {of: one}}"}}}}}})
		config := tftest.With(tftest.Without(tftest.BaseMachineConfig(), "cluster", "secrets"), "w-1", "hostname")

		resp, err := server.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: "talosop_machine_config",
			Config: tftest.Dynamic(t, tftest.ValueOf(t, typ, config))})
		tftest.Must(t, err)

		return resp
	}

	resp := read(tftest.Bundle())
	if len(resp.Diagnostics) > 0 {
		t.Fatal(tftest.Show(resp.Diagnostics))
	}

	state, err := resp.State.Unmarshal(typ)
	tftest.Must(t, err)

	if got := tftest.TextsIn(t, state, "config")["config"]; !strings.Contains(got, "of: one") ||
		strings.Contains(got, "of: all") {
		t.Errorf("the patches of the provider's configuration are not in\n%s", got)
	}

	if diagnostics := tftest.Show(read(tftest.Unknown{}).Diagnostics); !strings.Contains(diagnostics, "[config_unknown_values]") {
		t.Errorf("with unknown secrets: %s", diagnostics)
	}
}

// A machine that gets the configuration from another tool joins the cluster, and no plan changes it.
func TestAccMachineConfig_joins(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 2)
		data := func(name, extra string) string {
			return fmt.Sprintf(`
data "talosop_machine_config" %q {
  cluster       = talosop_control_plane.this.cluster
  talos_version = "v1.13.0"
  install       = { disk = "/dev/sda" }
%s
}
`, name, extra)
		}

		w := sitetest.Applied(t, cli, sitetest.ProviderHCL+sitetest.SecretsHCL+s.ControlPlaneHCL("")+s.WorkersOf(s.Workers[:1], "")+
			data("w1", `  hostname = "w-1"`)+data("any", "")+`
output "redacted" {
  value = data.talosop_machine_config.any.redacted
}
`)
		if sent := w.Attribute("data.talosop_machine_config.w1", "config"); sent != string(s.Workers[0].Config()) {
			t.Errorf("the worker runs\n%s\nand the data source has\n%s", s.Workers[0].Config(), sent)
		}

		config, _ := w.Attribute("data.talosop_machine_config.any", "config").(string)
		sitetest.Boot(t, s, sitetest.BundleIn(t, w), config)
		sitetest.ExpectNoChanges(t, w, "after the other machine joined")

		if w.MustRun("destroy", "-auto-approve"); string(s.Workers[1].Config()) != config {
			t.Error("the machine that others made was reset")
		}
	})
}
