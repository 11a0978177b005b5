package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// begun waits until a Deployment is there.
func begun(t *testing.T, f *front, namespace, name string) {
	t.Helper()

	soon(t, func(ctx context.Context) error {
		_, err := f.cluster.API().AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})

		return err
	})
}

// idle fails the test unless nothing of Helm or of a session keeps running.
func idle(t *testing.T) {
	t.Helper()

	soon(t, func(context.Context) error {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]

		for _, stack := range strings.Split(string(stacks), "\n\n")[1:] {
			if strings.Contains(stack, "helm.sh/helm") || strings.Contains(stack, "addon/session.(*") {
				return errors.New(stack)
			}
		}

		return nil
	})
}

func TestWait_interruptedIsRecorded(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	namespace := f.cluster.Namespace(t)

	ctx, cancel := context.WithCancel(t.Context())
	s := f.open(t, ctx, Options{Namespace: namespace, Release: "web"})

	var canceled time.Time

	go func() {
		begun(t, f, namespace, "web")

		canceled = time.Now()

		cancel()
	}()

	err := s.Work(func() error {
		_, err := install(s, "web").Run(templates(deployment("web", "kubetest/never-ready: \"true\"")), nil)

		return err
	})

	// The wait itself has a minute.
	if took := time.Since(canceled); canceled.IsZero() || took > 30*time.Second {
		t.Errorf("returned %s after the interruption", took)
	}

	var failure *NotReadyError
	if !errors.As(err, &failure) || failure != s.Failure() || !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, %v", err, s.Failure())
	}

	if text := failure.Error(); !strings.HasPrefix(text, "interrupted: Deployment "+namespace+"/web: ") {
		t.Error(text)
	}

	if got := status(t, f, namespace, "web"); got != helmrelease.StatusFailed {
		t.Errorf("the release is recorded as %s", got)
	}

	must(t, s.RecordError())
	idle(t)
}

func TestSession_nothingIsAskedAfterGrace(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	namespace := f.cluster.Namespace(t)

	ctx, cancel := context.WithCancel(t.Context())
	s := f.open(t, ctx, Options{Namespace: namespace, Grace: 50 * time.Millisecond})
	configuration := s.Configuration()

	cancel()
	soon(t, func(context.Context) error {
		if _, err := configuration.Releases.Deployed("probe"); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("it still asks: %w", err)
		}

		return nil
	})

	if _, err := install(s, "web").Run(templates(configMap("a")), nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	if err := configuration.Releases.Create(
		&helmrelease.Release{Name: "web", Version: 1, Info: &helmrelease.Info{}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	if err := s.RecordError(); !errors.Is(err, context.Canceled) {
		t.Errorf("that nothing was recorded is forgotten: %v", err)
	}

	// The last probe was sent, and may be answered now.
	if after := f.count(func(r request) bool { return !strings.Contains(r.query, "probe") }); after != 0 {
		t.Errorf("%d requests after the grace", after)
	}
}

func TestWait_timeoutNamesWhatIsNotReady(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	namespace := f.cluster.Namespace(t)
	s := f.open(t, t.Context(), Options{Namespace: namespace, Redact: func(text string) string {
		return strings.ReplaceAll(text, "stuck", "(secret)")
	}})

	i := install(s, "web")
	i.Timeout = 15 * time.Second

	_, err := i.Run(templates(configMap("a"), deployment("fine", ""),
		deployment("stuck", "kubetest/fail: \"exit code 3: no such table\"")), nil)

	var failure *NotReadyError
	if !errors.As(err, &failure) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}

	if len(failure.Objects) != 1 || !strings.HasPrefix(failure.Objects[0].Text, "Deployment "+namespace+"/(secret)") {
		t.Errorf("%q", failure.Objects)
	}

	// The second line is the end of the log of the pod.
	if text := failure.Objects[0].Text; !strings.Contains(text, "\nno such table") {
		t.Error(text)
	}

	if text := failure.Error(); !strings.HasPrefix(text, "timed out after 15s: Deployment ") || strings.Contains(text, "\n") {
		t.Error(text)
	}

	if got := status(t, f, namespace, "web"); got != helmrelease.StatusFailed {
		t.Errorf("the release is recorded as %s", got)
	}
}

func TestReady_daemonSetWithoutReadyPod(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	namespace := f.cluster.Namespace(t)
	s := f.open(t, t.Context(), Options{Namespace: namespace})

	i := install(s, "net")
	i.Timeout = 10 * time.Second

	// One node, and one pod that may be unavailable: that is all of them.
	set := strings.Replace(deployment("net", "kubetest/never-ready: \"true\""), "kind: Deployment", "kind: DaemonSet", 1)

	_, err := i.Run(templates(set), nil)

	var failure *NotReadyError
	if !errors.As(err, &failure) || len(failure.Objects) != 1 ||
		!strings.HasPrefix(failure.Objects[0].Text, "DaemonSet "+namespace+"/net: ") {
		t.Fatal(err)
	}
}

func TestWait_outlastsAPIThatIsAway(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	namespace := f.cluster.Namespace(t)
	s := f.open(t, t.Context(), Options{Namespace: namespace})
	away := make(chan struct{})

	go func() {
		begun(t, f, namespace, "web")

		var refused atomic.Int32

		f.fail(func(w http.ResponseWriter, _ *http.Request) bool {
			n := refused.Add(1)
			if n > 5 {
				return false
			}

			if n == 5 {
				close(away)
			}

			w.WriteHeader(http.StatusServiceUnavailable)

			return true
		})
	}()

	_, err := install(s, "web").Run(templates(deployment("web", "kubetest/delay: 3s")), nil)
	must(t, err)

	select {
	case <-away:
	default:
		t.Error("the API was never away")
	}
}

func TestWait_namesAPIThatStaysAway(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	namespace := f.cluster.Namespace(t)
	s := f.open(t, t.Context(), Options{Namespace: namespace})

	list, err := s.client().Build(strings.NewReader(deployment("web", "")), false)
	must(t, err)

	// Troubles are not to be had either.
	f.Close()

	err = s.client().Wait(list, 5*time.Second)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
}

func TestWait_endsWithNamespace(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	namespace := f.cluster.Namespace(t)
	s := f.open(t, t.Context(), Options{Namespace: namespace})

	go func() {
		begun(t, f, namespace, "web")

		if err := f.cluster.API().CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}()

	i := install(s, "web")
	i.Timeout = time.Hour

	_, err := i.Run(templates(deployment("web", "kubetest/hang: \"true\"")), nil)
	if err == nil || !strings.Contains(err.Error(), "the namespace "+namespace+" is ") {
		t.Error(err)
	}
}

func TestWaitForDelete_namesFinalizers(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	namespace := f.cluster.Namespace(t)
	s := f.open(t, t.Context(), Options{Namespace: namespace})
	c := s.client()

	held := strings.Replace(configMap("held"), "name: held", "name: held, finalizers: [example.com/hold]", 1)

	list, err := c.Build(strings.NewReader(held), true)
	must(t, err)

	_, err = c.Create(list)
	must(t, err)

	_, errs := c.Delete(list)
	must(t, errors.Join(errs...))

	err = c.WaitForDelete(list, 3*time.Second)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "example.com/hold") {
		t.Error(err)
	}

	// The next one of that name is another object.
	maps := f.cluster.API().CoreV1().ConfigMaps(namespace)
	_, err = maps.Patch(t.Context(), "held", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{})
	must(t, err)

	list, err = c.Build(strings.NewReader(configMap("held")), true)
	must(t, err)

	_, err = c.Create(list)
	must(t, err)
	must(t, c.WaitForDelete(list, time.Minute))
}

func TestWait_refusalEnds(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	s := f.open(t, t.Context(), Options{Namespace: f.cluster.Namespace(t)})

	list, err := s.client().Build(strings.NewReader(deployment("web", "")), false)
	must(t, err)

	f.fail(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)

		return true
	})

	err = s.client().Wait(list, time.Hour)
	if err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, api.ErrNoAnswer) {
		t.Error(err)
	}
}
