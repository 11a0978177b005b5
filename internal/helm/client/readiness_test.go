package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// await waits for objects of these names with a check of the test's, which is asked without a pause.
// The context it gets ends the wait as an interruption does.
func await(t *testing.T, ctx context.Context, check func(name string) (string, error), names ...string) error { //nolint:revive // t first
	t.Helper()

	var list kube.ResourceList

	for _, name := range names {
		list = append(list, &resource.Info{Name: name,
			Mapping: &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Thing"}}})
	}

	o := Options{Pause: time.Nanosecond}.withDefaults()
	s := &Session{ctx: ctx, o: o, api: &kubernetes.Client{}, place: place{slots: o.Slots}}

	return (&client{s: s}).await(list, 0, waiting{
		check: func(_ context.Context, info *resource.Info) (string, error) { return check(info.Name) },
	})
}

func TestWait_allReadyAtTheSameTime(t *testing.T) {
	t.Parallel()

	var asked []string

	must(t, await(t, t.Context(), func(name string) (string, error) {
		asked = append(asked, name)

		// a is ready until b is.
		switch n := len(asked); {
		case name == "a" && n == 1, n > 6:
			return "", nil
		case name == "b" && n == 4:
			return "", nil
		}

		return "not yet", nil
	}, "a", "b"))

	if want := []string{"a", "b", "b", "b", "a", "b", "a", "b"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %v", asked)
	}
}

func TestWait_noAnswerEndsPass(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())

	var asked []string

	err := await(t, ctx, func(name string) (string, error) {
		asked = append(asked, name)

		switch {
		case len(asked) >= 6:
			cancel()

			return "", context.Canceled
		case name == "b":
			return "", fmt.Errorf("%w: alas", api.ErrNoAnswer)
		}

		return "not yet", nil
	}, "a", "b", "c")

	// Whether the end is seen before the next pass is a matter of luck.
	if want := []string{"a", "b", "a", "b", "a", "b"}; !slices.Equal(asked[:6], want) {
		t.Errorf("asked for %v", asked)
	}

	if want := "interrupted: Thing a: not yet; Thing b: the Kubernetes API does not respond: alas; Thing c: the " +
		"Kubernetes API reported no status"; err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Error(err)
	}
}

func TestWait_permanentRefusalEnds(t *testing.T) {
	t.Parallel()

	things := schema.GroupResource{Resource: "things"}

	for _, test := range []struct {
		err  error
		ends bool
	}{
		{apierrors.NewForbidden(things, "a", nil), true},
		{apierrors.NewUnauthorized("who"), true},
		{apierrors.NewBadRequest("what"), true},
		{wait.Permanent(errors.New("it failed")), true},
		{apierrors.NewNotFound(things, "a"), false},
		{apierrors.NewTooManyRequests("later", 1), false},
		{apierrors.NewInternalError(errors.New("etcd")), false},
		{fmt.Errorf("%w: alas", api.ErrNoAnswer), false},
		{errors.New("whatever"), false},
	} {
		asked := 0

		err := await(t, t.Context(), func(string) (string, error) {
			if asked++; asked > 2 {
				return "", nil
			}

			return "", test.err
		}, "a")

		if ends := err != nil; ends != test.ends || ends && asked != 1 {
			t.Errorf("%v: asked %d times, %v", test.err, asked, err)
		}
	}
}

func TestErrors_causes(t *testing.T) {
	t.Parallel()

	late, cancel := context.WithTimeoutCause(t.Context(), 0, errors.New("not within 30m0s"))
	defer cancel()
	<-late.Done()

	interrupted, interrupt := context.WithCancelCause(t.Context())
	interrupt(errors.New("the lock is lost"))

	plain, stop := context.WithCancel(t.Context())
	stop()

	for _, test := range []struct {
		ctx  context.Context
		is   error
		text string
	}{
		{late, context.DeadlineExceeded, "not within 30m0s"},
		{interrupted, context.Canceled, "interrupted: the lock is lost"},
		{plain, context.Canceled, "interrupted"},
	} {
		err := &NotReadyError{Cause: ending(test.ctx)}
		if !errors.Is(err, test.is) || !errors.Is(err, context.Cause(test.ctx)) || err.Error() != test.text {
			t.Errorf("%v is not %v, %q", err, test.is, test.text)
		}
	}
}

func TestWait_phaseOfPod(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	s := f.open(t, t.Context(), Options{Namespace: f.cluster.Namespace(t)})
	c := s.client()

	list, err := c.Build(strings.NewReader(`
apiVersion: v1
kind: Pod
metadata: {name: check}
spec: {restartPolicy: Never, containers: [{name: check, image: "registry.example/check:1"}]}
`), true)
	must(t, err)

	_, err = c.Create(list)
	must(t, err)

	phase, err := c.WaitAndGetCompletedPodPhase("check", time.Minute)
	must(t, err)

	if phase != corev1.PodSucceeded {
		t.Error(phase)
	}
}
