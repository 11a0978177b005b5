package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// container is the example that the scenario of machines in pods applies.
const container = "../../examples/container"

// theCluster is its resource.
const theCluster = "talosop_cluster.this"

// Names on the host cluster: of the cluster, and of its namespace, which the scenario creates and deletes.
const (
	hostedName      = "e2e"
	hostedNamespace = "talosop-e2e"
)

// fileBackup adds a snapshot in a folder of the workspace to the example.
const fileBackup = `
resource "talosop_etcd_backup" "this" {
  cluster = talosop_cluster.this.cluster
  file    = { path = "backups" }
}
`

// hosted is a cluster in pods of a host cluster of the developer.
type hosted struct {
	kubeconfig, image, storageClass string
	patches                         []string
	talosVersion, kubernetes        string
	talosAfter                      string // the version to upgrade to; empty when the image has one tag
	talosNext                       string // a version that knows contract v1.14; empty when the image has none
	controlPlanes, workers          int
	canaries                        int // workers of a pool of their own
}

// hostedFromEnvironment reads the facts about the host cluster; it skips the test when there is none.
func hostedFromEnvironment(t *testing.T) hosted {
	t.Helper()

	h := hosted{
		kubeconfig:    os.Getenv("TALOSOP_E2E_HOST_KUBECONFIG"),
		image:         setting("TALOSOP_E2E_HOST_IMAGE", "ghcr.io/siderolabs/talos"),
		storageClass:  os.Getenv("TALOSOP_E2E_HOST_STORAGE_CLASS"),
		talosVersion:  setting("TALOSOP_E2E_TALOS_VERSION", "v1.13.0"),
		talosAfter:    os.Getenv("TALOSOP_E2E_HOST_TALOS_AFTER"),
		talosNext:     os.Getenv("TALOSOP_E2E_HOST_TALOS_NEXT"),
		kubernetes:    setting("TALOSOP_E2E_KUBERNETES_VERSION", "v1.36.3"),
		controlPlanes: 1,
		workers:       1,
	}

	if h.kubeconfig == "" {
		t.Skip("no host cluster: set TALOSOP_E2E_HOST_KUBECONFIG to the kubeconfig of a Kubernetes cluster that runs " +
			"privileged pods (see CONTRIBUTING.md)")
	}

	if path := os.Getenv("TALOSOP_E2E_HOST_PATCH"); path != "" {
		patch, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("read TALOSOP_E2E_HOST_PATCH: %v", err)
		}

		h.patches = append(h.patches, string(patch))
	}

	return h
}

// hostedScenarios in the order in which they run.
var hostedScenarios = []struct {
	name string
	run  func(h hosted, t *testing.T, cli clitest.CLI)
}{
	{"lifecycle", hosted.lifecycle},
	{"contract", hosted.contract},
	{"drill", hosted.drill},
	{"canary", hosted.canary},
}

// TestContainers takes clusters in pods of a real host cluster through scenarios, one after the other.
func TestContainers(t *testing.T) {
	h := hostedFromEnvironment(t)

	// Forwarded ports write every connection that a pod refused or ended to standard error. The caller sees those
	// errors itself.
	klog.SetLogger(klog.Logger{})

	for _, scenario := range hostedScenarios {
		t.Run(scenario.name, func(t *testing.T) {
			recordPass(t, scenario.name, "pods", h.talosVersion, h.kubernetes)
			scenario.run(h, t, clitest.Any(t))
		})

		if t.Failed() {
			t.Fatalf("scenario %s failed: the cluster is left as it is", scenario.name)
		}
	}
}

// lifecycle: a cluster of one control plane and a worker is created, backed up, loses its pods, is upgraded, grows,
// loses a control plane's pod, shrinks, and leaves nothing on its host. Its data survives all of it.
func (h hosted) lifecycle(t *testing.T, cli clitest.CLI) {
	host, w := h.host(t), h.workspace(t, cli)
	w.Write("backup.tf", fileBackup)

	h.applied(t, w, "create")
	h.remember(t, w)

	if snapshots, err := filepath.Glob(filepath.Join(w.Dir, "backups", "*")); err != nil || len(snapshots) == 0 {
		t.Errorf("snapshots of etcd are %v (%v), want one", snapshots, err)
	}

	h.losesPod(t, w, host, "worker-0")
	h.losesPod(t, w, host, "cp-0")

	if h.talosAfter == "" {
		t.Log("left out: the upgrade of Talos, because nothing says which tag the image has besides " +
			"(TALOSOP_E2E_HOST_TALOS_AFTER)")
	} else {
		h.talosVersion = h.talosAfter
		h.applied(t, w, "the upgrade to Talos "+h.talosAfter)
	}

	h.controlPlanes, h.workers = 3, 2
	h.applied(t, w, "growth")
	h.losesPod(t, w, host, "cp-0")

	h.controlPlanes, h.workers = 1, 1
	h.applied(t, w, "shrinking")
	h.remembers(t, w)
	h.destroy(t, w)
}

// workspace returns a workspace with the example. The host cluster must have nothing of an earlier run.
func (h hosted) workspace(t *testing.T, cli clitest.CLI) *clitest.Workspace {
	t.Helper()

	if left := h.left(t, h.host(t)); len(left) > 0 {
		t.Fatalf("nothing was made, because there is something on the host cluster already: %v", left)
	}

	w := clitest.NewWorkspace(t, cli)
	w.CopyFrom(container)
	w.Write(variables, h.variables(t))
	w.Init()

	return w
}

// destroy destroys the cluster, and waits until nothing of it is left on the host.
func (h hosted) destroy(t *testing.T, w *clitest.Workspace) {
	t.Helper()
	w.MustRun("destroy", "-auto-approve")

	if resources := w.Resources(); len(resources) > 0 {
		t.Errorf("the state holds %v after destroy", resources)
	}

	eventually(t, 2*time.Minute, "a host cluster that nothing is left on", func(context.Context) error {
		if left := h.left(t, h.host(t)); len(left) > 0 {
			return fmt.Errorf("there is still %v", left)
		}

		return nil
	})
}

// variables are the values of the variables of the example, as a .tfvars.json file.
func (h hosted) variables(t *testing.T) string {
	t.Helper()

	values := map[string]any{
		"kubeconfig": h.kubeconfig, "context": nil, "namespace": hostedNamespace, "image": h.image,
		"cluster_name":   hostedName,
		"control_planes": h.controlPlanes, "workers": h.workers,
		"talos_version": h.talosVersion, "kubernetes_version": h.kubernetes,
		"config_patches": append([]string{}, h.patches...),
	}
	if h.storageClass != "" {
		values["storage_class"] = h.storageClass
	}

	return inJSON(t, values)
}

// machines are the names on the host of all machines, in order.
func (h hosted) machines() []string {
	var names []string

	for i := range h.canaries {
		names = append(names, fmt.Sprintf("%s-canary-%d", hostedName, i))
	}

	for i := range h.controlPlanes {
		names = append(names, fmt.Sprintf("%s-cp-%d", hostedName, i))
	}

	for i := range h.workers {
		names = append(names, fmt.Sprintf("%s-worker-%d", hostedName, i))
	}

	return names
}

// applied applies the current variables. It checks the cluster around the provider, the pods and the second plan.
func (h hosted) applied(t *testing.T, w *clitest.Workspace, what string) {
	t.Helper()

	began := time.Now()

	w.Write(variables, h.variables(t))
	w.MustRun("apply", "-auto-approve")
	t.Logf("%s: applied in %s", what, time.Since(began).Round(time.Second))

	if phase := w.Attribute(theCluster, "phase"); phase != "Ready" {
		t.Errorf("phase is %v after %s, want Ready", phase, what)
	}

	h.hasNodes(t, w, what)
	h.hasPods(t, what)
	h.settles(t, w)
}

// settles waits until a plan is empty. The readiness of a machine, which an output of the example shows, changes for
// some seconds while static pods start. A cluster without a CNI of Talos may also be Ready before its nodes are.
func (h hosted) settles(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	eventually(t, 3*time.Minute, "an empty plan", func(context.Context) error {
		empty, output := w.PlanIsEmpty()
		if empty {
			return nil
		}

		w.MustRun("apply", "-refresh-only", "-auto-approve")

		return errors.New(output)
	})
}

// hasNodes waits until the nodes of the cluster are the machines, all are Ready, and all run the version of Talos.
// An apply with changes waits for that itself. An apply right after the loss of a pod may find nothing to do,
// because the API does not know yet that nodes are away.
func (h hosted) hasNodes(t *testing.T, w *clitest.Workspace, when string) {
	t.Helper()

	h.asks(t, w, "all nodes Ready after "+when, func(ctx context.Context, inside *kubernetes.Clientset) error {
		list, err := inside.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}

		var names []string

		for _, n := range list.Items {
			names = append(names, n.Name)

			if !ready(n) || !strings.Contains(n.Status.NodeInfo.OSImage, h.talosVersion) {
				return fmt.Errorf("node %s is Ready: %t, and runs %s; want %s", n.Name, ready(n), n.Status.NodeInfo.OSImage,
					h.talosVersion)
			}
		}

		if slices.Sort(names); !slices.Equal(names, h.machines()) {
			return fmt.Errorf("nodes are %v, want %v", names, h.machines())
		}

		return nil
	})
}

// hasPods checks that the host has exactly the pods of the machines, with the image.
func (h hosted) hasPods(t *testing.T, when string) {
	t.Helper()

	list, err := h.host(t).CoreV1().Pods(hostedNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: ofCluster})
	if err != nil {
		t.Fatal(err)
	}

	var names []string

	for _, p := range list.Items {
		names = append(names, strings.TrimSuffix(p.Name, "-0"))

		if image := p.Spec.Containers[0].Image; image != h.image+":"+h.talosVersion {
			t.Errorf("pod %s has the image %s after %s, want %s:%s", p.Name, image, when, h.image, h.talosVersion)
		}
	}

	if slices.Sort(names); !slices.Equal(names, h.machines()) {
		t.Errorf("pods are those of %v after %s, want %v", names, when, h.machines())
	}
}

// losesPod kills the pod of a machine. A new pod takes its place with the machine's data, and applies find the
// cluster unchanged. An apply that comes too soon records a machine that is not ready.
func (h hosted) losesPod(t *testing.T, w *clitest.Workspace, host kubernetes.Interface, machine string) {
	t.Helper()

	pods, name, now := host.CoreV1().Pods(hostedNamespace), hostedName+"-"+machine+"-0", int64(0)

	before, err := pods.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	uid := types.UID("")

	if err := pods.Delete(t.Context(), name,
		metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &before.UID}}); err != nil {
		t.Fatal(err)
	}

	eventually(t, 5*time.Minute, "another pod of "+machine+", which is Ready", func(ctx context.Context) error {
		after, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}

		if uid = after.UID; uid == before.UID {
			return errors.New("it is still the one that was deleted")
		}

		if !slices.ContainsFunc(after.Status.Conditions,
			func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }) {
			return errors.New("it is not Ready")
		}

		return nil
	})

	eventually(t, 5*time.Minute, "a cluster as it was before the pod of "+machine+" was lost",
		func(context.Context) error {
			w.MustRun("apply", "-auto-approve")

			if empty, output := w.PlanIsEmpty(); !empty {
				return errors.New(output)
			}

			return nil
		})

	h.applied(t, w, "the loss of the pod of "+machine)
	h.remembers(t, w)

	if after, err := pods.Get(t.Context(), name, metav1.GetOptions{}); err != nil || after.UID != uid {
		t.Errorf("the pod of %s was replaced once more by the apply (%v)", machine, err)
	}
}

// memory is the object that shows whether etcd kept its data.
const memory = "e2e-memory"

func (h hosted) remember(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	h.asks(t, w, "something written into etcd", func(ctx context.Context, inside *kubernetes.Clientset) error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: memory}}
		_, err := inside.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, object, metav1.CreateOptions{})

		return err
	})
}

func (h hosted) remembers(t *testing.T, w *clitest.Workspace) {
	t.Helper()

	h.asks(t, w, "what was written into etcd after the create",
		func(ctx context.Context, inside *kubernetes.Clientset) error {
			_, err := inside.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, memory, metav1.GetOptions{})

			return err
		})
}

// ofCluster selects all objects of the cluster.
const ofCluster = "talosop.dev/cluster=" + hostedName

// left is what the host cluster has of the cluster: the namespace, and objects by their label.
func (h hosted) left(t *testing.T, host kubernetes.Interface) []string {
	t.Helper()

	var left []string

	namespaces, err := host.CoreV1().Namespaces().List(t.Context(),
		metav1.ListOptions{FieldSelector: "metadata.name=" + hostedNamespace})
	if err != nil {
		t.Fatal(err)
	}

	for _, n := range namespaces.Items {
		left = append(left, "namespace "+n.Name)
	}

	options := metav1.ListOptions{LabelSelector: ofCluster}

	for kind, list := range map[string]func() (runtime.Object, error){
		"StatefulSet": func() (runtime.Object, error) { return host.AppsV1().StatefulSets("").List(t.Context(), options) },
		"Pod":         func() (runtime.Object, error) { return host.CoreV1().Pods("").List(t.Context(), options) },
		"PersistentVolumeClaim": func() (runtime.Object, error) {
			return host.CoreV1().PersistentVolumeClaims("").List(t.Context(), options)
		},
		"Service": func() (runtime.Object, error) { return host.CoreV1().Services("").List(t.Context(), options) },
	} {
		objects, err := list()
		if err != nil {
			t.Fatal(err)
		}

		if err := meta.EachListItem(objects, func(o runtime.Object) error {
			object, err := meta.Accessor(o)
			if err == nil {
				left = append(left, kind+" "+object.GetNamespace()+"/"+object.GetName())
			}

			return err
		}); err != nil {
			t.Fatal(err)
		}
	}

	slices.Sort(left)

	return left
}

// host is the API of the host cluster.
func (h hosted) host(t *testing.T) *kubernetes.Clientset {
	t.Helper()

	client, err := kubernetes.NewForConfig(h.hostConfig(t))
	if err != nil {
		t.Fatal(err)
	}

	return client
}

func (h hosted) hostConfig(t *testing.T) *rest.Config {
	t.Helper()

	config, err := clientcmd.BuildConfigFromFlags("", h.kubeconfig)
	if err != nil {
		t.Fatalf("read TALOSOP_E2E_HOST_KUBECONFIG: %v", err)
	}

	return config
}

// asks asks the API of the cluster until it gives the expected answer, through a port that the Kubernetes client
// forwards to the first control plane. It forwards the port again for each attempt: the first connection that the
// pod refuses ends the forwarding.
func (h hosted) asks(
	t *testing.T, w *clitest.Workspace, what string, ask func(ctx context.Context, inside *kubernetes.Clientset) error,
) {
	t.Helper()

	secrets, forward := bundle(t, w), h.forwarder(t)

	eventually(t, 3*time.Minute, what, func(ctx context.Context) error {
		port, stop, err := forward(0)
		if err != nil {
			return err
		}
		defer stop()

		config, err := inside(secrets, port)
		if err != nil {
			return err
		}

		api, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}

		return ask(ctx, api)
	})
}

// connect returns the API of the cluster through forwarded ports. Each connection goes to the next control plane.
func (h hosted) connect(t *testing.T) connect {
	t.Helper()

	var next atomic.Int32

	forward := h.forwarder(t)

	return func(b *pki.Bundle) (*kubernetes.Clientset, error) {
		config, err := inside(b, constants.DefaultControlPlanePort)
		if err != nil {
			return nil, err
		}

		config.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			port, stop, err := forward(int(next.Add(1)) % h.controlPlanes)
			if err != nil {
				return nil, err
			}

			conn, err := (&net.Dialer{}).DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				stop()

				return nil, err
			}

			return forwarded{conn, stop}, nil
		}

		return kubernetes.NewForConfig(config)
	}
}

// forwarded is a connection through a forwarded port of its own.
type forwarded struct {
	net.Conn

	stop func()
}

func (f forwarded) Close() error {
	defer f.stop()

	return f.Conn.Close()
}

// forwarder forwards a port of this computer to the Kubernetes API of a control plane, until stop is called.
func (h hosted) forwarder(t *testing.T) func(controlPlane int) (port uint16, stop func(), err error) {
	t.Helper()

	transport, upgrader, err := spdy.RoundTripperFor(h.hostConfig(t))
	if err != nil {
		t.Fatal(err)
	}

	pods := h.host(t).CoreV1().RESTClient()

	return func(controlPlane int) (port uint16, stop func(), err error) {
		url := pods.Post().Resource("pods").Namespace(hostedNamespace).
			Name(fmt.Sprintf("%s-cp-%d-0", hostedName, controlPlane)).SubResource("portforward").URL()
		end, open, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		stop = sync.OnceFunc(func() { close(end) })

		forwarder, err := portforward.New(
			spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url),
			[]string{fmt.Sprintf("0:%d", constants.DefaultControlPlanePort)}, end, open, io.Discard, io.Discard)
		if err != nil {
			return 0, nil, err
		}

		go func() { ended <- forwarder.ForwardPorts() }()

		select {
		case <-open:
		case err := <-ended:
			return 0, nil, err
		}

		ports, err := forwarder.GetPorts()
		if err != nil {
			stop()

			return 0, nil, err
		}

		return ports[0].Local, stop, nil
	}
}

// inside connects to the API of the cluster at a port of this computer.
func inside(secrets *pki.Bundle, port uint16) (*rest.Config, error) {
	text, err := secrets.Kubeconfig(pki.KubeconfigInput{
		Cluster: hostedName, Server: fmt.Sprintf("https://127.0.0.1:%d", port), User: "e2e",
		Groups: []string{"system:masters"}, TTL: time.Hour,
	})
	if err != nil {
		return nil, err
	}

	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		return nil, err
	}

	config.Timeout = 10 * time.Second

	return config, nil
}
