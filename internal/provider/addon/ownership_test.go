package addon_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// onlyReplaced plans a replacement, and returns the first of its two plans.
func (s *addonSite) onlyReplaced(t *testing.T, config tftest.Config) tftest.Outcome {
	t.Helper()

	typ := tftest.TypeOf(t, resourceType)
	wanted := tftest.ValueOf(t, typ, config)

	resp, err := s.Server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: s.Name, PriorState: tftest.Dynamic(t, s.State), ProposedNewState: tftest.Dynamic(t, s.Proposed(t, wanted)),
		Config: tftest.Dynamic(t, wanted), PriorPrivate: s.Private,
	})
	tftest.Must(t, err)

	if len(resp.RequiresReplace) == 0 {
		t.Error("nothing is replaced")
	}

	return tftest.Outcome{Value: tftest.Decoded(t, typ, resp.PlannedState), Private: resp.PlannedPrivate,
		Diagnostics: resp.Diagnostics}
}

// newProcess is a provider process without memory of other processes.
func (s *addonSite) newProcess(t *testing.T) *tftest.Driven {
	t.Helper()

	m := tftest.QuickProviderData()
	m.Addons.Charts, m.Addons.UnreachableTimeout, m.Addons.Open = s.Charts, s.machine.Addons.UnreachableTimeout,
		s.machine.Addons.Open

	d := tftest.Drive(t, resourceType, nil)
	d.Server = tftest.ServeWith(t, m, nil)

	return d
}

// A plan reports an existing release of talosop: one with the same inputs is taken over, one with other inputs is
// not.
func TestAddon_releaseOfAnotherState(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.Apply(t, baseAddon()).Must(t)

	planned := s.newProcess(t).Plan(t, baseAddon()).Must(t)
	planned.Tells(t, "[addon_taken_over]", "kube-system/metrics-server", "for both")

	if strings.Contains(tftest.Show(planned.Diagnostics), "added") {
		t.Errorf("it is said to be added: %s", tftest.Show(planned.Diagnostics))
	}

	other := s.newProcess(t)
	wanted := tftest.With(baseAddon(), []any{"replicas: 9\n"}, "values")
	other.Plan(t, wanted).Must(t).Tells(t, "[addon_exists]", "kube-system/metrics-server",
		"terraform import")

	if failed := other.Apply(t, wanted); !failed.Failed() || !other.State.IsNull() {
		t.Errorf("a release of another state is taken: %s", tftest.Show(failed.Diagnostics))
	}

	// A replacement would uninstall it first, so a chart that cannot be installed is still an error of the plan.
	s.cluster.change(func() { s.cluster.refusing = release.ErrTemplate })

	if planned := s.newProcess(t).Plan(t, wanted); !planned.Failed() {
		t.Error("a chart that cannot be rendered is planned")
	}

	s.cluster.change(func() { s.cluster.refusing = nil })

	// A process that was killed has stored nothing, and resumes.
	other = s.newProcess(t)
	other.Apply(t, baseAddon()).Must(t)

	if revision := tftest.Text(t, other.State, "revision"); revision != "1" ||
		len(s.cluster.releases[metricsServer]) != 1 {
		t.Errorf("the revision is %s", revision)
	}
}

// A release that a replacement took over is not uninstalled with the old resource.
func TestAddon_createBeforeDestroy(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.Apply(t, baseAddon()).Must(t)

	next := s.newProcess(t)
	old := &tftest.Driven{Server: next.Server, Name: s.Name, State: s.State, Private: s.Private}

	old.Refresh(t).Must(t)
	next.Plan(t, baseAddon()).Must(t).Tells(t, "[addon_taken_over]")
	next.Apply(t, baseAddon()).Must(t)
	old.Apply(t, nil).Must(t).Tells(t, "[addon_kept]", "kube-system/metrics-server",
		"create_before_destroy")

	if !old.State.IsNull() || len(s.cluster.releases[metricsServer]) != 1 || len(s.cluster.removed) != 0 {
		t.Error("the release went with the old resource")
	}

	next.ExpectEmpty(t, "after the replacement", baseAddon())
	next.Apply(t, nil).Must(t)

	if len(s.cluster.releases[metricsServer]) != 0 {
		t.Error("the release is not removed by whom it belongs to")
	}
}

// A replacement shows what it installs.
func TestAddon_replacementShowsWhatItInstalls(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.Apply(t, baseAddon()).Must(t)
	s.onlyReplaced(t, tftest.With(baseAddon(), "metrics", "name")).Must(t).Tells(t, "kube-system/metrics",
		"1 object added")

	s.cluster.releases[release.Name{Namespace: "kube-system", Name: "metrics"}] = []release.Revision{
		{Number: 1, Status: release.Deployed}}
	s.onlyReplaced(t, tftest.With(baseAddon(), "metrics", "name")).Must(t).Tells(t, "[addon_exists]",
		"kube-system/metrics")
}
