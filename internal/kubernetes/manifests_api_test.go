package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// droppable is an endpoint that goes away with all its connections after so many writes.
type droppable struct {
	address string
	after   int

	mu    sync.Mutex
	conns []net.Conn
}

func (d *droppable) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil || address != d.address {
		return conn, err
	}

	d.mu.Lock()
	defer d.mu.Unlock()

	if d.after <= 0 {
		return nil, errors.Join(errors.New("no route to host"), conn.Close())
	}

	d.conns = append(d.conns, conn)

	return &dropping{conn, d}, nil
}

func (d *droppable) gone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()

	return d.after <= 0
}

type dropping struct {
	net.Conn

	of *droppable
}

func (c *dropping) Write(b []byte) (int, error) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()

	if c.of.after--; c.of.after > 0 {
		return c.Conn.Write(b)
	}

	for _, conn := range c.of.conns {
		_ = conn.Close()
	}

	return 0, net.ErrClosed
}

func testSyncEndpointDrops(t *testing.T, l *living) {
	t.Helper()

	endpoint, err := url.Parse(l.options.Endpoint)
	check(t, err)

	l.options.Fallbacks = []string{l.machine.Address().String()}

	for _, talos := range []string{ssaTalos, oldTalos} {
		for _, after := range []int{5, 12, 20, 30} {
			vip := &droppable{address: endpoint.Host, after: after}
			l.options.Dial = vip.dial
			value := fmt.Sprint(talos, after)

			check(t, l.client(t).SyncManifests(within(t, time.Minute), manifestsOf(t,
				configMap("a", "a", value), configMap("b", "a", value), configMap("c", "a", value), configMap("d", "a", value)),
				talos, false))

			for _, name := range []string{"a", "b", "c", "d"} {
				if got := l.getConfigMap(t, name).Data["a"]; got != value {
					t.Errorf("%s = %s, want %s", name, got, value)
				}
			}

			if after < 20 && !vip.gone() {
				t.Errorf("the endpoint was not checked often enough to go away after %d writes", after)
			}
		}
	}
}

func testSyncInterrupted(t *testing.T, l *living) {
	t.Helper()

	for _, talos := range []string{ssaTalos, oldTalos} {
		ctx, cancel := context.WithCancelCause(t.Context())
		interrupt := errors.New("interrupt")
		client, objects := l.client(t), manifestsOf(t, strings.ReplaceAll(workload, "app:1", "app:"+talos))
		done := make(chan error, 1)

		go func() { done <- client.SyncManifests(ctx, objects, talos, false) }()

		eventually(t, func() error {
			d, err := l.api.AppsV1().Deployments("kube-system").Get(t.Context(), "workload", metav1.GetOptions{})
			if err == nil && !strings.HasSuffix(d.Spec.Template.Spec.Containers[0].Image, talos) {
				return errors.New("not changed yet")
			}

			return err
		})
		cancel(interrupt)

		select {
		case err := <-done:
			if !errors.Is(err, interrupt) || wait.IsPermanent(err) {
				t.Errorf("error %v, want the cause of the interrupt", err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("an interrupt does not end it")
		}
	}
}

// An API that does not answer is neither a refused object, nor a reason to write to the standard error of the
// process.
func TestSyncManifests_withoutAnAnswer(t *testing.T) {
	t.Parallel()

	for name, talos := range map[string]string{"apply": ssaTalos, "update": oldTalos} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			ca := newAuthority(t)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()

			err := ca.client(t, ca.apiServer(t, halfBroken).URL).SyncManifests(ctx, manifestsOf(t, configMap("ours", "a", "1")),
				talos, false)
			if err == nil || wait.IsPermanent(err) || !errors.Is(err, context.DeadlineExceeded) ||
				!strings.Contains(err.Error(), "etcd is slow") {
				t.Errorf("error %v, want one that may be repeated, with the reason", err)
			}
		})
	}
}

// halfBroken serves discovery, in which one aggregated API is down, and the inventory, but
// cannot read the object.
func halfBroken(w http.ResponseWriter, r *http.Request) {
	list := metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}

	switch r.URL.Path {
	case "/api":
		answer(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case "/apis":
		v := metav1.GroupVersionForDiscovery{GroupVersion: "metrics.k8s.io/v1beta1", Version: "v1beta1"}
		answer(w, http.StatusOK, metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
			Groups: []metav1.APIGroup{{Name: "metrics.k8s.io", Versions: []metav1.GroupVersionForDiscovery{v},
				PreferredVersion: v}},
		})
	case "/api/v1":
		answer(w, http.StatusOK, metav1.APIResourceList{TypeMeta: list, GroupVersion: "v1",
			APIResources: []metav1.APIResource{
				{Name: "configmaps", SingularName: "configmap", Namespaced: true, Kind: "ConfigMap",
					Verbs: metav1.Verbs{"get", "patch"}},
			}})
	case "/api/v1/namespaces/kube-system":
		answer(w, http.StatusOK, corev1.Namespace{
			TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "kube-system"},
		})
	case "/api/v1/namespaces/kube-system/configmaps/" + constants.KubernetesBootstrapManifestsInventoryName:
		answer(w, http.StatusOK, corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}})
	default:
		answer(w, http.StatusInternalServerError, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonInternalError, Message: "etcd is slow", Code: http.StatusInternalServerError,
		})
	}
}

func TestSyncManifests_printsNothing(t *testing.T) {
	t.Parallel()

	program, err := os.Executable()
	check(t, err)

	command := exec.CommandContext(within(t, time.Minute), program, "-test.run=^TestSyncManifests_withoutAnAnswer$")

	var printed strings.Builder

	command.Stderr = &printed

	if out, err := command.Output(); err != nil || !strings.HasPrefix(string(out), "PASS\n") {
		t.Errorf("error %v, standard output: %s", err, out)
	}

	if printed.Len() > 0 {
		t.Errorf("standard error: %s", printed.String())
	}
}
