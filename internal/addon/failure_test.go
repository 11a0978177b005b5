package addon_test

import (
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/addon"
	"github.com/talosop/terraform-provider-talosop/internal/addon/addontest"
)

// A kill between the two records that end an upgrade leaves no revision deployed, and everything
// running.
func TestFailureUninstallsNothingThatRan(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		maxHistory int
		statuses   string
		objects    []string
		next       string
	}{
		"goes back to what was deployed before": {
			10, "superseded failed failed deployed", []string{"a=", "always=1"}, "rolled back to what revision 1 had",
		},
		"is left alone when that is forgotten": {
			1, "failed", []string{"a=", "always=3", "b="}, "left as it is, because the history has no revision that was deployed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p, chart := newPlace(t), breakable(t)
			spec := p.spec(map[string]any{"message": "1"})
			spec.Options.MaxHistory = tc.maxHistory
			p.apply(t, spec, chart, addon.Intent{Create: true})

			spec.Values = map[string]any{"message": "2"}
			p.apply(t, spec, chart, addon.Intent{})
			p.rewrite(t, spec.Name, 2, func(r *release.Release) { r.SetStatus(release.StatusPendingUpgrade, "killed") })

			spec.Values, spec.Options.RollbackOnFailure = map[string]any{"message": "3", "bad": true}, true
			p.failing(t, spec, chart, addon.Intent{}, tc.next)
			same(t, "statuses", p.statuses(t, spec.Name), tc.statuses)
			same(t, "objects", p.configMaps(t), tc.objects)
		})
	}
}

// The records are gone, the objects are not.
func TestFailureRemovesNothingThatWasThereBefore(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), packageOf(t, addontest.Simple.Package("1.0.0"))
	spec := p.spec(map[string]any{"message": "kept"})
	p.apply(t, spec, chart, addon.Intent{Create: true})

	if err := p.real.API().CoreV1().Secrets(p.namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "owner=helm"}); err != nil {
		t.Fatal(err)
	}

	spec.Values["podAnnotations"] = map[string]any{addontest.NeverReadyAnnotation: "true"}
	spec.Options.Timeout, spec.Options.RollbackOnFailure = 2*time.Second, true
	p.failing(t, spec, chart, addon.Intent{Create: true}, "left as it is", "ConfigMap "+p.namespace+"/web", "there before")
	same(t, "statuses", p.statuses(t, spec.Name), "failed")
	same(t, "objects", p.configMaps(t), []string{"web=kept"})
}
