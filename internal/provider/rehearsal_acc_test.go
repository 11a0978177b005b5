package provider_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/hosttest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// seeds are problems of a rehearsal of an upgrade to Kubernetes 1.36, as templates of one chart. The chart itself is
// too old for that version.
func seeds() []kubetest.Trouble {
	return append(kubetest.Troubles(),
		kubetest.Trouble{Name: "removed API", Manifest: `
apiVersion: scheduling.k8s.io/v1alpha1
kind: Workload
metadata: {name: old}
spec: {podGroups: [{name: a, policy: {basic: {}}}]}
`, Code: "removed_resource", Object: "workloads.v1alpha1.scheduling.k8s.io"},
		kubetest.Trouble{Name: "chart too old", Code: "chart_incompatible", Object: "Helm release default/cni"})
}

// alphaAPIs makes the API server of Kubernetes 1.35 serve an API that 1.36 lacks. With runtime-config, that of 1.36
// does not start. With the feature gate alone, it never gets ready, because it waits for the next version of this API.
const alphaAPIs = "cluster: {apiServer: {extraArgs: {runtime-config: scheduling.k8s.io/v1alpha1=true, " +
	"feature-gates: GenericWorkload=true}}}"

// Networks of the cluster, which are neither the defaults nor those of the host.
const (
	podNetwork, serviceNetwork = "172.21.0.0/16", "172.22.0.0/16"
	domain                     = "rehearsed.local"
)

// troubled is a cluster with all problems, and its backups in a folder.
type troubled struct {
	*sitetest.Site
	*clitest.Workspace

	folder, secrets string
	cluster         *kubetest.Cluster
	helm            func(args ...string) (stdout, stderr string, err error)
}

func newTroubled(t *testing.T, cli clitest.CLI) *troubled {
	t.Helper()

	s := sitetest.NewWith(t, sim.Options{Assets: os.Getenv("TALOSOP_TEST_ASSETS")}, 1, 0)
	c := &troubled{Site: s, folder: t.TempDir(), cluster: kubetest.Attach(t, s.Simulator)}
	plane := strings.Replace(s.ControlPlaneHCL(fmt.Sprintf("  config_patches = [%q]\n"+
		"  allow_scheduling_on_control_planes = true\n  pod_cidrs = [%q]\n  service_cidrs = [%q]\n  dns_domain = %q\n",
		alphaAPIs, podNetwork, serviceNetwork, domain)), "v1.36.2", "v1.35.4", 1)

	c.Workspace = sitetest.Applied(t, cli, sitetest.ProviderHCL+sitetest.SecretsHCL+plane)
	c.secrets, _ = c.Attribute("talosop_secrets.this", "bundle").(string)
	c.cluster.Await(t)
	c.helm = kubetest.Helm(t, c.cluster)

	return c
}

// seed installs the chart of all problems, in two versions because a definition is changed.
func (c *troubled) seed(t *testing.T) {
	t.Helper()

	folder := t.TempDir()
	expired := base64.StdEncoding.EncodeToString(kubetest.ExpiredCertificate(t))

	for _, version := range []string{"1.0.0", "1.1.0"} {
		files := map[string]string{
			"Chart.yaml": "apiVersion: v2\nname: cni\nversion: " + version + "\nkubeVersion: '< 1.36.0-0'\n",
		}

		for i, s := range seeds() {
			manifest := s.Manifest
			if version == "1.0.0" {
				manifest = s.Before()
			}

			files[fmt.Sprintf("templates/%d.yaml", i)] = strings.ReplaceAll(manifest, "EXPIRED", expired)
		}

		path := filepath.Join(folder, version+".tgz")
		tftest.Must(t, os.WriteFile(path, kubetest.Chart("cni", version, files), 0o600))

		if _, stderr, err := c.helm("upgrade", "--install", "cni", path); err != nil {
			t.Fatalf("install the seeds: %v\n%s", err, stderr)
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	tftest.Must(t, wait.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		budget, err := c.cluster.API().PolicyV1().PodDisruptionBudgets("default").Get(ctx, "single", metav1.GetOptions{})
		if err == nil && budget.Status.ExpectedPods == 0 {
			err = fmt.Errorf("its status is %+v", budget.Status)
		}

		return err
	}))
}

// backUp takes a snapshot into a folder of its own. It does not repair the cluster first.
func (c *troubled) backUp(t *testing.T, name string) {
	t.Helper()

	c.Write("backup.tf", fmt.Sprintf("resource \"talosop_etcd_backup\" %q {\n"+
		"  cluster = talosop_control_plane.this.cluster\n  file = { path = %q }\n}\n", name,
		filepath.Join(c.folder, name)))

	c.MustRun("apply", "-auto-approve", "-refresh=false")
}

// rehearsal runs the example on a snapshot.
func (c *troubled) rehearsal(t *testing.T, cli clitest.CLI, host *hosttest.Host, snapshots, change,
	timeout string) (*drill, string, map[string]any) {
	t.Helper()

	namespace := host.Namespace(t) + "-copy"
	w := clitest.NewWorkspace(t, cli).Example("../../examples", "stacks/rehearsal")
	setVariables(t, w, map[string]any{
		"kubeconfig": host.Kubeconfig(), "secrets": c.secrets, "namespace": namespace, "timeout": timeout,
		"cluster": map[string]any{"name": "test", "endpoint": "https://192.0.2.1:6443", "dns_domain": domain,
			"pod_cidrs": []string{podNetwork}, "service_cidrs": []string{serviceNetwork}},
		"backups":        map[string]any{"file": map[string]string{"path": filepath.Join(c.folder, snapshots)}},
		"config_patches": []string{alphaAPIs}, "control_planes": 1, "workers": 1,
	})
	w.Setenv("CLI", cli.Path)
	w.Write("change.tfvars", change)

	d := &drill{w, host, namespace}
	output, report, _ := d.run(t, "rehearse.sh", "change.tfvars")

	return d, output, report
}

// reported are the problems of a step of a report, as code and object.
func reported(report map[string]any, step string) map[string]string {
	found := map[string]string{}
	of, _ := report[step].(map[string]any)
	problems, _ := of["problems"].([]any)

	for _, p := range problems {
		problem, _ := p.(map[string]any)
		found[fmt.Sprintf("%v %v", problem["code"], problem["object"])] = fmt.Sprint(problem["reason"])
	}

	return found
}

// A rehearsal finds each of ten problems, from a real snapshot, within 15 minutes in all.
func TestAccRehearsal_findsTenProblems(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccExamples_rehearsal", "TestUpgradeChecks_problemsOfAnyVersion",
		"TestUpgradeChecks_findRemovedAPIsAndFlags", "TestKubelet_unknownArgument")
	t.Parallel()

	cli := clitest.One(t)
	began := time.Now()
	source := newTroubled(t, cli)
	source.seed(t)
	source.backUp(t, "seeded")

	host := hosttest.New(t, hosttest.Options{Assets: os.Getenv("TALOSOP_TEST_ASSETS")})

	t.Run("objects", func(t *testing.T) {
		d, output, report := source.rehearsal(t, cli, host, "seeded",
			fmt.Sprintf(`planned = { kubernetes = "v1.36.3", extensions = ["siderolabs/iscsi-tools"], config_patches = [%q] }`,
				"cluster: {apiServer: {extraArgs: {$patch: delete}}}"), "10m")
		found := reported(report, "copy")

		if problems := strings.Join(slices.Collect(maps.Keys(found)), "\n"); !strings.Contains(problems,
			"removed_setting kube-apiserver on ") {
			t.Errorf("runtime-config is not found in %s", problems)
		}

		for _, s := range seeds() {
			reason, is := found[s.Code+" "+s.Object]
			if !is {
				t.Errorf("%s: not found in %v", s.Name, found)
			}

			t.Logf("%s: %s, %s: %s", s.Name, s.Code, s.Object, reason)
		}

		if failed, _ := report["failed"].([]any); len(failed) > 0 {
			t.Errorf("steps failed: %v\n%s", failed, output)
		}

		t.Logf("%v", report["seconds"])
		d.expectGone(t, "rehearsal")
	})

	for _, change := range []struct {
		name, planned string
		snapshot      string
		prepare       func(t *testing.T)
		// step fails; condition or problem of the copy or its log has the reason.
		step, condition, problem, reason, log string
	}{
		{name: "wrong kubelet argument", planned: `config_patches = ["machine: {kubelet: {extraArgs: {no-such-flag: a}}}"]`,
			snapshot: "seeded", step: "change", condition: "ControlPlanesReady", reason: "services: kubelet not running",
			problem: "component_not_ready kubelet on "},
		{name: "kube-apiserver that does not start", planned: `kubernetes = "v1.36.3"`, snapshot: "seeded", step: "change",
			log: "scheduling.k8s.io/v1alpha1 of kube-apiserver"},
		{name: "kube-apiserver that does not get ready", planned: `kubernetes = "v1.36.3", config_patches = [` +
			`"cluster: {apiServer: {extraArgs: {runtime-config: {$patch: delete}}}}"]`, snapshot: "seeded", step: "change",
			problem: "component_not_ready kube-apiserver on "},
		{name: "missing image of Talos", planned: `talos = "v1.13.1"`, snapshot: "seeded", step: "change",
			prepare: func(t *testing.T) {
				t.Helper()
				tftest.Must(t, host.Sim().SetImage("ghcr.io/siderolabs/talos:v1.13.1", images.Image{Missing: true}))
			}, log: "ghcr.io/siderolabs/talos:v1.13.1: not found"},
		{name: "full etcd", snapshot: "full", step: "copy", condition: "EtcdNoAlarms", reason: "NOSPACE on ",
			prepare: func(t *testing.T) {
				t.Helper()
				tftest.Must(t, source.ControlPlane[0].RaiseEtcdAlarm(t.Context(), etcd.NoSpace))
				source.backUp(t, "full")
			}},
	} {
		t.Run(change.name, func(t *testing.T) {
			if change.prepare != nil {
				change.prepare(t)
			}

			d, output, report := source.rehearsal(t, cli, host, change.snapshot, "planned = { "+change.planned+" }", "90s")

			of, _ := report[change.step].(map[string]any)
			conditions, _ := of["conditions"].(map[string]any)
			reason, _ := conditions[change.condition].(string)

			problems := fmt.Sprint(reported(report, change.step))

			if failed := report["failed"]; !reflect.DeepEqual(failed, []any{change.step}) ||
				!strings.Contains(reason, change.reason) || !strings.Contains(problems, change.problem) ||
				!strings.Contains(strings.Join(strings.Fields(output), " "), change.log) {
				t.Errorf("failed: %v, conditions: %v, problems: %s\n%s", failed, conditions, problems, output)
			}

			t.Logf("%s: %s; %s; %v", change.condition, reason, problems, report["seconds"])
			d.expectGone(t, "rehearsal")
		})
	}

	if took := time.Since(began); took > 15*time.Minute {
		t.Errorf("the rehearsals took %s", took)
	}
}
