package machines_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// replacement is a test for a user to replace unchanged resources.
type replacement struct {
	name string
	// commands run before, and options are those of the plan and the apply.
	commands [][]string
	options  []string
	// revision is that of the VMs under the machines.
	revision string
}

// replacements are all of them.
func replacements(addresses []string) []replacement {
	option, taint := replacement{name: "-replace", revision: "1"}, replacement{name: "taint", revision: "1"}

	for _, address := range addresses {
		option.options = append(option.options, "-replace="+address)
		taint.commands = append(taint.commands, []string{"taint", address})
	}

	return []replacement{option, taint, {name: "replace_triggered_by", revision: "2"}}
}

// triggeredHCL is a configuration whose machines are replaced with their VMs, which are stand-ins here.
func triggeredHCL(hcl, kind, revision, protection string) string {
	lifecycle := "deletion_protection = " + protection + "\n  lifecycle { replace_triggered_by = [terraform_data.vm] }\n"
	before, resource, _ := strings.Cut(hcl, "resource \""+kind+"\"")

	return before + "resource \"terraform_data\" \"vm\" {\n  input = \"" + revision + "\"\n}\n\nresource \"" + kind + "\"" +
		strings.Replace(resource, "deletion_protection = false", lifecycle, 1)
}

// resetMachines are the names of machines that were reset.
func resetMachines(s *sitetest.Site) []string {
	var names []string

	for _, call := range s.CallsTo("Reset") {
		if call.Code == codes.OK {
			names = append(names, call.Machine)
		}
	}

	return slices.Sorted(slices.Values(names))
}

// A plan that replaces every control plane of a protected cluster is refused, whatever caused it, and no machine is
// reset. Without protection machines are replaced one at a time, and etcd keeps its data.
func TestAccReplace_everyMachine(t *testing.T) {
	testenv.BeforeRelease(t, "TestReplace_ofAProtectedCluster", "TestReplace_ofEveryMachineOneAtATime", "TestReplace_ofSeveralMachinesByOption",
		"TestPlan_replaceOptionOfEveryMachine")
	t.Parallel()

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		const kind = "talosop_machine"

		s := sitetest.New(t, 3, 0)
		kept := map[string]string{"/kept": "value"}
		addresses := []string{machineAt("cp-1"), machineAt("cp-2"), machineAt("cp-3")}
		config := func(revision, protection string) string {
			return sitetest.ProviderHCL + triggeredHCL(sitetest.OneByOneHCL(s, s.ControlPlane), kind, revision, protection)
		}

		w := sitetest.Applied(t, cli, config("1", "true"))
		tftest.Must(t, s.ControlPlane[0].PutEtcdKeys(t.Context(), kept))

		for _, test := range replacements(addresses) {
			refusedReplacement(t, s, w, test, addresses, config(test.revision, "true"), "deletion_protection")
		}

		w.Write("main.tf", config("1", "false"))
		w.MustRun("apply", "-auto-approve")

		for _, test := range replacements(addresses) {
			if len(test.commands) == 0 {
				refusedReplacement(t, s, w, test, addresses, config(test.revision, "false"), "control_planes_replaced_together")
			}
		}

		w.Write("main.tf", config("1", "false"))

		for _, address := range addresses {
			w.MustRun("taint", address)
		}

		planned := w.MustRun("plan")
		sitetest.Shows(t, planned, "machines_destroyed")
		sitetest.Says(t, planned, "reset control plane cp-2")
		expectReplaced(t, s, w, kept, []string{"cp-1", "cp-2", "cp-3"})
		expectReplaced(t, s, w, kept, []string{"cp-2"}, "-replace="+machineAt("cp-2"))

		w.Write("main.tf", config("2", "false"))
		expectReplaced(t, s, w, kept, []string{"cp-3"}, "-target=terraform_data.vm", "-target="+machineAt("cp-3"))
	})
}

// expectReplaced applies with options. It checks which machines were reset, and that etcd is complete and has its
// data.
func expectReplaced(
	t *testing.T, s *sitetest.Site, w *clitest.Workspace, kept map[string]string, machines []string, options ...string,
) {
	t.Helper()

	s.ForgetCalls()
	w.MustRun(append([]string{"apply", "-auto-approve"}, options...)...)

	if got := resetMachines(s); !slices.Equal(got, machines) {
		t.Errorf("%v: reset were %v, want %v", options, got, machines)
	}

	if got, err := s.ControlPlane[0].EtcdKeys(t.Context(), "/kept"); err != nil || !maps.Equal(got, kept) ||
		s.EtcdClusters() != 1 {
		t.Errorf("%v: etcd holds %v (%v), and there are %d of it", options, got, err, s.EtcdClusters())
	}

	s.ExpectMembers(t, 3)
	sitetest.ExpectNoChanges(t, w, "after the replacement")
}

// refusedReplacement checks that a plan and an apply refuse to replace, and that nothing is reset.
func refusedReplacement(t *testing.T, s *sitetest.Site, w *clitest.Workspace, test replacement, addresses []string, config,
	code string) {
	t.Helper()

	for _, command := range test.commands {
		w.MustRun(command...)
	}

	w.Write("main.tf", config)
	s.ForgetCalls()

	sitetest.Shows(t, sitetest.Fails(t, w, append([]string{"plan"}, test.options...)...), code)
	sitetest.Shows(t, sitetest.Fails(t, w, append([]string{"apply", "-auto-approve"}, test.options...)...), code)

	if got := resetMachines(s); len(got) > 0 {
		t.Errorf("%s: reset were %v", test.name, got)
	}

	if len(test.commands) > 0 {
		for _, address := range addresses {
			w.MustRun("untaint", address)
		}
	}
}

// The same for a control plane in one resource, and for taints that a plan without a refresh cannot see.
func TestAccReplace_protectedControlPlane(t *testing.T) {
	testenv.BeforeRelease(t, "TestReplace_ofAProtectedCluster", "TestPlan_taintOfProtectedResources")
	t.Parallel()

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		const address = "talosop_control_plane.this"

		s := sitetest.New(t, 1, 0)
		config := func(revision string) string {
			return sitetest.ProviderHCL + triggeredHCL(sitetest.SecretsHCL+s.ControlPlaneHCL("\n  deletion_protection = false\n"),
				"talosop_control_plane", revision, "true")
		}

		w := sitetest.Applied(t, cli, config("1"))

		for _, test := range replacements([]string{address}) {
			refusedReplacement(t, s, w, test, []string{address}, config(test.revision), "deletion_protection")
		}

		w.MustRun("taint", address)
		w.Write("main.tf", config("1"))
		s.ForgetCalls()
		sitetest.Shows(t, sitetest.Fails(t, w, "apply", "-auto-approve", "-refresh=false"), "deletion_protection")

		if got := resetMachines(s); len(got) > 0 {
			t.Errorf("reset were %v", got)
		}
	})
}
