package api

import (
	"slices"
	"strings"
	"testing"
)

func TestFacts_ofAKubeconfig(t *testing.T) {
	t.Parallel()

	const file = `{"apiVersion": "v1", "kind": "Config", "current-context": "a",
"contexts": [{"name": "a", "context": {"cluster": "one", "user": "u"}}, {"name": "b", "context": {"cluster": "two", "user": "u"}}],
"clusters": [{"name": "one", "cluster": {"server": "https://one.example.org:6443"}},
  {"name": "two", "cluster": {"server": "https://two.example.org:6443", "certificate-authority-data": "cGVt"}}],
"users": [{"name": "u", "user": {"token": "the-token"}}, {"name": "v", "user": {"username": "v", "password": "the-password",
  "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x", "interactiveMode": "Never", "env": [{"name": "A", "value": "the-variable"}]}}}]}`

	for context, want := range map[string]KubeconfigFacts{
		"": {Server: "https://one.example.org:6443"}, "b": {Server: "https://two.example.org:6443", CA: []byte("pem")},
	} {
		got, err := Kubeconfig{Content: []byte(file), Context: context}.Facts()
		if err != nil || got.Server != want.Server || string(got.CA) != string(want.CA) {
			t.Errorf("context %q is %s with CA %q, %v", context, got.Server, got.CA, err)
		}

		for _, secret := range []string{"the-token", "the-password", "the-variable"} {
			if !slices.Contains(got.Secrets, secret) {
				t.Errorf("%s is no secret", secret)
			}
		}
	}

	_, err := Kubeconfig{Content: []byte(file), Context: "c"}.Facts()
	if err == nil || !strings.Contains(err.Error(), "a, b") {
		t.Errorf("a context that there is not: %v", err)
	}
}
