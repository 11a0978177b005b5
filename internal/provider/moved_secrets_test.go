package provider

import (
	"maps"
	"strings"
	"testing"
)

// movedSecrets is a control plane of one machine and a worker, with the secrets in the provider block.
func movedSecrets(t *testing.T) (s *site, plane, worker *driven, given, joins configuration) {
	t.Helper()

	s = newSite(t, 1, 1)
	provided := configuration{"clusters": configuration{"test": configuration{"secrets": bundleOnce()}}}

	given = baseControlPlane()
	given["name"], given["endpoint"], given["kubernetes_version"] = "test", s.endpoint, "v1.35.4"
	given["deletion_protection"] = false
	given["machines"] = configuration{"cp-1": configuration{"address": s.controlPlane[0].Address().String()}}

	joins = baseWorker()
	joins["cluster"] = configuration{"name": "test", "endpoint": s.endpoint, "secrets": bundleOnce(),
		"kubernetes_version": "v1.35.4", "version_contract": "v1.13",
		"talos_endpoints": []any{s.controlPlane[0].Address().String()}}
	joins["machines"] = configuration{"w-1": configuration{"address": s.workers[0].Address().String()}}

	plane, worker = drive(t, "talosop_control_plane", provided), drive(t, "talosop_worker", provided)

	without := maps.Clone(given)
	delete(without, "secrets")
	plane.apply(t, without).must(t)

	inHandle, _ := joins["cluster"].(configuration)
	handle := maps.Clone(inHandle)
	delete(handle, "secrets")
	worker.apply(t, with(maps.Clone(joins), handle, "cluster")).must(t)

	return s, plane.elsewhere(t, nil), worker.elsewhere(t, nil), given, joins
}

// Secrets move from the provider block to the resource in one apply, which sends nothing to a machine: the refresh, which
// cannot see them, warns, and the plan takes those of the configuration.
func TestProvidedSecrets_moveToTheResource(t *testing.T) {
	t.Parallel()

	s, plane, worker, given, joins := movedSecrets(t)
	s.ForgetCalls()

	for d, config := range map[*driven]configuration{plane: given, worker: joins} {
		if said := show(d.refresh(t).must(t).diagnostics); !strings.Contains(said, "Cluster was not read") {
			t.Errorf("the refresh of %s says %q", d.Name, said)
		}

		d.apply(t, config).must(t)
		d.expectEmpty(t, "after the move", config)
	}

	s.nothingWasSent(t)
}

// Secrets of another cluster, and none, are refused, and so is a destroy without any.
func TestProvidedSecrets_moveOfOthersIsRefused(t *testing.T) {
	t.Parallel()

	s, plane, _, given, _ := movedSecrets(t)
	s.ForgetCalls()
	plane.refresh(t).must(t)

	without := maps.Clone(given)
	delete(without, "secrets")

	for says, config := range map[string]configuration{
		"Other secrets than those of the cluster": with(maps.Clone(given), otherBundle(t), "secrets"),
		"none are given here":                     without,
		"state has none":                          nil,
	} {
		if said := show(plane.plan(t, config).diagnostics); !strings.Contains(said, says) {
			t.Errorf("the plan says %s, want %q", said, says)
		}
	}

	s.nothingWasSent(t)
}
