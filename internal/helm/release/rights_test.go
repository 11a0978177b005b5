package release_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// A missing right is reported at once.
func TestApply_forbiddenLease(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), oneMap(t, "1.0.0", "a")
	proxy := newFaultProxy(t, p.real)
	proxy.fault = func(call string, _ int) fault {
		if strings.Contains(call, "/leases") {
			return forbid
		}

		return pass
	}
	p.API = proxy.client

	ctx, cancel := context.WithTimeout(t.Context(), testTimeout/2)
	defer cancel()

	_, err := p.Apply(ctx, p.spec(nil), chart, release.Intent{Create: true})
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "requires a Lease in namespace kube-system") {
		t.Errorf("%v", err)
	}
}

// The state of a release is unknown when its cluster does not answer: it is neither gone nor removed.
func TestApply_unreachable(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	proxy := newFaultProxy(t, p.real)
	proxy.fault = func(string, int) fault { return cut }
	p.API = proxy.client

	spec := p.spec(nil)

	// It may be that it only starts.
	p.UnreachableTimeout = time.Second
	began := time.Now()
	_, applied := p.Apply(t.Context(), spec, oneMap(t, "1.0.0", "a"), release.Intent{Create: true})

	if took := time.Since(began); took < time.Second || took > testTimeout/2 {
		t.Errorf("an apply that took %s", took)
	}

	_, observed := p.Observe(t.Context(), spec.Name)
	removed := p.Remove(t.Context(), spec.Name, release.RemoveOptions{})

	for what, err := range map[string]error{"apply": applied, "observe": observed, "remove": removed} {
		if !errors.Is(err, api.ErrNoAnswer) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// An address that swallows packets, or without a listener, is given up before the time of the apply expires.
func TestApply_endedContext(t *testing.T) {
	t.Parallel()

	for name, address := range map[string]string{"no server": "127.0.0.1:1", "silent": silent(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p, chart := newPlace(t), oneMap(t, "1.0.0", "a")
			p.UnreachableTimeout = time.Second

			config := p.real.Config()

			var err error
			p.API, err = kubernetes.New(api.Options{Endpoint: "https://" + address, CA: config.CAData,
				Cert: config.CertData, Key: config.KeyData})
			if err != nil {
				t.Fatal(err)
			}

			t.Cleanup(p.API.Close)

			_, err = p.Apply(t.Context(), p.spec(nil), chart, release.Intent{Create: true})
			if !errors.Is(err, api.ErrNoAnswer) || !strings.Contains(err.Error(), "timed out after 1s") {
				t.Errorf("%v", err)
			}
		})
	}
}

// silent accepts connections, and never says anything.
func silent(t *testing.T) (address string) {
	t.Helper()

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = listener.Close() })

	return listener.Addr().String()
}

// A wait for a killed run is reported.
func TestApply_tellsOfWaitForKilledRun(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), oneMap(t, "1.0.0", "a")
	spec, holder, seconds := p.spec(nil), "addon of-a-killed-run", int32(1)
	now := metav1.NowMicro()

	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: release.LeaseOf(spec.Name)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	if _, err := p.real.API().CoordinationV1().Leases(metav1.NamespaceSystem).Create(t.Context(), lease,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	p.apply(t, spec, chart, release.Intent{Create: true})

	want := "waiting for Lease kube-system/" + release.LeaseOf(spec.Name) + " held by " + holder +
		"; the Lease of a killed run expires after " + lockDuration.String()
	if len(p.reported) == 0 || p.reported[0] != want {
		t.Errorf("got %q, want %s", p.reported, want)
	}
}

// A server that goes away for a moment ends no apply.
func TestApply_outlastsAPIPause(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), oneMap(t, "1.0.0", "a")
	proxy := newFaultProxy(t, p.real)
	secrets := 0
	proxy.fault = func(call string, _ int) fault {
		if strings.HasPrefix(call, "GET ") && strings.Contains(call, "/secrets?") {
			if secrets++; secrets <= 3 {
				return cut
			}
		}

		return pass
	}
	p.API = proxy.client

	p.apply(t, p.spec(nil), chart, release.Intent{Create: true})
	same(t, "objects", p.configMaps(t), []string{"a=web "})

	if secrets < 4 {
		t.Errorf("the history was asked for %d times", secrets)
	}
}

const forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"you may not","reason":"Forbidden","code":403}`

func refuse(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write([]byte(forbidden))
}
