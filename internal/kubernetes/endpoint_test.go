package kubernetes_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// lists answers with no nodes, and with a version.
func lists(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/version") {
		answer(w, http.StatusOK, map[string]string{"gitVersion": "v1.36.2"})

		return
	}

	answer(w, http.StatusOK, corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}})
}

// An observation that a control plane answers says how the endpoint is, and asks it no second time.
func TestEndpoint_ofAnObservation(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	plane := ca.apiServer(t, lists).Listener.Addr().String()

	for name, test := range map[string]struct {
		endpoint http.HandlerFunc
		cause    string
	}{
		"answers":         {lists, ""},
		"nothing listens": {nil, "connection refused"},
		"balancer without APIs": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "none", http.StatusServiceUnavailable)
		}, "unable to handle"},
		"API server in trouble": {func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusInternalServerError, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status",
				APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusInternalServerError})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			url := "https://" + closedPort(t)
			if test.endpoint != nil {
				url = ca.apiServer(t, test.endpoint).URL
			}

			client := ca.client(t, url, plane)
			if got := client.Endpoint(); got.Asked {
				t.Errorf("before a request the endpoint is %+v", got)
			}

			got := client.Observe(t.Context())
			if !got.Reachable || got.Endpoint.URL != url || !got.Endpoint.Asked ||
				got.Endpoint.Silent() != (test.cause != "") || !strings.Contains(got.Endpoint.Cause, test.cause) {
				t.Errorf("state = %+v", got)
			}
		})
	}
}

// Only the endpoint is asked, even if another server answered before, and an unreachable one is not.
func TestEndpoint_asked(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	works := true
	endpoint := ca.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if !works {
			http.Error(w, "none", http.StatusServiceUnavailable)

			return
		}

		lists(w, r)
	})
	client := ca.client(t, endpoint.URL, ca.apiServer(t, lists).Listener.Addr().String())

	for _, works = range []bool{false, true, false} {
		if got := client.AskEndpoint(t.Context()); !got.Asked || got.Silent() == works {
			t.Errorf("while it works is %v, it is %+v", works, got)
		}

		if got := client.Observe(t.Context()); !got.Reachable {
			t.Errorf("while it works is %v, the state is %+v", works, got)
		}
	}

	asked := 0
	other := ca.apiServer(t, func(w http.ResponseWriter, r *http.Request) { asked++; lists(w, r) })
	cert, key := ca.issue(t)

	client, err := kubernetes.New(api.Options{Endpoint: other.URL,
		Fallbacks: []string{ca.apiServer(t, lists).Listener.Addr().String()}, CA: ca.pem(), Cert: cert, Key: key,
		EndpointOutOfReach: true})
	check(t, err)
	t.Cleanup(client.Close)

	got := client.Observe(t.Context())
	if now := client.AskEndpoint(t.Context()); asked != 0 || !got.Reachable || !now.OutOfReach || now.Silent() {
		t.Errorf("out of reach: asked %d times, %+v, then %+v", asked, got, now)
	}
}

// An API server that lists the nodes may not be ready. One that is ready is enough, unless each server is asked. Its
// answer says nothing about the endpoint, which responds.
func TestObserve_readiness(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	fails := func(checks ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path != "/readyz":
				lists(w, r)
			case len(checks) == 0:
				fmt.Fprint(w, "ok")
			default:
				http.Error(w, "[+]ping ok\n[-]"+strings.Join(checks, " failed: reason withheld\n[-]")+" failed: reason withheld\n",
					http.StatusInternalServerError)
			}
		}
	}

	unready, other := ca.apiServer(t, fails("kms-providers", "etcd")), ca.apiServer(t, fails("etcd"))
	ready := ca.apiServer(t, fails())
	forbids := ca.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			refusal(http.StatusForbidden, metav1.StatusReasonForbidden)(w, r)
		} else {
			lists(w, r)
		}
	})
	both := []kubestate.UnreadyServer{{URL: unready.URL, Checks: []string{"kms-providers", "etcd"}},
		{URL: other.URL, Checks: []string{"etcd"}}}
	slices.SortFunc(both, func(a, b kubestate.UnreadyServer) int { return strings.Compare(a.URL, b.URL) })

	for name, test := range map[string]struct {
		servers  []string
		any, all []kubestate.UnreadyServer
	}{
		"ready":           {servers: []string{ready.URL}},
		"one of three":    {[]string{unready.URL, other.URL, ready.URL}, nil, both},
		"none":            {[]string{unready.URL, other.URL}, []kubestate.UnreadyServer{{Checks: []string{"etcd"}}}, both},
		"does not say it": {servers: []string{forbids.URL}},
	} {
		cert, key := ca.issue(t)
		for _, each := range []bool{false, true} {
			var fallbacks []string
			for _, s := range test.servers[1:] {
				fallbacks = append(fallbacks, strings.TrimPrefix(s, "https://"))
			}

			client, err := kubernetes.New(api.Options{Endpoint: test.servers[0], Fallbacks: fallbacks, CA: ca.pem(), Cert: cert,
				Key: key, EachServer: each})
			check(t, err)
			t.Cleanup(client.Close)

			want := test.any
			if each {
				want = test.all
			}

			got := client.Observe(t.Context())
			if diff := cmp.Diff(want, got.Unready); diff != "" || !got.Reachable || got.Endpoint.Silent() {
				t.Errorf("%s, each %v: %+v (-want +got):\n%s", name, each, got, diff)
			}
		}
	}
}
