package kubernetes_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// The environment says nothing about the way to a cluster, the file does.
func TestKubeconfigConfig_reachesTheServer(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example")

	for proxy, want := range map[string]string{"": "", "http://other.example": "http://other.example"} {
		content := `
clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443", proxy-url: "` + proxy + `"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

		config, name, err := api.Kubeconfig{Content: []byte(content)}.Config()
		check(t, err)

		if name != "x" {
			t.Errorf("the context is %q", name)
		}

		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host, nil)
		check(t, err)

		found, err := config.Proxy(r)
		check(t, err)

		if found != nil && found.String() != want || found == nil && want != "" {
			t.Errorf("the proxy is %v, want %q", found, want)
		}

		if config.BearerToken != "t" {
			t.Error("the token is not there")
		}
	}

	if _, _, err := (api.Kubeconfig{Path: "/none"}).Config(); err == nil ||
		!strings.Contains(err.Error(), "read the kubeconfig /none") {
		t.Errorf("%v", err)
	}
}
