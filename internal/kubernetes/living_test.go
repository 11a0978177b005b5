package kubernetes_test

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	talosclient "github.com/siderolabs/talos/pkg/machinery/client"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgo "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// soon is how often tests look again.
const soon = 100 * time.Millisecond

// living is a cluster of one simulated control plane. Its Kubernetes API is the
// stand-in or, with assets, a real kube-apiserver on a real etcd.
type living struct {
	machine *sim.Machine
	// api is the cluster's administrator.
	api clientgo.Interface
	// options of a client of the cluster.
	options api.Options
}

// onClusters runs a test on the stand-in and on a real kube-apiserver.
func onClusters(t *testing.T, test func(t *testing.T, l *living)) {
	t.Helper()

	t.Run("stand-in", func(t *testing.T) {
		t.Parallel()
		test(t, newLiving(t, ""))
	})
	t.Run("kube-apiserver", func(t *testing.T) {
		t.Parallel()

		test(t, newLiving(t, assets(t)))
	})
}

// assets is the folder with the real parts; without one the test is skipped.
func assets(t *testing.T) string {
	t.Helper()

	folder := os.Getenv("TALOSOP_TEST_ASSETS")
	if _, err := os.Stat(filepath.Join(folder, "kube-apiserver")); folder == "" || err != nil {
		if testenv.AssetsRequired() {
			t.Fatal("TALOSOP_TEST_ASSETS must name a folder that has kube-apiserver and etcd")
		}

		t.Skip("set TALOSOP_TEST_ASSETS to a folder that has kube-apiserver and etcd")
	}

	return folder
}

var sharedBundle = sync.OnceValues(secretstest.Generate)

func newLiving(t *testing.T, assets string) *living {
	t.Helper()

	bundle, err := sharedBundle()
	check(t, err)

	return newLivingOf(t, assets, bundle)
}

func newLivingOf(t *testing.T, assets string, bundle *pki.Bundle) *living {
	t.Helper()

	simulator := sim.ForTest(t, sim.Options{Assets: assets})
	endpoint, err := simulator.Endpoint()
	check(t, err)

	config, err := machineconfig.Generate(
		machineconfig.Cluster{Name: "prod", Endpoint: endpoint, KubernetesVersion: "v1.35.2", Contract: "v1.13"},
		machineconfig.Machine{
			Role: machineconfig.ControlPlane, Mode: machineconfig.Metal,
			Install: machineconfig.Install{Disk: "/dev/sda", Image: "ghcr.io/siderolabs/installer:v1.13.0"},
		}, bundle)
	check(t, err)

	m, err := simulator.AddMachine(t.Context(), sim.MachineOptions{Name: "cp-1", Config: config.Bytes})
	check(t, err)
	bootstrap(t, bundle, m)

	admin, err := bundle.KubernetesClient("admin", []string{"system:masters"}, time.Hour)
	check(t, err)

	l := &living{machine: m, options: api.Options{Endpoint: endpoint, CA: admin.CA, Cert: admin.Certificate,
		Key: admin.Key, Poll: soon, OwnerKeys: bundle.OwnerKeys()}}

	l.api, err = clientgo.NewForConfig(l.config())
	check(t, err)

	// Without a controller manager, the test makes the service account that every pod refers to.
	_, err = l.api.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
	}, metav1.CreateOptions{})
	check(t, err)

	return l
}

// config of the cluster's administrator.
func (l *living) config() *rest.Config {
	return &rest.Config{
		Host: l.options.Endpoint, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: l.options.CA, CertData: l.options.Cert, KeyData: l.options.Key},
	}
}

func bootstrap(t *testing.T, bundle *pki.Bundle, m *sim.Machine) {
	t.Helper()

	admin, err := bundle.TalosClient([]string{"os:admin"}, time.Hour)
	check(t, err)

	cert, err := tls.X509KeyPair(admin.Certificate, admin.Key)
	check(t, err)

	talos, err := talosclient.New(t.Context(), talosclient.WithEndpoints(m.Endpoint()),
		talosclient.WithTLSConfig(&tls.Config{
			Certificates: []tls.Certificate{cert}, InsecureSkipVerify: true, //nolint:gosec // the machine is the test's own
		}))
	check(t, err)
	t.Cleanup(func() { check(t, talos.Close()) })

	ctx := within(t, 2*time.Minute)
	check(t, wait.Until(ctx, 20*time.Millisecond, func(ctx context.Context) error {
		return talos.Bootstrap(ctx, &machine.BootstrapRequest{})
	}))
	check(t, m.AwaitReady(ctx))
}

// client of the cluster, as another process has it.
func (l *living) client(t *testing.T) *kubernetes.Client {
	t.Helper()

	c, err := kubernetes.New(l.options)
	check(t, err)
	t.Cleanup(c.Close)

	return c
}

// node makes a node that no machine is behind.
func (l *living) node(t *testing.T, name string, change func(*corev1.Node)) {
	t.Helper()

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
	if change != nil {
		change(node)
	}

	_, err := l.api.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	check(t, err)
}

// pod makes a pod that ends at once when it is deleted.
func (l *living) pod(t *testing.T, node, name string, change func(*corev1.Pod)) {
	t.Helper()

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{Name: "main", Image: "example.org/app"}},
		},
	}
	if change != nil {
		change(pod)
	}

	_, err := l.api.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	check(t, err)

	// The API server takes a pending pod from no budget.
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	_, err = l.api.CoreV1().Pods(pod.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	check(t, err)
}

// budget makes a PodDisruptionBudget for one pod and is its controller.
func (l *living) budget(t *testing.T, pod string, allowed int32) {
	t.Helper()

	budgets := l.api.PolicyV1().PodDisruptionBudgets("default")

	b, err := budgets.Get(t.Context(), pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		b, err = budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: pod},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: new(intstr.FromInt32(1)),
				Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": pod}},
			},
		}, metav1.CreateOptions{})
	}

	check(t, err)

	b.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: b.Generation, DisruptionsAllowed: allowed, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1,
	}
	_, err = budgets.UpdateStatus(t.Context(), b, metav1.UpdateOptions{})
	check(t, err)
}

// pods lists the pods on a node by name; those that are shutting down have a dagger.
func (l *living) pods(t *testing.T, node string) string {
	t.Helper()

	list, err := l.api.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	check(t, err)

	var names []string

	for i := range list.Items {
		name := list.Items[i].Name
		if list.Items[i].DeletionTimestamp != nil {
			name += "†"
		}

		names = append(names, name)
	}

	return strings.Join(names, " ")
}

// within bounds what takes d at most on a machine with nothing else to do, and several times that on a busy one.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()

	ctx, cancel := context.WithTimeoutCause(t.Context(), 5*d, errors.New("the test took too long"))
	t.Cleanup(cancel)

	return ctx
}

func check(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}
