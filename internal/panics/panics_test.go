package panics_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

func mistake(values []string) error {
	_ = values[len(values)]

	return nil
}

func TestDo_namesFunctionsAndNoValues(t *testing.T) {
	t.Parallel()

	if err := panics.Do(func() error { return nil }); err != nil {
		t.Error(err)
	}

	mine := errors.New("mine")
	if err := panics.Do(func() error { return mine }); !errors.Is(err, mine) {
		t.Error(err)
	}

	for name, test := range map[string]struct {
		work func()
		text []string
	}{
		"index": {func() { _ = mistake(nil) }, []string{"runtime.boundsError", "panics_test.mistake"}},
		"text":  {func() { panic("swordfish") }, []string{"string", "panics_test.TestDo"}},
		"error": {func() { panic(errors.New("swordfish")) }, []string{"errors.errorString"}},
	} {
		err := panics.Call(test.work)

		var e *panics.Error
		if !errors.As(err, &e) {
			t.Fatalf("%s: %v", name, err)
		}

		for _, text := range test.text {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q is not in %v", name, text, err)
			}
		}

		if strings.Contains(err.Error(), "swordfish") || strings.HasPrefix(e.Functions[0], "panics.") {
			t.Errorf("%s: it is %v", name, err)
		}
	}
}

// A panic beside others is that of who waits, once all are done.
func TestGroup_panicsWhereItIsWaitedFor(t *testing.T) {
	t.Parallel()

	ended := false
	err := panics.Do(func() error {
		group, ctx := panics.WithContext(context.Background())
		group.SetLimit(4)
		group.Go(func() error { return mistake(nil) })
		group.Go(func() error {
			<-ctx.Done()

			ended = true

			return ctx.Err()
		})

		_ = group.Wait()

		t.Error("it goes on")

		return nil
	})

	var e *panics.Error
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "panics_test.mistake") || !ended {
		t.Errorf("it is %v", err)
	}

	var group panics.Group

	mine := errors.New("mine")
	group.Go(func() error { return mine })

	if err := group.Wait(); !errors.Is(err, mine) {
		t.Error(err)
	}
}

// Work that knows no context is left when its context ends, and what it makes after that is dropped. A panic is its error.
func TestWithin_leavesWorkBehind(t *testing.T) {
	t.Parallel()

	none := func(int) { t.Error("what was given back was dropped") }

	if made, err := panics.Within(t.Context(), func() (int, error) { return 1, nil }, none); made != 1 || err != nil {
		t.Errorf("made %d, %v", made, err)
	}

	var e *panics.Error
	if _, err := panics.Within(t.Context(), func() (int, error) { panic("swordfish") }, none); !errors.As(err, &e) {
		t.Error(err)
	}

	late := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	goOn, dropped := make(chan struct{}), make(chan int)

	cancel(late)

	if made, err := panics.Within(ctx, func() (int, error) {
		<-goOn

		return 2, nil
	}, func(made int) { dropped <- made }); made != 0 || !errors.Is(err, late) {
		t.Errorf("made %d, %v", made, err)
	}

	close(goOn)

	if made := <-dropped; made != 2 {
		t.Errorf("dropped %d", made)
	}
}
