package registry

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	served "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

const password = "hunter2hunter2"

// site is a registry on loopback that has kube-apiserver:v1.36.3, and records what it is asked.
type site struct {
	*httptest.Server

	mu    sync.Mutex
	asked []string
}

// newSite serves a registry through what is put before it; nil is nothing.
func newSite(t *testing.T, plain bool, before func(http.Handler) http.Handler) *site {
	t.Helper()

	s := &site{}
	images := served.New(served.Logger(log.New(io.Discard, "", 0)))

	handler := images
	if before != nil {
		handler = before(images)
	}

	recorded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
		s.mu.Unlock()

		handler.ServeHTTP(w, r)
	})

	s.Server = httptest.NewUnstartedServer(recorded)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)

	if plain {
		s.Start()
	} else {
		s.StartTLS()
	}

	t.Cleanup(s.Close)

	// The image goes in by a way of its own, whatever is before the registry.
	in := httptest.NewServer(images)
	defer in.Close()

	for _, repository := range []string{"kube-apiserver", "library/nginx"} {
		reference, err := name.ParseReference(strings.TrimPrefix(in.URL, "http://") + "/" + repository + ":v1.36.3")
		if err != nil {
			t.Fatal(err)
		}

		if err := remote.Write(reference, empty.Image); err != nil {
			t.Fatal(err)
		}
	}

	return s
}

func (s *site) host() string { return s.Listener.Addr().String() }

// requests lists what was asked since the last time.
func (s *site) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	asked := s.asked
	s.asked = nil

	return asked
}

// trusted are settings that trust the certificates of sites.
func trusted(sites ...*site) machineconfig.Registries {
	r := machineconfig.Registries{Mirrors: map[string]machineconfig.RegistryMirror{}, Auth: map[string]machineconfig.RegistryAuth{}, TLS: map[string]machineconfig.RegistryTLS{}}

	for _, s := range sites {
		if certificate := s.Certificate(); certificate != nil {
			r.TLS[s.host()] = machineconfig.RegistryTLS{CA: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))}
		}
	}

	return r
}

// mirrored are settings by which only the sites are asked for registry.test, in their order.
func mirrored(sites ...*site) machineconfig.Registries {
	r := trusted(sites...)

	mirror := machineconfig.RegistryMirror{SkipFallback: true}
	for _, s := range sites {
		mirror.Endpoints = append(mirror.Endpoints, machineconfig.RegistryEndpoint{URL: s.URL})
	}

	r.Mirrors["registry.test"] = mirror

	return r
}

func answers(status int, body string) func(http.Handler) http.Handler {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v2/" {
				return
			}

			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
}

// basicAuth asks for a user and the password.
func basicAuth(images http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, secret, _ := r.BasicAuth(); user != "puller" || secret != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)

			return
		}

		images.ServeHTTP(w, r)
	})
}

// tokenAuth asks for a token that the same server gives out to those who know the password.
func tokenAuth(images http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, secret, _ := r.BasicAuth()

		switch {
		case r.URL.Path == "/token" && (user == "puller" && secret == password || r.PostFormValue("refresh_token") == password):
			_ = json.NewEncoder(w).Encode(map[string]string{"token": "t-" + password, "access_token": "t-" + password})
		case r.URL.Path == "/token":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Header.Get("Authorization") != "Bearer t-"+password:
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="https://%s/token",service="test"`, r.Host))
			w.WriteHeader(http.StatusUnauthorized)
		default:
			images.ServeHTTP(w, r)
		}
	})
}

// below serves the registry at another path, and nothing elsewhere. pings is whether there is more than images.
func below(prefix string, pings bool) func(http.Handler) http.Handler {
	return func(images http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rest, ok := strings.CutPrefix(r.URL.Path, prefix+"/")
			if !ok || rest == "" && !pings {
				http.NotFound(w, r)

				return
			}

			r.URL.Path = "/v2/" + rest
			images.ServeHTTP(w, r)
		})
	}
}

// keyOf is the key of the certificate of a site, which it may show to itself.
func keyOf(t *testing.T, s *site) string {
	t.Helper()

	encoded, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}

	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}
