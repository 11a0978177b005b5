package machines_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgo "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Machines and their Kubernetes are reached by each kind of access beside the port-forward: clusters are created,
// grow and are removed.
func TestContainer_everyKindOfAccess(t *testing.T) {
	testenv.BeforeRelease(t, "TestDial_throughServices", "TestContainer_impostorAtItsAddress")
	t.Parallel()

	for name, access := range map[string]struct {
		access  string
		service corev1.ServiceType // of machines, and of the cluster
		inside  bool               // talosop is in a pod of the host
	}{
		"node ports":     {access: "node-port", service: corev1.ServiceTypeNodePort},
		"load balancers": {access: "load-balancer", service: corev1.ServiceTypeLoadBalancer},
		"pods":           {access: "pod", service: corev1.ServiceTypeClusterIP},
		"from a pod":     {access: "pod", service: corev1.ServiceTypeClusterIP, inside: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newHostSite(t)
			w := s.walk(t, access.inside)
			config := s.cluster("dev", tftest.NewBundle(t), 1, 0)
			config["host"] = tftest.Config{"namespace": s.namespace, "access": access.access,
				"service": tftest.Config{"type": string(access.service)}}

			if access.inside {
				tftest.With(config, true, "host", "in_cluster")
			} else {
				tftest.With(config, s.Kubeconfig(), "host", "kubeconfig_path")
			}

			w.Ready(t, config)
			w.ExpectEmpty(t, "after the create", config)

			config["workers"] = tftest.Config{"batch": tftest.Config{"replicas": 1}}

			w.Ready(t, config)
			w.ExpectEmpty(t, "after it grew", config)

			for _, pod := range []string{"dev-cp-0-0", "dev-batch-0-0"} {
				if to := s.outside(t, pod, access.service); !w.took(to) {
					t.Errorf("nothing went to %s of %s", to, pod)
				}
			}

			w.listsNodes(t)
			s.destroy(t, w.Driven, "dev")
		})
	}
}

// An impostor at a node port or at the address of a pod gets no configuration: its certificate is not the one that
// the pod shows through the API of the host.
func TestContainer_impostorAtItsAddress(t *testing.T) {
	t.Parallel()

	for _, access := range []string{"node-port", "pod"} {
		t.Run(access, func(t *testing.T) {
			t.Parallel()

			s := newHostSite(t)
			impostor, err := s.Sim().AddMachine(t.Context(),
				sim.MachineOptions{Name: s.namespace + "-impostor", Platform: machined.Container})
			tftest.Must(t, err)
			tftest.Must(t, impostor.AwaitStage(t.Context(), sim.StageMaintenance))

			w := s.walk(t, false)
			w.instead = net.JoinHostPort(impostor.Address().String(), "50000")
			config := s.cluster("dev", tftest.NewBundle(t), 1, 0)
			config["host"] = tftest.Config{"namespace": s.namespace, "access": access, "kubeconfig_path": s.Kubeconfig()}
			config["on_incomplete"] = "error"
			tftest.With(config, "30s", "timeouts", "create")

			done := w.Apply(t, config)
			if diagnostics := tftest.Show(done.Diagnostics); !done.Failed() ||
				!strings.Contains(diagnostics, "the server is not the pod of the machine") {
				t.Errorf("the apply ends with %s", diagnostics)
			}

			if impostor.Stage() != sim.StageMaintenance || len(impostor.Config()) > 0 {
				t.Error("the impostor was configured")
			}

			w.Mu.Lock()
			w.instead = ""
			w.Mu.Unlock()

			w.Ready(t, tftest.With(config, "10m", "timeouts", "create"))
			s.destroy(t, w.Driven, "dev")
		})
	}
}

// A client in the network of the host that is no machine of the cluster reaches Talos in none of its pods. That
// holds before they have a configuration, when Talos would accept one from any client, and after.
func TestContainer_strangersReachNoTalos(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	d := s.drive(t, "talosop_cluster")
	config := s.cluster("dev", tftest.NewBundle(t), 1, 1)

	ctx, stop := context.WithCancel(t.Context())
	tried := map[string]int{}

	var stranger sync.WaitGroup

	stranger.Go(func() {
		err := wait.Until(ctx, 10*time.Millisecond, func(ctx context.Context) error {
			pods, err := s.API().CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}

			for _, pod := range pods.Items {
				if pod.Status.PodIP == "" {
					continue
				}

				conn, err := s.Reach(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, "50000"))
				if err == nil {
					_ = conn.Close()

					return nil
				}

				if errors.Is(err, syscall.ETIMEDOUT) {
					tried[pod.Name]++
				}
			}

			return errors.New("nothing answers")
		})
		if err == nil {
			t.Error("a stranger reached Talos in a pod")
		}
	})

	d.Ready(t, config)
	stop()
	stranger.Wait()

	for _, pod := range []string{"dev-cp-0-0", "dev-batch-0-0"} {
		if tried[pod] == 0 {
			t.Errorf("the stranger tried %v", tried)
		}
	}

	s.destroy(t, d, "dev")
}

// walker is a resource of a process that records its connections.
type walker struct {
	*tftest.Driven

	site   *hostSite
	inside bool

	Mu   sync.Mutex
	been []string
	// instead answers at every address but those of the host's API; empty for no server.
	instead string
}

// walk is a process of the provider; with inside it runs in a pod of the host, with the service account of the
// kubeconfig.
func (s *hostSite) walk(t *testing.T, inside bool) *walker {
	t.Helper()

	w := &walker{Driven: s.drive(t, "talosop_cluster"), site: s, inside: inside}
	m := s.ProviderData()
	m.Hosts.Open = func(o hostcluster.Options) (containers.Host, error) {
		if o.InCluster != inside {
			return nil, errors.New("it is asked to connect differently than configured")
		}

		if inside {
			o.InCluster, o.Kubeconfig.Path = false, s.Kubeconfig()
		}

		o.Reach = w.reach

		return hostcluster.Open(o)
	}
	w.Server = tftest.ServeWith(t, m, nil)

	return w
}

func (w *walker) reach(ctx context.Context, network, address string) (net.Conn, error) {
	w.Mu.Lock()
	w.been = append(w.been, address)
	instead := w.instead
	w.Mu.Unlock()

	if instead != "" {
		return (&net.Dialer{}).DialContext(ctx, network, instead)
	}

	return w.site.Reach(ctx, network, address)
}

func (w *walker) took(address string) bool {
	w.Mu.Lock()
	defer w.Mu.Unlock()

	return slices.Contains(w.been, address)
}

// outside is the address of the Talos API of the machine in a pod, by a Service of a type.
func (s *hostSite) outside(t *testing.T, pod string, kind corev1.ServiceType) string {
	t.Helper()

	live := s.Pod(t, pod)

	service, err := s.API().CoreV1().Services(s.namespace).Get(t.Context(), strings.TrimSuffix(pod, "-0"),
		metav1.GetOptions{})
	tftest.Must(t, err)

	if service.Spec.Type != kind {
		t.Errorf("the Service of %s is of type %s", pod, service.Spec.Type)
	}

	switch kind {
	case corev1.ServiceTypeNodePort:
		node, err := s.API().CoreV1().Nodes().Get(t.Context(), live.Spec.NodeName, metav1.GetOptions{})
		tftest.Must(t, err)

		port := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == 50000 })

		return net.JoinHostPort(node.Status.Addresses[0].Address, strconv.Itoa(int(service.Spec.Ports[port].NodePort)))
	case corev1.ServiceTypeLoadBalancer:
		return net.JoinHostPort(service.Status.LoadBalancer.Ingress[0].IP, "50000")
	default:
		return net.JoinHostPort(live.Status.PodIP, "50000")
	}
}

// listsNodes lists the nodes with the kubeconfig that the provider gives programs.
func (w *walker) listsNodes(t *testing.T) {
	t.Helper()

	typ := tftest.Schemas(t).EphemeralResourceSchemas["talosop_kubeconfig"].ValueType()
	config := tftest.ValueOf(t, typ, tftest.Config{"cluster": tftest.AttributeOf(t, w.State, "cluster")})

	opened, err := w.Server.OpenEphemeralResource(t.Context(),
		&tfprotov6.OpenEphemeralResourceRequest{TypeName: "talosop_kubeconfig", Config: tftest.Dynamic(t, config)})
	if err != nil || len(opened.Diagnostics) > 0 {
		t.Fatal(err, tftest.Show(opened.Diagnostics))
	}

	defer func() {
		closed, err := w.Server.CloseEphemeralResource(t.Context(),
			&tfprotov6.CloseEphemeralResourceRequest{TypeName: "talosop_kubeconfig", Private: opened.Private})
		if err != nil || len(closed.Diagnostics) > 0 {
			t.Error(err, tftest.Show(closed.Diagnostics))
		}
	}()

	given := tftest.Decoded(t, typ, opened.Result)

	rest, err := clientcmd.RESTConfigFromKubeConfig([]byte(tftest.Text(t, given, "kubeconfig")))
	tftest.Must(t, err)

	rest.Timeout = 20 * time.Second
	rest.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		switch host, port, _ := net.SplitHostPort(address); {
		case host == "127.0.0.1":
			return (&net.Dialer{}).DialContext(ctx, network, address)
		case w.inside && host == "dev."+w.site.namespace+".svc.cluster.local":
			address = net.JoinHostPort(w.site.Pod(t, "dev-cp-0-0").Status.PodIP, port)
		}

		return w.site.Reach(ctx, network, address)
	}

	api, err := clientgo.NewForConfig(rest)
	tftest.Must(t, err)

	list, err := api.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("a program finds %d nodes at %s: %v", len(list.Items), rest.Host, err)
	}
}
