package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// secretsOutside is the example of a cluster whose secrets are in no state.
const secretsOutside = "../../examples/guides/secrets-outside-state"

// outsideOfSite is what the example leaves to its reader.
const outsideOfSite = `
provider "talosop" {
  clusters = { e2e = { secrets = var.secrets } }
}

resource "talosop_control_plane" "this" {
  name                   = "e2e"
  talos_version          = %[1]q
  kubernetes_version     = %[2]q
  install                = { disk = %[3]q }
  version_contract       = %[4]s
  cluster_config_patches = [for p in fileset(path.module, "cluster-*.patch") : file("${path.module}/${p}")]
  config_patches         = [for p in fileset(path.module, "control-plane-*.patch") : file("${path.module}/${p}")]
  deletion_protection    = false
  allow_bootstrap        = true
  timeouts               = { create = %[5]s, update = %[5]s, delete = %[5]s }
}

resource "talosop_worker" "this" {
  talos_version = %[1]q
  install       = { disk = %[3]q }
  timeouts      = { create = %[5]s, update = %[5]s, delete = %[5]s }
}
`

// secretless: a cluster whose secrets are only in the provider block is created, has an empty plan, and is destroyed
// by saved plans. State, plans and logs contain no secret.
func (s site) secretless(t *testing.T, cli clitest.CLI) {
	s.needs(t, "reset")

	s.allWait(t)

	b, err := pki.Generate()
	if err != nil {
		t.Fatal(err)
	}

	w := s.outside(t, cli, b)
	texts := map[string]string{}

	texts["the plan"], texts["its file"] = w.SavedPlan("create.plan")
	w.MustRun("apply", "create.plan")
	texts["state"] = w.Read("terraform.tfstate*")

	s.hasJoined(t, b)

	s.settles(t, w)
	plansNothing(t, w, "after create")

	texts["the plan of the destroy"], texts["the file of that"] = w.SavedPlan("destroy.plan", "-destroy")
	w.MustRun("apply", "destroy.plan")
	s.returned(t)

	texts["state after destroy"], texts["the log"] = w.Read("terraform.tfstate*"), w.Trace()

	for where, text := range texts {
		for _, secret := range clitest.SecretsIn(tf.MasksOf(encodedBundle(t, b))) {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds a secret of %d characters", where, len(secret))
			}
		}
	}

	if !strings.Contains(texts["state"], s.endpoint) || !strings.Contains(texts["the log"], "ApplyResourceChange") {
		t.Error("the search would find nothing")
	}
}

// outside is the files of the example for a site, with its secrets in the environment.
func (s site) outside(t *testing.T, cli clitest.CLI, b *pki.Bundle) *clitest.Workspace {
	t.Helper()

	w := clitest.NewWorkspace(t, cli).KeepTrace()
	w.CopyFrom(secretsOutside)
	w.Write("site_override.tf", fmt.Sprintf(outsideOfSite, s.talosVersion, s.kubernetes, s.disk, inHCL(s.contract),
		inHCL(s.timeout)))

	writePatches(w, "cluster", s.patches)
	writePatches(w, "control-plane", s.controlPlanePatches)

	values, err := json.Marshal(map[string]any{
		"endpoint": s.endpoint, "control_planes": named("cp", s.controlPlanes), "workers": named("worker", s.workers),
	})
	if err != nil {
		t.Fatal(err)
	}

	w.Write(variables, string(values))
	w.Setenv("TF_VAR_secrets", encodedBundle(t, b))
	w.Init()

	return w
}

func encodedBundle(t *testing.T, b *pki.Bundle) string {
	t.Helper()

	text, err := b.YAML()
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}
