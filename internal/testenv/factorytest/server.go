// Package factorytest serves the part of an Image Factory that talosop asks, as docs/api.md of siderolabs/image-factory
// (v1.5.0) describes it: schematics, versions, extensions and kernel command lines. Tests only.
package factorytest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/image/schematic"
)

// Factory is a factory with some versions of Talos and some extensions.
type Factory struct {
	*httptest.Server

	// Owner is who every schematic belongs to, as in an Enterprise factory; empty for none.
	Owner string

	mu         sync.Mutex
	schematics map[string]string
	requests   []string
}

// Versions are the available versions.
var Versions = []string{"v1.12.4", "v1.13.0", "v1.13.2", "v1.14.0-rc.0", "v1.14.1"}

// Cmdline is the command line of every image.
const Cmdline = "talos.platform=metal console=tty0 from.the=factory"

var extensions = []map[string]string{
	{"name": "siderolabs/gvisor", "ref": "ghcr.io/siderolabs/gvisor:20240101.0", "digest": "sha256:aa", "author": "x",
		"description": "y"},
	{"name": "siderolabs/iscsi-tools", "ref": "ghcr.io/siderolabs/iscsi-tools:v0.2.0", "digest": "sha256:bb"},
	{"name": "siderolabs/qemu-guest-agent", "ref": "ghcr.io/siderolabs/qemu-guest-agent:10.0.2", "digest": "sha256:cc"},
}

// New serves a factory that knows plain Talos, until the test ends.
func New(tb testing.TB) *Factory {
	tb.Helper()

	f := &Factory{schematics: map[string]string{image.VanillaSchematic: "customization: {}\n"}}

	mux := http.NewServeMux()
	mux.HandleFunc("POST /schematics", f.upload)
	mux.HandleFunc("GET /schematics/{id}", f.schematic)
	mux.HandleFunc("GET /versions", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, Versions) })
	mux.HandleFunc("GET /version/{version}/extensions/official", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, extensions)
	})
	mux.HandleFunc("GET /image/{id}/{version}/{file}", f.image)

	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.requests = append(f.requests, r.Method+" "+r.URL.Path)
		f.mu.Unlock()

		mux.ServeHTTP(w, r)
	}))
	tb.Cleanup(f.Close)

	return f
}

// Requests are the requests to the factory, in order.
func (f *Factory) Requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()

	return append([]string(nil), f.requests...)
}

// Knows reports whether the factory was given a schematic.
func (f *Factory) Knows(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()

	_, ok := f.schematics[id]

	return ok
}

// upload decodes strictly, and answers the id of the canonical content with 201, or why it is none with 400.
func (f *Factory) upload(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)

		return
	}

	parsed, err := schematic.Parse(string(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)

		return
	}

	if f.Owner != "" {
		parsed.Owner = f.Owner
	}

	content, err := parsed.Content()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)

		return
	}

	id, err := parsed.ID()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)

		return
	}

	f.mu.Lock()
	f.schematics[id] = content
	f.mu.Unlock()

	answer(w, http.StatusCreated, map[string]string{"id": id, "schematic": content})
}

func (f *Factory) schematic(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	content, ok := f.schematics[r.PathValue("id")]
	f.mu.Unlock()

	if !ok {
		http.Error(w, "schematic not found", http.StatusNotFound)

		return
	}

	w.Header().Set("Content-Type", "application/yaml")
	_, _ = io.WriteString(w, content)
}

// image has command lines alone.
func (f *Factory) image(w http.ResponseWriter, r *http.Request) {
	if !f.Knows(r.PathValue("id")) {
		http.Error(w, "schematic not found", http.StatusNotFound)

		return
	}

	_, _ = io.WriteString(w, Cmdline+"\n")
}

func answer(w http.ResponseWriter, status int, content any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(content)
}
