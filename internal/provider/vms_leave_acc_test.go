package provider_test

import (
	"os"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// changesWithLeaving are changes of VMs that end before their cluster changes. Each machine leaves before its VM ends.
var changesWithLeaving = []changedVMs{
	{name: "the create", members: 3,
		machines: map[string]string{"cp-1": "cp-1", "cp-2": "cp-2", "cp-3": "cp-3", "w-1": "w-1"}},
	{name: "two control planes and a worker replaced", members: 3,
		machines: map[string]string{"cp-1": "cp-1", "cp-2": "cp-4", "cp-3": "cp-5", "w-1": "w-2"},
		ends:     "cp-2 left, cp-3 left, w-1 left"},
	{name: "the shrink to one", machines: map[string]string{"cp-1": "cp-1"}, members: 1,
		ends: "cp-4 left, cp-5 left, w-2 left"},
}

// leaveExample is an example from a word on, with other expressions.
func leaveExample(t *testing.T, file, from string, others ...string) string {
	t.Helper()

	content, err := os.ReadFile("../../examples/" + file)
	tftest.Must(t, err)

	_, block, found := strings.Cut(string(content), from)
	if !found {
		t.Fatalf("%s has no %s", file, from)
	}

	return from + strings.NewReplacer(others...).Replace(block)
}

// lastStays checks that an apply cannot replace the VM of the last control plane.
func lastStays(t *testing.T, s *sitetest.Site, w *clitest.Workspace) {
	t.Helper()

	sitetest.Shows(t, sitetest.Fails(t, w, "apply", "-auto-approve", "-replace=hypervisor_vm.this[\"cp-1\"]"),
		"operation_failed")
	s.ExpectMembers(t, 1)
}

// The resource is destroyed before the VM to which it refers, and the machine leaves then.
func TestAccVMs_leaveResource(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 5, 2)
		onVMs := clusterOnVMs(s, "")
		leaves := leaveExample(t, "resources/talosop_machine_leave/resource.tf", `resource "talosop_machine_leave"`,
			"var.vms", "{ for name, vm in hypervisor_vm.this : name => { id = vm.machine, address = vm.address } }",
			"var.cluster", "talosop_cluster.this.cluster")

		lastStays(t, s, applyVMs(t, s, cli, func(machines map[string]string) string { return onVMs(machines) + leaves },
			changesWithLeaving))
	})
}

// The action runs before Terraform destroys a VM. It knows the VM as its caller, and the cluster by what does not
// depend on VMs.
func TestAccVMs_leaveAction(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 5, 2)
	action := leaveExample(t, "actions/talosop_machine_leave/action.tf", `action "talosop_machine_leave"`,
		"caller.output", "caller", "var.secrets", "talosop_secrets.this.bundle", `"prod"`, `"test"`,
		"https://10.0.0.10:6443", s.URL)
	onVMs := clusterOnVMs(s, `
  lifecycle {
    action_trigger {
      events  = [before_destroy]
      actions = [action.talosop_machine_leave.this]
    }
  }
`)

	lastStays(t, s, applyVMs(t, s, clitest.Newest(t), func(machines map[string]string) string {
		return onVMs(machines) + action
	}, changesWithLeaving))
}
