package addon_test

import (
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/addon"
	"github.com/talosop/terraform-provider-talosop/internal/addon/addontest"
)

func TestFailedFirstInstallationIsTakenAway(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), packageOf(t, addontest.Simple.Package("1.0.0"))
	spec := p.spec(map[string]any{"podAnnotations": map[string]any{addontest.NeverReadyAnnotation: "true"}})
	spec.Options.Timeout, spec.Options.RollbackOnFailure = 2*time.Second, true

	failing := func(text string) {
		_, err := p.Apply(t.Context(), spec, chart, addon.Intent{Create: true})
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("a first installation that fails: %v, without %q", err, text)
		}
	}

	failing("It was uninstalled")
	same(t, "statuses", p.statuses(t, spec.Name), "")
	same(t, "objects", p.configMaps(t), []string(nil))

	// One that failed before, and was left to be looked at, is nothing to keep.
	spec.Options.RollbackOnFailure = false
	failing("Revision 1 is left as it is")
	same(t, "statuses", p.statuses(t, spec.Name), "failed")

	spec.Options.RollbackOnFailure = true
	failing("It was uninstalled")

	same(t, "statuses", p.statuses(t, spec.Name), "")
	same(t, "objects", p.configMaps(t), []string(nil))
}
