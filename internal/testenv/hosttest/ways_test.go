package hosttest_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/hosttest"
)

// TestServices_reachTheirMachines: node ports, load balancers and addresses of pods lead to the machines that the
// Services' selectors find.
func TestServices_reachTheirMachines(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestContainer_impostorAtItsAddress")

	s := newSite(t, hosttest.Shared(t))
	s.make("dev-cp-0", "v1.13.1")
	pod := s.podThat("dev-cp-0", ready)

	var service *corev1.Service

	soon(t, func(ctx context.Context) error {
		var err error
		if service, err = s.API().CoreV1().Services(s.namespace).Get(ctx, "dev-cp-0", metav1.GetOptions{}); err != nil {
			return err
		}

		if len(service.Status.LoadBalancer.Ingress) == 0 {
			return errors.New("it has no address")
		}

		return nil
	})

	node := s.node(pod.Spec.NodeName).Status.Addresses[0].Address
	nodePort := strconv.Itoa(int(service.Spec.Ports[0].NodePort))
	balancer := net.JoinHostPort(service.Status.LoadBalancer.Ingress[0].IP, "50000")

	for _, address := range []string{net.JoinHostPort(pod.Status.PodIP, "50000"), net.JoinHostPort(node, nodePort),
		balancer} {
		soon(t, func(ctx context.Context) error { return s.reaches(ctx, address) })
	}

	for name, address := range map[string]string{
		"a port that the machine does not serve": net.JoinHostPort(pod.Status.PodIP, "6443"),
		"a port of no Service":                   net.JoinHostPort(node, "1"),
		"another port of a load balancer":        net.JoinHostPort(service.Status.LoadBalancer.Ingress[0].IP, "6443"),
		"the address of the Service":             net.JoinHostPort(service.Spec.ClusterIP, "50000"),
		"a name":                                 "dev-cp-0.ns.svc.cluster.local:50000",
	} {
		if err := s.reaches(t.Context(), address); err == nil {
			t.Errorf("%s: reached", name)
		}
	}

	_, err := s.API().CoreV1().Services(s.namespace).Patch(t.Context(), "dev-cp-0", types.MergePatchType,
		[]byte(`{"spec":{"selector":{"machine":"dev-cp-1"}}}`), metav1.PatchOptions{})
	must(t, err)
	soon(t, func(ctx context.Context) error {
		if s.reaches(ctx, balancer) == nil {
			return errors.New("a Service that selects another pod leads to this one")
		}

		return nil
	})
}

// reaches reports whether a Talos API answers at an address.
func (s *site) reaches(ctx context.Context, address string) error {
	conn, err := s.Reach(ctx, "tcp", address)
	if err != nil {
		return err
	}

	secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // nothing to verify in maintenance mode

	return errors.Join(secure.HandshakeContext(ctx), conn.Close())
}

func (s *site) node(name string) *corev1.Node {
	s.t.Helper()

	node, err := s.API().CoreV1().Nodes().Get(s.t.Context(), name, metav1.GetOptions{})
	must(s.t, err)

	return node
}

// TestPortForward_ofEveryKind that clients of Kubernetes 1.36 ask for, also through a proxy.
func TestPortForward_ofEveryKind(t *testing.T) {
	t.Parallel()

	s := newSite(t, hosttest.Shared(t))
	s.make("dev-cp-0", "v1.13.1")
	s.podThat("dev-cp-0", ready)

	proxied, err := clientcmd.BuildConfigFromFlags("", s.Proxy(t).Kubeconfig())
	must(t, err)

	for name, config := range map[string]*rest.Config{"directly": s.Config(), "through a proxy": proxied} {
		for protocol, dialer := range map[string]func(*rest.Config, *url.URL) (httpstream.Dialer, error){"SPDY": overSPDY,
			"WebSocket": overWebSocket} {
			t.Run(protocol+" "+name, func(t *testing.T) {
				one := *s
				one.t = t

				maintenance := insecure(t, one.forwardBy(config, dialer, "dev-cp-0-0", "50000"))
				soon(t, func(ctx context.Context) error {
					_, err := maintenance.Version(ctx)

					return err
				})
			})
		}
	}

	// A port without a listener is refused, and the route stays.
	refused, err := net.Dial("tcp", s.forwardBy(s.Config(), overSPDY, "dev-cp-0-0", "6443"))
	must(t, err)

	if n, err := refused.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes from a port without a listener", n)
	}

	must(t, refused.Close())
}

// TestPods_thatCannotRun have the states, reasons and events that kubelets give them.
func TestPods_thatCannotRun(t *testing.T) {
	t.Parallel()

	s := newSite(t, hosttest.Shared(t))
	s.make("dev-cp-0", "latest")

	pod := s.podThat("dev-cp-0", waiting("ImagePullBackOff"))
	if pod.Status.Phase != corev1.PodPending || s.machine("dev-cp-0") != nil {
		t.Errorf("status of a pod without its image: %+v", pod.Status)
	}

	soon(t, func(ctx context.Context) error { return s.warned(ctx, "Failed", "not found") })

	// Nothing but another pod heals that.
	s.setImage("dev-cp-0", "v1.13.1")
	s.delete(pod)
	pod = s.podThat("dev-cp-0", after(pod))

	_, err := s.API().AppsV1().StatefulSets(s.namespace).Patch(t.Context(), "dev-cp-0", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"talos","securityContext":{"privileged":false}}]}}}}`),
		metav1.PatchOptions{})
	must(t, err)
	s.delete(pod)

	pod = s.podThat("dev-cp-0", waiting("CrashLoopBackOff"))
	if ended := talosOf(pod).LastTerminationState.Terminated; ended == nil || ended.ExitCode != 1 ||
		talosOf(pod).RestartCount < 2 {
		t.Errorf("status of a container that ends: %+v", talosOf(pod))
	}
}

func waiting(reason string) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		if len(pod.Status.ContainerStatuses) == 0 || talosOf(pod).State.Waiting == nil ||
			talosOf(pod).State.Waiting.Reason != reason {
			return errors.New("it does not wait because of " + reason)
		}

		return nil
	}
}

func (s *site) warned(ctx context.Context, reason, text string) error {
	events, err := s.API().CoreV1().Events(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}

	if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
		return e.Type == corev1.EventTypeWarning && e.Reason == reason && strings.Contains(e.Message, text)
	}) {
		return fmt.Errorf("no event %s", reason)
	}

	return nil
}

// TestNodes_thatAreLost keep their pods, and lose them with their volumes when they are deleted.
func TestNodes_thatAreLost(t *testing.T) {
	t.Parallel()
	testenv.BeforeRelease(t, "TestContainerCluster_lifecycle")

	s := newSite(t, hosttest.New(t, hosttest.Options{Nodes: 2}))
	s.class = hosttest.LocalClass
	s.make("dev-cp-0", "v1.13.1")

	pod := s.podThat("dev-cp-0", ready)
	node := pod.Spec.NodeName

	must(t, s.LoseNode(t.Context(), node))

	lost := s.podThat("dev-cp-0", func(pod *corev1.Pod) error {
		if ready(pod) == nil {
			return errors.New("ready")
		}

		return nil
	})
	if lost.Status.Phase != corev1.PodRunning || talosOf(lost).State.Running == nil ||
		s.machine("dev-cp-0").Stage() != sim.StageUnknown {
		t.Errorf("a pod whose node is lost: %+v", lost.Status)
	}

	for _, c := range s.node(node).Status.Conditions {
		if c.Type == corev1.NodeReady && (c.Status != corev1.ConditionUnknown || c.Reason != "NodeStatusUnknown") {
			t.Errorf("condition of a node that is lost: %+v", c)
		}
	}

	if err := s.reaches(t.Context(), net.JoinHostPort(pod.Status.PodIP, "50000")); err == nil {
		t.Error("a pod on a lost node is reached")
	}

	s.delete(lost) // unconfirmed
	must(t, s.ReturnNode(t.Context(), node))
	next := s.podThat("dev-cp-0", after(pod))

	if next.Spec.NodeName != node {
		t.Errorf("the pod is on %s, and its volumes on %s", next.Spec.NodeName, node)
	}

	must(t, s.DeleteNode(t.Context(), node))
	stuck := s.podThat("dev-cp-0", func(pod *corev1.Pod) error {
		if pod.UID == next.UID || !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Reason == corev1.PodReasonUnschedulable && strings.Contains(c.Message, "PersistentVolume's node affinity")
		}) {
			return errors.New("it is not said why it has no node")
		}

		return nil
	})

	// New volumes are on a node that is there.
	s.renew("dev-cp-0", stuck, slices.Collect(maps.Keys(kept))...)

	if last := s.podThat("dev-cp-0", after(stuck)); last.Spec.NodeName == node {
		t.Error("a pod is on a node that is gone")
	}
}
