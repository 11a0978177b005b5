package secrets_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// A plan can neither remove nor replace guarded secrets, and the message says how to save them in a file. Without
// the guard the same is a warning. Secrets without a recorded decision are guarded.
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
		"destroy":            {prior: tftest.BaseSecrets(true)},
		"destroy, undecided": {prior: tftest.BaseSecrets(nil)},
		"destroy, unguarded": {prior: tftest.BaseSecrets(false), warning: true},
		"replaced": {
			wanted:  tftest.Config{},
			private: map[string]string{"deletion_protection": "true", "cluster_id": `"` + id + `"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			resp := tftest.PlanSecrets(t, tftest.NewServer(t), test.prior, test.wanted, test.private)

			if test.warning {
				tftest.ExpectMistake(t, resp.Diagnostics, "", []string{"[secrets_will_be_lost]", id, save}, true)

				return
			}

			tftest.ExpectMistake(t, resp.Diagnostics, `AttributeName("deletion_protection")`,
				[]string{"[secrets_protected]", id, save}, false)
		})
	}

	for _, private := range []map[string]string{nil, {"deletion_protection": "false"}} {
		if resp := tftest.PlanSecrets(t, tftest.NewServer(t), nil, tftest.Config{}, private); len(resp.Diagnostics) > 0 {
			t.Error(tftest.Show(resp.Diagnostics))
		}
	}
}

// Disabling the guard keeps the secrets known, so that nothing that depends on them changes.
func TestSecrets_protectionIsAllThatChanges(t *testing.T) {
	t.Parallel()

	resp := tftest.PlanSecrets(t, tftest.NewServer(t), tftest.BaseSecrets(true), tftest.BaseSecrets(false), nil)

	plan, err := resp.PlannedState.Unmarshal(tftest.TypeOf(t, "talosop_secrets"))
	if err != nil {
		t.Fatal(err)
	}

	if len(resp.Diagnostics) > 0 || !plan.Equal(tftest.ValueOf(t, tftest.TypeOf(t, "talosop_secrets"),
		tftest.BaseSecrets(false))) {
		t.Errorf("the plan is %s\n%s", plan, tftest.Show(resp.Diagnostics))
	}
}
