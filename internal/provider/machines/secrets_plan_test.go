package machines_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// Machines that the same plan leaves running are named where their secrets are removed.
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
	tftest.ExpectMistake(t, tftest.PlanSecrets(t, server, tftest.BaseSecrets(false), nil, nil).Diagnostics, "",
		[]string{stay}, true)

	forget("reset")

	if diagnostics := tftest.Show(tftest.PlanSecrets(t, server, tftest.BaseSecrets(false), nil,
		nil).Diagnostics); strings.Contains(diagnostics,
		"w-1") {
		t.Error(diagnostics)
	}
}

// Secrets that are unknown because the plan generates new ones are not those of running machines.
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
						tftest.Proposed(t, kind, &prior, config)),
					Config: tftest.Dynamic(t, config),
				})
				if err != nil {
					t.Fatal(err)
				}

				return resp.Diagnostics
			}

			// They may be unknown for another reason, and turn out unchanged.
			if diagnostics := plan(); len(diagnostics) > 0 {
				t.Error(tftest.Show(diagnostics))
			}

			tftest.PlanSecrets(t, server, nil, tftest.Config{}, nil)

			at := `AttributeName("secrets")`
			if len(test.path) > 1 {
				at = `AttributeName("cluster").` + at
			}

			tftest.ExpectMistake(t, plan(), at, []string{"[secrets_changed]"}, false)
		})
	}
}
