package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

const (
	oldAPIServer = "registry.k8s.io/kube-apiserver:v1.35.4"
	newAPIServer = "registry.k8s.io/kube-apiserver:v1.36.3"
	newKubelet   = "ghcr.io/siderolabs/kubelet:v1.36.3-slim"
)

var _ lifecycle.KubernetesUpgrade = (*kubernetes.Client)(nil)

// upgrading is the API of a cluster with one node, cp-1, which is being upgraded. A goroutine that holds the lock
// may change its fields.
type upgrading struct {
	sync.Mutex

	node    corev1.Node
	others  []corev1.Node
	pod     *corev1.Pod
	events  []corev1.Event
	version string
	// looked is called, under the lock, before the pod or the node is shown.
	looked func()
	looks  atomic.Int32
}

func newUpgrading() *upgrading {
	u := &upgrading{version: "v1.36.3"}
	u.node = corev1.Node{
		TypeMeta:   metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "cp-1", Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "cp-1"},
				{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.36.3"},
		},
	}
	u.pod = &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver-cp-1", Namespace: "kube-system"},
		Spec: corev1.PodSpec{NodeName: "cp-1",
			Containers: []corev1.Container{{Name: "kube-apiserver", Image: newAPIServer}}},
		Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "kube-apiserver", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			}},
		},
	}

	return u
}

func (u *upgrading) status() *corev1.ContainerStatus { return &u.pod.Status.ContainerStatuses[0] }

func (u *upgrading) serve(w http.ResponseWriter, r *http.Request) {
	u.Lock()
	defer u.Unlock()

	switch r.URL.Path {
	case "/version":
		answer(w, http.StatusOK, map[string]string{"gitVersion": u.version})
	case "/api/v1/nodes":
		answer(w, http.StatusOK, corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"},
			Items: append([]corev1.Node{u.node}, u.others...)})
	case "/api/v1/nodes/cp-1":
		answer(w, http.StatusOK, u.node)
	case "/api/v1/namespaces/kube-system/pods/kube-apiserver-cp-1":
		u.looks.Add(1)

		if u.looked != nil {
			u.looked()
		}

		if u.pod == nil {
			refusal(http.StatusNotFound, metav1.StatusReasonNotFound)(w, r)

			return
		}

		answer(w, http.StatusOK, u.pod)
	case "/api/v1/namespaces/kube-system/events", "/api/v1/namespaces/default/events":
		u.serveEvents(w, r)
	default:
		refusal(http.StatusNotFound, metav1.StatusReasonNotFound)(w, r)
	}
}

func (u *upgrading) serveEvents(w http.ResponseWriter, r *http.Request) {
	list := corev1.EventList{TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: "v1"}}

	for i := range u.events {
		e := &u.events[i]
		if strings.Contains(r.URL.Path, "/"+e.Namespace+"/") && r.URL.Query().Get("fieldSelector") ==
			"involvedObject.kind="+e.InvolvedObject.Kind+",involvedObject.name="+e.InvolvedObject.Name {
			list.Items = append(list.Items, *e)
		}
	}

	answer(w, http.StatusOK, list)
}

// clientOf is a client of a cluster whose control planes listen on the port of own.
func (a authority) clientOf(
	t *testing.T, endpoint string, own *httptest.Server, change func(*api.Options),
) *kubernetes.Client {
	t.Helper()

	u, err := url.Parse(own.URL)
	check(t, err)

	cert, key := a.issue(t)
	o := api.Options{Endpoint: endpoint, Port: u.Port(), CA: a.pem(), Cert: cert, Key: key, Await: time.Minute,
		Poll: soon}

	if change != nil {
		change(&o)
	}

	c, err := kubernetes.New(o)
	check(t, err)
	t.Cleanup(c.Close)

	return c
}

func TestAwaitComponent_throughItsStages(t *testing.T) {
	t.Parallel()

	u := newUpgrading()
	ready := *u.pod.DeepCopy()
	stages := []func(){
		func() { u.pod = nil },
		func() { u.pod = ready.DeepCopy(); u.pod.Spec.Containers[0].Image = oldAPIServer },
		func() { u.pod = ready.DeepCopy(); u.pod.DeletionTimestamp = &metav1.Time{Time: time.Now()} },
		func() {
			u.pod = ready.DeepCopy()
			u.status().State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
		},
		func() {
			u.pod = ready.DeepCopy()
			u.status().State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		},
		func() { u.pod = ready.DeepCopy(); u.pod.Status.Conditions[0].Status = corev1.ConditionFalse },
		func() { u.pod = ready.DeepCopy(); u.version = "v1.35.4" },
		func() { u.version = "v1.36.2" },
		func() { u.version = "v1.36.3+build" },
	}
	u.looked = func() {
		if n := int(u.looks.Load()); n <= len(stages) {
			stages[n-1]()
		}
	}

	ca := newAuthority(t)
	server := ca.apiServer(t, u.serve)

	check(t, ca.clientOf(t, server.URL, server, nil).AwaitComponent(within(t, time.Minute), "cp-1", kubenames.KubeAPIServer,
		newAPIServer))

	if n := int(u.looks.Load()); n != len(stages) {
		t.Errorf("the pod was looked at %d times, want %d: each stage but the last is not it", n, len(stages))
	}
}

func TestAwaitComponent_nothingToAsk(t *testing.T) {
	t.Parallel()

	u := newUpgrading()
	u.version = "v1.35.4"
	u.pod.Spec.Containers[0].Image = "registry.example.org/kube-apiserver:edge"
	u.node.Status.NodeInfo.KubeletVersion = "v0.0.0-master"

	ca := newAuthority(t)
	server := ca.apiServer(t, u.serve)
	client := ca.clientOf(t, server.URL, server, nil)

	// An image without a version is not compared with one.
	check(t, client.AwaitComponent(within(t, time.Minute), "cp-1", kubenames.KubeAPIServer,
		"registry.example.org/kube-apiserver:edge"))
	check(t, client.AwaitComponent(within(t, time.Minute), "cp-1", kubenames.Kubelet, "registry.example.org/kubelet:edge"))
	check(t, client.AwaitComponent(within(t, time.Minute), "nowhere", kubenames.KubeProxy,
		"registry.k8s.io/kube-proxy:v1.36.3"))
}

func TestAwaitComponent_saysWhatIsMissing(t *testing.T) {
	t.Parallel()

	event := func(namespace, kind, name, text string, at int) corev1.Event {
		return corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: name + "." + text},
			InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}, Type: corev1.EventTypeWarning, Reason: "Reason",
			Message:       text,
			LastTimestamp: metav1.Time{Time: time.Date(2026, 1, 1, 0, at, 0, 0, time.UTC)},
		}
	}
	events := []corev1.Event{
		event("kube-system", "Pod", "kube-apiserver-cp-1", "newest", 2),
		event("kube-system", "Pod", "kube-apiserver-cp-1", "older", 1),
		event("kube-system", "Pod", "kube-apiserver-cp-2", "of another pod", 3),
		event("default", "Node", "cp-1", "of the node", 1),
	}

	tests := map[string]struct {
		component kubenames.Component
		change    func(*upgrading)
		want      []string
		permanent bool
	}{
		"no pod": {change: func(u *upgrading) { u.pod = nil }, want: []string{"read the pod", "NotFound"}},
		"the old image": {
			change: func(u *upgrading) { u.pod.Spec.Containers[0].Image = oldAPIServer },
			want:   []string{"the pod still has image " + oldAPIServer},
		},
		"an image that cannot be pulled": {
			change: func(u *upgrading) {
				u.status().State = corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}}
			},
			want: []string{"container kube-apiserver is waiting: ImagePullBackOff (not found)"},
		},
		"an image that may not be pulled": {
			change: func(u *upgrading) {
				u.status().State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImageNeverPull"}}
			},
			want: []string{"container kube-apiserver is waiting: ErrImageNeverPull"}, permanent: true,
		},
		"a container that ends again and again": {
			change: func(u *upgrading) {
				s := u.status()
				s.RestartCount = 4
				s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
				s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error",
					Message: "unknown flag: --gone\n"}
			},
			want: []string{"CrashLoopBackOff; restarted 4 times, last termination: exit code 2: Error (unknown flag: " +
				"--gone)"},
		},
		"a container that ended": {
			change: func(u *upgrading) {
				u.status().State = corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Signal: 9, Reason: "OOMKilled"}}
			},
			want: []string{"container kube-apiserver terminated: exit code 137, signal 9: OOMKilled"},
		},
		"a pod that is not ready": {
			change: func(u *upgrading) {
				u.pod.Status.Conditions[0].Status, u.pod.Status.Conditions[0].Reason = corev1.ConditionFalse, "ContainersNotReady"
			},
			want: []string{"the pod is not ready: ContainersNotReady"},
		},
		"the old API server": {
			change: func(u *upgrading) { u.version = "v1.35.4" },
			want:   []string{"the API server on the node's address 127.0.0.1 still reports version v1.35.4"},
		},
		"the old kubelet": {
			component: kubenames.Kubelet, change: func(u *upgrading) { u.node.Status.NodeInfo.KubeletVersion = "v1.35.4" },
			want: []string{"kubelet on node cp-1 runs " + newKubelet, "the kubelet still reports version v1.35.4",
				"of the node (2026-01-01T00:01:00Z)"},
		},
		"a node that is not ready": {
			component: kubenames.Kubelet,
			change: func(u *upgrading) {
				u.node.Status.Conditions[0].Status, u.node.Status.Conditions[0].Message = corev1.ConditionFalse, "no network plugin"
				u.others = readyWorker()
			},
			want: []string{"the node is not ready: no network plugin"},
		},
		"no event": {change: func(u *upgrading) { u.pod, u.events = nil, nil }, want: []string{"last event: none"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			u := newUpgrading()
			u.events = events
			test.change(u)

			component, image := kubenames.KubeAPIServer, newAPIServer
			if test.component == kubenames.Kubelet {
				component, image = kubenames.Kubelet, newKubelet
			} else {
				test.want = append(test.want, "kube-apiserver on node cp-1 (pod kube-system/kube-apiserver-cp-1) runs "+
					newAPIServer)

				if len(u.events) > 0 {
					test.want = append(test.want, "last event: Warning Reason: newest (2026-01-01T00:02:00Z)")
				}
			}

			ca := newAuthority(t)
			server := ca.apiServer(t, u.serve)
			client := ca.clientOf(t, server.URL, server, func(o *api.Options) {
				if !test.permanent {
					o.Await = 2 * time.Second
				}
			})

			err := client.AwaitComponent(t.Context(), "cp-1", component, image)
			for _, want := range test.want {
				if !strings.Contains(fmt.Sprint(err), want) {
					t.Errorf("error %v, want %q in it", err, want)
				}
			}

			if wait.IsPermanent(err) != test.permanent {
				t.Errorf("permanent = %v: %v", !test.permanent, err)
			}
		})
	}
}

// The machine's own address may be unreachable from here; then the pod's status decides.
func TestAwaitComponent_outOfReach(t *testing.T) {
	t.Parallel()

	u := newUpgrading()
	ca := newAuthority(t)
	server := ca.apiServer(t, u.serve)
	_, port, err := net.SplitHostPort(closedPort(t))
	check(t, err)

	const steady = time.Second

	var (
		reported  []string
		restarted time.Time
	)

	client := ca.clientOf(t, server.URL, server, func(o *api.Options) {
		o.Port, o.Progress, o.Steady = port, func(message string) { reported = append(reported, message) }, steady
	})

	// Its pod is ready from the beginning; that it crashes and starts again shows in its restarts.
	u.looked = func() {
		if u.looks.Load() <= 2 {
			u.status().RestartCount++

			restarted = time.Now()
		}
	}

	check(t, client.AwaitComponent(within(t, time.Minute), "cp-1", kubenames.KubeAPIServer, newAPIServer))

	if len(reported) != 1 || !strings.Contains(reported[0], "its address cannot be reached from here (") ||
		!strings.Contains(reported[0], "refused") {
		t.Errorf("got %q, want once that the pod's status decides, and why", reported)
	}

	if waited := time.Since(restarted); waited < steady {
		t.Errorf("waited %s, want the time of Steady after the last restart", waited)
	}

	// A server that answers there, without being an API server of the cluster, is reachable.
	stranger := newAuthority(t).apiServer(t, u.serve)
	client = ca.clientOf(t, server.URL, stranger, func(o *api.Options) { o.Await = 2 * time.Second })

	err = client.AwaitComponent(t.Context(), "cp-1", kubenames.KubeAPIServer, newAPIServer)
	if err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("a stranger at the node's address: %v", err)
	}
}

// A server that refused connections for a while is asked for its version when it answers.
func TestAwaitComponent_whileTheServerStarts(t *testing.T) {
	t.Parallel()

	u := newUpgrading()
	u.version = "v1.35.4"
	u.looked = func() {
		if u.looks.Load() == 4 {
			u.version = "v1.36.3"
		}
	}

	ca := newAuthority(t)
	server, own := ca.apiServer(t, u.serve), ca.apiServer(t, u.serve)

	var refused atomic.Int32

	client := ca.clientOf(t, server.URL, own, func(o *api.Options) {
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == own.Listener.Addr().String() && refused.Add(1) <= 3 {
				return nil, errors.New("connection refused")
			}

			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
	})
	check(t, client.AwaitComponent(within(t, time.Minute), "cp-1", kubenames.KubeAPIServer, newAPIServer))

	if n := u.looks.Load(); n != 4 {
		t.Errorf("%d looks, want 4: it refused connections, or reported the old version, until then", n)
	}
}

// The endpoint may be an address that goes away with the machine that holds it, although the
// options name no other.
func TestAwaitComponent_survivesTheEndpoint(t *testing.T) {
	t.Parallel()

	u := newUpgrading()
	ready := u.pod.DeepCopy()
	ca := newAuthority(t)
	own := ca.apiServer(t, u.serve)
	vip := ca.apiServer(t, u.serve)

	u.looked = func() {
		switch u.looks.Load() {
		case 1:
			u.pod = nil

			// Not here, since it waits for this request.
			go vip.Close()
		case 3:
			u.pod = ready
		}
	}

	client := ca.clientOf(t, vip.URL, own, nil)

	if got := client.Observe(t.Context()); !got.Reachable {
		t.Fatal(got.Cause)
	}

	check(t, client.AwaitComponent(within(t, time.Minute), "cp-1", kubenames.KubeAPIServer, newAPIServer))

	// Only control planes have an API server, and one that is gone is no longer asked.
	u.Lock()
	u.node.Labels = nil
	u.Unlock()

	if got := client.Observe(t.Context()); !got.Reachable {
		t.Fatal(got.Cause)
	}

	if got := client.Observe(t.Context()); got.Reachable || strings.Contains(got.Cause, own.URL) {
		t.Errorf("a node that is no control plane was asked: %+v", got)
	}
}

func readyWorker() []corev1.Node {
	return []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "w-1"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}}
}

// Without a pod network no node is ready, and no kubelet is waited for because of that.
func TestAwaitComponent_withoutANetwork(t *testing.T) {
	t.Parallel()

	u := newUpgrading()
	u.node.Status.Conditions[0].Status = corev1.ConditionFalse

	ca := newAuthority(t)
	server := ca.apiServer(t, u.serve)
	client := ca.clientOf(t, server.URL, server, func(o *api.Options) { o.Await = time.Minute })
	check(t, client.AwaitComponent(t.Context(), "cp-1", kubenames.Kubelet, newKubelet))

	u.Lock()
	u.others = readyWorker()
	u.Unlock()

	client = ca.clientOf(t, server.URL, server, func(o *api.Options) { o.Await = 2 * time.Second })

	err := client.AwaitComponent(t.Context(), "cp-1", kubenames.Kubelet, newKubelet)
	if err == nil || !strings.Contains(err.Error(), "the node is not ready") {
		t.Errorf("with another node that is ready: %v", err)
	}
}

func TestAwaitComponent_interrupted(t *testing.T) {
	t.Parallel()

	u := newUpgrading()
	interrupt := errors.New("interrupt")
	ctx, cancel := context.WithCancelCause(t.Context())
	u.pod = nil
	u.looked = func() {
		if u.looks.Load() == 2 {
			cancel(interrupt)
		}
	}

	ca := newAuthority(t)
	server := ca.apiServer(t, u.serve)

	err := ca.clientOf(t, server.URL, server, nil).AwaitComponent(ctx, "cp-1", kubenames.KubeAPIServer, newAPIServer)
	if !errors.Is(err, interrupt) || !strings.Contains(err.Error(), "read the pod") ||
		strings.Contains(err.Error(), "event") {
		t.Errorf("error %v, want the interrupt and the last reason, at once", err)
	}
}

// hasty is a client that waits for components shortly.
func (l *living) hasty(t *testing.T) *kubernetes.Client {
	t.Helper()

	hasty := *l
	hasty.options.Await = 5 * time.Second

	return hasty.client(t)
}

// A cluster as Talos makes it, with its own port and pods.
func TestAwaitComponent_onClusters(t *testing.T) {
	t.Parallel()
	onClusters(t, func(t *testing.T, l *living) {
		t.Helper()

		l.options.Await = time.Minute
		client, node := l.client(t), l.machine.Hostname()
		images := kubenames.Images{
			kubenames.KubeScheduler: "registry.k8s.io/kube-scheduler:v1.35.2",
			kubenames.Kubelet:       "ghcr.io/siderolabs/kubelet:v1.35.2",
		}

		// A real API server may be of another version than the configuration says.
		version, err := client.Version(t.Context())
		check(t, err)

		api := "registry.k8s.io/kube-apiserver:v1.35.2"

		if version == "v1.35.2" {
			images[kubenames.KubeAPIServer] = api
		} else if err := l.hasty(t).AwaitComponent(t.Context(), node, kubenames.KubeAPIServer, api); err == nil ||
			!strings.Contains(err.Error(), version) {
			t.Errorf("an API server of %s: %v", version, err)
		}

		for component, image := range images {
			if err := client.AwaitComponent(t.Context(), node, component, image); err != nil {
				t.Error(err)
			}
		}
	})
}
