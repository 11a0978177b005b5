package registry

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/empty"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

type answer struct {
	exists bool
	// fails is a part of the error; empty for none.
	fails string
}

func (want answer) check(ctx context.Context, t *testing.T, reference string, o Options) {
	t.Helper()

	exists, err := Exists(ctx, reference, o)

	switch {
	case exists != want.exists, (err != nil) != (want.fails != ""):
		t.Errorf("%s: exists %v, %v; want %+v", reference, exists, err, want)
	case err != nil && !strings.Contains(err.Error(), want.fails):
		t.Errorf("%s: %v, want %q", reference, err, want.fails)
	case err != nil && (strings.Contains(err.Error(), password) || len(err.Error()) > 600):
		t.Errorf("%s: the error is not to be shown: %v", reference, err)
	}
}

func TestExistsAsTheRegistrySays(t *testing.T) {
	s := newSite(t, false, nil)
	o := Options{Registries: trusted(s)}

	digest, err := empty.Image.Digest()
	if err != nil {
		t.Fatal(err)
	}

	for image, want := range map[string]answer{
		"/kube-apiserver:v1.36.3":                             {exists: true},
		"/kube-apiserver:v1.36.4":                             {},
		"/kube-apiserver":                                     {}, // latest
		"/kubelet:v1.36.3":                                    {},
		"/kube-apiserver@sha256:" + strings.Repeat("0", 64):   {},
		"/kube-apiserver:v1.36.4@" + digest.String():          {exists: true},
		"/kube-apiserver:v1.36.3@sha256:" + "not hexadecimal": {fails: "invalid image reference"},
	} {
		want.check(t.Context(), t, s.host()+image, o)
	}
}

// Nothing but the word of a registry says that an image does not exist.
func TestExistsDoesNotKnow(t *testing.T) {
	page := "<html>" + strings.Repeat("nothing here ", 100)

	for name, test := range map[string]struct {
		before func(http.Handler) http.Handler
		want   answer
	}{
		"an error of the server":  {answers(http.StatusInternalServerError, page), answer{fails: "it answered 500 Internal Server Error"}},
		"a limit":                 {answers(http.StatusTooManyRequests, `{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}`), answer{fails: "it answered 429"}},
		"forbidden":               {answers(http.StatusForbidden, `{"errors":[{"code":"DENIED","message":"no"}]}`), answer{fails: "it answered 403"}},
		"no registry":             {answers(http.StatusNotFound, page), answer{fails: "it answered 404 Not Found"}},
		"another kind of nothing": {answers(http.StatusNotFound, `{"errors":[{"code":"UNSUPPORTED","message":"what"}]}`), answer{fails: "(UNSUPPORTED: what)"}},
		"a known kind of nothing": {answers(http.StatusNotFound, `{"errors":[{"code":"NAME_UNKNOWN","message":"repository name not known"}]}`), answer{}},
		"no HEAD": {func(images http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead {
					w.WriteHeader(http.StatusMethodNotAllowed)

					return
				}

				images.ServeHTTP(w, r)
			})
		}, answer{exists: true}},
		"a HEAD without headers": {func(images http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodHead {
					images.ServeHTTP(w, r)
				}
			})
		}, answer{exists: true}},
		"a cut connection": {func(http.Handler) http.Handler {
			return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		}, answer{fails: "EOF"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, false, test.before)
			test.want.check(t.Context(), t, s.host()+"/kube-apiserver:v1.36.3", Options{Registries: trusted(s)})

			// Once for what it speaks, once with HEAD and perhaps once with GET: nothing is tried again.
			if asked := s.requests(); len(asked) > 3 {
				t.Errorf("it was asked %q", asked)
			}
		})
	}
}

func TestExistsUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}

	answer{fails: "connection refused"}.check(t.Context(), t, listener.Addr().String()+"/kubelet:v1", Options{})

	silent := newSite(t, false, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	})

	start := time.Now()

	answer{fails: "deadline exceeded"}.check(t.Context(), t, silent.host()+"/kubelet:v1", Options{Registries: trusted(silent), Timeout: 100 * time.Millisecond})

	if took := time.Since(start); took > DefaultTimeout {
		t.Errorf("it took %s", took)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	answer{fails: "canceled"}.check(ctx, t, silent.host()+"/kubelet:v1", Options{Registries: trusted(silent)})
}

func TestExistsKnowsWhomItTrusts(t *testing.T) {
	s := newSite(t, false, nil)
	reference := s.host() + "/kube-apiserver:v1.36.3"

	answer{fails: "certificate"}.check(t.Context(), t, reference, Options{})

	// Not even a registry nearby is asked without encryption.
	plain := newSite(t, true, nil)
	answer{fails: "HTTP response to HTTPS client"}.check(t.Context(), t, plain.host()+"/kube-apiserver:v1.36.3", Options{})

	if asked := plain.requests(); len(asked) > 0 {
		t.Errorf("it was asked %q", asked)
	}

	broken := trusted(s)
	broken.TLS[s.host()] = machineconfig.RegistryTLS{CA: "not PEM"}
	answer{fails: "its CA is no certificate"}.check(t.Context(), t, reference, Options{Registries: broken})

	careless := trusted(s)
	careless.TLS[s.host()] = machineconfig.RegistryTLS{InsecureSkipVerify: true}
	answer{exists: true}.check(t.Context(), t, reference, Options{Registries: careless})
}

func TestExistsShowsItsCertificate(t *testing.T) {
	s := newSite(t, false, func(images http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if len(r.TLS.PeerCertificates) == 0 {
				w.WriteHeader(http.StatusForbidden)

				return
			}

			images.ServeHTTP(w, r)
		})
	})
	s.TLS.ClientAuth = tls.RequestClientCert

	registries := trusted(s)
	reference := s.host() + "/kube-apiserver:v1.36.3"

	answer{fails: "it answered 403"}.check(t.Context(), t, reference, Options{Registries: registries})

	settings := registries.TLS[s.host()]
	settings.ClientCertificate, settings.ClientKey = settings.CA, "not PEM "+password
	registries.TLS[s.host()] = settings
	answer{fails: "read its client certificate"}.check(t.Context(), t, reference, Options{Registries: registries})

	settings.ClientKey = keyOf(t, s)
	registries.TLS[s.host()] = settings
	answer{exists: true}.check(t.Context(), t, reference, Options{Registries: registries})
}

func TestExistsWithCredentials(t *testing.T) {
	for name, before := range map[string]func(http.Handler) http.Handler{"basic": basicAuth, "token": tokenAuth} {
		for kind, test := range map[string]struct {
			auth machineconfig.RegistryAuth
			ok   bool
		}{
			"nobody":           {},
			"a wrong password": {auth: machineconfig.RegistryAuth{Username: "puller", Password: "other"}},
			"a password":       {auth: machineconfig.RegistryAuth{Username: "puller", Password: password}, ok: true},
			"a raw string":     {auth: machineconfig.RegistryAuth{Auth: "cHVsbGVyOmh1bnRlcjJodW50ZXIy"}, ok: true},
			"an identity":      {auth: machineconfig.RegistryAuth{IdentityToken: password}, ok: name == "token"},
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				s := newSite(t, false, before)

				registries := trusted(s)
				if kind != "nobody" {
					registries.Auth[s.host()] = test.auth
				}

				have, lack := answer{exists: true}, answer{}
				if !test.ok {
					have, lack = answer{fails: "it answered 401"}, answer{fails: "it answered 401"}
				}

				have.check(t.Context(), t, s.host()+"/kube-apiserver:v1.36.3", Options{Registries: registries})
				lack.check(t.Context(), t, s.host()+"/kube-apiserver:v1.36.4", Options{Registries: registries})
			})
		}
	}
}

// Credentials of one registry are for nobody else.
func TestExistsKeepsCredentialsTogether(t *testing.T) {
	other := newSite(t, false, func(images http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				t.Error("credentials of another registry")
			}

			images.ServeHTTP(w, r)
		})
	})
	first := newSite(t, false, basicAuth)

	registries := mirrored(first, other)
	registries.Auth[first.host()] = machineconfig.RegistryAuth{Username: "puller", Password: password}
	registries.Auth["registry.test"] = registries.Auth[first.host()]

	answer{}.check(t.Context(), t, "registry.test/kubelet:v1", Options{Registries: registries})

	if len(other.requests()) == 0 {
		t.Error("the second mirror was not asked")
	}
}

func TestExistsAsksMirrorsInOrder(t *testing.T) {
	const image = "registry.test/kube-apiserver:v1.36.3"

	full, lacking := newSite(t, false, nil), newSite(t, false, answers(http.StatusNotFound, `{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`))
	broken, plain := newSite(t, false, answers(http.StatusBadGateway, "")), newSite(t, true, nil)

	for name, test := range map[string]struct {
		mirrors []*site
		want    answer
		unasked *site
	}{
		"the first has it":           {[]*site{full, broken}, answer{exists: true}, broken},
		"the second has it":          {[]*site{lacking, full}, answer{exists: true}, nil},
		"one that answers has it":    {[]*site{broken, full}, answer{exists: true}, nil},
		"none has it":                {[]*site{lacking, lacking}, answer{}, nil},
		"one does not say":           {[]*site{broken, lacking}, answer{fails: broken.host() + ": it answered 502"}, nil},
		"the other one does not say": {[]*site{lacking, broken}, answer{fails: broken.host() + ": it answered 502"}, nil},
		"without encryption":         {[]*site{plain}, answer{exists: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range []*site{full, lacking, broken, plain} {
				s.requests()
			}

			test.want.check(t.Context(), t, image, Options{Registries: mirrored(test.mirrors...)})

			if test.unasked != nil {
				if asked := test.unasked.requests(); len(asked) > 0 {
					t.Errorf("a mirror was asked in vain: %q", asked)
				}
			}
		})
	}

	// The mirror of all is asked for registries that have none of their own.
	registries := mirrored(full)
	registries.Mirrors["*"] = registries.Mirrors["registry.test"]
	registries.Mirrors["registry.test"] = machineconfig.RegistryMirror{Endpoints: []machineconfig.RegistryEndpoint{{URL: lacking.URL}}, SkipFallback: true}
	registries.TLS[lacking.host()] = machineconfig.RegistryTLS{InsecureSkipVerify: true}

	answer{}.check(t.Context(), t, image, Options{Registries: registries})
	answer{exists: true}.check(t.Context(), t, "other.test/kube-apiserver:v1.36.3", Options{Registries: registries})

	// After the mirrors comes the registry itself, unless they exclude it.
	itself := trusted(full, lacking)
	itself.Mirrors[full.host()] = machineconfig.RegistryMirror{Endpoints: []machineconfig.RegistryEndpoint{{URL: lacking.URL}}}
	answer{exists: true}.check(t.Context(), t, full.host()+"/kube-apiserver:v1.36.3", Options{Registries: itself})

	full.requests()

	itself.Mirrors[full.host()] = machineconfig.RegistryMirror{Endpoints: []machineconfig.RegistryEndpoint{{URL: full.URL}}, SkipFallback: true}
	answer{exists: true}.check(t.Context(), t, full.host()+"/kube-apiserver:v1.36.3", Options{Registries: itself})

	if asked := full.requests(); strings.Contains(asked[len(asked)-1], "?ns=") {
		t.Errorf("a registry is taken for a mirror of itself: %q", asked)
	}

	itself.Mirrors[full.host()] = machineconfig.RegistryMirror{SkipFallback: true}
	answer{fails: "neither mirrors nor a fallback"}.check(t.Context(), t, full.host()+"/kube-apiserver:v1.36.3", Options{Registries: itself})
}

func TestExistsBelowOtherPaths(t *testing.T) {
	for name, test := range map[string]struct {
		path, served string
		override     bool
		before       func(http.Handler) http.Handler
	}{
		"a path":                       {path: "/hub/", served: "/hub/v2"},
		"a path that ends in the API":  {path: "/hub/v2", served: "/hub/v2"},
		"a path as it is":              {path: "/v2/hub", served: "/v2/hub", override: true},
		"a path without the API":       {path: "/hub", served: "/hub", override: true},
		"no path":                      {path: "", served: "", override: true},
		"a path as it is, for members": {path: "/v2/hub", served: "/v2/hub", override: true, before: tokenAuth},
		"a path, for members":          {path: "/hub", served: "/hub/v2", before: basicAuth},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, false, func(images http.Handler) http.Handler {
				images = below(test.served, !test.override)(images)
				if test.before != nil {
					images = test.before(images)
				}

				return images
			})

			registries := trusted(s)
			registries.Auth[s.host()] = machineconfig.RegistryAuth{Username: "puller", Password: password}
			registries.Mirrors["docker.io"] = machineconfig.RegistryMirror{
				Endpoints: []machineconfig.RegistryEndpoint{{URL: s.URL + test.path, OverridePath: test.override}}, SkipFallback: true,
			}

			answer{exists: true}.check(t.Context(), t, "nginx:v1.36.3", Options{Registries: registries})

			asked := s.requests()
			if diff := cmp.Diff("HEAD "+test.served+"/library/nginx/manifests/v1.36.3?ns=docker.io", asked[len(asked)-1]); diff != "" {
				t.Errorf("asked %q:\n%s", asked, diff)
			}

			answer{}.check(t.Context(), t, "docker.io/nginx:v1.36.4", Options{Registries: registries})
		})
	}
}

func TestEndpointsWithoutMirrors(t *testing.T) {
	for registry, want := range map[string]string{
		"docker.io": "https://registry-1.docker.io/v2", "registry.k8s.io": "https://registry.k8s.io/v2", "r.test:5000": "https://r.test:5000/v2",
	} {
		endpoints, err := endpointsOf(registry, machineconfig.Registries{})
		if err != nil || len(endpoints) != 1 || endpoints[0].url.String() != want || endpoints[0].namespace != "" {
			t.Errorf("%s: %+v, %v", registry, endpoints, err)
		}
	}

	bad := machineconfig.Registries{Mirrors: map[string]machineconfig.RegistryMirror{
		"*": {Endpoints: []machineconfig.RegistryEndpoint{{URL: "https://u:" + password + "@h:x/"}}},
	}}
	answer{fails: "a mirror of r.test is no URL"}.check(t.Context(), t, "r.test/a:b", Options{Registries: bad})
}
