package provider_test

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// The tests of the module for addons of several clusters pass under each CLI. They need no cluster.
func TestAccExamples_testsOfTheModuleForAddons(t *testing.T) {
	t.Parallel()

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		t.Parallel()

		w := clitest.NewWorkspace(t, cli).Example("../../examples", "modules/addons")
		w.Init()
		sitetest.Says(t, w.MustRun("test"), "4 passed, 0 failed")
	})
}

// Three clusters get the addons that their labels select, with values of their own. When labels change, an addon leaves
// one cluster and appears in another, and the third is untouched.
func TestAccExamples_fleet(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccExamples_testsOfTheModuleForAddons", "TestAccExamples_validate")
	t.Parallel()

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		f := newFleet(t, "eu", "us", "dev")
		w := clitest.NewWorkspace(t, cli).Example("../../examples", "stacks/fleet")
		w.Write("addons.tf", fleetAddons)
		w.Write("simple.tgz", string(kubetest.Simple.Package("1.0.0")))
		w.Write("echo.tgz", string(kubetest.AllValues.Package("1.0.0")))
		w.Init()

		labels := map[string]map[string]string{"eu": {"tier": "prod", "region": "eu"}, "us": {"tier": "prod", "region": "us"},
			"dev": {"tier": "test", "region": "eu"}}
		f.apply(t, w, labels)
		f.expect(t, map[string]string{"eu": "host: eu.example.com\nreplicas: 1\ntier: prod", "dev": "",
			"us": "host: us.example.com\nreplicas: 5\ntier: prod"})

		labels["us"]["tier"], labels["dev"]["tier"] = "test", "prod"
		output := f.apply(t, w, labels)
		f.expect(t, map[string]string{"eu": "host: eu.example.com\nreplicas: 1\ntier: prod", "us": "",
			"dev": "host: dev.example.com\nreplicas: 1\ntier: prod"})

		if !strings.Contains(output, "1 added, 0 changed, 1 destroyed") {
			t.Errorf("the change of labels was\n%s", output)
		}

		w.MustRun("destroy", "-auto-approve")
		expectEmptyState(t, w)

		for _, s := range f.sites {
			s.ExpectBlank(t)
		}
	})
}

// A second cluster is restored from a snapshot of the first one with its addons, takes over the traffic, and the first
// one is destroyed.
func TestAccExamples_blueGreen(t *testing.T) {
	testenv.BeforeRelease(t, "TestRehearsal_besideTheCluster", "TestAccExamples_validate")
	t.Parallel()

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		f := newFleet(t, "blue", "green")
		w := clitest.NewWorkspace(t, cli).Example("../../examples", "stacks/blue-green")
		w.Write("simple.tgz", string(kubetest.Simple.Package("1.0.0")))
		w.Init()

		clusters := map[string]any{"blue": f.cluster("blue", "")}
		apply := func(active, snapshot string) string {
			setVariables(t, w, map[string]any{"clusters": clusters, "active": active, "snapshot": snapshot,
				"addons": map[string]any{"simple": map[string]any{"chart": "./simple.tgz", "namespace": "every",
					"values": "message: from $${cluster}"}}})

			output := w.MustRun("apply", "-auto-approve").Output()
			sitetest.ExpectNoChanges(t, w, "after the apply")

			return output
		}

		apply("blue", "first")
		f.write(t, "blue", "before the snapshot")
		apply("blue", "second")

		key, _ := w.Attribute(`talosop_etcd_backup.this["blue"]`, "key").(string)
		clusters["green"] = f.cluster("green", key)
		apply("blue", "second")

		f.has(t, "green", "before the snapshot")
		f.has(t, "blue", "before the snapshot")

		if traffic := w.Attribute("terraform_data.traffic", "output"); traffic != f.sites["blue"].URL {
			t.Errorf("the traffic goes to %v", traffic)
		}

		delete(clusters, "blue")

		if refused := w.Run("apply", "-auto-approve", "-var", "active=blue", "-var",
			"clusters="+tftest.JSON(t, clusters)); refused.Exit == 0 {
			t.Error("the cluster with the traffic was destroyed")
		}

		clusters["blue"] = f.cluster("blue", "")
		apply("green", "second")

		if traffic := w.Attribute("terraform_data.traffic", "output"); traffic != f.sites["green"].URL {
			t.Errorf("the traffic goes to %v", traffic)
		}

		delete(clusters, "blue")
		apply("green", "second")
		f.sites["blue"].ExpectBlank(t)
		f.has(t, "green", "before the snapshot")

		setVariables(t, w, map[string]any{"deletion_protection": false})
		apply("green", "second")
		w.MustRun("destroy", "-auto-approve")
		expectEmptyState(t, w)
		f.sites["green"].ExpectBlank(t)
	})
}

// cluster is a cluster in the variables of a stack.
func (f fleet) cluster(name, restore string) map[string]any {
	c := map[string]any{"endpoint": f.sites[name].URL, "control_planes": sitetest.Addresses(f.sites[name].ControlPlane),
		"versions": map[string]string{"talos": machineconfig.CurrentTalos, "kubernetes": "v1.36.3"}}
	if restore != "" {
		c["restore"] = restore
	}

	return c
}

// write writes an object of a cluster.
func (f fleet) write(t *testing.T, name, value string) {
	t.Helper()

	_, err := f.apis[name].API().CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Data: map[string]string{"value": value}}, metav1.CreateOptions{})
	tftest.Must(t, err)
}

// has checks the object, and the addon with the values of the cluster.
func (f fleet) has(t *testing.T, name, value string) {
	t.Helper()

	kept, err := f.apis[name].API().CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil || kept.Data["value"] != value {
		t.Errorf("%s has %v, error %v", name, kept, err)
	}

	addon, err := f.apis[name].API().CoreV1().ConfigMaps("every").Get(t.Context(), "simple", metav1.GetOptions{})
	if err != nil || addon.Data["message"] != "from "+name {
		t.Errorf("the addon of %s has %v, error %v", name, addon, err)
	}
}

// fleetAddons are an addon of every cluster and one for production.
const fleetAddons = `locals {
  addons = {
    simple = { chart = "./simple.tgz", namespace = "every" }
    echo = {
      chart    = "./echo.tgz"
      values   = "host: $${cluster}.example.com\ntier: $${labels.tier}\nreplicas: $${variables.replicas}"
      selector = { match_labels = { tier = "prod" }, match_expressions = [{ key = "region", operator = "Exists" }] }
    }
  }
}
`

// fleet is simulated clusters with real API servers, by name.
type fleet struct {
	sites map[string]*sitetest.Site
	apis  map[string]*kubetest.Cluster
}

func newFleet(t *testing.T, names ...string) fleet {
	t.Helper()

	f := fleet{sites: map[string]*sitetest.Site{}, apis: map[string]*kubetest.Cluster{}}

	for _, name := range names {
		f.sites[name] = sitetest.NewWith(t, sim.Options{TalosVersion: machineconfig.CurrentTalos,
			Assets: filepath.Dir(clitest.Asset(t, "kube-apiserver"))}, 1, 0)
		f.apis[name] = kubetest.Attach(t, f.sites[name].Simulator)
	}

	return f
}

// apply applies the stack, whose clusters have these labels.
func (f fleet) apply(t *testing.T, w *clitest.Workspace, labels map[string]map[string]string) string {
	t.Helper()

	clusters := map[string]any{}
	for name, s := range f.sites {
		clusters[name] = map[string]any{"endpoint": s.URL, "control_planes": sitetest.Addresses(s.ControlPlane),
			"labels": labels[name], "variables": map[string]string{"replicas": "1"}}
	}

	if us, ok := clusters["us"].(map[string]any); ok {
		us["values"] = map[string]string{"echo": "replicas: 5"}
	}

	setVariables(t, w, map[string]any{"clusters": clusters, "deletion_protection": false,
		"versions": map[string]string{"talos": machineconfig.CurrentTalos, "kubernetes": "v1.36.3"}})

	output := w.MustRun("apply", "-auto-approve").Output()
	sitetest.ExpectNoChanges(t, w, "after the apply")

	return output
}

// expect checks the values of the addon for production by cluster; "" where it is not installed. The other one is in
// every cluster.
func (f fleet) expect(t *testing.T, values map[string]string) {
	t.Helper()

	for name, api := range f.apis {
		if _, err := api.API().CoreV1().ConfigMaps("every").Get(t.Context(), "simple", metav1.GetOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}

		found, err := api.API().CoreV1().ConfigMaps("default").Get(t.Context(), "echo", metav1.GetOptions{})
		if values[name] == "" {
			if !apierrors.IsNotFound(err) {
				t.Errorf("%s has the addon: %v", name, err)
			}

			continue
		}

		if got := strings.TrimSpace(found.Data["all"]); err != nil || got != values[name] {
			t.Errorf("%s has %q, error %v, want %q", name, found.Data, err, values[name])
		}
	}
}
