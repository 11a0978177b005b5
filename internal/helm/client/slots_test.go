package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// TestSlots_twentyReleasesThatWait: the pods of nineteen need a service account that the
// twentieth brings, which begins when the others have all slots and wait.
func TestSlots_twentyReleasesThatWait(t *testing.T) {
	t.Parallel()

	const addons = 20

	f := newFront(t)
	api := f.client(t)
	namespace := f.cluster.Namespace(t)
	slots := NewSlots(2)

	var (
		group   errgroup.Group
		waiting sync.WaitGroup
	)

	waiting.Add(addons - 1)

	run := func(name, manifest string) error {
		s, err := Open(t.Context(), api, Options{Namespace: namespace, Slots: slots, Pause: 200 * time.Millisecond})
		if err != nil {
			return err
		}

		defer s.Close()

		return s.Work(func() error {
			_, err := install(s, name).Run(templates(manifest), nil)

			return err
		})
	}

	for n := range addons - 1 {
		name := fmt.Sprintf("early-%d", n)

		group.Go(func() error {
			return run(name, strings.Replace(deployment(name, ""), "containers:", "serviceAccountName: late, containers:", 1))
		})
		group.Go(func() error {
			defer waiting.Done()

			begun(t, f, namespace, name)

			return nil
		})
	}

	waiting.Wait()
	group.Go(func() error { return run("late", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: late}\n") })
	must(t, group.Wait())

	kinds := func(r request) bool { return r.path == "/api" || r.path == "/apis" }
	whole := f.count(func(r request) bool { return kinds(r) && r.status == http.StatusOK })
	unchanged := f.count(func(r request) bool { return kinds(r) && r.status == http.StatusNotModified })
	all := f.count(func(request) bool { return true })

	t.Logf("%d requests; the lists of kinds %d times as a whole, %d times unchanged", all, whole, unchanged)

	// Sessions that begin at the same time may all be the first.
	if whole > 2*2 {
		t.Errorf("the lists of kinds came %d times", whole)
	}

	if n := f.count(func(r request) bool {
		return strings.HasPrefix(r.path, "/openapi") || strings.Contains(r.path, "customresourcedefinitions")
	}); n > 0 {
		t.Errorf("%d requests for schemas", n)
	}
}

func TestSlots_workEndsWithContext(t *testing.T) {
	t.Parallel()

	slots := NewSlots(1)
	busy, stuck := place{slots: slots}, place{slots: slots}

	ctx, cancel := context.WithCancel(t.Context())

	err := busy.during(t.Context(), func() error {
		cancel()

		return stuck.during(ctx, func() error { return errors.New("worked without a slot") })
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	// Within work there is no second slot, and in a wait none.
	err = busy.during(t.Context(), func() error {
		return busy.during(t.Context(), func() error {
			return busy.without(t.Context(), func() error { return stuck.during(t.Context(), func() error { return nil }) })
		})
	})
	must(t, err)

	// A wait whose context ended continues without a slot, and the slot is free afterwards.
	ctx, cancel = context.WithCancel(t.Context())

	err = stuck.during(ctx, func() error {
		return stuck.without(ctx, func() error {
			cancel()

			return nil
		})
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	must(t, busy.during(t.Context(), func() error { return nil }))
}
