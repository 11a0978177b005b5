package provider_test

import (
	"cmp"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/progress"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/hosttest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// ground is what an example is applied to.
type ground struct {
	// variables are those of the root modules.
	variables map[string]any
	files     map[string]string
	// created checks what the first apply made; nil without a check.
	created func(t *testing.T, w *clitest.Workspace)
	// changes are applied after it, each with other variables; at is the module of the example, "" for the root
	// module.
	changes []func(t *testing.T) (variables map[string]any, changed func(t *testing.T, at, output string))
	// gone checks what the destroy left.
	gone func(t *testing.T)
}

// metal is machines in maintenance mode.
func metal(t *testing.T, opts sim.Options, controlPlanes, workers int) (*sitetest.Site, ground) {
	t.Helper()

	// The machines wait with the Talos of the examples.
	opts.TalosVersion = cmp.Or(opts.TalosVersion, machineconfig.CurrentTalos)
	s := sitetest.NewWith(t, opts, controlPlanes, workers)

	return s, ground{
		variables: map[string]any{
			"endpoint": s.URL, "control_planes": sitetest.Addresses(s.ControlPlane), "deletion_protection": false,
		},
		gone: s.ExpectBlank,
	}
}

// manyExamples are applied in one root module on every change, which costs a third of separate applies.
func manyExamples() map[string]func(t *testing.T) ground {
	return map[string]func(t *testing.T) ground{
		"air-gapped": withoutNetwork, "backup": withBackups, "ha": onVirtualIP, "machines": onSingleMachines, "vms": onVMs,
	}
}

// Examples are applied unchanged and then have an empty plan. They are changed as their comments say, and their
// destroy leaves nothing. The scenarios of internal/e2e apply the quickstart.
func TestAccExamples_appliedTogether(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		w := clitest.NewWorkspace(t, cli)
		grounds, calls := map[string]ground{}, map[string]map[string]any{}

		for name, begin := range manyExamples() {
			w.Example("../../examples", "stacks/"+name)

			grounds[name], calls[name] = begin(t), map[string]any{"source": "./stacks/" + name}
			maps.Copy(calls[name], grounds[name].variables)
		}

		apply := func(when string) string {
			w.Write("main.tf.json", tftest.JSON(t, map[string]any{"module": calls}))

			output := w.MustRun("apply", "-auto-approve").Output()
			sitetest.ExpectNoChanges(t, w, when)

			return output
		}

		w.Write("main.tf.json", tftest.JSON(t, map[string]any{"module": calls}))
		w.Init()
		apply("after the create")

		var checks []func(output string)

		for name, on := range grounds {
			if on.created != nil {
				on.created(t, w)
			}

			if len(on.changes) > 0 {
				variables, changed := on.changes[0](t)
				maps.Copy(calls[name], variables)

				checks = append(checks, func(output string) { changed(t, "module."+name+".", output) })
			}
		}

		output := apply("after the changes")
		for _, check := range checks {
			check(output)
		}

		w.MustRun("destroy", "-auto-approve")
		expectEmptyState(t, w)
		expectClearProgress(t, w)

		for _, on := range grounds {
			on.gone(t)
		}
	})
}

// The same for each example, with all its changes, and for those that cannot be modules of one root module.
func TestAccExamples_applied(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccExamples_appliedTogether", "TestAccExamples_validate", "TestAccImport_plansNothing",
		"TestAccContainer_addonAndBackup", "TestAccAddon_lifecycle", "TestUpgrade_inSeveralHops")
	t.Parallel()

	examples := map[string]func(t *testing.T, cli clitest.CLI) ground{
		"stacks/modular/cluster stacks/modular/workers": onTwoRootModules,
		"stacks/cni":     withoutCNI,
		"stacks/import":  onARunningCluster,
		"stacks/upgrade": onOlderTalos,
		"container":      onAHostCluster,
	}
	for name, begin := range manyExamples() {
		examples["stacks/"+name] = func(t *testing.T, _ clitest.CLI) ground {
			t.Helper()

			return begin(t)
		}
	}

	for folders, begin := range examples {
		t.Run(folders, func(t *testing.T) {
			t.Parallel()

			sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
				applyExample(t, cli, strings.Fields(folders),
					begin(t, cli))
			})
		})
	}
}

// applyExample takes an example of one or more root modules, applied in order, through its lifecycle.
func applyExample(t *testing.T, cli clitest.CLI, folders []string, on ground) {
	t.Helper()

	base := clitest.NewWorkspace(t, cli)
	setVariables(t, base, on.variables)

	var roots []*clitest.Workspace

	for _, folder := range folders {
		w := base.Example("../../examples", folder)
		roots = append(roots, w)

		for name, content := range on.files {
			w.Write(name, content)
		}

		w.Init()
		w.MustRun("apply", "-auto-approve")
	}

	for _, w := range roots {
		sitetest.ExpectNoChanges(t, w, "after the create")
	}

	last := roots[len(roots)-1]
	if on.created != nil {
		on.created(t, last)
	}

	for _, change := range on.changes {
		variables, changed := change(t)
		last.Write("zz.auto.tfvars.json", tftest.JSON(t, variables)) // after those of the example

		changed(t, "", last.MustRun("apply", "-auto-approve").Output())
		sitetest.ExpectNoChanges(t, last, "after a change")
	}

	for _, w := range slices.Backward(roots) {
		w.MustRun("destroy", "-auto-approve")
		expectEmptyState(t, w)
		expectClearProgress(t, w)
	}

	on.gone(t)
}

// The quickstart works with three control planes alone, which then run the pods.
func TestAccExamples_quickstartWithoutWorkers(t *testing.T) {
	t.Parallel()

	s, on := metal(t, sim.Options{}, 3, 0)
	w := s.Quickstart(t, clitest.One(t), map[string]any{"deletion_protection": false})

	w.MustRun("apply", "-auto-approve")
	sitetest.ExpectNoChanges(t, w, "after the create")

	for _, m := range s.ControlPlane {
		if strings.Contains(string(m.Config()), "NoSchedule") {
			t.Errorf("%s runs no pods:\n%s", m.Name(), m.Config())
		}
	}

	w.MustRun("destroy", "-auto-approve")
	on.gone(t)
}

// setVariables sets variables in the environment, where a root module ignores those it does not have.
func setVariables(t *testing.T, w *clitest.Workspace, variables map[string]any) {
	t.Helper()

	for name, value := range variables {
		text, ok := value.(string)
		if !ok {
			text = tftest.JSON(t, value)
		}

		w.Setenv("TF_VAR_"+name, text)
	}
}

// expectClearProgress checks that each line of the progress file names its machine once, and that a machine that waits
// has a reason.
func expectClearProgress(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	lines := 0

	for text := range strings.Lines(w.Read("progress.jsonl")) {
		var line progress.Line
		tftest.Must(t, json.Unmarshal([]byte(text), &line))

		lines++

		name := regexp.MustCompile(`(^|[ :,();])` + regexp.QuoteMeta(line.Machine) + `($|[ :,();])`)
		if named := len(name.FindAllString(line.String(), -1)); line.Machine != "" && named != 1 {
			t.Errorf("%s is named %d times in %q", line.Machine, named, line)
		}

		if line.State == lifecycle.Waiting && line.Reason == "" {
			t.Errorf("there is no reason in %q", line)
		}
	}

	if lines == 0 {
		t.Error("no progress was written")
	}
}

// expectEmptyState checks that nothing is left in state.
func expectEmptyState(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	var state struct{ Resources []any }
	tftest.Must(t, json.Unmarshal([]byte(w.Read("terraform.tfstate")), &state))

	if len(state.Resources) > 0 {
		t.Errorf("the destroy left %v", state.Resources)
	}
}

func onVirtualIP(t *testing.T) ground {
	t.Helper()

	s, on := metal(t, sim.Options{}, 3, 0)
	host, _, _ := strings.Cut(strings.TrimPrefix(s.URL, "https://"), ":")
	on.variables["virtual_ip"] = host
	delete(on.variables, "endpoint")

	on.created = func(t *testing.T, w *clitest.Workspace) {
		t.Helper()

		if s.EndpointHolder(s.URL) == nil {
			t.Error("no control plane has the virtual IP")
		}

		for _, m := range s.ControlPlane {
			if !strings.Contains(string(m.Config()), "kind: Layer2VIPConfig\nname: "+host) {
				t.Errorf("%s does not know of the virtual IP:\n%s", m.Name(), m.Config())
			}
		}

		if !strings.Contains(w.Read("kubeconfig"), s.URL) {
			t.Error("there is no kubeconfig")
		}
	}

	return on
}

func onTwoRootModules(t *testing.T, _ clitest.CLI) ground {
	t.Helper()

	s, on := metal(t, sim.Options{}, 1, 2)
	on.variables["pools"] = map[string]any{"batch": sitetest.Addresses(s.Workers[:1]),
		"storage": sitetest.Addresses(s.Workers[1:])}

	return on
}

func onSingleMachines(t *testing.T) ground {
	t.Helper()

	s, on := metal(t, sim.Options{}, 1, 1)
	on.variables["machines"] = map[string]any{
		"cp-1": map[string]any{"role": "controlplane", "address": s.ControlPlane[0].Address().String()},
		"w-1": map[string]any{"role": "worker", "address": s.Workers[0].Address().String(),
			"labels": map[string]string{"rack": "b2"}},
	}
	delete(on.variables, "control_planes")

	return on
}

// onVMs has VMs that come and go: one is removed, and another one gets other hardware.
func onVMs(t *testing.T) ground {
	t.Helper()

	s, on := metal(t, sim.Options{}, 1, 3)
	delete(on.variables, "control_planes")

	vm := func(role string, m *sim.Machine) map[string]string {
		return map[string]string{"role": role, "address": m.Address().String(), "uuid": m.UUID()}
	}
	plane := vm("controlplane", s.ControlPlane[0])
	on.variables["vms"] = map[string]any{
		"cp-1": plane, "w-1": vm("worker", s.Workers[0]), "w-2": vm("worker", s.Workers[1]),
	}

	changed := func(t *testing.T, at, output string) {
		t.Helper()

		done := strings.Index(output, at+"module.cluster.talosop_cluster.this: Modifications complete")

		for _, gone := range []string{`vm["w-1"] (deposed object`, `vm["w-2"]: Destroying`} {
			gone = at + "module.vms.terraform_data." + gone
			if ended := strings.LastIndex(output, gone); done < 0 || ended < done {
				t.Errorf("%s does not come after the change of the cluster:\n%s", gone, output)
			}
		}

		sitetest.ExpectWaiting(t, s.Workers[:2]...)
	}

	on.changes = append(on.changes, func(*testing.T) (map[string]any, func(t *testing.T, at, output string)) {
		return map[string]any{"vms": map[string]any{"cp-1": plane, "w-1": vm("worker", s.Workers[2])}}, changed
	})

	return on
}

func withoutNetwork(t *testing.T) ground {
	t.Helper()

	s, on := metal(t, sim.Options{}, 1, 0)
	registry := httptest.NewTLSServer(nil)
	t.Cleanup(registry.Close)

	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: registry.Certificate().Raw})
	on.variables["registry"] = map[string]string{"host": "registry.test", "ca": string(ca)}
	on.variables["time_server"] = "192.0.2.123"
	on.created = func(t *testing.T, _ *clitest.Workspace) {
		t.Helper()

		config := string(s.ControlPlane[0].Config())
		for _, want := range []string{"registry.test/v2/mirror/ghcr.io", "192.0.2.123"} {
			if !strings.Contains(config, want) {
				t.Errorf("the machine does not know of %s:\n%s", want, config)
			}
		}
	}

	return on
}

func withoutCNI(t *testing.T, _ clitest.CLI) ground {
	t.Helper()

	s, on := metal(t, sim.Options{Assets: filepath.Dir(clitest.Asset(t, "kube-apiserver"))}, 1, 0)
	kubetest.Attach(t, s.Simulator)

	on.files = map[string]string{
		"cni-1.0.0.tgz": string(kubetest.CNI.Package("1.0.0")),
		// The real API server has this version.
		"versions_override.tf": fmt.Sprintf("module \"cluster\" {\n  versions = { talos = %q, kubernetes = \"v1.36.3\" }\n}\n",
			machineconfig.CurrentTalos),
	}
	on.variables["network"] = map[string]string{"chart": "./cni-1.0.0.tgz"}

	return on
}

// withBackups loses the control plane's disk and is restored from the snapshot.
func withBackups(t *testing.T) ground {
	t.Helper()

	s, on := metal(t, sim.Options{}, 1, 0)
	identity, key := sitetest.NewIdentity(t), ""
	on.variables["recipient"] = identity.Recipient().String()

	on.created = func(t *testing.T, w *clitest.Workspace) {
		t.Helper()

		keys, err := filepath.Glob(filepath.Join(w.Dir, "backups", "backup", "*.db.zst.age"))
		if err != nil || len(keys) != 1 {
			t.Fatalf("snapshots are %v (%v), want one", keys, err)
		}

		key = "backup/" + filepath.Base(keys[0])
	}

	on.changes = append(on.changes, func(t *testing.T) (map[string]any, func(t *testing.T, at, output string)) {
		t.Helper()

		s.Wipe(t)

		return map[string]any{"restore": key, "identity": identity.String()}, func(t *testing.T, _, _ string) {
			t.Helper()

			if uploads := s.CallsTo("EtcdRecover"); len(uploads) != 1 {
				t.Errorf("a snapshot was uploaded %d times", len(uploads))
			}
		}
	})
	return on
}

// onOlderTalos raises the versions step by step.
func onOlderTalos(t *testing.T, _ clitest.CLI) ground {
	t.Helper()

	s, on := metal(t, sim.Options{TalosVersion: "v1.12.12"}, 1, 0)
	for _, step := range [][2]string{{"v1.13.2", "v1.35.4"}, {"v1.13.2", "v1.36.3"}, {"v1.14.1", "v1.37.2"}} {
		on.changes = append(on.changes, func(*testing.T) (map[string]any, func(t *testing.T, at, output string)) {
			variables := map[string]any{"versions": map[string]string{"talos": step[0], "kubernetes": step[1]}}

			return variables, func(t *testing.T, _, _ string) {
				t.Helper()

				m := s.ControlPlane[0]
				if m.TalosVersion() != step[0] || !strings.Contains(string(m.Config()), "kubelet:"+step[1]) {
					t.Errorf("after %v it runs %s:\n%s", step, m.TalosVersion(), m.Config())
				}
			}
		})
	}

	return on
}

// onARunningCluster is the cluster of the quickstart without its state.
func onARunningCluster(t *testing.T, cli clitest.CLI) ground {
	t.Helper()

	s, on := metal(t, sim.Options{}, 1, 1)
	former := s.Quickstart(t, cli, nil)
	former.MustRun("apply", "-auto-approve")

	bundle, _ := former.Attribute("talosop_secrets.this", "bundle").(string)

	s.ForgetCalls()

	on.files = map[string]string{"secrets.yaml": bundle}
	on.variables["cluster_name"] = "quickstart"
	on.variables["workers"] = map[string]any{"general": sitetest.Addresses(s.Workers)}
	on.created = func(t *testing.T, _ *clitest.Workspace) {
		t.Helper()
		s.ExpectNothingSent(t)
	}

	return on
}

func onAHostCluster(t *testing.T, _ clitest.CLI) ground {
	t.Helper()

	host := hosttest.Shared(t)
	namespace := host.Namespace(t)

	return ground{
		variables: map[string]any{"kubeconfig": host.Kubeconfig(), "namespace": namespace + "-example"},
		files:     map[string]string{"context_override.tf": "variable \"context\" {\n  default = null\n}\n"},
		gone: func(t *testing.T) {
			t.Helper()

			left, err := host.Objects(t.Context(), namespace, workload.LabelCluster+"=dev")
			tftest.Must(t, err)

			if len(left) > 0 {
				t.Errorf("left of dev: %s", strings.Join(left, ", "))
			}
		},
	}
}

// The tests of the module in the examples, which use the test language of the CLI, pass: plans, and a cluster that
// is created and destroyed.
func TestAccExamples_testsOfTheModule(t *testing.T) {
	t.Parallel()

	s, on := metal(t, sim.Options{}, 1, 0)
	w := clitest.NewWorkspace(t, clitest.Tofu(t)).Example("../../examples", "modules/cluster")
	planes := map[string]any{"cp-1": map[string]string{"address": s.ControlPlane[0].Address().String()}}

	w.Init()
	sitetest.Says(t, w.MustRun("test", "-var", "endpoint="+s.URL, "-var", "control_planes="+tftest.JSON(t, planes)),
		"4 passed, 0 failed")

	if len(s.CallsTo("Bootstrap")) != 1 {
		t.Error("no cluster was made")
	}

	on.gone(t)
}

// State and plans that OpenTofu encrypts contain no secret in clear text, and are read only with the right
// passphrase.
func TestAccExamples_encryptedState(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccExamples_validate", "TestAccSavedPlan_ofEveryResourceWithMachines")
	t.Parallel()

	_, on := metal(t, sim.Options{}, 1, 0)
	w := clitest.NewWorkspace(t, clitest.Tofu(t)).Example("../../examples", "stacks/encrypted-state")

	on.variables["passphrase"] = "correct horse battery staple"
	setVariables(t, w, on.variables)

	w.Init()
	w.MustRun("plan", "-out", "create.tfplan")
	w.MustRun("apply", "create.tfplan")
	w.MustRun("plan", "-destroy", "-out", "destroy.tfplan")
	sitetest.ExpectNoChanges(t, w, "after the create")

	shown := w.MustRun("show", "-json").Stdout
	bundle := inModule(t, shown, "talosop_secrets")
	texts := map[string]string{"the state": w.Read("terraform.tfstate"), "a plan": w.Read("destroy.tfplan")}
	sitetest.HoldsNone(t, bundle, texts)

	for where, text := range texts {
		if !strings.Contains(text, `"encrypted_data"`) {
			t.Errorf("%s is not encrypted:\n%.200s", where, text)
		}
	}

	setVariables(t, w, map[string]any{"passphrase": "incorrect horse battery staple"})
	sitetest.Says(t, sitetest.Fails(t, w, "plan"), "decryption failed for all provided methods")
	setVariables(t, w, on.variables)

	w.MustRun("apply", "destroy.tfplan")
	on.gone(t)
}

// inModule is the bundle of secrets in the state of a module, as `show -json` has it.
func inModule(t *testing.T, shown, kind string) string {
	t.Helper()

	var state struct {
		Values struct {
			RootModule struct {
				ChildModules []struct {
					Resources []struct {
						Type   string
						Values map[string]any
					}
				} `json:"child_modules"`
			} `json:"root_module"`
		}
	}

	tftest.Must(t, json.Unmarshal([]byte(shown), &state))

	for _, module := range state.Values.RootModule.ChildModules {
		for _, r := range module.Resources {
			if bundle, ok := r.Values["bundle"].(string); ok && r.Type == kind {
				return bundle
			}
		}
	}

	t.Fatalf("there is no %s in %.200s", kind, shown)

	return ""
}
