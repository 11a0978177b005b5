package images_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/factorytest"
)

// The checks of the example pass, warn about versions that are behind, and warn without access to the servers. The
// policy of the example denies what they warn of.
func TestAccVersions_inChecks(t *testing.T) {
	t.Parallel()

	f, kubelets := factorytest.New(t), serveTags(t, "v1.36.3", "v1.36.4", "v1.36.5")

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		t.Parallel()

		w := clitest.NewWorkspace(t, cli).Example("../../../examples", "guides/new-releases")
		w.Write("terraform.tfvars.json", tftest.JSON(t, map[string]any{"factory_url": f.URL, "kubelet_repository": kubelets,
			"talos_version": "v1.13.0", "kubernetes_version": "v1.36.3"}))
		w.Init()

		for _, test := range []struct {
			name, arg, says string
			codes, denied   []string
		}{
			{"recent", "-var=most_patches_behind=2", "", nil, []string{}},
			{"recent on Talos 1.14", "-var=talos_version=v1.14.1", "", nil, []string{}},
			{"behind", "-var=most_patches_behind=1", "Kubernetes v1.36.3 is behind: v1.36.4, v1.36.5.", nil,
				[]string{"check kubernetes_is_recent: fail"}},
			{"offline", "-var=factory_url=http://127.0.0.1:1", "", []string{"releases_not_listed"},
				[]string{"check talos_is_recent: fail"}},
		} {
			planned := w.MustRun("plan", "-out=plan", test.arg)
			sitetest.Shows(t, planned, test.codes...)

			if !strings.Contains(planned.Unwrapped(), test.says) {
				t.Errorf("%s: the plan says:\n%s", test.name, planned.Output())
			}

			if diff := cmp.Diff(test.denied, denied(t, w)); diff != "" {
				t.Errorf("%s:\n%s", test.name, diff)
			}
		}

		w.MustRun("apply", "-auto-approve")

		// Each plan of the CLIs reads data sources in a `check` again, and so is not empty. It changes no resource.
		if planned := w.MustRun("plan").Stdout; !strings.Contains(planned, "Plan: 0 to add, 0 to change, 0 to destroy.") {
			t.Errorf("after an apply, the plan says:\n%s", planned)
		}
	})
}

// denied are the denials of the policy of the example for the plan of a workspace.
func denied(t *testing.T, w *clitest.Workspace) (denials []string) {
	t.Helper()

	w.Write("plan.json", w.MustRun("show", "-json", "plan").Stdout)

	//nolint:gosec // the program and its arguments are the test's own
	output, err := exec.CommandContext(t.Context(), clitest.Asset(t, "opa"), "eval", "--format=raw",
		"--data", "../../../examples/guides/new-releases/versions.rego", "--input", filepath.Join(w.Dir, "plan.json"),
		"sort(data.main.deny)").Output()
	tftest.Must(t, err)
	tftest.Must(t, json.Unmarshal(output, &denials))

	return denials
}
