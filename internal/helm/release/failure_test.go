package release_test

import (
	"strings"
	"testing"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// A kill between the two records that end an upgrade leaves no revision deployed, and everything
// running.
func TestRollback_uninstallsNothingThatRan(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		maxHistory int
		statuses   string
		objects    []string
		next       string
	}{
		"goes back to what was deployed before": {
			10, "superseded failed failed deployed", []string{"a=", "always=1"}, "rolled back to revision 1",
		},
		"is left alone when that is forgotten": {
			1, "failed", []string{"a=", "always=3", "b="},
			"not rolled back: the history has no deployed revision",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p, chart := newPlace(t), breakable(t)
			spec := p.spec(map[string]any{"message": "1"})
			spec.Options.MaxHistory = tc.maxHistory
			p.apply(t, spec, chart, release.Intent{Create: true})

			spec.Values = map[string]any{"message": "2"}
			p.apply(t, spec, chart, release.Intent{})
			p.rewrite(t, spec.Name, 2, func(r *helmrelease.Release) { r.SetStatus(helmrelease.StatusPendingUpgrade, "killed") })

			spec.Values, spec.Options.RollbackOnFailure = map[string]any{"message": "3", "bad": true}, true
			p.failing(t, spec, chart, release.Intent{}, tc.next)
			same(t, "statuses", p.statuses(t, spec.Name), tc.statuses)
			same(t, "objects", p.configMaps(t), tc.objects)
		})
	}
}

// The records are gone, the objects are not.
func TestRollback_removesNothingFromBefore(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), packageOf(t, kubetest.Simple.Package("1.0.0"))
	spec := p.spec(map[string]any{"message": "kept"})
	p.apply(t, spec, chart, release.Intent{Create: true})

	if err := p.real.API().CoreV1().Secrets(p.namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "owner=helm"}); err != nil {
		t.Fatal(err)
	}

	spec.Values["podAnnotations"] = map[string]any{kubetest.NeverReadyAnnotation: "true"}
	spec.Options.Timeout, spec.Options.RollbackOnFailure = 2*time.Second, true
	p.failing(t, spec, chart, release.Intent{Create: true}, "not rolled back", "ConfigMap "+p.namespace+"/web",
		"existed before")
	same(t, "statuses", p.statuses(t, spec.Name), "failed")
	same(t, "objects", p.configMaps(t), []string{"web=kept"})
}

// The upgrade leaves out what the deployed revision has, and fails before Helm deletes that.
func TestRollback_toObjectNotDeletedYet(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), breakable(t)
	spec := p.spec(map[string]any{"message": "1"})
	p.apply(t, spec, chart, release.Intent{Create: true})

	spec.Values, spec.Options.RollbackOnFailure = map[string]any{"message": "2", "bad": true}, true
	p.failing(t, spec, chart, release.Intent{}, "rolled back to revision 1")
	same(t, "statuses", p.statuses(t, spec.Name), "superseded failed deployed")
	same(t, "objects", p.configMaps(t), []string{"a=", "always=1"})
}

// Objects that moved to another release are not rolled back, and a failed rollback hides nothing.
func TestRollback_takesNothingFromOthers(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), breakable(t)
	spec := p.spec(map[string]any{"message": "1"})
	p.apply(t, spec, chart, release.Intent{Create: true})

	newOwner := p.spec(nil)
	newOwner.Name.Name, newOwner.Options.TakeOwnership = "other", true
	p.apply(t, newOwner, packageOf(t, kubetest.Chart("other", "1.0.0", map[string]string{
		"templates/a.yaml": configMap("a", "inherited"),
	})), release.Intent{Create: true})

	spec.Values, spec.Options.RollbackOnFailure = map[string]any{"message": "2", "bad": true}, true
	p.failing(t, spec, chart, release.Intent{},
		"The rollback failed, too", "ConfigMap "+p.namespace+"/a belongs to release "+newOwner.Name.String())
	same(t, "statuses", p.statuses(t, spec.Name), "deployed failed failed")
	same(t, "objects", p.configMaps(t), []string{"a=inherited", "always=2"})

	if err := p.Remove(t.Context(), spec.Name, release.RemoveOptions{Wait: true, Timeout: testTimeout}); err != nil {
		t.Fatal(err)
	}

	same(t, "after the removal", p.configMaps(t), []string{"a=inherited"})
}

// Helm makes the upgrade superseded when the rollback fails, and whatever it had brought is of no
// revision that failed then.
func TestRollback_failureLeavesUpgradeFailed(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), breakable(t)
	spec := p.spec(map[string]any{"message": "1"})
	p.apply(t, spec, chart, release.Intent{Create: true})

	// The proxy refuses to change what the upgrade changed and to delete what it created.
	proxy := newFaultProxy(t, p.real)
	refused := false
	proxy.fault = func(call string, _ int) fault {
		switch {
		case strings.HasPrefix(call, "POST ") && strings.Contains(call, "/services"):
			refused = true
		case refused && !strings.HasPrefix(call, "GET ") && strings.Contains(call, "/configmaps/"):
			return forbid
		}

		return pass
	}

	direct := p.API
	p.API = proxy.client
	spec.Values, spec.Options.RollbackOnFailure = map[string]any{"message": "2", "bad": true}, true
	p.failing(t, spec, chart, release.Intent{}, "The rollback failed, too")
	same(t, "statuses", p.statuses(t, spec.Name), "deployed failed failed")
	same(t, "objects", p.configMaps(t), []string{"a=", "always=2", "b="})

	p.API = direct
	spec.Values = map[string]any{"message": "3"}
	p.apply(t, spec, chart, release.Intent{})
	same(t, "after the next apply", p.configMaps(t), []string{"a=", "always=3"})
}
