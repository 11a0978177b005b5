package provider

import (
	"encoding/json"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

var (
	namedTest = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	ownTest   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
)

// Every test that SECURITY.md names exists.
func TestSecurity_namesTestsThatExist(t *testing.T) {
	t.Parallel()

	exists := map[string]bool{}

	for _, folder := range []string{"internal", "tools"} {
		must(t, filepath.WalkDir(filepath.Join(repository, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}

			for _, found := range ownTest.FindAllStringSubmatch(readFile(t, path), -1) {
				exists[found[1]] = true
			}

			return nil
		}))
	}

	named := namedTest.FindAllStringSubmatch(readFile(t, filepath.Join(repository, ".github/SECURITY.md")), -1)
	if len(named) == 0 {
		t.Error("SECURITY.md names no test")
	}

	for _, found := range named {
		if !exists[found[1]] {
			t.Errorf("SECURITY.md names the test %s, which does not exist", found[1])
		}
	}
}

// The plan file of a change that triggers an action has the configuration of the action, with the secrets of the
// handle. The CLI marks them as sensitive, because the resource does that the handle comes from.
func TestAccActions_planFileHasTheHandle(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1)
	w := clitest.NewWorkspace(t, clitest.Newest(t))

	w.Write("providers.tf", talosopRequired)
	w.Write("main.tf", operatedHCL(s, restartHCL("a")))
	w.Init()
	w.MustRun("apply", "-auto-approve")
	w.Write("main.tf", operatedHCL(s, restartHCL("b")))

	shown, _ := w.SavedPlan("triggered.plan")

	var plan struct {
		Invocations []struct {
			Values    map[string]any `json:"config_values"`
			Sensitive any            `json:"config_sensitive"`
		} `json:"action_invocations"`
	}

	must(t, json.Unmarshal([]byte(shown), &plan))

	if len(plan.Invocations) != 1 {
		t.Fatalf("the plan invokes %d actions", len(plan.Invocations))
	}

	invoked := plan.Invocations[0]
	token := bundleIn(t, w).Secrets().TrustdInfo.Token

	if token == "" || !strings.Contains(encoded(t, invoked.Values), token) {
		t.Error("the configuration of the action lacks the machine token of the cluster")
	}

	if strings.Contains(encoded(t, visible(invoked.Values, invoked.Sensitive)), token) {
		t.Error("the machine token is not marked as sensitive")
	}

	w.MustRun("destroy", "-auto-approve")
}
