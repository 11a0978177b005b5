package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Machines that one plan resets for an object and makes another one of are refused, in whatever order the CLI plans the
// two: also when both objects have the same id, as after another label in the configuration without moved, and when the
// secrets of the new one are still to be made.
func TestPlan_resourceRenamedWithoutMoved(t *testing.T) {
	t.Parallel()

	unprotected := func(base configuration) configuration { return with(base, false, "deletion_protection") }

	for name, test := range map[string]struct {
		kind        string
		prior, made configuration
	}{
		"control plane": {"talosop_control_plane", unprotected(baseControlPlane()), unprotected(baseControlPlane())},
		"cluster":       {"talosop_cluster", unprotected(baseCluster()), unprotected(baseCluster())},
		"worker":        {"talosop_worker", unprotected(baseWorker()), unprotected(baseWorker())},
		"machine":       {"talosop_machine", unprotected(baseMachine()), unprotected(baseMachine())},
		"secrets to be made": {"talosop_control_plane", unprotected(baseControlPlane()),
			with(unprotected(baseControlPlane()), unknownValue{}, "secrets")},
	} {
		for _, createsFirst := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()

				server, typ := secretsServer(t), typeOf(t, test.kind)
				at := tftypes.NewAttributePath().WithAttributeName("owner_id")
				prior := put(t, settledState(t, test.kind, test.prior), at, "of the old object")
				null := dynamic(t, tftypes.NewValue(typ, nil))

				create := func() []*tfprotov6.Diagnostic {
					return plannedBy(t, server, test.kind, nil, valueOf(t, typ, test.made)).Diagnostics
				}
				destroy := func() []*tfprotov6.Diagnostic {
					resp, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
						TypeName: test.kind, PriorState: dynamic(t, prior), ProposedNewState: null, Config: null,
					})
					must(t, err)

					return resp.Diagnostics
				}

				last := create
				if createsFirst {
					create()

					last = destroy
				} else {
					destroy()
				}

				expectMistake(t, last(), "", []string{"Machine of one resource planned for another", "moved {"}, false)
			})
		}
	}
}
