package machines_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// contexts is a kubeconfig of several clusters: prod and admin are the host, and test is another cluster.
type contexts struct {
	path string
	file *clientcmdapi.Config
	// recorded and found are what the error says of prod and test.
	recorded, found string
}

func newContexts(t *testing.T, s *hostSite) *contexts {
	t.Helper()

	other := kubetest.Shared(t)
	c := &contexts{path: filepath.Join(t.TempDir(), "kubeconfig"), file: clientcmdapi.NewConfig()}

	for name, from := range map[string]string{
		"prod": s.Kubeconfig(), "admin": s.Kubeconfig(), "test": other.Kubeconfig(),
	} {
		file, err := clientcmd.LoadFromFile(from)
		tftest.Must(t, err)

		current := file.Contexts[file.CurrentContext]
		c.file.Clusters[name], c.file.AuthInfos[name] = file.Clusters[current.Cluster], file.AuthInfos[current.AuthInfo]
		c.file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}

	for name, on := range map[string]*kubetest.Cluster{"prod": s.Cluster, "test": other} {
		system, err := on.API().CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
		tftest.Must(t, err)

		says := fmt.Sprintf("context %s (%s, kube-system UID %s)", name, c.file.Clusters[name].Server, system.UID)
		if name == "prod" {
			c.recorded = "Recorded: " + says
		} else {
			c.found = "Found: " + says
		}
	}

	c.use(t, "prod")

	return c
}

// use makes another context the current one.
func (c *contexts) use(t *testing.T, name string) {
	t.Helper()

	c.file.CurrentContext = name
	tftest.Must(t, clientcmd.WriteToFile(*c.file, c.path))
}

// refused checks that an operation failed and named both hosts.
func (c *contexts) refused(t *testing.T, what string, done tftest.Outcome) {
	t.Helper()

	diagnostics := tftest.Show(done.Diagnostics)
	for _, words := range []string{"wrong host cluster", c.recorded, c.found} {
		if !done.Failed() || !strings.Contains(diagnostics, words) {
			t.Errorf("%s on another host does not say %q: %s", what, words, diagnostics)
		}
	}
}

// Nothing is read from, sent to or removed from a host cluster other than the one that has the machines, whatever
// leads there. The attempt changes nothing in state. Another context of the same host is accepted.
func TestContainer_otherHostIsRefused(t *testing.T) {
	testenv.BeforeRelease(t, "TestContainer_otherHostIsRefusedWithoutPrivateState", "TestRecorded_refusesAnotherHost",
		"TestContainer_otherHostIsRefusedWithoutPrivateState")
	t.Parallel()

	s := newHostSite(t)
	k := newContexts(t, s)
	planes, workers := s.drive(t, "talosop_control_plane"), s.drive(t, "talosop_worker")

	secrets := tftest.NewBundle(t)
	config := func(replicas int, context string) tftest.Config {
		host := tftest.Config{"kubeconfig_path": k.path, "namespace": s.namespace}
		if context != "" {
			host["context"] = context
		}

		return tftest.With(tftest.With(s.container("dev", secrets), replicas, "replicas"), host, "host")
	}

	planes.Ready(t, config(1, ""))

	// Workers take their connection from the resource, not from the handle.
	pool := func(replicas int) tftest.Config {
		return tftest.Config{"cluster": tftest.Plain(t, tftest.AttributeOf(t, planes.State, "cluster")), "name": "batch",
			"replicas": replicas, "talos_version": "v1.13.0", "deletion_protection": false,
			"host": tftest.Config{"kubeconfig_path": k.path}}
	}

	workers.Ready(t, pool(1))

	for d, change := range map[*tftest.Driven]tftest.Config{planes: config(3, ""), workers: pool(2)} {
		// The first refresh invalidates the plan.
		before := d.Refresh(t).Must(t).Value
		changed := d.Plan(t, change).Must(t)

		k.use(t, "test")
		k.refused(t, "a refresh of "+d.Name, d.Refresh(t))
		k.refused(t, "a plan of "+d.Name, d.Plan(t, change))

		for what, to := range map[string]struct {
			config  tftest.Config
			planned tftest.Outcome
		}{"an apply": {change, changed}, "a destroy": {nil, d.Plan(t, nil)}} {
			k.refused(t, what+" of "+d.Name, d.ApplyPlanned(t.Context(), t, to.config, to.planned))
		}

		if !d.State.Equal(before) {
			t.Errorf("the state of %s changed", d.Name)
		}

		for _, same := range []string{"admin", "prod"} {
			k.use(t, same)
			d.Refresh(t).Must(t)
		}
	}

	// A given context leads there, too: it would be the only change.
	k.refused(t, "a plan of another context", planes.Plan(t, config(1, "test")))

	planes.Apply(t, config(1, "admin")).Must(t)
	planes.ExpectEmpty(t, "after the context changed to one of the same host", config(1, "admin"))

	workers.Apply(t, nil).Must(t)
	s.destroy(t, planes, "dev")
}

// A refresh, an apply and a destroy name machines that are gone from their host.
func TestContainer_goneMachinesAreNamed(t *testing.T) {
	testenv.BeforeRelease(t, "TestContainer_isGoneOnlyIfTheHostSaysSo", "TestContainer_otherHostIsRefusedWithoutPrivateState")
	t.Parallel()

	s := newHostSite(t)
	d := s.drive(t, "talosop_cluster")
	config := s.cluster("dev", tftest.NewBundle(t), 1, 1)

	d.Ready(t, config)

	s.removeAll(t, workload.LabelCluster+"=dev,"+workload.LabelPool+"=batch")

	if diagnostics := tftest.Show(d.Refresh(t).Must(t).Diagnostics); !strings.Contains(diagnostics, "[machines_gone]") ||
		!strings.Contains(diagnostics, "batch/0,") || !strings.Contains(diagnostics, "kube-system UID") {
		t.Errorf("the refresh says: %s", diagnostics)
	}

	if diagnostics := tftest.Show(d.Ready(t, config).Diagnostics); !strings.Contains(diagnostics, "[machines_gone]") &&
		!strings.Contains(diagnostics, "[machines_recreated]") {
		t.Errorf("the apply says: %s", diagnostics)
	}

	d.ExpectEmpty(t, "after the worker was replaced", config)
	s.removeAll(t, workload.LabelCluster+"=dev")

	gone := d.Apply(t, nil).Must(t)
	if diagnostics := tftest.Show(gone.Diagnostics); !strings.Contains(diagnostics, "[machines_gone_before]") ||
		!strings.Contains(diagnostics, "batch/0 and cp-0") {
		t.Errorf("the destroy says: %s", diagnostics)
	}
}

// removeAll removes what a selector matches in the namespace, and returns when it is removed.
func (s *hostSite) removeAll(t *testing.T, selector string) {
	t.Helper()

	one, all := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{LabelSelector: selector}
	core, apps := s.API().CoreV1(), s.API().AppsV1()

	tftest.Must(t, apps.StatefulSets(s.namespace).DeleteCollection(t.Context(), one, all))
	tftest.Must(t, core.Pods(s.namespace).DeleteCollection(t.Context(), one, all))
	tftest.Must(t, core.PersistentVolumeClaims(s.namespace).DeleteCollection(t.Context(), one, all))
	tftest.Must(t, s.API().PolicyV1().PodDisruptionBudgets(s.namespace).DeleteCollection(t.Context(), one, all))
	tftest.Must(t, s.API().NetworkingV1().NetworkPolicies(s.namespace).DeleteCollection(t.Context(), one, all))

	services, err := core.Services(s.namespace).List(t.Context(), all)
	tftest.Must(t, err)

	for _, service := range services.Items {
		tftest.Must(t, core.Services(s.namespace).Delete(t.Context(), service.Name, one))
	}

	tftest.Must(t, wait.Until(t.Context(), 50*time.Millisecond, func(context.Context) error {
		if left := s.objects(t, selector); len(left) > 0 {
			return fmt.Errorf("there is %s", strings.Join(left, ", "))
		}

		return nil
	}))
}

// A switched context does not let a CLI take the machines for gone: plan, apply and destroy are refused until it is
// switched back.
func TestAccContainer_contextIsSwitched(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestContainer_otherHostIsRefusedWithoutPrivateState", "TestRecorded_refusesAnotherHost")

	s := newHostSite(t)
	k := newContexts(t, s)
	w := clitest.NewWorkspace(t, clitest.Any(t))

	write := func(replicas int) {
		w.Write("main.tf", sitetest.ProviderHCL+sitetest.SecretsHCL+fmt.Sprintf(`
provider "talosop" {
  host = { kubeconfig_path = %q }
}

resource "talosop_control_plane" "this" {
  mode                = "container"
  name                = "dev"
  secrets             = talosop_secrets.this.bundle
  talos_version       = "v1.13.0"
  kubernetes_version  = "v1.36.2"
  replicas            = %d
  deletion_protection = false
  host                = { namespace = %q }
}
`, k.path, replicas, s.namespace))
	}

	write(1)
	w.Init()
	w.MustRun("apply", "-auto-approve")

	before := w.Read("terraform.tfstate")

	k.use(t, "test")

	for _, args := range [][]string{{"plan"}, {"apply", "-auto-approve"}, {"apply", "-auto-approve", "-refresh=false"},
		{"destroy", "-auto-approve"}, {"destroy", "-auto-approve", "-refresh=false"}} {
		write(3)

		run := w.Run(args...)
		printed := run.Unwrapped()

		for _, words := range []string{"wrong host cluster", k.recorded, k.found} {
			if run.Exit == 0 || !strings.Contains(printed, words) {
				t.Errorf("%v does not say %q: %s", args, words, run.Output())
			}
		}
	}

	if got := s.pods(t, workload.LabelCluster+"=dev"); len(got) != 1 {
		t.Errorf("pods are left: %v", got)
	}

	if w.Read("terraform.tfstate") != before {
		t.Error("the state changed")
	}

	k.use(t, "prod")
	write(1)

	if empty, output := w.PlanIsEmpty(); !empty {
		t.Errorf("the plan is not empty when the context is switched back:\n%s", output)
	}

	w.MustRun("destroy", "-auto-approve")
	s.expectNothing(t, "dev")
}

// Pods whose state has lost its private part are not created on another host cluster than their own.
func TestContainer_otherHostIsRefusedWithoutPrivateState(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	k := newContexts(t, s)
	d := s.drive(t, "talosop_control_plane")
	secrets := tftest.NewBundle(t)
	config := func(replicas int) tftest.Config {
		return tftest.With(tftest.With(s.container("dev", secrets), replicas, "replicas"),
			tftest.Config{"kubeconfig_path": k.path, "namespace": s.namespace}, "host")
	}

	d.Ready(t, config(1))
	d.Refresh(t).Must(t)

	d.Private = nil

	_, uid, _ := strings.Cut(k.recorded, "kube-system UID")
	k.recorded = "Recorded: kube-system UID" + strings.TrimSuffix(uid, ")")

	k.use(t, "test")
	k.refused(t, "a refresh", d.Refresh(t))
	k.refused(t, "a plan", d.Plan(t, config(3)))
	k.refused(t, "a destroy", d.ApplyPlanned(t.Context(), t, nil, d.Plan(t, nil)))

	k.use(t, "prod")
	d.Refresh(t).Must(t)
	d.ExpectEmpty(t, "on the host that has it", config(1))
	s.destroy(t, d, "dev")
}
