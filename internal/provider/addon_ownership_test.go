package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
)

// onlyReplaced plans a replacement, and gives what the first of its two plans says.
func (s *addonSite) onlyReplaced(t *testing.T, config configuration) outcome {
	t.Helper()

	typ := typeOf(t, addonResourceType)
	wanted := valueOf(t, typ, config)

	resp, err := s.Server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: s.Name, PriorState: dynamic(t, s.state), ProposedNewState: dynamic(t, s.proposed(t, wanted)),
		Config: dynamic(t, wanted), PriorPrivate: s.private,
	})
	must(t, err)

	if len(resp.RequiresReplace) == 0 {
		t.Error("nothing is replaced")
	}

	return outcome{decoded(t, typ, resp.PlannedState), resp.PlannedPrivate, resp.Diagnostics}
}

// newProcess is a provider process that remembers nothing of what others did.
func (s *addonSite) newProcess(t *testing.T) *driven {
	t.Helper()

	m := quickProviderData()
	m.Addons.Charts, m.Addons.UnreachableTimeout, m.Addons.Open = s.Charts, s.machine.Addons.UnreachableTimeout,
		s.machine.Addons.Open

	d := drive(t, addonResourceType, nil)
	d.Server = serve(t, m, nil)

	return d
}

// A plan says that a release of talosop exists: one of the same inputs is taken over, one of others is not.
func TestAddon_releaseOfAnotherState(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.apply(t, baseAddon()).must(t)

	planned := s.newProcess(t).plan(t, baseAddon()).must(t)
	planned.tells(t, "Addon is taken over", "Release kube-system/metrics-server", "another state", "for both")

	if strings.Contains(show(planned.diagnostics), "added") {
		t.Errorf("it is said to be added: %s", show(planned.diagnostics))
	}

	other := s.newProcess(t)
	wanted := with(baseAddon(), []any{"replicas: 9\n"}, "values")
	other.plan(t, wanted).must(t).tells(t, "Addon exists already", "Release kube-system/metrics-server",
		"terraform import")

	if failed := other.apply(t, wanted); !failed.failed() || !other.state.IsNull() {
		t.Errorf("a release of another state is taken: %s", show(failed.diagnostics))
	}

	// A process that was killed has stored nothing, and goes on.
	other = s.newProcess(t)
	other.apply(t, baseAddon()).must(t)

	if revision := text(t, other.state, "revision"); revision != "1" || len(s.cluster.releases[metricsServer]) != 1 {
		t.Errorf("the revision is %s", revision)
	}
}

// A release that a replacement took over before the old resource goes is not uninstalled with that.
func TestAddon_createBeforeDestroy(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.apply(t, baseAddon()).must(t)

	next := s.newProcess(t)
	old := &driven{Server: next.Server, Name: s.Name, state: s.state, private: s.private}

	old.refresh(t).must(t)
	next.plan(t, baseAddon()).must(t).tells(t, "is taken over", "1 object added")
	next.apply(t, baseAddon()).must(t)
	old.apply(t, nil).must(t).tells(t, "Addon stays installed", "Release kube-system/metrics-server",
		"create_before_destroy")

	if !old.state.IsNull() || len(s.cluster.releases[metricsServer]) != 1 || len(s.cluster.removed) != 0 {
		t.Error("the release went with the old resource")
	}

	next.expectEmpty(t, "after the replacement", baseAddon())
	next.apply(t, nil).must(t)

	if len(s.cluster.releases[metricsServer]) != 0 {
		t.Error("the release is not removed by whom it belongs to")
	}
}

// A replacement shows what it installs.
func TestAddon_replacementShowsWhatItInstalls(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	s.apply(t, baseAddon()).must(t)
	s.onlyReplaced(t, with(baseAddon(), "metrics", "name")).must(t).tells(t, "Release kube-system/metrics",
		"1 object added")

	s.cluster.releases[release.Name{Namespace: "kube-system", Name: "metrics"}] = []release.Revision{
		{Number: 1, Status: release.Deployed}}
	s.onlyReplaced(t, with(baseAddon(), "metrics", "name")).must(t).tells(t, "Addon exists already",
		"Release kube-system/metrics")
}
