package addon_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/addon"
	"github.com/talosop/terraform-provider-talosop/internal/addon/addontest"
)

// What only a failed revision gave an object goes with the next one, after a first install as after an
// upgrade; what others gave it stays.
func TestFieldsOfFailedRevisionsGo(t *testing.T) {
	t.Parallel()

	chart := packageOf(t, addontest.Simple.Package("1.0.0"))
	missing := map[string]any{"message": "a", "podAnnotations": map[string]any{addontest.MissingImageAnnotation: "true", "example.org/more": "b"}}

	for name, before := range map[string]bool{"install": false, "upgrade": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p := newPlace(t)
			good, bad := p.spec(map[string]any{"message": "a"}), p.spec(missing)
			bad.Options.Timeout = time.Second

			if before {
				p.apply(t, good, chart, addon.Intent{Create: true})
			}

			if _, err := p.Apply(t.Context(), bad, chart, addon.Intent{Create: !before}); err == nil {
				t.Fatal("a pod without an image is fine")
			}

			deployments := p.real.API().AppsV1().Deployments(p.namespace)

			live, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}

			live.Annotations["example.org/theirs"] = "stays"
			if _, err := deployments.Update(t.Context(), live, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}

			good.Values["replicas"] = 2
			p.apply(t, good, chart, addon.Intent{})

			live, err = deployments.Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}

			if left := live.Spec.Template.Annotations; len(left) > 0 {
				t.Errorf("the pods still have %v", left)
			}

			if live.Annotations["example.org/theirs"] != "stays" || len(live.Spec.Template.Spec.Containers) != 1 || *live.Spec.Replicas != 2 {
				t.Errorf("the Deployment is %+v", live)
			}
		})
	}
}
