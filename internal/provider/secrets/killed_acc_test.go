package secrets_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// A CLI whose provider is killed while it changes a resource stores the former attributes, and none of its private
// state (node_resource_abstract_instance.go of Terraform 1.11.4 and OpenTofu 1.12.6). Attributes contain what
// refusals need.

// withoutPrivate are the addresses of the resources in a state without private state.
func withoutPrivate(t *testing.T, state string) []string {
	t.Helper()

	var parsed struct {
		Resources []struct {
			Type, Name string
			Instances  []struct {
				Private []byte `json:"private"`
			}
		}
	}

	tftest.Must(t, json.Unmarshal([]byte(state), &parsed))

	var bare []string

	for _, r := range parsed.Resources {
		for _, i := range r.Instances {
			if len(i.Private) == 0 {
				bare = append(bare, r.Type+"."+r.Name)
			}
		}
	}

	return bare
}

// A change of a control plane is killed with its provider. Its state has lost its private part, and still refuses
// secrets of another cluster; with the right ones the next apply resumes.
func TestAccProvidedSecrets_providerKilled(t *testing.T) {
	t.Parallel()

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		bundle := tftest.Bundle()
		s := sitetest.New(t, 1, 0)
		w := providedSite(t, s, cli, bundle)
		w.Write("beside.tf", "")
		w.MustRun("apply", "-auto-approve")

		w.Write("change_override.tf", `
resource "talosop_control_plane" "this" {
  config_patches = [yamlencode({ machine = { files = [{ path = "/var/a", op = "create", permissions = 420, content = "a" }] } })]
}
`)
		s.ControlPlane[0].HangNextReboot()

		killed := w.Start("apply", "-auto-approve")
		sitetest.AwaitReboot(t, s, s.ControlPlane[0])
		killed.KillProvider()
		killed.Wait()

		if bare := withoutPrivate(t, w.Read("terraform.tfstate")); strings.Join(bare, " ") != "talosop_control_plane.this" {
			t.Fatalf("without private state are %v", bare)
		}

		s.ForgetCalls()
		w.Setenv("TF_VAR_secrets", otherBundle(t))

		for _, args := range [][]string{{"plan"}, {"apply", "-auto-approve", "-refresh=false"}, {"destroy", "-auto-approve"},
			{"destroy", "-auto-approve", "-refresh=false"}} {
			sitetest.Shows(t, sitetest.Fails(t, w, args...), "secrets_of_another_cluster")
		}

		s.ExpectNothingSent(t)
		w.Setenv("TF_VAR_secrets", bundle)
		s.ControlPlane[0].PowerOff()
		s.ControlPlane[0].PowerOn()
		w.MustRun("apply", "-auto-approve")
		sitetest.Says(t, w.MustRun("plan"), "No changes.")
	})
}
