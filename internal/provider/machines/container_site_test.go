package machines_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/hosttest"
)

func TestMain(m *testing.M) {
	if to := os.Getenv(listNodes); to != "" {
		if err := beProgram(to); err != nil {
			panic(err)
		}

		return
	}

	hosttest.Run(m)
}

// hostSite is a namespace of the shared host cluster, in which tests create clusters.
type hostSite struct {
	*hosttest.Host

	namespace string
	// wrap wraps connections to the host; nil leaves them unchanged.
	wrap func(containers.Host) containers.Host
}

func newHostSite(t *testing.T) *hostSite {
	t.Helper()

	return siteOn(t, hosttest.Shared(t))
}

func siteOn(t *testing.T, on *hosttest.Host) *hostSite {
	t.Helper()

	return &hostSite{Host: on, namespace: on.Namespace(t)}
}

// ProviderData has short timeouts, and reaches addresses outside of the host as the host does.
func (s *hostSite) ProviderData() *providerdata.ProviderData {
	m := tftest.QuickProviderData()
	m.Interval = 200 * time.Millisecond
	m.Policy.DeadAfter = 20 * time.Second
	// Machines share the processors of the host with all others.
	m.Talos.Timeouts.Connect, m.Talos.Timeouts.Call, m.Talos.Timeouts.Observe = 30*time.Second, 30*time.Second,
		30*time.Second
	m.Hosts.Open = func(o hostcluster.Options) (containers.Host, error) {
		o.Reach = s.Reach

		opened, err := hostcluster.Open(o)
		if err != nil || s.wrap == nil {
			return opened, err
		}

		return s.wrap(opened), nil
	}

	return m
}

func (s *hostSite) serve(t *testing.T) tfprotov6.ProviderServer {
	t.Helper()

	return tftest.ServeWith(t, s.ProviderData(), tftest.Config{})
}

// drive is a resource without state.
func (s *hostSite) drive(t *testing.T, name string) *tftest.Driven {
	t.Helper()

	d := tftest.Drive(t, name, tftest.Config{})
	d.Server = s.serve(t)

	return d
}

// container is what clusters in containers have in common. They are named after their namespace, so that tests can
// distinguish the machines.
func (s *hostSite) container(name, secrets string) tftest.Config {
	return tftest.Config{
		"mode": "container", "name": name, "secrets": secrets, "talos_version": "v1.13.0", "kubernetes_version": "v1.36.2",
		"deletion_protection": false,
		// They only matter in failure: a busy computer may be slow.
		"timeouts": tftest.Config{"create": "10m", "update": "10m", "delete": "10m"},
		"host":     tftest.Config{"kubeconfig_path": s.Kubeconfig(), "namespace": s.namespace},
	}
}

// cluster is a whole cluster with one pool of workers, batch.
func (s *hostSite) cluster(name, secrets string, planes, workers int) tftest.Config {
	base := s.container(name, secrets)
	base["control_plane"] = tftest.Config{"replicas": planes}

	if workers > 0 {
		base["workers"] = tftest.Config{"batch": tftest.Config{"replicas": workers}}
	}

	return base
}

// pods names the pods with a label selector, sorted.
func (s *hostSite) pods(t *testing.T, selector string) []string {
	t.Helper()

	list, err := s.API().CoreV1().Pods(s.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}

	var names []string
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}

	slices.Sort(names)

	return names
}

// objects are all objects of the namespace with a label, by kind and name.
func (s *hostSite) objects(t *testing.T, selector string) []string {
	t.Helper()

	found, err := s.Objects(t.Context(), s.namespace, selector)
	tftest.Must(t, err)

	return found
}

// expectNothing checks that nothing of a cluster is left on the host.
func (s *hostSite) expectNothing(t *testing.T, name string) {
	t.Helper()

	if left := s.objects(t, workload.LabelCluster+"="+name); len(left) > 0 {
		t.Errorf("left of %s: %s", name, strings.Join(left, ", "))
	}
}

// bootstraps counts those of a cluster's control planes.
func (s *hostSite) bootstraps() int {
	n := 0

	for _, call := range s.Sim().CallsTo("Bootstrap") {
		if strings.HasPrefix(call.Machine, s.namespace+".") {
			n++
		}
	}

	return n
}

// destroy destroys and checks that nothing is left.
func (s *hostSite) destroy(t *testing.T, d *tftest.Driven, name string) {
	t.Helper()
	d.Apply(t, nil).Must(t)
	s.expectNothing(t, name)
}

var errSilent = errors.New("connection refused")

// operationsIn are the operations of a plan, as text.
func operationsIn(t *testing.T, planned tftest.Outcome) string {
	t.Helper()

	return strings.Join(tftest.TextsOf(t, tftest.AttributeOf(t, planned.Value, "operations")), "\n")
}
