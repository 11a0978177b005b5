package chart

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Credentials go to the repository's server alone, whether the package is elsewhere or a redirect leads there.
func TestCredentials_stayWithTheirServer(t *testing.T) {
	main, other := serve(t), serve(t)
	main.user, main.password = testUser, testPassword
	content := packed(t, simple("web", "1.0.0"))
	otherURL := newPlainServer(t, other)
	main.publish(t, otherURL, map[string][]byte{"web-1.0.0.tgz": content})
	other.put("/web-1.0.0.tgz", content)
	var authorized bool
	other.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		_, _, authorized = r.BasicAuth()
		return false
	})
	main.put("/moved.tgz", content)
	main.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/moved.tgz" {
			http.Redirect(w, r, otherURL+"/web-1.0.0.tgz", http.StatusFound)
			return true
		}
		return false
	})
	from := Source{Repository: main.URL, Chart: "web", Username: testUser, Password: testPassword, CA: main.CA}
	moved := from
	moved.Repository, moved.Chart = "", main.URL+"/moved.tgz"
	for _, pass := range []bool{false, true} {
		for _, from := range []Source{from, moved} {
			from.PassCredentials = pass
			p, err := newStore(t, Options{}).Fetch(t.Context(), from)
			installable(t, p, err, "web", "1.0.0")
			if authorized != pass {
				t.Errorf("pass_credentials %v: the other server got credentials: %v", pass, authorized)
			}
		}
	}
}

func TestCredentials_repository(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	s.user, s.password = testUser, testPassword
	content := packed(t, simple("web", "1.0.0"))
	s.publish(t, "", map[string][]byte{"web-1.0.0.tgz": content})
	from := s.of("web", "")
	_, err := store.Resolve(t.Context(), from)
	if !errors.Is(err, ErrCredentials) || errors.Is(err, ErrUnreachable) {
		t.Error(err)
	}
	texts(t, err, "127.0.0.1", "401", "requires credentials")
	from.Username, from.Password = testUser, testPassword+"x"
	_, err = store.Resolve(t.Context(), from)
	if !errors.Is(err, ErrCredentials) {
		t.Error(err)
	}
	texts(t, err, "rejects the given credentials")
	from.Password = testPassword
	p, err := store.Fetch(t.Context(), from)
	installable(t, p, err, "web", "1.0.0")
	// What one was given is not given to one without the right.
	from.Password = ""
	if _, err = store.Fetch(t.Context(), from); !errors.Is(err, ErrCredentials) {
		t.Error(err)
	}
}

func TestCredentials_inURLs(t *testing.T) {
	store := newStore(t, Options{})
	for _, from := range []Source{
		{Repository: "https://u:" + testPassword + "@charts.example.com", Chart: "web"},
		{Repository: "https://u:secret@charts.example.com", Chart: "web"},
		{Chart: "https://u:secret@charts.example.com/web-1.0.0.tgz"},
		{Chart: "oci://u:secret@charts.example.com/web:1.0.0"},
	} {
		_, err := store.Resolve(t.Context(), from)
		if !errors.Is(err, ErrNoChart) {
			t.Error(err)
		}
		texts(t, err)
		if strings.Contains(err.Error(), "secret@") || strings.Contains(err.Error(), "pa:ss") {
			t.Errorf("the password is in: %v", err)
		}
	}
}

func TestCredentials_registry(t *testing.T) {
	s, store := serveRegistry(t), newStore(t, Options{})
	s.push(t, "web:1.0.0", packed(t, simple("web", "1.0.0")))
	from := s.of("web", "1.0.0")
	from.Username, from.Password = "", ""
	_, err := store.Resolve(t.Context(), from)
	if !errors.Is(err, ErrCredentials) || errors.Is(err, ErrUnreachable) {
		t.Error(err)
	}
	texts(t, err, s.host(), "credentials")
	from.Username, from.Password = testUser, testPassword+"x"
	_, err = store.Resolve(t.Context(), from)
	if !errors.Is(err, ErrCredentials) {
		t.Error(err)
	}
	texts(t, err, s.host(), "401")
}

// Without given credentials, those that helm registry login or docker login left are taken.
func TestCredentials_registryFromFiles(t *testing.T) {
	s := serveRegistry(t)
	content := packed(t, simple("web", "1.0.0"))
	s.push(t, "web:1.0.0", content)
	from := s.of("web", "1.0.0")
	from.Username, from.Password = "", ""
	file := func(t *testing.T, name string) string {
		t.Helper()
		auth := base64.StdEncoding.EncodeToString([]byte(testUser + ":" + testPassword))
		text := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, s.host(), auth)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for kind, prepare := range map[string]func(t *testing.T, folder string) Options{
		"option": func(t *testing.T, folder string) Options {
			t.Helper()
			return Options{RegistryConfig: file(t, filepath.Join(folder, "given.json"))}
		},
		"HELM_REGISTRY_CONFIG": func(t *testing.T, folder string) Options {
			t.Helper()
			t.Setenv("HELM_REGISTRY_CONFIG", file(t, filepath.Join(folder, "helm.json")))
			return Options{}
		},
		"helm's folder": func(t *testing.T, _ string) Options {
			t.Helper()
			file(t, filepath.Join(os.Getenv("HELM_CONFIG_HOME"), "registry", "config.json"))
			return Options{}
		},
		"docker's folder": func(t *testing.T, folder string) Options {
			t.Helper()
			t.Setenv("DOCKER_CONFIG", folder)
			file(t, filepath.Join(folder, "config.json"))
			return Options{}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			newStore(t, Options{})
			store := NewStore(prepare(t, t.TempDir()))
			p, err := store.Fetch(t.Context(), from)
			installable(t, p, err, "web", "1.0.0")
		})
	}
}

// Most registries require a token, which they issue for credentials, and many store content on other servers.
func TestCredentials_registryTokensAndBlobStore(t *testing.T) {
	const token = "a-token-for-web"
	oci, elsewhere := serveRegistry(t), serve(t)
	content := packed(t, simple("web", "1.0.0"))
	oci.push(t, "web:1.0.0", content)
	elsewhere.put("/content", content)
	elsewhereURL := newPlainServer(t, elsewhere)
	var leaked string
	elsewhere.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		leaked = r.Header.Get("Authorization")
		return false
	})
	oci.answer(func(w http.ResponseWriter, r *http.Request) bool {
		switch user, pass, basic := r.BasicAuth(); {
		case r.URL.Path == "/token" && basic && user == testUser && pass == testPassword:
			fmt.Fprintf(w, `{"token":%q}`, token)
		case r.URL.Path == "/token":
			w.WriteHeader(http.StatusForbidden)
		case r.Header.Get("Authorization") != "Bearer "+token:
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+oci.URL+`/token",service="test"`)
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasSuffix(r.URL.Path, digestOf(content)):
			http.Redirect(w, r, elsewhereURL+"/content", http.StatusTemporaryRedirect)
		default:
			oci.handler.ServeHTTP(w, r)
		}
		return true
	})
	from := oci.of("web", "")
	for _, pass := range []bool{false, true} {
		from.PassCredentials = pass
		p, err := newStore(t, Options{}).Fetch(t.Context(), from)
		installable(t, p, err, "web", "1.0.0")
		if leaked != "" {
			t.Errorf("the other store got %q", leaked)
		}
	}
	from.Password += "x"
	_, err := newStore(t, Options{}).Resolve(t.Context(), from)
	if !errors.Is(err, ErrCredentials) {
		t.Error(err)
	}
	texts(t, err, oci.host(), "403")
}

// A credential helper that fails is named.
func TestCredentials_registryUnreadable(t *testing.T) {
	oci := serveRegistry(t)
	newStore(t, Options{})
	file := filepath.Join(t.TempDir(), "config.json")
	write(t, file, `{"credHelpers":{"`+oci.host()+`":"there-is-no-such-program"}}`)
	from := oci.of("web", "")
	from.Username, from.Password = "", ""
	_, err := NewStore(Options{RegistryConfig: file}).Resolve(t.Context(), from)
	if !errors.Is(err, ErrCredentials) {
		t.Error(err)
	}
	texts(t, err, "there-is-no-such-program", oci.host())
	write(t, file, `{`)
	_, err = NewStore(Options{RegistryConfig: file}).Resolve(t.Context(), from)
	texts(t, err, file)
	write(t, file, "")
	if _, err = NewStore(Options{RegistryConfig: file}).Resolve(t.Context(), from); !errors.Is(err, ErrCredentials) {
		t.Error(err)
	}
}
