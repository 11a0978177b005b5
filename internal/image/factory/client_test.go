package factory_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/image/factory"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/factorytest"
)

const guestAgent = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"

func TestClient_asks(t *testing.T) {
	t.Parallel()

	f := factorytest.New(t)
	c := factory.Client{Base: f.URL + "/", HTTP: f.Client()}

	if _, err := c.Schematic(t.Context(), guestAgent); !errors.Is(err, factory.ErrNotFound) {
		t.Errorf("an unknown schematic: %v", err)
	}

	id, err := c.Upload(t.Context(), "customization: {systemExtensions: {officialExtensions: [siderolabs/qemu-guest-agent]}}")
	if err != nil || id != guestAgent {
		t.Errorf("uploaded is %s, %v", id, err)
	}

	content, err := c.Schematic(t.Context(), guestAgent)
	if err != nil || !strings.Contains(content, "siderolabs/qemu-guest-agent") {
		t.Errorf("the content is %q, %v", content, err)
	}

	versions, err := c.Versions(t.Context())
	if diff := cmp.Diff(factorytest.Versions, versions); err != nil || diff != "" {
		t.Error(err, diff)
	}

	extensions, err := c.Extensions(t.Context(), "v1.13.0")
	if err != nil || len(extensions) != 3 ||
		extensions[0].Image() != "ghcr.io/siderolabs/gvisor:20240101.0@sha256:aa" {
		t.Errorf("extensions are %v, %v", extensions, err)
	}

	line, err := c.Cmdline(t.Context(), image.VanillaSchematic, "v1.13.0", "cmdline-metal-amd64")
	if err != nil || line != factorytest.Cmdline {
		t.Errorf("the command line is %q, %v", line, err)
	}
}

func TestClient_saysWhatWentWrong(t *testing.T) {
	t.Parallel()

	f := factorytest.New(t)
	c := factory.Client{Base: f.URL, HTTP: f.Client()}

	if _, err := c.Upload(t.Context(), "customization: {extensions: []}"); err == nil ||
		!strings.Contains(err.Error(), "upload schematic: 400 Bad Request: not a schematic") {
		t.Errorf("no schematic: %v", err)
	}

	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/versions" {
			http.Error(w, strings.Repeat("long ", 1000), http.StatusBadGateway)
		}

		if strings.HasPrefix(r.URL.Path, "/schematics/") {
			_, _ = w.Write(make([]byte, 5<<20))
		}
	}))
	t.Cleanup(other.Close)

	c.Base = other.URL

	for want, err := range map[string]error{
		"502 Bad Gateway: long long": second(c.Versions(t.Context())),
		"is an Image Factory":        second(c.Upload(t.Context(), "{}")),
		"the response is not a list": second(c.Extensions(t.Context(), "v1.13.0")),
		"too large after expansion":  second(c.Schematic(t.Context(), guestAgent)),
		"connection refused":         second(factory.Client{Base: "http://127.0.0.1:1", HTTP: f.Client()}.Versions(t.Context())),
		"parse factory URL: parse ":  second(factory.Client{Base: "http://[", HTTP: f.Client()}.Versions(t.Context())),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func second[T any](_ T, err error) error { return err }
