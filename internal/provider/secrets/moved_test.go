package secrets_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// movedSecrets is a control plane of one machine and a worker, with the secrets in the provider block.
func movedSecrets(t *testing.T) (s *sitetest.Site, plane, worker *tftest.Driven, given, joins tftest.Config) {
	t.Helper()

	s = sitetest.New(t, 1, 1)
	provided := tftest.Config{"clusters": tftest.Config{"test": tftest.Config{"secrets": tftest.Bundle()}}}

	given = tftest.BaseControlPlane()
	given["name"], given["endpoint"], given["kubernetes_version"] = "test", s.URL, "v1.35.4"
	given["deletion_protection"] = false
	given["machines"] = tftest.Config{"cp-1": tftest.Config{"address": s.ControlPlane[0].Address().String()}}

	joins = tftest.BaseWorker()
	joins["cluster"] = tftest.Config{"name": "test", "endpoint": s.URL, "secrets": tftest.Bundle(),
		"kubernetes_version": "v1.35.4", "version_contract": "v1.13",
		"talos_endpoints": []any{s.ControlPlane[0].Address().String()}}
	joins["machines"] = tftest.Config{"w-1": tftest.Config{"address": s.Workers[0].Address().String()}}

	plane, worker = tftest.Drive(t, "talosop_control_plane", provided), tftest.Drive(t, "talosop_worker", provided)

	without := maps.Clone(given)
	delete(without, "secrets")
	plane.Apply(t, without).Must(t)

	inHandle, _ := joins["cluster"].(tftest.Config)
	handle := maps.Clone(inHandle)
	delete(handle, "secrets")
	worker.Apply(t, tftest.With(maps.Clone(joins), handle, "cluster")).Must(t)

	return s, plane.Elsewhere(t, nil), worker.Elsewhere(t, nil), given, joins
}

// Secrets move from the provider block to the resource in one apply, which sends nothing to a machine: the refresh,
// which cannot see them, warns, and the plan uses those of the configuration.
func TestProvidedSecrets_moveToTheResource(t *testing.T) {
	t.Parallel()

	s, plane, worker, given, joins := movedSecrets(t)
	s.ForgetCalls()

	for d, config := range map[*tftest.Driven]tftest.Config{plane: given, worker: joins} {
		if diagnostics := tftest.Show(d.Refresh(t).Must(t).Diagnostics); !strings.Contains(diagnostics, "[cluster_not_read]") {
			t.Errorf("the refresh of %s says %q", d.Name, diagnostics)
		}

		d.Apply(t, config).Must(t)
		d.ExpectEmpty(t, "after the move", config)
	}

	s.ExpectNothingSent(t)
}

// Secrets of another cluster, and missing ones, are refused, and so is a destroy without any.
func TestProvidedSecrets_moveOfOthersIsRefused(t *testing.T) {
	t.Parallel()

	s, plane, _, given, _ := movedSecrets(t)
	s.ForgetCalls()
	plane.Refresh(t).Must(t)

	without := maps.Clone(given)
	delete(without, "secrets")

	for says, config := range map[string]tftest.Config{
		"[secrets_do_not_match]": tftest.With(maps.Clone(given), otherBundle(t), "secrets"),
		"[secrets_missing]":      without,
		"[secrets_not_in_state]": nil,
	} {
		if diagnostics := tftest.Show(plane.Plan(t, config).Diagnostics); !strings.Contains(diagnostics, says) {
			t.Errorf("the plan says %s, want %q", diagnostics, says)
		}
	}

	s.ExpectNothingSent(t)
}
