package machines_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// A plan that resets machines for one object and creates another one from them is refused, in any order of planning.
// That includes two objects with the same ID, as after another label in the configuration without moved, and secrets
// of the new one that are not generated yet.
func TestPlan_resourceRenamedWithoutMoved(t *testing.T) {
	t.Parallel()

	unprotected := func(base tftest.Config) tftest.Config { return tftest.With(base, false, "deletion_protection") }

	for name, test := range map[string]struct {
		kind        string
		prior, made tftest.Config
	}{
		"control plane": {"talosop_control_plane", unprotected(tftest.BaseControlPlane()),
			unprotected(tftest.BaseControlPlane())},
		"cluster": {"talosop_cluster", unprotected(tftest.BaseCluster()), unprotected(tftest.BaseCluster())},
		"worker":  {"talosop_worker", unprotected(tftest.BaseWorker()), unprotected(tftest.BaseWorker())},
		"machine": {"talosop_machine", unprotected(tftest.BaseMachine()), unprotected(tftest.BaseMachine())},
		"secrets to be made": {"talosop_control_plane", unprotected(tftest.BaseControlPlane()),
			tftest.With(unprotected(tftest.BaseControlPlane()), tftest.Unknown{}, "secrets")},
	} {
		for _, createsFirst := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()

				server, typ := tftest.NewServer(t), tftest.TypeOf(t, test.kind)
				at := tftypes.NewAttributePath().WithAttributeName("owner_id")
				prior := tftest.Put(t, settledState(t, test.kind, test.prior), at, "of the old object")
				null := tftest.Dynamic(t, tftypes.NewValue(typ, nil))

				create := func() []*tfprotov6.Diagnostic {
					return tftest.PlanBy(t, server, test.kind, nil, tftest.ValueOf(t, typ, test.made)).Diagnostics
				}
				destroy := func() []*tfprotov6.Diagnostic {
					resp, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
						TypeName: test.kind, PriorState: tftest.Dynamic(t, prior), ProposedNewState: null, Config: null,
					})
					tftest.Must(t, err)

					return resp.Diagnostics
				}

				last := create
				if createsFirst {
					create()

					last = destroy
				} else {
					destroy()
				}

				tftest.ExpectMistake(t, last(), "", []string{"[machine_planned_twice]"}, false)
			})
		}
	}
}
