package provider_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// baseSecrets is secrets in a state.
func baseSecrets(protection any) tftest.Config {
	return tftest.Config{
		"id": "aW4gc3RhdGU=", "cluster_id": "aW4gc3RhdGU=", "bundle": tftest.Bundle(), "authorities": tftest.Config{},
		"deletion_protection": protection,
	}
}

// planSecrets plans secrets, from nil to be created, to nil to be destroyed.
func planSecrets(
	t *testing.T, server tfprotov6.ProviderServer, prior, wanted tftest.Config, private map[string]string,
) *tfprotov6.PlanResourceChangeResponse {
	t.Helper()

	value := func(c tftest.Config) tftypes.Value {
		if c == nil {
			return tftypes.NewValue(tftest.TypeOf(t, "talosop_secrets"), nil)
		}

		return tftest.ValueOf(t, tftest.TypeOf(t, "talosop_secrets"), c)
	}

	config := value(wanted)
	if wanted != nil {
		config = value(tftest.Config{"deletion_protection": wanted["deletion_protection"]})
	}

	kept, separator := "", "{"
	for key, v := range private {
		kept += fmt.Sprintf("%s%q:%q", separator, key, base64.StdEncoding.EncodeToString([]byte(v)))
		separator = ","
	}

	if kept != "" {
		kept += "}"
	}

	resp, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: "talosop_secrets", PriorState: tftest.Dynamic(t, value(prior)),
		ProposedNewState: tftest.Dynamic(t, value(wanted)),
		Config:           tftest.Dynamic(t, config), PriorPrivate: []byte(kept),
	})
	if err != nil {
		t.Fatal(err)
	}

	return resp
}

// Guarded secrets can be planned neither away nor anew, and the message says how to have them in a file. Without the
// guard the same is a warning. What no provider decided yet is guarded.
func TestSecrets_deletionProtection(t *testing.T) {
	t.Parallel()

	const (
		id   = "aW4gc3RhdGU="
		save = `select(.cluster_id == "aW4gc3RhdGU=")`
	)

	for name, test := range map[string]struct {
		prior, wanted tftest.Config
		private       map[string]string
		warning       bool
	}{
		"destroy":            {prior: baseSecrets(true)},
		"destroy, undecided": {prior: baseSecrets(nil)},
		"destroy, unguarded": {prior: baseSecrets(false), warning: true},
		"replaced": {
			wanted:  tftest.Config{},
			private: map[string]string{"deletion_protection": "true", "cluster_id": `"` + id + `"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			resp := planSecrets(t, tftest.NewServer(t), test.prior, test.wanted, test.private)

			if test.warning {
				tftest.ExpectMistake(t, resp.Diagnostics, "", []string{"The secrets of a cluster will be lost", id, save}, true)

				return
			}

			tftest.ExpectMistake(t, resp.Diagnostics, `AttributeName("deletion_protection")`,
				[]string{"Deletion protection is on", id, "set deletion_protection = false and apply", save}, false)
		})
	}

	for _, private := range []map[string]string{nil, {"deletion_protection": "false"}} {
		if resp := planSecrets(t, tftest.NewServer(t), nil, tftest.Config{}, private); len(resp.Diagnostics) > 0 {
			t.Error(tftest.Show(resp.Diagnostics))
		}
	}
}

// Lifting the guard leaves the secrets known, so that nothing that depends on them changes.
func TestSecrets_protectionIsAllThatChanges(t *testing.T) {
	t.Parallel()

	resp := planSecrets(t, tftest.NewServer(t), baseSecrets(true), baseSecrets(false), nil)

	plan, err := resp.PlannedState.Unmarshal(tftest.TypeOf(t, "talosop_secrets"))
	if err != nil {
		t.Fatal(err)
	}

	if len(resp.Diagnostics) > 0 || !plan.Equal(tftest.ValueOf(t, tftest.TypeOf(t, "talosop_secrets"),
		baseSecrets(false))) {
		t.Errorf("the plan is %s\n%s", plan, tftest.Show(resp.Diagnostics))
	}
}

// Machines that the same plan leaves running are named where their secrets go.
func TestSecrets_namesMachinesThatStay(t *testing.T) {
	t.Parallel()

	server := tftest.NewServer(t)
	forget := func(onDestroy string) {
		state := settledState(t, "talosop_worker", tftest.With(tftest.BaseWorker(), onDestroy, "on_destroy"))
		null := tftest.Dynamic(t, tftypes.NewValue(state.Type(), nil))

		if _, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
			TypeName: "talosop_worker", PriorState: tftest.Dynamic(t, state), ProposedNewState: null, Config: null,
		}); err != nil {
			t.Fatal(err)
		}
	}

	const stay = "w-1 and w-2 of cluster \"prod\" (talosop_worker \"prod/worker\")"

	forget("preserve")
	tftest.ExpectMistake(t, planSecrets(t, server, baseSecrets(false), nil, nil).Diagnostics, "", []string{stay}, true)

	forget("reset")

	if told := tftest.Show(planSecrets(t, server, baseSecrets(false), nil, nil).Diagnostics); strings.Contains(told,
		"w-1") {
		t.Error(told)
	}
}

// Secrets that are not known because the plan makes new ones are not those of machines that run.
func TestPlan_newSecretsOfALivingCluster(t *testing.T) {
	t.Parallel()

	for kind, test := range map[string]struct {
		config tftest.Config
		path   []string
	}{
		"talosop_control_plane": {tftest.BaseControlPlane(), []string{"secrets"}},
		"talosop_cluster":       {tftest.BaseCluster(), []string{"secrets"}},
		"talosop_worker":        {tftest.BaseWorker(), []string{"cluster", "secrets"}},
		"talosop_machine":       {tftest.BaseMachine(), []string{"cluster", "secrets"}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()

			server, typ := tftest.NewServer(t), tftest.TypeOf(t, kind)
			prior := settledState(t, kind, test.config)
			config := tftest.ValueOf(t, typ, tftest.With(test.config, tftest.Unknown{}, test.path...))

			plan := func() []*tfprotov6.Diagnostic {
				resp, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
					TypeName: kind, PriorState: tftest.Dynamic(t, prior), ProposedNewState: tftest.Dynamic(t,
						tftest.Proposed(t, &prior, config)),
					Config: tftest.Dynamic(t, config),
				})
				if err != nil {
					t.Fatal(err)
				}

				return resp.Diagnostics
			}

			// They may be unknown for another reason, and turn out to be the old ones.
			if diagnostics := plan(); len(diagnostics) > 0 {
				t.Error(tftest.Show(diagnostics))
			}

			planSecrets(t, server, nil, tftest.Config{}, nil)

			at := `AttributeName("secrets")`
			if len(test.path) > 1 {
				at = `AttributeName("cluster").` + at
			}

			tftest.ExpectMistake(t, plan(), at, []string{"secrets of the cluster would change", "Nothing can be sent"}, false)
		})
	}
}
