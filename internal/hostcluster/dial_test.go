package hostcluster_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

func check(t testing.TB, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

func machine(pool string, ordinal int) workload.Machine {
	role := workload.Worker
	if pool == "cp" {
		role = workload.ControlPlane
	}

	return workload.Machine{Name: fmt.Sprintf("%s-%d", pool, ordinal), Pool: pool, Ordinal: ordinal, Role: role,
		Image: "ghcr.io/siderolabs/talos:v1.13.6"}
}

// dialing is a host with a cluster on it, counted at a proxy.
type dialing struct {
	*node
	host  *hostcluster.Host
	proxy *kubetest.Proxy
	spec  workload.Spec
}

func newDialing(t *testing.T) *dialing {
	t.Helper()

	c := kubetest.Shared(t)
	d := &dialing{node: newNode(t, c), proxy: c.Proxy(t)}
	d.spec = workload.Spec{
		Cluster: "dev", Mark: "m1", Namespace: c.Namespace(t), Domain: "cluster.local", Access: workload.PortForward,
		Machines: []workload.Machine{machine("cp", 0), machine("cp", 1), machine("worker", 0)},
	}
	d.host = open(t, hostcluster.Options{Kubeconfig: api.Kubeconfig{Path: d.proxy.Kubeconfig()}})

	return d
}

func open(t *testing.T, o hostcluster.Options) *hostcluster.Host {
	t.Helper()

	host, err := hostcluster.Open(o)
	check(t, err)

	t.Cleanup(host.Close)

	return host
}

// dial returns the name of the server, on a connection that returns its input.
func (d *dialing) dial(t *testing.T, to string) (net.Conn, string, error) {
	t.Helper()

	conn, err := d.host.Dial(d.spec)(t.Context(), "tcp", to)
	if err != nil {
		return nil, "", err
	}

	t.Cleanup(func() { _ = conn.Close() })

	if err := conn.SetDeadline(time.Now().Add(testTime)); err != nil {
		return nil, "", err // it was refused meanwhile
	}

	who, err := bufio.NewReaderSize(conn, 16).ReadString('\n')

	return conn, strings.TrimSpace(who), err
}

func (d *dialing) answers(t *testing.T, to, want string) net.Conn {
	t.Helper()

	conn, who, err := d.dial(t, to)
	if err != nil || who != want {
		t.Errorf("at %s there is %q, %v, want %q", to, who, err, want)
	}

	return conn
}

// refused says that it was, in little time, and with all of the words.
func (d *dialing) refused(t *testing.T, to string, words ...string) {
	t.Helper()

	begun := time.Now()

	_, who, err := d.dial(t, to)
	if err == nil {
		t.Errorf("at %s there is %s", to, who)

		return
	}

	var operation *net.OpError
	if !errors.As(err, &operation) {
		t.Errorf("%s: %v is a %T", to, err, err)
	}

	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v does not say %q", to, err, word)
		}
	}

	// Much shorter than a wait for a machine, and long enough for a busy host.
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("%s took %s to be refused", to, took)
	}
}

func (d *dialing) lists() int {
	return len(d.proxy.Seen(func(c kubetest.Call) bool {
		return c.Method == http.MethodGet &&
			strings.HasSuffix(c.Path, "/pods")
	}))
}

// Machines are found by all their names, and by their addresses also when another resource has them, with one
// connection to each pod and one list of pods.
func TestDial_findsMachines(t *testing.T) {
	d := newDialing(t)
	d.pod(t, d.spec, machine("cp", 0), "10.66.1.1", map[int]string{50000: echoServer(t, "cp-0"), 6443: echoServer(t, "api-0")})
	d.pod(t, d.spec, machine("batch", 3), "10.66.1.2", map[int]string{50000: echoServer(t, "batch-3")})

	other := d.spec
	other.Mark = "m2"
	d.pod(t, other, machine("other", 0), "10.66.1.3", map[int]string{50000: echoServer(t, "another cluster's")})

	outside := echoServer(t, "outside")
	host, port, err := net.SplitHostPort(outside)
	check(t, err)

	var work sync.WaitGroup

	begun := time.Now()

	for to, want := range map[string]string{
		d.spec.Address(machine("cp", 0)) + ":50000":  "cp-0",
		"dev-cp-0." + d.spec.Namespace + ".svc:6443": "api-0",
		"dev-cp-0." + d.spec.Namespace + ":50000":    "cp-0",
		"dev-cp-0:50000":                "cp-0",
		"10.66.1.1:6443":                "api-0",
		d.spec.EndpointHost() + ":6443": "api-0",
		"DEV." + d.spec.Namespace + ".svc.cluster.local.:6443": "api-0",
		d.spec.Address(machine("batch", 3)) + ":50000":         "batch-3",
		"dev-batch-3:50000":          "batch-3",
		"10.66.1.2:50000":            "batch-3",
		net.JoinHostPort(host, port): "outside",
	} {
		for range 3 {
			work.Go(func() { d.answers(t, to, want) })
		}
	}

	work.Wait()

	if n := d.upgrades.Load(); n != 2 {
		t.Errorf("%d connections to pods, want 2", n)
	}

	// One that all share, and what is asked again about addresses that are not of the cluster and pods without a
	// connection yet; and what is two seconds old is forgotten, so that on a busy machine it is asked for again.
	if n, took := d.lists(), time.Since(begun); n > 8+int(took/time.Second) {
		t.Errorf("pods were listed %d times in %s", n, took)
	}

	// As kubectl does: the fallback is not needed here.
	if n := len(d.proxy.Seen(func(c kubetest.Call) bool {
		return c.Method == http.MethodPost && strings.HasSuffix(c.Path, "/portforward")
	})); n > 0 {
		t.Errorf("%d connections are not by WebSocket", n)
	}
}

// A machine that does not run is refused with the reason.
func TestDial_namesWhatIsMissing(t *testing.T) {
	d := newDialing(t)

	d.refused(t, d.spec.Address(machine("cp", 0))+":50000", "machine dev-cp-0 has no pod in namespace "+d.spec.Namespace)
	d.refused(t, d.spec.Address(machine("batch", 7))+":50000", "machine dev-batch-7 has no pod")
	d.refused(t, d.spec.EndpointHost()+":6443", "no control plane of cluster dev has a pod")

	waiting := d.pod(t, d.spec, machine("cp", 0), "10.66.2.1", nil)
	d.report(t, waiting, corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "talos", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such tag"}},
	}}})

	unscheduled := d.pod(t, d.spec, machine("cp", 1), "10.66.2.2", nil)
	d.report(t, unscheduled, corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
			Message: "0/3 nodes are available"},
	}})

	d.refused(t, "dev-cp-0:50000", "Pending", "ImagePullBackOff", "no such tag")
	d.refused(t, "dev-cp-1:50000", "Pending", "0/3 nodes are available")
	d.refused(t, d.spec.EndpointHost()+":6443", "no such tag", "0/3 nodes are available")
}

// A port that nothing listens on is an error of the connection to it alone.
func TestDial_portThatNothingListensOn(t *testing.T) {
	d := newDialing(t)
	d.pod(t, d.spec, machine("cp", 0), "10.66.3.1", map[int]string{50000: echoServer(t, "cp-0")})

	before := d.answers(t, "dev-cp-0:50000", "cp-0")
	d.refused(t, "dev-cp-0:6443", "connection refused", "dev-cp-0-0")

	if _, err := io.WriteString(before, "still here\n"); err != nil {
		t.Error(err)
	}

	if line, err := bufio.NewReader(before).ReadString('\n'); err != nil || line != "still here\n" {
		t.Errorf("the other connection says %q, %v", line, err)
	}

	d.answers(t, "dev-cp-0:50000", "cp-0")
}

// Of the control planes one is taken that is ready, and another when nothing answers there.
func TestDial_endpoint(t *testing.T) {
	t.Parallel() // it waits for what is known of pods to be forgotten

	d := newDialing(t)
	first := d.pod(t, d.spec, machine("cp", 0), "10.66.4.1", map[int]string{6443: echoServer(t, "api-0")})
	d.pod(t, d.spec, machine("cp", 1), "10.66.4.2", map[int]string{6443: echoServer(t, "api-1")})
	d.pod(t, d.spec, machine("worker", 0), "10.66.4.3", map[int]string{6443: echoServer(t, "a worker's")})

	to := d.spec.EndpointHost() + ":6443"
	d.answers(t, to, "api-0")

	unready := *first.Status.DeepCopy()
	unready.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	d.report(t, first, unready)
	soon(t, func() bool { _, who, err := d.dial(t, to); return err == nil && who == "api-1" })

	// It is ready, but does not listen.
	d.report(t, first, first.Status)
	d.mu.Lock()
	delete(d.ports[first.UID], 6443)
	d.mu.Unlock()
	soon(t, func() bool { _, _, err := d.dial(t, to); return err != nil })
	soon(t, func() bool { _, who, err := d.dial(t, to); return err == nil && who == "api-1" })
}

// soon fails the test when a condition does not come true.
func soon(t *testing.T, condition func() bool) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()

	check(t, wait.Until(ctx, 50*time.Millisecond, func(context.Context) error {
		if !condition() {
			return errors.New("it is not so yet")
		}

		return nil
	}))
}

// A replaced pod is found under its machine's name at once; its former address has no owner.
func TestDial_afterAReplacement(t *testing.T) {
	d := newDialing(t)
	old := d.pod(t, d.spec, machine("cp", 0), "10.66.5.1", map[int]string{50000: echoServer(t, "old")})

	before := d.answers(t, "10.66.5.1:50000", "old")
	d.remove(t, old)

	// Which end is seen first, that of the stream or that of the connection, is up to the kubelet.
	if _, err := before.Read(make([]byte, 1)); err == nil {
		t.Error("the connection to the pod that went goes on")
	}

	d.pod(t, d.spec, machine("cp", 0), "10.66.5.2", map[int]string{50000: echoServer(t, "new")})
	d.answers(t, "dev-cp-0:50000", "new")
	d.refused(t, "10.66.5.1:50000", "no longer has")
	d.answers(t, "10.66.5.2:50000", "new")
}

// A connection to a pod that broke is made again.
func TestDial_afterTheConnectionBroke(t *testing.T) {
	d := newDialing(t)
	pod := d.pod(t, d.spec, machine("cp", 0), "10.66.6.1", map[int]string{50000: echoServer(t, "cp-0")})

	for range 3 {
		conn := d.answers(t, "dev-cp-0:50000", "cp-0")
		d.cut(pod)

		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("a connection outlives the one it is on")
		}
	}
}

// Without the right to the way in, the error names it; where only SPDY is allowed, SPDY it is.
func TestDial_withoutRights(t *testing.T) {
	d := newDialing(t)
	d.pod(t, d.spec, machine("cp", 0), "10.66.7.1", map[int]string{50000: echoServer(t, "cp-0")})

	d.host = open(t, hostcluster.Options{
		Kubeconfig: as(t, d.cluster, d.spec.Namespace, "reads", rule("pods", "get", "list"))})
	d.refused(t, "dev-cp-0:50000", "forbidden", "pods/portforward")

	d.host = open(t, hostcluster.Options{
		Kubeconfig: as(t, d.cluster, d.spec.Namespace, "forwards", rule("pods", "list"), rule("pods/portforward", "create")),
	})
	d.answers(t, "dev-cp-0:50000", "cp-0")
	d.answers(t, "dev-cp-0:50000", "cp-0")
}

// Both ways of the data may end for themselves, and nothing gets lost.
func TestDial_carriesData(t *testing.T) {
	d := newDialing(t)
	d.pod(t, d.spec, machine("cp", 0), "10.66.8.1", map[int]string{50000: echoServer(t, "cp-0")})

	var work sync.WaitGroup

	for i := range 4 {
		work.Go(func() {
			conn := d.answers(t, "dev-cp-0:50000", "cp-0")
			sent := strings.Repeat(fmt.Sprintf("%d,", i), 1<<20)

			go func() {
				_, err := io.WriteString(conn, sent)
				if err = errors.Join(err, conn.(interface{ CloseWrite() error }).CloseWrite()); err != nil {
					t.Error(err)
				}
			}()

			got, err := io.ReadAll(conn)
			if err != nil || string(got) != sent {
				t.Errorf("%d of %d bytes came back, %v", len(got), len(sent), err)
			}
		})
	}

	work.Wait()
}

// Nothing is left of a host that was closed.
func TestClose_leavesNothing(t *testing.T) {
	d := newDialing(t)
	d.pod(t, d.spec, machine("cp", 0), "10.66.10.1", map[int]string{50000: echoServer(t, "cp-0")})

	conn := d.answers(t, "dev-cp-0:50000", "cp-0")
	d.answers(t, "dev-cp-0:50000", "cp-0")
	d.host.Close()

	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlives its host")
	}

	var stacks string

	soon(t, func() bool {
		buffer := make([]byte, 4<<20)
		stacks = string(buffer[:runtime.Stack(buffer, true)])

		return !strings.Contains(stacks, "portforward.(*session)") && !strings.Contains(stacks, "portforward.(*conn)")
	})

	if _, _, err := d.dial(t, "dev-cp-0:50000"); err == nil || !strings.Contains(err.Error(), "the connection to the host was closed") {
		t.Errorf("a closed host dials: %v", err)
	}
}

// Pods with the labels of a machine that its StatefulSet did not make are ignored, both under the machine's name
// and as control planes behind the endpoint.
func TestDial_leavesPodsOfOthersAlone(t *testing.T) {
	d := newDialing(t)

	named := machine("cp", 0)
	labels := map[string]string{workload.LabelCluster: d.spec.Cluster, workload.LabelMark: d.spec.Mark,
		workload.LabelMachine: named.Label(), workload.LabelRole: string(named.Role)}
	planted := d.create(t, d.spec, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "planted", Labels: labels},
		Spec:       corev1.PodSpec{NodeName: d.name, Containers: []corev1.Container{{Name: "talos", Image: "talos:1"}}},
	})
	d.serves(planted, map[int]string{50000: echoServer(t, "planted"), 6443: echoServer(t, "planted")})
	d.runs(t, planted, "10.66.9.1")

	d.refused(t, d.spec.Address(named)+":50000", "machine dev-cp-0 has no pod in namespace "+d.spec.Namespace)
	d.refused(t, d.spec.EndpointHost()+":6443", "no control plane of cluster dev has a pod")

	d.pod(t, d.spec, named, "10.66.9.2", map[int]string{50000: echoServer(t, "cp-0"), 6443: echoServer(t, "api-0")})
	d.answers(t, d.spec.Address(named)+":50000", "cp-0")
	d.answers(t, d.spec.EndpointHost()+":6443", "api-0")
}
