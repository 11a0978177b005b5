package api

import (
	"net/http"
	"testing"
)

func TestLimit(t *testing.T) {
	t.Parallel()

	reads, backups := &Limit{}, &Limit{Writes: []string{"leases"}}
	addons := &Limit{Secrets: true, DryRuns: true}

	const (
		pods   = "/api/v1/namespaces/kube-system/pods"
		leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	)

	for _, tt := range []struct {
		method, path string
		passes       []*Limit
	}{
		{http.MethodGet, "/version", []*Limit{reads, backups, addons}},
		{http.MethodGet, "/api/v1/nodes", []*Limit{reads, backups, addons}},
		{http.MethodGet, "/api/v1/nodes?watch=true", []*Limit{reads, backups, addons}},
		{http.MethodGet, pods + "/a/log", []*Limit{reads, backups, addons}},
		{http.MethodGet, "/api/v1/namespaces/secrets/pods", []*Limit{reads, backups, addons}},
		{http.MethodGet, pods + "/a/exec?command=id", nil},
		{http.MethodGet, "/api/v1/nodes/a/proxy/run", nil},
		{http.MethodGet, "/api/v1/secrets", []*Limit{addons}},
		{http.MethodGet, "/api/v1/watch/secrets", []*Limit{addons}},
		{http.MethodGet, "/api/v1/watch/namespaces/a/secrets/b", []*Limit{addons}},
		{http.MethodGet, "/api/v1/namespaces/kube-system/secrets/a", []*Limit{addons}},
		{http.MethodPost, "/api/v1/namespaces", nil},
		{http.MethodPatch, "/api/v1/nodes/a", nil},
		{http.MethodPatch, "/api/v1/nodes/a?dryRun=All", []*Limit{addons}},
		{http.MethodPatch, "/api/v1/nodes/a?dryRun=", nil},
		{http.MethodPatch, "/api/v1/nodes/a?dryRun=All&dryRun=Some", nil},
		{http.MethodPost, pods + "/a/eviction", nil},
		{http.MethodDelete, pods, nil},
		{http.MethodPost, leases, []*Limit{backups}},
		{http.MethodPut, leases + "/a", []*Limit{backups}},
		{http.MethodDelete, "/api/v1/namespaces/leases", nil},
		{http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", []*Limit{reads, backups, addons}},
		{http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", nil},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tt.method, "https://10.0.0.10:6443"+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}

		for name, l := range map[string]*Limit{"reads": reads, "backups": backups, "addons": addons, "none": nil} {
			passes := l == nil
			for _, p := range tt.passes {
				passes = passes || p == l
			}

			if err := l.refuse(r); (err == nil) != passes {
				t.Errorf("%s %s with %s: %v", tt.method, tt.path, name, err)
			}
		}
	}
}
