package provider

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	machinespkg "github.com/talosop/terraform-provider-talosop/internal/provider/machines"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// baseMachineConfig is a configuration that is right, with a handle written by hand.
func baseMachineConfig() configuration {
	base := baseWorker()
	delete(base, "machines")

	return base
}

// joining is a worker of a pool, with what its pool and its cluster say.
func joining(base configuration) configuration {
	return with(without(base, "machines", "w-2"), "w-1", "machines", "w-1", "hostname")
}

// fullMachineConfig is a configuration with every argument set, as that of fullWorker has them.
func fullMachineConfig() (pool, data configuration) {
	system := func() configuration {
		return configuration{"secure_boot": false, "image_verification": []any{configuration{"image": "*", "skip": true}},
			"system_volumes": configuration{"EPHEMERAL": configuration{"max_size": "50GiB", "encryption_keys": configuration{
				"0": configuration{"passphrase": "battery staple"}}}}}
	}

	pool, data = fullWorker(), fullWorker()
	maps.Copy(pool, system())

	machines, _ := data["machines"].(configuration)
	one, _ := machines["w-1"].(configuration)

	patches := []any{}
	for _, from := range []configuration{data, one} {
		more, _ := from["config_patches"].([]any)
		patches = append(patches, more...)
	}

	return pool, configuration{"cluster": data["cluster"], "talos_version": data["talos_version"],
		"schematic": data["schematic"], "platform": data["platform"], "install": one["install"], "hostname": "w-1",
		"config_patches": patches, "role": "worker", "allow_untested": true,
		"secure_boot": system()["secure_boot"], "image_verification": system()["image_verification"],
		"system_volumes": system()["system_volumes"]}
}

// renderedBy is the configuration of the only machine of a planned resource.
func renderedBy(t *testing.T, name string, config configuration) string {
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
	must(t, err)

	if len(rendered.Configs) != 1 {
		t.Fatalf("%d machines", len(rendered.Configs))
	}

	return string(rendered.Configs[set.Names()[0]])
}

// The data source gives what the resources send, byte for byte, and shows nothing secret of it.
func TestMachineConfig_isWhatResourcesSend(t *testing.T) {
	t.Parallel()

	type same struct {
		kind           string
		resource, data configuration
	}

	cases := map[string]same{}
	for _, contract := range []string{"v1.11", "v1.12", "v1.13", "v1.14"} {
		pinned := func(base configuration) configuration {
			return with(with(base, contract, "cluster", "version_contract"), "v1.14.0", "talos_version")
		}

		cases["worker "+contract] = same{"talosop_worker", joining(pinned(baseWorker())),
			with(pinned(baseMachineConfig()), "w-1", "hostname")}
		cases["control plane "+contract] = same{"talosop_machine", pinned(baseMachine()),
			with(with(pinned(baseMachineConfig()), "cp-1", "hostname"), "controlplane", "role")}
	}

	workers, data := fullMachineConfig()
	cases["everything"] = same{"talosop_worker", workers, data}

	secrets := append(tf.MasksOf(bundleOnce()), "correct horse", "battery staple")

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			state, diags := readData(t, "talosop_machine_config", test.data)
			if len(diags) > 0 {
				t.Fatal(show(diags))
			}

			got := said(t, state, "config", "redacted", "digest")
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

// Without a host name the platform names each machine that has the configuration.
func TestMachineConfig_leavesTheHostNameToThePlatform(t *testing.T) {
	t.Parallel()

	for contract, wants := range map[string]string{"v1.11": "stableHostname: true", "v1.13": "auto: stable",
		"v1.14": "auto: stable"} {
		config := with(with(baseMachineConfig(), contract, "cluster", "version_contract"), "v1.14.0", "talos_version")

		state, diags := readData(t, "talosop_machine_config", config)
		if len(diags) > 0 {
			t.Fatal(show(diags))
		}

		if got := said(t, state, "config")["config"]; !strings.Contains(got, wants) || strings.Contains(got, " hostname:") ||
			strings.Contains(got, "\nhostname:") {
			t.Errorf("contract %s:\n%s", contract, got)
		}
	}
}

func TestMachineConfig_refuses(t *testing.T) {
	t.Parallel()

	inHandle := `AttributeName("cluster").`

	for name, test := range map[string]struct {
		config configuration
		at     string
		says   []string
	}{
		"containers": {with(with(baseMachineConfig(), "container", "cluster", "mode"), configuration{"namespace": "talos"},
			"cluster", "host"), inHandle + `AttributeName("mode")`, []string{"talosop_worker"}},
		"version": {with(baseMachineConfig(), "1.13", "talos_version"), `AttributeName("talos_version")`,
			[]string{"v1.13"}},
		"untested": {with(baseMachineConfig(), "v1.99.0", "talos_version"), `AttributeName("talos_version")`,
			[]string{"allow_untested"}},
		"contract": {with(baseMachineConfig(), "v1.14", "cluster", "version_contract"),
			inHandle + `AttributeName("version_contract")`, []string{"v1.14"}},
		"no contract": {without(baseMachineConfig(), "cluster", "version_contract"),
			inHandle + `AttributeName("version_contract")`, nil},
		"no version of Kubernetes": {without(baseMachineConfig(), "cluster", "kubernetes_version"),
			inHandle + `AttributeName("kubernetes_version")`, nil},
		"secrets": {with(baseMachineConfig(), "certs: {}", "cluster", "secrets"), inHandle + `AttributeName("secrets")`,
			[]string{"talosop_secrets"}},
		"role":      {with(baseMachineConfig(), "master", "role"), `AttributeName("role")`, []string{"controlplane"}},
		"host name": {with(baseMachineConfig(), "No Name", "hostname"), `AttributeName("hostname")`, []string{`"No Name"`}},
		"disk": {with(baseMachineConfig(), configuration{"size": "> 1TB"}, "install", "disk_selector"),
			`AttributeName("install").AttributeName("disk_selector")`, []string{`"/dev/sda"`}},
		"schematic": {with(baseMachineConfig(), "abc", "schematic"), `AttributeName("schematic")`, []string{"64 lower-case"}},
		"platform":  {with(baseMachineConfig(), "No Platform", "platform"), `AttributeName("platform")`, []string{"nocloud"}},
		"patch": {with(baseMachineConfig(), []any{"machine: {}", "just words"}, "config_patches"),
			`AttributeName("config_patches").ElementKeyInt(1)`, []string{"Allowed"}},
		"volume": {with(baseMachineConfig(), "much", "system_volumes", "EPHEMERAL", "max_size"),
			`AttributeName("system_volumes").ElementKeyString("EPHEMERAL").AttributeName("max_size")`, []string{`"much"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, diags := readData(t, "talosop_machine_config", test.config)
			expectMistake(t, diags, test.at, test.says, false)
		})
	}
}

// What is not known yet is checked once it is: the CLIs read a data source when all of it is known.
func TestMachineConfig_unknown(t *testing.T) {
	t.Parallel()

	typ, server := schemas(t).DataSourceSchemas["talosop_machine_config"].ValueType(), providerServer(t)
	_, full := fullMachineConfig()

	tried := everyUnknown(t, valueOf(t, typ, full), func(at *tftypes.AttributePath, v tftypes.Value) {
		resp, err := server.ValidateDataResourceConfig(t.Context(), &tfprotov6.ValidateDataResourceConfigRequest{
			TypeName: "talosop_machine_config", Config: dynamic(t, v)})
		must(t, err)

		if len(resp.Diagnostics) > 0 {
			t.Errorf("unknown %s: %s", at, show(resp.Diagnostics))
		}
	})

	if tried < 40 {
		t.Errorf("only %d values were tried", tried)
	}
}

// The provider's configuration has the secrets and patches of a cluster for the data source, too. What is not known of
// it in a plan is an error: a data source has no unknown values.
func TestMachineConfig_withTheProvidersClusters(t *testing.T) {
	t.Parallel()

	typ := schemas(t).DataSourceSchemas["talosop_machine_config"].ValueType()
	read := func(secrets any) *tfprotov6.ReadDataSourceResponse {
		server := serving(t, configuration{"clusters": configuration{"prod": configuration{"secrets": secrets,
			"config_patches": []any{"machine: {nodeLabels: {of: all}}"}, "machines": configuration{"w-1": configuration{
				"config_patches": []any{"machine: {nodeLabels: {of: one}}"}}}}}})
		config := with(without(baseMachineConfig(), "cluster", "secrets"), "w-1", "hostname")

		resp, err := server.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: "talosop_machine_config",
			Config: dynamic(t, valueOf(t, typ, config))})
		must(t, err)

		return resp
	}

	resp := read(bundleOnce())
	if len(resp.Diagnostics) > 0 {
		t.Fatal(show(resp.Diagnostics))
	}

	state, err := resp.State.Unmarshal(typ)
	must(t, err)

	if got := said(t, state, "config")["config"]; !strings.Contains(got, "of: one") || strings.Contains(got, "of: all") {
		t.Errorf("the patches of the provider's configuration are not in\n%s", got)
	}

	if said := show(read(unknownValue{}).Diagnostics); !strings.Contains(said, "not known before the apply") {
		t.Errorf("with unknown secrets: %s", said)
	}
}

// A machine that somebody else gives the configuration to joins the cluster, and no plan has anything to do with it.
func TestAccMachineConfig_joins(t *testing.T) {
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 1, 2)
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

		w := applied(t, cli, secretsProvider+secretsHCL+s.controlPlaneHCL("")+s.workersOf(s.workers[:1], "")+
			data("w1", `  hostname = "w-1"`)+data("any", "")+`
output "redacted" {
  value = data.talosop_machine_config.any.redacted
}
`)
		if sent := w.Attribute("data.talosop_machine_config.w1", "config"); sent != string(s.workers[0].Config()) {
			t.Errorf("the worker runs\n%s\nand the data source has\n%s", s.workers[0].Config(), sent)
		}

		config, _ := w.Attribute("data.talosop_machine_config.any", "config").(string)
		s.boot(t, bundleIn(t, w), config)
		expectNoChanges(t, w, "after the other machine joined")

		if w.MustRun("destroy", "-auto-approve"); string(s.workers[1].Config()) != config {
			t.Error("the machine that others made was reset")
		}
	})
}

// boot gives the last worker a configuration, as a platform does with user data, and waits until it is a node.
func (s *site) boot(t *testing.T, bundle *pki.Bundle, config string) {
	t.Helper()

	m := s.workers[len(s.workers)-1]

	fleet, err := providerdata.NewProviderData().FleetOf(t.Context(), pki.Changing, machineset.Set{}, bundle)
	must(t, err)

	defer fleet.Close()

	must(t, fleet.Machine(cluster.Machine{Name: m.Name(), Address: m.Address().String()}).
		ApplyConfig(t.Context(), []byte(config), step.Maintenance, ""))
	must(t, m.AwaitReady(t.Context()))

	text, err := bundle.YAML()
	must(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	api := s.nodes(t, string(text))
	must(t, wait.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		if nodes := api.Nodes.Observe(ctx).Nodes; len(nodes) != len(s.Machines()) {
			return fmt.Errorf("%d nodes of %d machines", len(nodes), len(s.Machines()))
		}

		return nil
	}))
}
