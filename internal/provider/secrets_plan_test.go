package provider

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

// baseSecrets is secrets in a state.
func baseSecrets(protection any) configuration {
	return configuration{
		"id": "aW4gc3RhdGU=", "cluster_id": "aW4gc3RhdGU=", "bundle": bundleOnce(), "authorities": configuration{},
		"deletion_protection": protection,
	}
}

// planSecrets plans secrets, from nil to be created, to nil to be destroyed.
func planSecrets(
	t *testing.T, server tfprotov6.ProviderServer, prior, wanted configuration, private map[string]string,
) *tfprotov6.PlanResourceChangeResponse {
	t.Helper()

	value := func(c configuration) tftypes.Value {
		if c == nil {
			return tftypes.NewValue(typeOf(t, "talosop_secrets"), nil)
		}

		return valueOf(t, typeOf(t, "talosop_secrets"), c)
	}

	config := value(wanted)
	if wanted != nil {
		config = value(configuration{"deletion_protection": wanted["deletion_protection"]})
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
		TypeName: "talosop_secrets", PriorState: dynamic(t, value(prior)), ProposedNewState: dynamic(t, value(wanted)),
		Config: dynamic(t, config), PriorPrivate: []byte(kept),
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
		prior, wanted configuration
		private       map[string]string
		warning       bool
	}{
		"destroy":            {prior: baseSecrets(true)},
		"destroy, undecided": {prior: baseSecrets(nil)},
		"destroy, unguarded": {prior: baseSecrets(false), warning: true},
		"replaced": {
			wanted:  configuration{},
			private: map[string]string{"deletion_protection": "true", "cluster_id": `"` + id + `"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			resp := planSecrets(t, secretsServer(t), test.prior, test.wanted, test.private)

			if test.warning {
				expectMistake(t, resp.Diagnostics, "", []string{"The secrets of a cluster will be lost", id, save}, true)

				return
			}

			expectMistake(t, resp.Diagnostics, `AttributeName("deletion_protection")`,
				[]string{"Deletion protection is on", id, "set deletion_protection = false and apply", save}, false)
		})
	}

	for _, private := range []map[string]string{nil, {"deletion_protection": "false"}} {
		if resp := planSecrets(t, secretsServer(t), nil, configuration{}, private); len(resp.Diagnostics) > 0 {
			t.Error(show(resp.Diagnostics))
		}
	}
}

// Lifting the guard leaves the secrets known, so that nothing that depends on them changes.
func TestSecrets_protectionIsAllThatChanges(t *testing.T) {
	t.Parallel()

	resp := planSecrets(t, secretsServer(t), baseSecrets(true), baseSecrets(false), nil)

	plan, err := resp.PlannedState.Unmarshal(typeOf(t, "talosop_secrets"))
	if err != nil {
		t.Fatal(err)
	}

	if len(resp.Diagnostics) > 0 || !plan.Equal(valueOf(t, typeOf(t, "talosop_secrets"), baseSecrets(false))) {
		t.Errorf("the plan is %s\n%s", plan, show(resp.Diagnostics))
	}
}

// Machines that the same plan leaves running are named where their secrets go.
func TestSecrets_namesMachinesThatStay(t *testing.T) {
	t.Parallel()

	server := secretsServer(t)
	forget := func(onDestroy string) {
		state := settledState(t, "talosop_worker", with(baseWorker(), onDestroy, "on_destroy"))
		null := dynamic(t, tftypes.NewValue(state.Type(), nil))

		if _, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
			TypeName: "talosop_worker", PriorState: dynamic(t, state), ProposedNewState: null, Config: null,
		}); err != nil {
			t.Fatal(err)
		}
	}

	const stay = "w-1 and w-2 of cluster \"prod\" (talosop_worker \"prod/worker\")"

	forget("preserve")
	expectMistake(t, planSecrets(t, server, baseSecrets(false), nil, nil).Diagnostics, "", []string{stay}, true)

	forget("reset")

	if told := show(planSecrets(t, server, baseSecrets(false), nil, nil).Diagnostics); strings.Contains(told, "w-1") {
		t.Error(told)
	}
}

// secretsServer is a provider of its own, which knows only of what it plans in this test.
func secretsServer(t *testing.T) tfprotov6.ProviderServer {
	t.Helper()

	server, err := providerserver.NewProtocol6WithError(NewOf("test", providerdata.NewProviderData()))()
	if err == nil {
		err = configure(server)
	}

	if err != nil {
		t.Fatal(err)
	}

	return server
}

// Secrets that are not known because the plan makes new ones are not those of machines that run.
func TestPlan_newSecretsOfALivingCluster(t *testing.T) {
	t.Parallel()

	for kind, test := range map[string]struct {
		config configuration
		path   []string
	}{
		"talosop_control_plane": {baseControlPlane(), []string{"secrets"}},
		"talosop_cluster":       {baseCluster(), []string{"secrets"}},
		"talosop_worker":        {baseWorker(), []string{"cluster", "secrets"}},
		"talosop_machine":       {baseMachine(), []string{"cluster", "secrets"}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()

			server, typ := secretsServer(t), typeOf(t, kind)
			prior := settledState(t, kind, test.config)
			config := valueOf(t, typ, with(test.config, unknownValue{}, test.path...))

			plan := func() []*tfprotov6.Diagnostic {
				resp, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
					TypeName: kind, PriorState: dynamic(t, prior), ProposedNewState: dynamic(t, proposed(t, &prior, config)),
					Config: dynamic(t, config),
				})
				if err != nil {
					t.Fatal(err)
				}

				return resp.Diagnostics
			}

			// They may be unknown for another reason, and turn out to be the old ones.
			if diagnostics := plan(); len(diagnostics) > 0 {
				t.Error(show(diagnostics))
			}

			planSecrets(t, server, nil, configuration{}, nil)

			at := `AttributeName("secrets")`
			if len(test.path) > 1 {
				at = `AttributeName("cluster").` + at
			}

			expectMistake(t, plan(), at, []string{"secrets of the cluster would change", "Nothing can be sent"}, false)
		})
	}
}
