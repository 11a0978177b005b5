package release_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// hiccup cuts the reads of the history for a second, once a number of records were written.
func hiccup(proxy *faultProxy, records int) {
	var began time.Time

	proxy.fault = func(call string, _ int) fault {
		if strings.HasPrefix(call, "PUT") && strings.Contains(call, "/secrets/sh.helm.release") {
			if records--; records == 0 {
				began = time.Now()
			}
		}

		if !began.IsZero() && time.Since(began) < time.Second && strings.HasPrefix(call, "GET") &&
			strings.Contains(call, "/secrets?") {
			return cut
		}

		return pass
	}
}

// A server that goes away after the last record was written hides nothing of what was done, and of what
// failed neither.
func TestApply_noAnswerAfterLastRecord(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), oneMap(t, "1.0.0", "a")
	proxy := newFaultProxy(t, p.real)
	hiccup(proxy, 1)
	p.API = proxy.client

	last, _ := p.apply(t, p.spec(nil), chart, release.Intent{Create: true}).Now.Last()
	same(t, "status", last.Status, release.Deployed)

	failing := newPlace(t)
	proxy = newFaultProxy(t, failing.real)
	// That of its begin, and that of its end.
	hiccup(proxy, 2)
	failing.API = proxy.client

	outcome, err := failing.Apply(t.Context(), failing.spec(map[string]any{"bad": true}), jobbing(t, keptHook),
		release.Intent{Create: true})

	var failed *release.FailedError
	if !errors.As(err, &failed) {
		t.Fatalf("%v", err)
	}

	last, _ = outcome.Now.Last()
	same(t, "status", last.Status, release.Failed)
}

// What cannot be swept up is no reason to take a release for failed that is as it should be.
func TestApply_sweepIsForbidden(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	chart := packageOf(t, kubetest.Chart("web", "1.0.0", map[string]string{
		"templates/a.yaml": configMap("a", ""),
		"templates/b.yaml": "{{ if .Values.bad }}\n" + configMap("left", "") + "---\n" +
			"apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 99999}]}\n{{ end }}\n",
	}))
	p.fails(t, p.spec(map[string]any{"bad": true}), chart, release.Intent{Create: true})

	proxy := newFaultProxy(t, p.real)
	proxy.fault = func(call string, _ int) fault {
		if strings.HasPrefix(call, "DELETE") && strings.Contains(call, "/configmaps/left") {
			return forbid
		}

		return pass
	}
	p.API = proxy.client

	outcome := p.apply(t, p.spec(nil), chart, release.Intent{Create: true})
	last, _ := outcome.Now.Last()
	same(t, "status", last.Status, release.Deployed)

	if len(outcome.Notices) != 1 || !strings.Contains(outcome.Notices[0], "ConfigMap "+p.namespace+"/left") ||
		!strings.Contains(outcome.Notices[0], "you may not") {
		t.Errorf("notices: %q", outcome.Notices)
	}

	// It is removed once that is allowed.
	p.API = newFaultProxy(t, p.real).client
	outcome = p.apply(t, p.spec(nil), chart, release.Intent{})
	same(t, "done", outcome.Done, []string{
		"removed ConfigMap " + p.namespace + "/left, a leftover of a failed revision"})
	same(t, "notices", outcome.Notices, []string(nil))
}

// A removal is done when the release is gone, even if its Lease cannot be deleted.
func TestRemove_leaseCannotBeDeleted(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), oneMap(t, "1.0.0", "a")
	spec := p.spec(nil)
	p.apply(t, spec, chart, release.Intent{Create: true})

	proxy := newFaultProxy(t, p.real)
	proxy.fault = func(call string, _ int) fault {
		if strings.HasPrefix(call, "DELETE") && strings.Contains(call, "/leases/") {
			return forbid
		}

		return pass
	}
	p.API = proxy.client

	for range 2 {
		if err := p.Remove(t.Context(), spec.Name, release.RemoveOptions{}); err != nil {
			t.Error(err)
		}
	}

	same(t, "statuses", p.statuses(t, spec.Name), "")

	if reported := strings.Join(p.reported, "\n"); !strings.Contains(reported, "the Lease of the release was not deleted") ||
		!strings.Contains(reported, "you may not") {
		t.Errorf("got: %s", reported)
	}
}
