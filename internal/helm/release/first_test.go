package release_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

func TestRollback_removesFailedInstallation(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), packageOf(t, kubetest.Simple.Package("1.0.0"))
	spec := p.spec(map[string]any{"podAnnotations": map[string]any{kubetest.NeverReadyAnnotation: "true"}})
	spec.Options.Timeout, spec.Options.RollbackOnFailure = 2*time.Second, true

	failing := func(text string) {
		_, err := p.Apply(t.Context(), spec, chart, release.Intent{Create: true})
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("a first installation that fails: %v, without %q", err, text)
		}
	}

	failing("It was uninstalled")
	same(t, "statuses", p.statuses(t, spec.Name), "")
	same(t, "objects", p.configMaps(t), []string(nil))

	// What a failed release left for inspection is not worth keeping after a user removed its objects.
	spec.Options.RollbackOnFailure = false
	failing("Revision 1 stays for inspection")
	same(t, "statuses", p.statuses(t, spec.Name), "failed")

	core, all := p.real.API().CoreV1(), metav1.DeleteOptions{}
	if err := errors.Join(
		core.ConfigMaps(p.namespace).Delete(t.Context(), "web", all),
		core.Secrets(p.namespace).Delete(t.Context(), "web", all),
		core.Services(p.namespace).Delete(t.Context(), "web", all),
		p.real.API().AppsV1().Deployments(p.namespace).Delete(t.Context(), "web", all),
	); err != nil {
		t.Fatal(err)
	}

	spec.Options.RollbackOnFailure = true
	failing("It was uninstalled")
	same(t, "statuses", p.statuses(t, spec.Name), "")
	same(t, "objects", p.configMaps(t), []string(nil))
}
