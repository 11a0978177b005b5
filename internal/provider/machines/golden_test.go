package machines_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"golang.org/x/tools/txtar"

	machinespkg "github.com/talosop/terraform-provider-talosop/internal/provider/machines"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// update rewrites the golden files; read the diff before keeping it.
var update = flag.Bool("update", false, "rewrite the golden files of plans")

// olderCluster is a whole cluster with older versions of Talos and Kubernetes.
func olderCluster(talos string) tftest.Config {
	config := tftest.With(tftest.With(tftest.BaseCluster(), talos, "talos_version"), "v1.34.1", "kubernetes_version")

	return tftest.With(config, talos, "workers", "gpu", "talos_version")
}

// digested is a state in which every machine runs the configuration of the state.
func digested[M any, P machinespkg.Model[M]](t *testing.T, r resource.Resource, state tftypes.Value) tftypes.Value {
	t.Helper()

	var schema resource.SchemaResponse

	r.Schema(t.Context(), resource.SchemaRequest{}, &schema)

	var m M

	stored := tfsdk.State{Raw: state, Schema: schema.Schema}
	if diags := stored.Get(t.Context(), &m); diags.HasError() {
		t.Fatal(diags)
	}

	p, diags := P(&m).MachineSet(t.Context())
	if diags.HasError() {
		t.Fatal(diags)
	}

	files, found := p.RenderForPlan()
	if found.HasError() {
		t.Fatal(found)
	}

	for name, configured := range files.Machines {
		state = seen(t, seen(t, state, name, "config_digest", configured.ConfigDigest), name, "images", configured.Images)
		state = seen(t, state, name, "keys", configured.Keys.String())
	}

	return state
}

// planScenario is one plan: from an applied configuration, with later observations of the machines, to another
// configuration.
type planScenario struct {
	// says is the subject of the plan, at the start of the file.
	says string
	// kind of the resource; talosop_cluster by default.
	kind string
	// before is nil for a create, after for a destroy.
	before, after tftest.Config
	since         func(t *testing.T, state tftypes.Value) tftypes.Value
}

// recordedScenarios are all scenarios with a golden file.
func recordedScenarios() map[string]planScenario {
	scenarios := planScenarios()
	maps.Copy(scenarios, kubernetesScenarios())
	maps.Copy(scenarios, restoreScenarios())
	maps.Copy(scenarios, containerScenarios())
	maps.Copy(scenarios, heldScenarios())
	maps.Copy(scenarios, checkedScenarios())

	return scenarios
}

// The text of plans for changes to clusters: the operations, the warnings, the errors.
func TestPlan_asRecorded(t *testing.T) {
	t.Parallel()

	scenarios := recordedScenarios()

	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			file := filepath.Join("testdata", "plans", name+".txtar")
			got := string(txtar.Format(scenario.run(t)))

			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // readable by all users
					t.Fatal(err)
				}

				return
			}

			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}

			if diff := gocmp.Diff(string(want), got); diff != "" {
				t.Errorf("-recorded +planned:\n%s", diff)
			}
		})
	}

	files, err := filepath.Glob(filepath.Join("testdata", "plans", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}

	for _, file := range files {
		if _, known := scenarios[strings.TrimSuffix(filepath.Base(file), ".txtar")]; !known {
			t.Errorf("%s belongs to no scenario", file)
		}
	}
}

// prior is the state before the plan; nil for a create.
func (s planScenario) prior(t *testing.T) *tftypes.Value {
	t.Helper()

	if s.before == nil {
		return nil
	}

	kind := cmp.Or(s.kind, "talosop_cluster")
	state := settledState(t, kind, s.before)

	switch kind {
	case "talosop_cluster":
		state = digested[machinespkg.ClusterModel](t, machinespkg.NewClusterResource(), state)
	case "talosop_worker":
		state = digested[machinespkg.WorkerModel](t, machinespkg.NewWorkerResource(), state)
	case "talosop_machine":
		state = digested[machinespkg.OneMachineModel](t, machinespkg.NewMachineResource(), state)
	}

	state = s.inPods(t, kind, state)

	if s.since != nil {
		state = s.since(t, state)
	}

	return &state
}

// plan plans the scenario; prior is nil for a create.
func (s planScenario) plan(
	t *testing.T,
) (typ tftypes.Object, prior *tftypes.Value, resp *tfprotov6.PlanResourceChangeResponse) {
	t.Helper()

	kind := cmp.Or(s.kind, "talosop_cluster")
	typ = tftest.TypeOf(t, kind)
	prior = s.prior(t)

	if s.after == nil {
		null := tftypes.NewValue(typ, nil)

		var err error

		resp, err = tftest.Server(t).PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
			TypeName: kind, PriorState: tftest.Dynamic(t, *prior), ProposedNewState: tftest.Dynamic(t, null),
			Config: tftest.Dynamic(t, null),
		})
		if err != nil {
			t.Fatal(err)
		}
	} else {
		resp = tftest.Plan(t, kind, prior, tftest.ValueOf(t, typ, s.after))
	}

	return typ, prior, resp
}

// diagnostics are those of the plan.
func (s planScenario) diagnostics(t *testing.T) []*tfprotov6.Diagnostic {
	t.Helper()

	_, _, resp := s.plan(t)

	return resp.Diagnostics
}

func (s planScenario) run(t *testing.T) *txtar.Archive {
	t.Helper()

	typ, prior, resp := s.plan(t)
	archive := &txtar.Archive{Comment: []byte(s.says + "\n")}
	section := func(name string, lines ...string) {
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(strings.Join(lines, "\n") + "\n")})
	}

	for _, d := range resp.Diagnostics {
		at := ""
		if len(d.Attribute.Steps()) > 0 {
			at = " at " + d.Attribute.String()
		}

		text := []string{d.Summary + at, d.Detail}
		if code, args := tftest.Code(d); code != "" {
			text = []string{code + at}

			for _, name := range slices.Sorted(maps.Keys(args)) {
				text = append(text, strings.TrimSpace(name+": "+args[name]))
			}
		}

		section(strings.ToLower(d.Severity.String()), text...)
	}

	if s.after != nil && resp.PlannedState != nil && !refusedBy(resp.Diagnostics) {
		plan, err := resp.PlannedState.Unmarshal(typ)
		if err != nil {
			t.Fatal(err)
		}

		section("operations", tftest.TextsOf(t, tftest.AttributeOf(t, plan, "operations"))...)
		section("changes", describeChanges(t, prior, plan)...)
	}

	return archive
}

// inPods is a state whose machines are containers.
func (s planScenario) inPods(t *testing.T, kind string, state tftypes.Value) tftypes.Value {
	t.Helper()

	switch {
	case !inPods(s.before):
		return state
	case kind == "talosop_cluster":
		return podded[machinespkg.ClusterModel](t, machinespkg.NewClusterResource(), state)
	case kind == "talosop_worker":
		return podded[machinespkg.WorkerModel](t, machinespkg.NewWorkerResource(), state)
	default:
		return podded[machinespkg.ControlPlaneModel](t, machinespkg.NewControlPlaneResource(),
			digested[machinespkg.ControlPlaneModel](t, machinespkg.NewControlPlaneResource(), state))
	}
}

func refusedBy(diagnostics []*tfprotov6.Diagnostic) bool {
	return slices.ContainsFunc(diagnostics,
		func(d *tfprotov6.Diagnostic) bool { return d.Severity == tfprotov6.DiagnosticSeverityError })
}

// describeChanges says whether a plan changes anything, and which values are only known after the apply.
func describeChanges(t *testing.T, prior *tftypes.Value, plan tftypes.Value) []string {
	t.Helper()

	if prior != nil && plan.Equal(*prior) {
		return []string{"none"}
	}

	var lines []string

	names := []string{"phase"}
	if object, ok := plan.Type().(tftypes.Object); ok && object.AttributeTypes["bootstrap_manifests_version"] != nil {
		names = append(names, "bootstrap_manifests_version")
	}

	if object, ok := plan.Type().(tftypes.Object); ok && object.AttributeTypes["restored_from"] != nil &&
		!tftest.AttributeOf(t, plan, "restored_from").IsNull() {
		names = append(names, "restored_from")
	}

	lines = append(describeObserved(t, prior, plan), describeImpact(t, plan)...)

	for _, name := range names {
		switch value := tftest.AttributeOf(t, plan, name); {
		case !value.IsKnown():
			lines = append(lines, name+" is known after the apply")
		case prior != nil && !value.Equal(tftest.AttributeOf(t, *prior, name)):
			lines = append(lines, fmt.Sprintf("%s changes", name))
		default:
			lines = append(lines, name+" stays")
		}
	}

	return lines
}

// describeObserved lists the fields of machines that a plan leaves unknown or sets, with equal machines grouped.
func describeObserved(t *testing.T, prior *tftypes.Value, plan tftypes.Value) []string {
	t.Helper()

	if prior == nil || !tftest.AttributeOf(t, plan, "observed").IsKnown() {
		return []string{"observed is known after the apply"}
	}

	was, is := observationsIn(t, *prior), observationsIn(t, plan)
	changes := map[string]string{}

	for name, machine := range is {
		switch record, recorded := was[name]; {
		case len(machine) == 0:
			changes[name] = "no record"
		case !recorded:
			changes[name] = "as it was under another name"
		default:
			changes[name] = changedFields(record, machine)
		}
	}

	for name := range was {
		if _, stays := changes[name]; !stays {
			changes[name] = "forgotten"
		}
	}

	return grouped(changes)
}

// observationsIn are the observed fields of machines with their versions, by machine; none of an unknown machine.
func observationsIn(t *testing.T, value tftypes.Value) map[string]map[string]tftypes.Value {
	t.Helper()

	all := map[string]map[string]tftypes.Value{}

	machines, suffix := map[string]tftypes.Value{}, "s"
	if observed := tftest.AttributeOf(t, value, "observed"); observed.Type().Is(tftypes.Object{}) {
		machines["the machine"], suffix = observed, ""
	} else {
		machines = tftest.FieldsOf(t, observed)
	}

	for name, machine := range machines {
		if all[name] = map[string]tftypes.Value{}; !machine.IsKnown() {
			continue
		}

		all[name] = maps.Clone(tftest.FieldsOf(t, machine))

		for _, field := range []string{"talos_version", "kubernetes_version"} {
			version := tftest.AttributeOf(t, value, "observed_"+field+suffix)
			if suffix != "" {
				version = tftest.FieldsOf(t, version)[name]
			}

			all[name][field] = version
		}
	}

	return all
}

// changedFields lists the changed fields of a machine.
func changedFields(was, is map[string]tftypes.Value) string {
	var fields []string

	for name, value := range is {
		switch {
		case !value.IsKnown():
			fields = append(fields, name)
		case !value.Equal(was[name]):
			fields = append(fields, name+" (known)")
		}
	}

	slices.Sort(fields)

	return strings.Join(fields, ", ")
}

// grouped has a line for each text, with its sorted names.
func grouped(texts map[string]string) []string {
	alike := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		alike[texts[name]] = append(alike[texts[name]], name)
	}

	delete(alike, "")

	var lines []string
	for _, text := range slices.Sorted(maps.Keys(alike)) {
		lines = append(lines, "observed of "+strings.Join(alike[text], ", ")+": "+text)
	}

	return lines
}

// describeImpact lists what rules on plans see.
func describeImpact(t *testing.T, plan tftypes.Value) []string {
	t.Helper()

	impact := tftest.AttributeOf(t, plan, "impact")
	if !impact.IsKnown() {
		return []string{"impact is known after the apply"}
	}

	var lines []string

	parts := tftest.FieldsOf(t, impact)

	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if parts[name].Type().Is(tftypes.Bool) {
			var ends bool

			tftest.Must(t, parts[name].As(&ends))

			if ends {
				lines = append(lines, "impact: "+name)
			}

			continue
		}

		if names := tftest.TextsOf(t, parts[name]); len(names) > 0 {
			lines = append(lines, "impact: "+name+" "+strings.Join(names, ", "))
		}
	}

	return lines
}

const aFile = "machine:\n  files:\n    - path: /var/a\n      op: create\n      permissions: 0o644\n      content: a"

func planScenarios() map[string]planScenario {
	const (
		gpu            = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
		withGuestAgent = "customization: {systemExtensions: {officialExtensions: [siderolabs/qemu-guest-agent, " +
			"siderolabs/iscsi-tools]}}"
		otherOne = "4c4c4544-0042-3510-8053-000000000000"
		label    = "machine:\n  nodeLabels:\n    rack: b2"
	)

	nothing := func(_ *testing.T, state tftypes.Value) tftypes.Value { return state }
	unprotected := tftest.With(tftest.BaseCluster(), false, "deletion_protection")

	return map[string]planScenario{
		"create": {says: "A whole cluster is made.", after: tftest.BaseCluster()},
		"nothing": {
			says:   "Nothing changed, and nothing is planned.",
			before: tftest.BaseCluster(), after: tftest.BaseCluster(), since: nothing,
		},
		"nothing-while-not-ready": {
			says:   "Static pods restart right after an apply, so that a control plane is not ready: nothing is planned.",
			before: tftest.BaseCluster(), after: tftest.BaseCluster(),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return booting("cp-1")(t, seen(t, state, "batch/w-1", "ready", false))
			},
		},
		"config-live": {
			says:   "A label is applied to running machines.",
			before: tftest.BaseCluster(), after: tftest.With(tftest.BaseCluster(), []any{label}, "cluster_config_patches"),
		},
		"config-live-without-uuids": {
			says:   "The same, on boards without SMBIOS, which have no UUID.",
			before: tftest.BaseCluster(), after: tftest.With(tftest.BaseCluster(), []any{label}, "cluster_config_patches"),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				for _, name := range []string{"cp-1", "cp-2", "cp-3", "batch/w-1", "batch/w-2", "gpu/w-1"} {
					state = seen(t, state, name, "uuid", nil)
				}

				return state
			},
		},
		"config-on-trial": {
			says:   "The same, on trial first.",
			before: tftest.BaseCluster(), after: tftest.With(tftest.With(tftest.BaseCluster(), []any{label},
				"cluster_config_patches"), "try", "apply_mode"),
		},
		"config-reboot": {
			says:   "A file takes a reboot: of a control plane, and of a pool.",
			before: tftest.BaseCluster(),
			after: tftest.With(tftest.With(tftest.BaseCluster(), []any{aFile}, "control_plane", "machines", "cp-2",
				"config_patches"),
				[]any{aFile}, "workers", "batch", "config_patches"),
		},
		"config-reboot-without-drain": {
			says:   "Draining is switched off.",
			before: tftest.BaseCluster(),
			after: tftest.With(tftest.With(tftest.BaseCluster(), []any{aFile}, "workers", "batch", "config_patches"), false,
				"drain", "enabled"),
		},
		"config-reboot-without-cni": {
			says:   "Another program brought the network of the pods: nodes that were Ready are drained all the same.",
			before: tftest.With(tftest.BaseCluster(), "none", "cni", "name"),
			after: tftest.With(tftest.With(tftest.BaseCluster(), "none", "cni", "name"), []any{aFile}, "workers", "batch",
				"config_patches"),
		},
		"config-reboot-before-the-network": {
			says:   "The pod network is not installed yet: no pod can leave a node that is not Ready in good order.",
			before: tftest.With(tftest.BaseCluster(), "none", "cni", "name"),
			after: tftest.With(tftest.With(tftest.BaseCluster(), "none", "cni", "name"), []any{aFile}, "workers", "batch",
				"config_patches"),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				for _, name := range []string{"cp-1", "cp-2", "cp-3", "batch/w-1", "batch/w-2", "gpu/w-1"} {
					state = seen(t, state, name, "ready", false)
				}

				return state
			},
		},
		"single-control-plane": {
			says: "The only control plane reboots.",
			before: tftest.Without(tftest.Without(tftest.BaseCluster(), "control_plane", "machines", "cp-2"), "control_plane",
				"machines", "cp-3"),
			after: tftest.With(tftest.Without(tftest.Without(tftest.BaseCluster(), "control_plane", "machines", "cp-2"),
				"control_plane", "machines",
				"cp-3"),
				[]any{aFile}, "control_plane", "config_patches"),
		},
		"upgrade-one-hop": {
			says:   "Talos goes one minor version up, on all machines.",
			before: olderCluster("v1.12.6"), after: olderCluster("v1.13.2"),
		},
		"upgrade-two-hops": {
			says:   "Talos goes two minor versions up, through the newest patch of the one in between.",
			before: olderCluster("v1.11.3"), after: olderCluster("v1.13.2"),
		},
		"upgrade-via": {
			says:   "The same through a release of one's own choice.",
			before: olderCluster("v1.11.3"), after: tftest.With(olderCluster("v1.13.2"), []any{"v1.12.4"}, "upgrade_via"),
		},
		"upgrade-unsupported-kubernetes": {
			says:   "Talos on the way does not run the Kubernetes of the cluster.",
			before: tftest.With(olderCluster("v1.10.2"), "v1.29.4", "kubernetes_version"),
			after:  tftest.With(olderCluster("v1.12.6"), "v1.29.4", "kubernetes_version"),
		},
		"upgrade-in-containers": {
			says:   "Talos in a container cannot be upgraded.",
			before: olderCluster("v1.12.6"), after: olderCluster("v1.13.2"),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return seen(t, state, "batch/w-1", "platform", "container")
			},
		},
		"schematic": {
			says:   "A pool gets another schematic at the same version.",
			before: tftest.BaseCluster(), after: tftest.With(tftest.BaseCluster(), gpu, "workers", "gpu", "schematic"),
		},
		"schematic-by-content": {
			says:   "A pool gets another schematic, whose system extensions are known, with another Talos in two steps.",
			before: olderCluster("v1.11.6"),
			after:  tftest.With(olderCluster("v1.13.0"), withGuestAgent, "workers", "gpu", "schematic"),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				state = seen(t, state, "gpu/w-1", "schematic", strings.Repeat("0", 64))

				return seen(t, state, "gpu/w-1", "extensions", []string{"gvisor", "iscsi-tools"})
			},
		},
		"image": {
			says: "The control plane is installed from another image of the same Talos. What was installed on cp-3 is not " +
				"known.",
			before: tftest.BaseCluster(), after: tftest.With(tftest.BaseCluster(), "registry.example.com/installer:v1.13.0",
				"control_plane",
				"install", "image"),
			since: installed("ghcr.io/siderolabs/installer:v1.13.0", "cp-1", "cp-2"),
		},
		"image-resumed": {
			says:   "An update to another image failed after the first machine, which is left alone.",
			before: tftest.BaseCluster(), after: tftest.With(tftest.BaseCluster(), "registry.example.com/installer:v1.13.0",
				"control_plane",
				"install", "image"),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				state = installed("registry.example.com/installer:v1.13.0", "cp-1")(t, state)

				return installed("ghcr.io/siderolabs/installer:v1.13.0", "cp-2", "cp-3")(t, state)
			},
		},
		"platform": {
			says:   "A pool with a schematic is installed for another platform.",
			before: tftest.With(tftest.BaseCluster(), gpu, "workers", "gpu", "schematic"),
			after: tftest.With(tftest.With(tftest.BaseCluster(), gpu, "workers", "gpu", "schematic"), "nocloud", "workers",
				"gpu", "platform"),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				state = seen(t, state, "gpu/w-1", "schematic", gpu)

				return installed("factory.talos.dev/metal-installer/"+gpu+":v1.13.0", "gpu/w-1")(t, state)
			},
		},
		"schematic-removed": {
			says:   "Without a schematic any is right until the next upgrade.",
			before: tftest.With(tftest.BaseCluster(), gpu, "workers", "gpu", "schematic"), after: tftest.BaseCluster(),
			since: installed("factory.talos.dev/metal-installer/"+gpu+":v1.13.0", "gpu/w-1"),
		},
		"downgrade-refused": {
			says:   "Talos does not go back unasked.",
			before: tftest.With(olderCluster("v1.12.6"), "v1.11", "version_contract"),
			after:  tftest.With(olderCluster("v1.11.6"), "v1.11", "version_contract"),
		},
		"downgrade-allowed": {
			says:   "Talos goes back on purpose. The contract is that of the older version from the start.",
			before: tftest.With(olderCluster("v1.12.6"), "v1.11", "version_contract"),
			after:  tftest.With(tftest.With(olderCluster("v1.11.6"), "v1.11", "version_contract"), true, "allow_downgrade"),
		},
		"downgrade-below-the-contract-refused": {
			says:   "Talos does not go back below the contract that was pinned when the cluster was made, not even on purpose.",
			before: olderCluster("v1.12.6"), after: tftest.With(olderCluster("v1.11.6"), true, "allow_downgrade"),
		},
		"downgrade-of-etcd-refused": {
			says: "Talos goes back to an etcd that does not read the data.",
			before: tftest.With(tftest.With(olderCluster("v1.11.6"), "v1.10", "version_contract"), "v1.33.4",
				"kubernetes_version"),
			after: tftest.With(tftest.With(tftest.With(olderCluster("v1.10.9"), "v1.10", "version_contract"), "v1.33.4",
				"kubernetes_version"),
				true, "allow_downgrade"),
		},
		"scale-up": {
			says: "A cluster of one control plane gets two more, and a worker.",
			before: tftest.Without(tftest.Without(tftest.BaseCluster(), "control_plane", "machines", "cp-2"), "control_plane",
				"machines", "cp-3"),
			after: tftest.With(tftest.BaseCluster(), "10.0.0.32", "workers", "gpu", "machines", "w-2", "address"),
		},
		"scale-down": {
			says:   "Two control planes and a pool leave.",
			before: tftest.BaseCluster(),
			after: tftest.Without(tftest.Without(tftest.Without(tftest.BaseCluster(), "control_plane", "machines", "cp-2"),
				"control_plane", "machines",
				"cp-3"), "workers", "batch"),
		},
		"scale-down-without-drain": {
			says:   "The same, with draining switched off.",
			before: tftest.With(tftest.BaseCluster(), false, "drain", "enabled"),
			after:  tftest.Without(tftest.With(tftest.BaseCluster(), false, "drain", "enabled"), "workers", "batch"),
		},
		"replace": {
			says:   "The hardware of a control plane and of a worker is exchanged.",
			before: tftest.BaseCluster(),
			after: tftest.With(tftest.With(tftest.BaseCluster(), otherOne, "control_plane", "machines", "cp-2", "uuid"),
				"4c4c4544-0042-3510-8053-000000000001", "workers", "gpu", "machines", "w-1", "uuid"),
		},
		"address": {
			says:   "A machine is at another address: it is looked for, and nothing else happens.",
			before: tftest.BaseCluster(), after: tftest.With(tftest.BaseCluster(), "10.0.0.77", "control_plane", "machines",
				"cp-2", "address"),
		},
		"rename": {
			says:   "A worker gets another name and another pool. It stays as it is.",
			before: tftest.BaseCluster(),
			after: tftest.Without(tftest.With(tftest.With(tftest.BaseCluster(), "10.0.0.31", "workers", "batch", "machines",
				"w-9", "address"),
				"/dev/nvme0n1",
				"workers", "batch", "machines", "w-9", "install", "disk"), "workers", "gpu"),
		},
		"hostname-refused": {
			says:   "A machine that runs is to have another host name.",
			before: tftest.BaseCluster(), after: tftest.With(tftest.BaseCluster(), "store", "workers", "gpu", "machines", "w-1",
				"hostname"),
		},
		"hostname-by-patch-refused": {
			says:   "The same by a patch.",
			before: tftest.BaseCluster(),
			after: tftest.With(tftest.BaseCluster(), []any{"apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: store\n"},
				"workers", "gpu", "machines", "w-1", "config_patches"),
		},
		"hostname-kept": {
			says:   "The host name that a machine has is written down.",
			before: tftest.BaseCluster(), after: tftest.With(tftest.BaseCluster(), "gpu-w-1", "workers", "gpu", "machines",
				"w-1", "hostname"),
		},
		"pool-emptied": {
			says:   "A pool loses its machines, and stays.",
			before: tftest.BaseCluster(), after: tftest.With(tftest.BaseCluster(), tftest.Config{}, "workers", "batch",
				"machines"),
		},
		"role-refused": {
			says:   "A control plane is listed as a worker.",
			before: tftest.BaseCluster(),
			after: tftest.With(tftest.Without(tftest.BaseCluster(), "control_plane", "machines", "cp-3"),
				tftest.Config{"address": "10.0.0.13"}, "workers", "batch", "machines", "w-9"),
		},
		"drift-version": {
			says:   "A machine runs an older Talos than was applied.",
			before: tftest.BaseCluster(), after: tftest.BaseCluster(),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return seen(t, seen(t, state, "batch/w-1", "talos_version", "v1.12.12"), "batch/w-1", "drift",
					record.Drift{{Kind: record.TalosDiffers, Found: "v1.12.12", Wanted: "v1.13.0"}})
			},
		},
		"drift-newer-version": {
			says:   "A machine runs a newer Talos than was applied.",
			before: tftest.BaseCluster(), after: tftest.BaseCluster(),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return seen(t, state, "cp-1", "talos_version", "v1.13.2")
			},
		},
		"drift-left-etcd": {
			says:   "A control plane was removed from etcd by hand.",
			before: tftest.BaseCluster(), after: tftest.BaseCluster(),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				state = seen(t, state, "cp-3", "drift", record.Drift{{Kind: record.LeftEtcd}})

				return seen(t, state, "cp-3", "member_id", nil)
			},
		},
		"drift-config": {
			says:   "The configurations of two machines were changed by hand; one needs a reboot to be repaired.",
			before: tftest.BaseCluster(), after: tftest.BaseCluster(),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				for machine, place := range map[string]string{
					"cp-3": "v1alpha1 machine.sysctls.vm.max_map_count", "batch/w-2": "v1alpha1 machine.files[0].content",
				} {
					state = seen(t, seen(t, state, machine, "config_digest", "sha256:other"), machine, "drift", differsAt(t, place))
				}

				return state
			},
		},
		"drift-config-dotted-keys": {
			says:   "Keys with dots in them were set by hand. Talos applies all of them to running machines.",
			before: tftest.BaseCluster(), after: tftest.BaseCluster(),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return seen(t, seen(t, state, "batch/w-2", "config_digest", "sha256:other"), "batch/w-2", "drift", differsAt(t,
					`v1alpha1 machine.sysctls["net.ipv4.tcp_keepalive_time"]`,
					`v1alpha1 machine.sysfs["devices.system.cpu.cpu0.cpufreq.scaling_governor"]`,
					`v1alpha1 machine.nodeLabels["example.com/rack"]`,
					`v1alpha1 machine.nodeAnnotations["example.com/owner"]`,
					`v1alpha1 machine.registries.mirrors["registry.example.com"].endpoints[0]`,
					`v1alpha1 machine.registries.config["registry.example.com:5000"].auth.username`,
				))
			},
		},
		"wiped-worker": {
			says:   "A worker lost its configuration.",
			before: tftest.BaseCluster(), after: tftest.BaseCluster(), since: wiped("batch/w-1"),
		},
		"wiped-control-plane": {
			says:   "A control plane lost its configuration and its etcd.",
			before: tftest.BaseCluster(), after: tftest.BaseCluster(), since: wiped("cp-2"),
		},
		"quorum-none-left": {
			says:   "All control planes are exchanged at once.",
			before: tftest.BaseCluster(),
			after: tftest.With(tftest.BaseCluster(), tftest.Config{
				"cp-4": tftest.Config{"address": "10.0.0.14"}, "cp-5": tftest.Config{"address": "10.0.0.15"},
				"cp-6": tftest.Config{"address": "10.0.0.16"},
			}, "control_plane", "machines"),
		},
		"quorum-majority-gone": {
			says:   "The hardware of two control planes out of three is exchanged at once.",
			before: tftest.BaseCluster(),
			after: tftest.With(tftest.With(tftest.BaseCluster(), otherOne, "control_plane", "machines", "cp-2", "uuid"),
				"4c4c4544-0042-3510-8053-000000000001", "control_plane", "machines", "cp-3", "uuid"),
		},
		"pools": {
			says:   "Pools are upgraded within budgets of their own.",
			before: manyWorkers("v1.12.6"),
			after: tftest.With(tftest.With(manyWorkers("v1.13.2"), "50%", "workers", "batch", "max_unavailable"), "2",
				"workers", "gpu",
				"max_unavailable"),
		},
		"two-control-planes-upgrade": {
			says:   "Two control planes cannot be upgraded: neither can be spared.",
			before: twoControlPlanes("v1.12.6"), after: twoControlPlanes("v1.13.2"),
		},
		"two-control-planes-become-three": {
			says:   "The same with a third control plane, which joins first.",
			before: twoControlPlanes("v1.12.6"), after: olderCluster("v1.13.2"),
		},
		"two-control-planes-reboot": {
			says:   "Two control planes cannot reboot for a file.",
			before: tftest.Without(tftest.BaseCluster(), "control_plane", "machines", "cp-3"),
			after: tftest.With(tftest.Without(tftest.BaseCluster(), "control_plane", "machines", "cp-3"), []any{aFile},
				"control_plane",
				"config_patches"),
		},
		"two-control-planes-behind": {
			says:   "Two control planes run an older Talos than was applied. It can be reported again, and not be repaired.",
			before: twoControlPlanes("v1.13.2"), after: tftest.With(twoControlPlanes("v1.13.2"), "preserve", "on_destroy"),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				for _, machine := range []string{"cp-1", "cp-2"} {
					state = seen(t, state, machine, "talos_version", "v1.12.6")
				}

				return state
			},
		},
		"upgrade-without-a-way": {
			says:   "The Talos that runs is older than any that is passed.",
			before: tftest.With(olderCluster("v1.10.2"), "v1.31.4", "kubernetes_version"),
			after:  tftest.With(olderCluster("v1.10.9"), "v1.31.4", "kubernetes_version"),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				return seen(t, state, "batch/w-1", "talos_version", "v1.8.4")
			},
		},
		"upgrade-of-a-booting-worker": {
			says:   "A worker was seen in the middle of a boot. It ends, and all machines are upgraded.",
			before: olderCluster("v1.12.6"), after: olderCluster("v1.13.2"), since: booting("batch/w-1"),
		},
		"create-interrupted": {
			says:   "A create was interrupted while the control planes were installed. What comes after the wait is shown.",
			before: tftest.BaseCluster(), after: tftest.BaseCluster(),
			since: func(t *testing.T, state tftypes.Value) tftypes.Value {
				t.Helper()

				state = tftest.Put(t, state, tftypes.NewAttributePath().WithAttributeName("phase"), "Provisioning")
				for _, machine := range []string{"cp-1", "cp-2", "cp-3"} {
					state = seen(t, seen(t, state, machine, "stage", "installing"), machine, "ready", false)
					state = seen(t, seen(t, state, machine, "member_id", nil), machine, "node_name", nil)
				}

				return state
			},
		},
		"reboot-beside-a-booting-control-plane": {
			says:   "A control plane was seen in the middle of a boot while a pool is to reboot.",
			before: tftest.BaseCluster(), after: tftest.With(tftest.BaseCluster(), []any{aFile}, "workers", "batch",
				"config_patches"),
			since: booting("cp-2"),
		},
		"destroy": {says: "The cluster is destroyed.", before: unprotected},
		"destroy-preserving": {
			says:   "The cluster is forgotten, and its machines keep running.",
			before: tftest.With(tftest.With(tftest.BaseCluster(), false, "deletion_protection"), "preserve", "on_destroy"),
		},
		"destroy-protected": {says: "The cluster is protected.", before: tftest.BaseCluster()},
	}
}

// degraded is a state in which data was lost.
func degraded(t *testing.T, state tftypes.Value) tftypes.Value {
	t.Helper()

	changed, err := tftypes.Transform(state, func(at *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		if at.LastStep() == tftypes.AttributePathStep(tftypes.AttributeName("phase")) {
			return tftypes.NewValue(tftypes.String, "Degraded"), nil
		}

		return v, nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return changed
}

// wiped is a state in which a machine was observed without its configuration.
func wiped(machine string) func(t *testing.T, state tftypes.Value) tftypes.Value {
	return func(t *testing.T, state tftypes.Value) tftypes.Value {
		t.Helper()

		return degraded(t, seen(t, state, machine, "stage", "maintenance"))
	}
}

// booting is a state in which a machine was observed during a boot.
func booting(machine string) func(t *testing.T, state tftypes.Value) tftypes.Value {
	return func(t *testing.T, state tftypes.Value) tftypes.Value {
		t.Helper()

		return seen(t, seen(t, state, machine, "stage", "booting"), machine, "ready", false)
	}
}

// installed is a state in which talosop installed an image on machines.
func installed(image string, machines ...string) func(t *testing.T, state tftypes.Value) tftypes.Value {
	return func(t *testing.T, state tftypes.Value) tftypes.Value {
		t.Helper()

		for _, machine := range machines {
			state = seen(t, state, machine, "installer", image)
		}

		return state
	}
}

// twoControlPlanes is a cluster whose etcd needs every member.
func twoControlPlanes(talos string) tftest.Config {
	return tftest.Without(olderCluster(talos), "control_plane", "machines", "cp-3")
}

// manyWorkers is a cluster with pools for a rollout.
func manyWorkers(talos string) tftest.Config {
	config := olderCluster(talos)

	for i := 3; i <= 6; i++ {
		tftest.With(config, fmt.Sprintf("10.0.0.2%d", i), "workers", "batch", "machines", fmt.Sprintf("w-%d", i), "address")
	}

	for i := 2; i <= 3; i++ {
		tftest.With(config, fmt.Sprintf("10.0.0.3%d", i), "workers", "gpu", "machines", fmt.Sprintf("w-%d", i), "address")
	}

	return config
}
