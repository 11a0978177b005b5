package sitetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/echoprovider"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/finding/expand"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// InOneCLI runs a test of provider behavior under one CLI, and under each of them before a release.
func InOneCLI(t *testing.T, test func(t *testing.T, cli clitest.CLI)) {
	t.Helper()

	if testenv.Everything() {
		clitest.Each(t, test)

		return
	}

	cli := clitest.One(t)

	t.Run(cli.Name, func(t *testing.T) { test(t, cli) })
}

// environment is locked while plugin-testing reads it.
var environment sync.Mutex

// UnitTest runs a test case of plugin-testing under a CLI. plugin-testing reads the CLI from the environment, which
// all tests of this process share. So only one of them starts at a time; it is independent from its first step on.
func UnitTest(t *testing.T, cli clitest.CLI, test resource.TestCase) {
	t.Helper()

	environment.Lock()

	begun := sync.OnceFunc(environment.Unlock)
	defer begun() // for a test that ends before its first step

	for name, value := range map[string]string{
		"TF_ACC_TERRAFORM_PATH": cli.Path, "TF_CLI_CONFIG_FILE": os.DevNull,
		// With a namespace, plugin-testing writes full addresses into configurations, which mean the same to both CLIs.
		"TF_ACC_PROVIDER_NAMESPACE": "hashicorp",
	} {
		if err := os.Setenv(name, value); err != nil { //nolint:usetesting // t.Setenv does not work in parallel tests
			t.Fatal(err)
		}
	}

	test.Steps = slices.Clone(test.Steps)
	first := test.Steps[0].PreConfig
	test.Steps[0].PreConfig = func() {
		begun()

		if first != nil {
			first()
		}
	}

	resource.UnitTest(t, test)
}

// QuickProviders are the providers of a test case on QuickProviderData.
func QuickProviders() map[string]func() (tfprotov6.ProviderServer, error) {
	return ProvidersWith(tftest.QuickProviderData())
}

// ProvidersWith are the providers of a test case on given data: talosop, and echo for ephemeral values.
func ProvidersWith(m *providerdata.ProviderData) map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"talosop": func() (tfprotov6.ProviderServer, error) { return provider.Serve(tftest.NewQuickProvider(m)), nil },
		"echo":    echoprovider.NewProviderServer(),
	}
}

// BundleIn is the secrets of the cluster of a workspace.
func BundleIn(t *testing.T, w *clitest.Workspace) *pki.Bundle {
	t.Helper()

	text, _ := w.Attribute("talosop_secrets.this", "bundle").(string)

	return tftest.ParsedBundle(t, text)
}

// Says checks that the output of a command contains texts, however it is wrapped.
func Says(t *testing.T, result clitest.Result, texts ...string) {
	t.Helper()

	for _, text := range texts {
		if !Message(text).MatchString(result.Output()) {
			t.Errorf("the output does not say %q:\n%s", text, result.Output())
		}
	}
}

// Shows checks that a CLI prints the messages of codes.
func Shows(t *testing.T, result clitest.Result, codes ...string) {
	t.Helper()

	for _, code := range codes {
		if !Shown(t, code).MatchString(result.Output()) {
			t.Errorf("the output does not have the message %s:\n%s", code, result.Output())
		}
	}
}

// Shown matches the output of a CLI that prints the message of a code.
func Shown(t *testing.T, code string) *regexp.Regexp {
	t.Helper()

	pattern, err := expand.Pattern(tftest.MessageOf(t, code))
	tftest.Must(t, err)

	return pattern
}

// VisibleValues is the text of all values in state that are not sensitive.
func VisibleValues(t *testing.T, state *tfjson.State) string {
	t.Helper()

	var b strings.Builder

	for _, r := range state.Values.RootModule.Resources {
		hidden := map[string]any{}
		DecodeJSON(t, r.SensitiveValues, &hidden)

		for name, v := range r.AttributeValues {
			b.WriteString(tftest.JSON(t, Visible(v, hidden[name])))
			b.WriteString("\n")
		}
	}

	return b.String()
}

// Visible removes sensitive values.
func Visible(v, hidden any) any {
	if hidden == true {
		return nil
	}

	switch v := v.(type) {
	case map[string]any:
		marks, _ := hidden.(map[string]any)
		out := map[string]any{}

		for key, child := range v {
			out[key] = Visible(child, marks[key])
		}

		return out
	case []any:
		marks, _ := hidden.([]any)
		out := make([]any, len(v))

		for i, child := range v {
			var mark any
			if i < len(marks) {
				mark = marks[i]
			}

			out[i] = Visible(child, mark)
		}

		return out
	default:
		return v
	}
}

// Leaked is a key of a kubeconfig that a text contains.
func Leaked(kubeconfig, text string) string {
	for line := range strings.Lines(kubeconfig) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if (name == "client-key-data" || name == "token") && strings.Contains(text, value) {
			return name
		}
	}

	return ""
}

// DecodeJSON decodes JSON that may be missing.
func DecodeJSON(t *testing.T, raw json.RawMessage, into any) {
	t.Helper()

	if len(raw) == 0 {
		return
	}

	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

// Fails runs a command that has to fail.
func Fails(t *testing.T, w *clitest.Workspace, args ...string) clitest.Result {
	t.Helper()

	result := w.Run(args...)
	if result.Exit != 1 {
		t.Errorf("%v: exit status %d\n%s", args, result.Exit, result.Output())
	}

	return result
}

// Quickstart is the example, for the machines of a site.
func (s *Site) Quickstart(t *testing.T, cli clitest.CLI, variables map[string]any) *clitest.Workspace {
	t.Helper()

	root, err := clitest.Repository()
	tftest.Must(t, err)

	w := clitest.NewWorkspace(t, cli)
	w.CopyFrom(filepath.Join(root, "examples/quickstart"))
	s.SetQuickstart(t, w, variables)
	w.Init()

	return w
}

// SetQuickstart writes the variables of the quickstart: those of the site, and the given ones in their place.
func (s *Site) SetQuickstart(t *testing.T, w *clitest.Workspace, variables map[string]any) {
	t.Helper()

	values := map[string]any{
		"endpoint": s.URL, "control_planes": Addresses(s.ControlPlane), "workers": Addresses(s.Workers),
	}

	if talos := s.ControlPlane[0].TalosVersion(); talos != machineconfig.CurrentTalos {
		values["talos_version"], values["kubernetes_version"] = talos, "v1.36.3"
	}

	maps.Copy(values, variables)
	w.Write("site.auto.tfvars.json", tftest.JSON(t, values))
}

// Applied is a workspace after an apply of its configuration.
func Applied(t *testing.T, cli clitest.CLI, main string) *clitest.Workspace {
	t.Helper()

	w := clitest.NewWorkspace(t, cli)
	w.Write("main.tf", main)
	w.Init()
	w.MustRun("apply", "-auto-approve")

	return w
}

// ExpectNoChanges checks that a plan is empty.
func ExpectNoChanges(t *testing.T, w *clitest.Workspace, when string) {
	t.Helper()

	if empty, output := w.PlanIsEmpty(); !empty {
		t.Errorf("the plan %s is not empty:\n%s", when, output)
	}
}

// HoldsNone checks that texts contain no secret of a bundle.
func HoldsNone(t *testing.T, bundle string, texts map[string]string) {
	t.Helper()

	for where, text := range texts {
		for _, secret := range tftest.SecretsIn(bundle) {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds a secret of %d characters", where, len(secret))
			}
		}
	}
}

// Message is a pattern for text of a diagnostic, which the CLIs wrap at spaces.
func Message(words string) *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(words), " ", `\s+(│\s*)?`))
}

// CountedAway puts a count around a resource of a workspace: a count of one changes only its address, and a count of
// zero destroys it.
func CountedAway(t *testing.T, w *clitest.Workspace, kind string, args ...string) clitest.Result {
	t.Helper()

	main, block := w.Read("main.tf"), fmt.Sprintf("resource \"talosop_%s\" \"this\" {\n", kind)
	apply := append([]string{"apply", "-auto-approve"}, args...)
	count := func(n int) {
		w.Write("main.tf", strings.Replace(main, block, fmt.Sprintf("%s  count = %d\n", block, n), 1))
	}

	count(1)
	Says(t, w.MustRun(apply...), "has moved to", "0 added, 0 changed, 0 destroyed")
	count(0)

	return w.MustRun(apply...)
}
