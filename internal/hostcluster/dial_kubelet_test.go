package hostcluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// node is a node of the host whose kubelet forwards ports, as the kube-apiserver asks it to (Kubernetes 1.36,
// kubelet/server/server.go getPortForward), and does nothing else. Pods are what the test makes of them.
type node struct {
	cluster *kubetest.Cluster
	name    string

	// upgrades are the connections that were made.
	upgrades atomic.Int32

	mu sync.Mutex
	// ports that something listens on, by the pod's UID: addresses of the test.
	ports map[types.UID]map[int]string
	conns map[types.UID][]httpstream.Connection
}

var nodes atomic.Int32

func newNode(t *testing.T, c *kubetest.Cluster) *node {
	t.Helper()

	number := nodes.Add(1)
	n := &node{
		cluster: c, name: fmt.Sprintf("forwarding-%d", number),
		ports: map[types.UID]map[int]string{}, conns: map[types.UID][]httpstream.Connection{},
	}

	ip := fmt.Sprintf("127.0.66.%d", number)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", ip+":0")
	check(t, err)

	mux := http.NewServeMux()
	mux.HandleFunc("POST /portForward/{namespace}/{pod}", n.forward)

	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: mux}} //nolint:gosec // a test's
	server.StartTLS()
	t.Cleanup(server.Close)

	api := c.API().CoreV1().Nodes()
	made, err := api.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name}}, metav1.CreateOptions{})
	check(t, err)

	t.Cleanup(func() {
		if err := api.Delete(context.WithoutCancel(t.Context()), n.name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})

	made.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
	made.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(listener.Addr().(*net.TCPAddr).Port)
	made.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	_, err = api.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	check(t, err)

	return n
}

// pod is made on the node and runs.
func (n *node) pod(t *testing.T, s workload.Spec, m workload.Machine, ip string, ports map[int]string) *corev1.Pod {
	t.Helper()

	labels := map[string]string{
		workload.LabelCluster: s.Cluster, workload.LabelMark: s.Mark, workload.LabelMachine: m.Label(),
		workload.LabelRole: string(m.Role),
	}
	pod := n.create(t, s, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: s.HostName(m) + "-0", Labels: labels},
		Spec:       corev1.PodSpec{NodeName: n.name, Containers: []corev1.Container{{Name: "talos", Image: "talos:1"}}},
	})

	n.serves(pod, ports)

	return n.runs(t, pod, ip)
}

// serves says where what listens in a pod is.
func (n *node) serves(pod *corev1.Pod, ports map[int]string) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.ports[pod.UID] = maps.Clone(ports)
}

// runs reports that a pod runs and is ready.
func (n *node) runs(t *testing.T, pod *corev1.Pod, ip string) *corev1.Pod {
	t.Helper()

	return n.report(t, pod, corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{
			{Name: "talos", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
	})
}

func (n *node) create(t *testing.T, s workload.Spec, pod *corev1.Pod) *corev1.Pod {
	t.Helper()

	made, err := n.cluster.API().CoreV1().Pods(s.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	check(t, err)

	t.Cleanup(func() { n.remove(t, made) })

	return made
}

func (n *node) report(t *testing.T, pod *corev1.Pod, status corev1.PodStatus) *corev1.Pod {
	t.Helper()

	pod = pod.DeepCopy()
	pod.Status = status
	// Other writers, such as the taint controllers, do not matter here.
	pod.ResourceVersion = ""

	reported, err := n.cluster.API().CoreV1().Pods(pod.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	check(t, err)

	return reported
}

// remove ends the pod and its connections.
func (n *node) remove(t *testing.T, pod *corev1.Pod) {
	t.Helper()

	at := metav1.NewPreconditionDeleteOptions(string(pod.UID))
	at.GracePeriodSeconds = new(int64)

	// It may have been removed already.
	_ = n.cluster.API().CoreV1().Pods(pod.Namespace).Delete(context.WithoutCancel(t.Context()), pod.Name, *at)

	n.cut(pod)
}

// cut ends the connections to a pod.
func (n *node) cut(pod *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()

	for _, conn := range n.conns[pod.UID] {
		_ = conn.Close() // which may have ended
	}

	delete(n.conns, pod.UID)
}

// forward pairs the streams of a connection and connects each pair.
func (n *node) forward(w http.ResponseWriter, r *http.Request) {
	pod, err := n.cluster.API().CoreV1().Pods(r.PathValue("namespace")).Get(r.Context(), r.PathValue("pod"),
		metav1.GetOptions{})
	if err != nil {
		http.Error(w, "pod does not exist", http.StatusNotFound)

		return
	}

	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		return // it was said
	}

	var mu sync.Mutex

	halves := map[string]httpstream.Stream{}

	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r,
		func(stream httpstream.Stream, replied <-chan struct{}) error {
			mu.Lock()
			defer mu.Unlock()

			id := stream.Headers().Get(corev1.PortForwardRequestIDHeader)
			if other := halves[id]; other != nil {
				go func() {
					<-replied
					n.connect(pod.UID, other, stream)
				}()
			}

			halves[id] = stream

			return nil
		})
	if conn == nil {
		return
	}

	n.upgrades.Add(1)
	n.mu.Lock()
	n.conns[pod.UID] = append(n.conns[pod.UID], conn)
	n.mu.Unlock()

	<-conn.CloseChan()
}

// connect is what containerd does (2.2, internal/cri/server/sandbox_portforward_linux.go).
func (n *node) connect(pod types.UID, failed, data httpstream.Stream) {
	defer func() { _ = errors.Join(data.Close(), failed.Close()) }() // which may be gone

	port, err := strconv.Atoi(data.Headers().Get(corev1.PortHeader))
	if err != nil {
		panic(err)
	}

	n.mu.Lock()
	to := n.ports[pod][port]
	n.mu.Unlock()

	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", to)
	if to == "" || err != nil {
		_, _ = fmt.Fprintf(failed, "failed to dial %d: connection refused\n", port)

		return
	}

	done := make(chan struct{})

	go func() {
		defer close(done)

		_, _ = io.Copy(conn, data)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()

	_, _ = io.Copy(data, conn)
	_ = data.Close()

	<-done

	_ = conn.Close()
}

// echoServer serves the name of the server, and then returns its input.
func echoServer(t *testing.T, name string) string {
	t.Helper()

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	check(t, err)

	t.Cleanup(func() { _ = listener.Close() })

	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}

			go func() {
				_, _ = io.WriteString(conn, name+"\n")
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()

	return listener.Addr().String()
}
