package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestHook_ends(t *testing.T) {
	t.Parallel()

	const fails = `kubetest/fail: "exit code 3: no such table"`

	pod := func(annotation string) string {
		return `
apiVersion: v1
kind: Pod
metadata: {name: check, annotations: {helm.sh/hook: post-install, ` + annotation + `}}
spec: {restartPolicy: Never, containers: [{name: check, image: "registry.example/check:1"}]}
`
	}

	for name, test := range map[string]struct{ hook, fails string }{
		"Job": {hook: job("migrate", "pre-install", "", "")},
		"failing Job": {hook: job("migrate", "pre-install", "", fails),
			fails: "Job NS/migrate failed: BackoffLimitExceeded: "},
		"Job that is too slow": {hook: job("migrate", "post-install", "activeDeadlineSeconds: 1",
			`kubetest/hang: "true"`), fails: "DeadlineExceeded"},
		"Job that is gone": {hook: job("migrate", "pre-install", "ttlSecondsAfterFinished: 0", "")},
		"failing Job that is gone": {hook: job("migrate", "pre-install", "ttlSecondsAfterFinished: 0", fails),
			fails: "Job NS/migrate failed: BackoffLimitExceeded: "},
		"Pod":         {hook: pod("a: b")},
		"failing Pod": {hook: pod(fails), fails: "Pod NS/check failed"},
		"other": {hook: strings.Replace(configMap("a"), "name: a",
			"name: a, annotations: {helm.sh/hook: pre-install}", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := newFront(t)
			namespace := f.cluster.Namespace(t)
			s := f.open(t, t.Context(), Options{Namespace: namespace})

			_, err := install(s, "web").Run(templates(test.hook, configMap("plain")), nil)
			if test.fails == "" {
				must(t, err)

				return
			}

			failure := s.Failure()
			if err == nil || failure == nil || errors.Is(failure, context.DeadlineExceeded) {
				t.Fatalf("%v, %v", err, failure)
			}

			if want := strings.ReplaceAll(test.fails, "NS", namespace); !strings.Contains(failure.Cause.Error(), want) {
				t.Errorf("got %v, want %q in it", failure.Cause, want)
			}

			if got := status(t, f, namespace, "web"); got != helmrelease.StatusFailed {
				t.Errorf("the release is recorded as %s", got)
			}
		})
	}
}

// TestHook_jobVanishesUnseen: nothing was observed between their end and their deletion.
func TestHook_jobVanishesUnseen(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	namespace := f.cluster.Namespace(t)
	s := f.open(t, t.Context(), Options{Namespace: namespace})
	c := s.client()

	for name, fails := range map[string]bool{"well": false, "badly": true} {
		annotation := "a: b"
		if fails {
			annotation = `kubetest/fail: "exit code 3: no such table"`
		}

		list, err := c.Build(strings.NewReader(job(name, "pre-install", "ttlSecondsAfterFinished: 0", annotation)), true)
		must(t, err)

		_, err = c.Create(list)
		must(t, err)

		soon(t, func(ctx context.Context) error {
			_, err := f.cluster.API().BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}

			return fmt.Errorf("the Job is there: %w", err)
		})

		err = c.WatchUntilReady(list, time.Minute)
		if got := err != nil; got != fails || fails &&
			!strings.Contains(err.Error(), "Job "+namespace+"/badly failed: BackoffLimitExceeded") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWait_jobsWhenAsked(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	namespace := f.cluster.Namespace(t)
	s := f.open(t, t.Context(), Options{Namespace: namespace})

	failing := strings.Replace(job("seed", "x", "", `kubetest/fail: "exit code 3: no such table"`),
		", annotations: {helm.sh/hook: x}", "", 1)

	i := install(s, "patient")
	_, err := i.Run(templates(failing), nil)
	must(t, err)

	i = install(s, "impatient")
	i.WaitForJobs, i.Timeout = true, time.Hour

	_, err = i.Run(templates(strings.Replace(failing, "name: seed", "name: other", 1)), nil)
	if err == nil || !strings.Contains(err.Error(), "Job "+namespace+"/other failed: BackoffLimitExceeded") {
		t.Error(err)
	}
}

func TestHook_interruptedIsRecorded(t *testing.T) {
	t.Parallel()

	f := newFront(t)
	namespace := f.cluster.Namespace(t)

	ctx, cancel := context.WithCancel(t.Context())
	s := f.open(t, ctx, Options{Namespace: namespace})

	go func() {
		soon(t, func(ctx context.Context) error {
			return f.cluster.API().BatchV1().RESTClient().Get().Namespace(namespace).Resource("jobs").Name("migrate").Do(
				ctx).Error()
		})

		cancel()
	}()

	_, err := install(s, "web").Run(templates(job("migrate", "pre-install", "", `kubetest/hang: "true"`)), nil)
	if err == nil || !errors.Is(s.Failure(), context.Canceled) {
		t.Errorf("%v, %v", err, s.Failure())
	}

	if got := status(t, f, namespace, "web"); got != helmrelease.StatusFailed {
		t.Errorf("the release is recorded as %s", got)
	}

	idle(t)
}
