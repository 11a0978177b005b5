package sim_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// oneNode is a cluster of one machine with its Kubernetes client.
func oneNode(t *testing.T, opts ...generate.Option) (*sim.Machine, *testCluster, *kubernetes.Clientset) {
	t.Helper()

	simulator := sim.ForTest(t, sim.Options{})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator, opts...)
	cluster.create([]*sim.Machine{m}, nil)

	return m, cluster, cluster.kubernetes(m)
}

func TestStandIn_isAnAPIServerToItsClients(t *testing.T) {
	m, _, kube := oneNode(t)
	ctx := within(t, time.Minute)
	nodes := kube.CoreV1().Nodes()

	version, err := kube.Discovery().ServerVersion()
	check(t, err)

	if version.GitVersion != "v1.35.2" {
		t.Errorf("server version %s", version.GitVersion)
	}

	if _, err := kube.Discovery().ServerPreferredResources(); err != nil {
		t.Errorf("discovery: %v", err)
	}

	node, err := nodes.Get(ctx, m.Hostname(), metav1.GetOptions{})
	check(t, err)

	if diff := cmp.Diff(m.Address().String(), node.Status.Addresses[0].Address); diff != "" {
		t.Errorf("InternalIP (-want +got):\n%s", diff)
	}

	info := node.Status.NodeInfo
	if info.SystemUUID != m.UUID() || info.BootID != m.BootID() || info.OSImage != "Talos ("+sim.DefaultTalosVersion+")" {
		t.Errorf("node info %+v", info)
	}

	changes, err := nodes.Watch(ctx, metav1.ListOptions{ResourceVersion: node.ResourceVersion})
	check(t, err)
	t.Cleanup(changes.Stop)

	_, err = nodes.Patch(ctx, node.Name, types.StrategicMergePatchType, []byte(`{"spec":{"unschedulable":true}}`),
		metav1.PatchOptions{})
	check(t, err)

	if got := <-changes.ResultChan(); got.Type != watch.Modified || !got.Object.(*corev1.Node).Spec.Unschedulable {
		t.Errorf("watch saw %s %v", got.Type, got.Object)
	}

	node.Labels["late"] = "true"
	if _, err := nodes.Update(ctx, node, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update of an old version: %v", err)
	}

	check(t, nodes.Delete(ctx, node.Name, metav1.DeleteOptions{}))

	if _, err := nodes.Get(ctx, node.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("node after delete: %v", err)
	}
}

func TestStandIn_keepsLeasesAndConfigMaps(t *testing.T) {
	_, _, kube := oneNode(t)
	ctx := within(t, time.Minute)
	leases := kube.CoordinationV1().Leases("kube-system")

	holder := "first"
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "talosop"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}

	created, err := leases.Create(ctx, lease, metav1.CreateOptions{})
	check(t, err)

	if _, err := leases.Create(ctx, lease, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("second create: %v", err)
	}

	next := "second"
	created.Spec.HolderIdentity = &next
	check(t, second(leases.Update(ctx, created, metav1.UpdateOptions{})))

	got, err := leases.Get(ctx, "talosop", metav1.GetOptions{})
	check(t, err)

	if diff := cmp.Diff("second", *got.Spec.HolderIdentity); diff != "" {
		t.Errorf("holder (-want +got):\n%s", diff)
	}

	maps := kube.CoreV1().ConfigMaps("kube-system")

	for name, labels := range map[string]map[string]string{"a": {"app": "x"}, "b": nil} {
		check(t, second(maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}},
			metav1.CreateOptions{})))
	}

	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "app=x"})
	check(t, err)

	if len(list.Items) != 1 || list.Items[0].Name != "a" {
		t.Errorf("selected %v", list.Items)
	}
}

func TestStandIn_refusesAnonymousRequests(t *testing.T) {
	_, cluster, _ := oneNode(t)
	endpoint := cluster.input.ControlPlaneEndpoint

	insecureHTTP := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // no CA
	t.Cleanup(insecureHTTP.CloseIdleConnections)

	for _, path := range []string{"/livez", "/version", "/api/v1/nodes"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint+path, nil)
		check(t, err)

		resp, err := insecureHTTP.Do(req)
		check(t, err)
		check(t, resp.Body.Close())

		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without a certificate: %s", path, resp.Status)
		}
	}
}

func TestNode_notReadyWithoutCNI(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	m := addMachines(t, simulator, "cp", 1)[0]
	cluster := newTestCluster(t, simulator)
	cluster.cni = constants.NoneCNI

	cluster.apply(m, machinetype.TypeControlPlane)
	cluster.bootstrap(m)
	check(t, m.AwaitStage(within(t, time.Minute), sim.StageRunning))

	var kube *kubernetes.Clientset

	eventually(t, "node", func(ctx context.Context) error {
		if kube == nil {
			kube = cluster.kubernetes(m)
		}

		node, err := kube.CoreV1().Nodes().Get(ctx, m.Hostname(), metav1.GetOptions{})
		if err != nil {
			return err
		}

		if nodeReady(node) {
			t.Fatal("the node is ready without a CNI")
		}

		return nil
	})

	// The machine looks at its node of its own accord, so that its status follows a moment after the node.
	eventually(t, "status of the machine", func(context.Context) error {
		if ready, unmet := m.Ready(); ready || len(unmet) != 1 ||
			unmet[0] != fmt.Sprintf("nodeReady: node %q is not ready", m.Hostname()) {
			return fmt.Errorf("ready %v, unmet %v", ready, unmet)
		}

		return nil
	})
}

func TestNode_unknownWhenItsMachineIsLost(t *testing.T) {
	simulator := sim.ForTest(t, sim.Options{})
	cps, workers := addMachines(t, simulator, "cp", 1), addMachines(t, simulator, "worker", 1)
	cluster := newTestCluster(t, simulator)
	cluster.create(cps, workers)

	name := workers[0].Hostname()
	workers[0].PowerOff()

	kube := cluster.kubernetes(cps[0])
	eventually(t, "node to be lost", func(ctx context.Context) error {
		node, err := kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}

		if nodeReady(node) {
			return errors.New("still ready")
		}

		return nil
	})

	workers[0].PowerOn()
	check(t, workers[0].AwaitReady(within(t, time.Minute)))
}
