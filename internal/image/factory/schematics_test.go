package factory_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/image/factory"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/factorytest"
)

// A schematic is read once, and its absence, too.
func TestSchematics_areRemembered(t *testing.T) {
	t.Parallel()

	f := factorytest.New(t)

	if _, err := (factory.Client{Base: f.URL, HTTP: f.Client()}).Upload(t.Context(),
		"customization: {systemExtensions: {officialExtensions: [siderolabs/qemu-guest-agent]}}"); err != nil {
		t.Fatal(err)
	}

	s := factory.NewSchematics(f.Client(), time.Minute)
	missing := strings.Repeat("0", 64)

	for range 2 {
		content, err := s.Read(t.Context(), f.URL, guestAgent)
		if got := fmt.Sprint(content.Customization.SystemExtensions.OfficialExtensions); err != nil ||
			got != "[siderolabs/qemu-guest-agent]" {
			t.Errorf("the extensions are %s, %v", got, err)
		}

		if _, err := s.Read(t.Context(), f.URL, missing); !errors.Is(err, factory.ErrNotFound) {
			t.Errorf("without content: %v", err)
		}
	}

	if got := f.Requests(); len(got) != 3 {
		t.Errorf("the requests are %q", got)
	}
}

// A server with other content than that of the ID is not believed.
func TestSchematics_areVerified(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("customization: {}\n"))
	}))
	t.Cleanup(server.Close)

	content, err := factory.NewSchematics(server.Client(), time.Minute).Read(t.Context(), server.URL, guestAgent)
	if err == nil || !strings.Contains(err.Error(), "another schematic") {
		t.Errorf("read %v, %v", content, err)
	}
}

// A factory that does not answer is asked once. A canceled request says nothing about it.
func TestSchematics_ofASilentFactory(t *testing.T) {
	t.Parallel()

	asked := make(chan struct{}, 10)

	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}

		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)

	s := factory.NewSchematics(server.Client(), 50*time.Millisecond)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("interrupted")
	cancel(reason)

	if _, err := s.Read(ctx, server.URL, guestAgent); !errors.Is(err, reason) {
		t.Errorf("canceled: %v", err)
	}

	for _, id := range []string{guestAgent, strings.Repeat("0", 64)} {
		if _, err := s.Read(t.Context(), server.URL, id); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", id, err)
		}
	}

	if len(asked) != 1 {
		t.Errorf("asked %d times", len(asked))
	}
}
