package api

import (
	"fmt"
	"strings"
	"testing"
)

// Whatever kubeconfig is given: no panic, nothing that is said of it holds its credentials, and one that has to bring
// them itself runs nothing and reads no file of its user. `go test -fuzz=FuzzKubeconfig ./internal/kubernetes/api`
// looks for more; findings stay in testdata/fuzz.

// largestFuzzed in bytes keeps one input from taking long.
const largestFuzzed = 64 << 10

func FuzzKubeconfig(f *testing.F) {
	const file = `{"apiVersion": "v1", "kind": "Config", "current-context": "a",
"contexts": [{"name": "a", "context": {"cluster": "one", "user": "%s"}}],
"clusters": [{"name": "one", "cluster": {"server": "https://one.example.org:6443", "proxy-url": "http://proxy:1"}}],
"users": [{"name": "u", "user": {"token": "the-credential", "username": "u", "password": "the-credential"}},
  {"name": "v", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x",
    "interactiveMode": "Never", "env": [{"name": "A", "value": "the-credential"}]}}},
  {"name": "w", "user": {"auth-provider": {"name": "oidc", "config": {"id-token": "the-credential"}}}},
  {"name": "x", "user": {"tokenFile": "nowhere"}}, {"name": "y", "user": {"client-key-data": "dGhlLWNyZWRlbnRpYWw="}}]}`

	for _, user := range []string{"u", "v", "w", "x", "y", "z", ""} {
		f.Add(fmt.Appendf(nil, file, user))
	}

	f.Add([]byte("contexts: [{name: a, context: null}]\nclusters: [null]\nusers: [{user: {exec: {}}}]\ncurrent-context: a\n"))
	f.Add([]byte("clusters: [{name: c, cluster: {server: \"https://u:the-credential@h\"}}]\n" +
		"contexts: [{name: a, context: {cluster: c}}]\ncurrent-context: a\n"))
	f.Add([]byte{})

	f.Fuzz(func(t *testing.T, data []byte) {
		// Another file than the one that is fuzzed is not read.
		if text := strings.ToLower(string(data)); len(data) > largestFuzzed || strings.Contains(text, "/dev/") {
			return
		}

		for _, static := range []bool{false, true} {
			k := Kubeconfig{Content: data, Static: static}
			facts, unread := k.Facts()
			_, unprepared := NewFromKubeconfig(k, Options{})
			config, _, err := k.Config()

			for _, err := range []error{unread, unprepared, err} {
				showsNone(t, fmt.Sprintf("%v", err), facts.Secrets)
			}

			showsNone(t, fmt.Sprintf("%v %+v %#v", k, k, k), []string{"the-credential"})

			if err != nil || !static {
				continue
			}

			if config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" ||
				config.CertFile != "" || config.KeyFile != "" {
				t.Errorf("it takes credentials from elsewhere: %q", data)
			}
		}
	})
}

// showsNone checks that a text has none of the credentials in it: those of the seeds, and long ones that were found.
func showsNone(t *testing.T, text string, secrets []string) {
	t.Helper()

	for _, secret := range append([]string{"the-credential"}, secrets...) {
		if len(secret) >= len("the-credential") && strings.Contains(text, secret) {
			t.Errorf("%q is shown: %s", secret, text)
		}
	}
}
