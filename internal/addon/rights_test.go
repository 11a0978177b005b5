package addon_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/addon"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
)

// Who may not do what is needed is told so at once.
func TestForbiddenLease(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), oneMap(t, "1.0.0", "a")
	door := newDoor(t, p.real)
	door.fault = func(call string, _ int) fault {
		if strings.Contains(call, "/leases") {
			return forbid
		}

		return pass
	}
	p.API = door.client

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()

	_, err := p.Apply(ctx, p.spec(nil), chart, addon.Intent{Create: true})
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "under a Lease in the namespace kube-system") {
		t.Errorf("%v", err)
	}
}

// Nothing is known of a release whose cluster gives no answer: it is neither gone nor removed.
func TestUnreachable(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	door := newDoor(t, p.real)
	door.fault = func(string, int) fault { return cut }
	p.API = door.client

	spec := p.spec(nil)

	_, observed := p.Observe(t.Context(), spec.Name)
	removed := p.Remove(t.Context(), spec.Name, addon.RemoveOptions{})

	for what, err := range map[string]error{"observe": observed, "remove": removed} {
		if !errors.Is(err, kubernetes.ErrNoAnswer) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A server that goes away for a moment ends no apply.
func TestApplyOutlastsAPause(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), oneMap(t, "1.0.0", "a")
	door := newDoor(t, p.real)
	secrets := 0
	door.fault = func(call string, _ int) fault {
		if strings.HasPrefix(call, "GET ") && strings.Contains(call, "/secrets?") {
			if secrets++; secrets <= 3 {
				return cut
			}
		}

		return pass
	}
	p.API = door.client

	p.apply(t, p.spec(nil), chart, addon.Intent{Create: true})
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
