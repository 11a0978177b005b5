package provider_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/upgrade"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/talosversion"
)

const repository = "../.."

var (
	codeBlock = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	codeSpan  = regexp.MustCompile("`([^`\n]+)`")
	// snakeCase matches names of attributes, types and functions, with or without a path below them.
	snakeCase = regexp.MustCompile(`^[a-z0-9]+(_[a-z0-9]+)+(\.[a-z0-9_]+)*$`)
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	anchor    = regexp.MustCompile(`<a id="([^"]+)">`)
	// inAnchors are the characters that a heading keeps in its anchor.
	inAnchors = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// notOurs are names in the pages that are foreign, keys of maps, or values.
var notOurs = strings.Fields(`
	action_invocations create_before_destroy depends_on dev_overrides error_message for_each ignore_changes policy_check
	replace_triggered_by terraform_data terraform_remote_state
	firewall_ids mock_outputs preserve_client_ip user_data
	download_url machine_token user_1 user_3 uuid_override
	ignored_conditions most_at_once most_in_a_day talosop_repair_exit_code talosop_repair_last_run_timestamp_seconds
	https_proxy through_control_plane
	apply_config node_textfile_mtime_seconds rpo_seconds rto_seconds
	disable_crd_hooks disable_webhooks force_update helm_release recreate_pods render_subchart_notes
	repository_ca_file repository_cert_file repository_key_file repository_password repository_username
	reset_values set_list set_wo set_wo_revision upgrade_install
	talos_cluster talos_cluster_kubeconfig talos_machine talos_machine_bootstrap talos_machine_configuration
	talos_machine_configuration_apply talos_machine_secrets
`)

// pages are all texts for users by path from the root of the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()

	found := map[string]string{}

	for _, name := range []string{"README.md", "CONTRIBUTING.md", ".github/SECURITY.md"} {
		found[name] = tftest.ReadFile(t, filepath.Join(repository, name))
	}

	tftest.Must(t, filepath.WalkDir(filepath.Join(repository, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found[strings.TrimPrefix(filepath.ToSlash(path), repository+"/")] = tftest.ReadFile(t, path)
		}

		return err
	}))

	return found
}

// Configuration in a guide is a file below examples, which both CLIs validate. Commands and YAML are parsed.
func TestGuides_codeBlocksAreValid(t *testing.T) {
	t.Parallel()

	templates, err := filepath.Glob(filepath.Join(repository, "templates/guides/*.tmpl"))
	tftest.Must(t, err)

	checks := map[string]func(string) error{
		"shell": parseShell, "sh": parseShell, "text": func(string) error { return nil },
		"yaml": func(code string) error { return yaml.Unmarshal([]byte(code), new(any)) },
	}

	for _, file := range templates {
		for _, block := range codeBlock.FindAllStringSubmatch(tftest.ReadFile(t, file), -1) {
			language, code := block[1], block[2]

			check, known := checks[language]
			if !known {
				t.Errorf("%s has a block of %q: put configuration into a file below examples, and show it with tffile "+
					"or codefile:\n%s", filepath.Base(file), language, code)

				continue
			}

			if err := check(code); err != nil {
				t.Errorf("%s: %v:\n%s", filepath.Base(file), err, code)
			}
		}
	}
}

// parseShell parses commands whose <placeholders> are words.
func parseShell(code string) error {
	placeholder := regexp.MustCompile(`<[a-z ]+>`)
	command := exec.Command("bash", "-n")
	command.Stdin = strings.NewReader(placeholder.ReplaceAllString(code, "word"))

	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}

	return nil
}

// Every name in a page exists.
func TestGuides_namesExist(t *testing.T) {
	t.Parallel()

	known, used := schemaNames(t), map[string]bool{}

	for page, text := range pages(t) {
		if page == metricsPage {
			text = ourMetric.ReplaceAllString(text, "metric") // hasMetrics checks their names
		}

		for _, span := range codeSpan.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
			name := span[1]
			if !snakeCase.MatchString(name) {
				continue
			}

			for _, part := range strings.Split(name, ".") {
				used[part] = true

				if strings.Contains(part, "_") && !known[part] && !slices.Contains(notOurs, part) {
					t.Errorf("%s: nothing is called %s", page, name)
				}
			}
		}
	}

	for _, name := range notOurs {
		if !used[name] {
			t.Errorf("no page names %s", name)
		}
	}
}

// problemCodes are those of talosop_upgrade_checks.
var problemCodes = []string{
	upgrade.RemovedSettingCode, upgrade.RemovedResourceCode, upgrade.RemovedRequestCode, upgrade.WebhookCode,
	upgrade.EndpointCode, upgrade.ConversionCode, upgrade.AggregatedCode, upgrade.EvictionCode, upgrade.CertificateCode,
	upgrade.ExtensionCode, upgrade.PodCode, upgrade.ChartCode, upgrade.ComponentCode,
}

// schemaNames are those of all types, functions, attributes and problem codes of the provider.
func schemaNames(t *testing.T) map[string]bool {
	t.Helper()

	names, all := map[string]bool{}, tftest.Schemas(t)
	visit := func(where string, a *tfprotov6.SchemaAttribute) {
		_, name, _ := strings.Cut(strings.Split(where, ".")[0], " ") // of the type
		names[name], names[a.Name] = true, true
	}

	tftest.EveryAttribute(t, visit)
	tftest.WalkAttributes("", all.Provider.Block.Attributes, visit)

	for name, action := range all.ActionSchemas {
		tftest.WalkAttributes("action "+name, action.Schema.Block.Attributes, visit)
	}

	for name, function := range all.Functions {
		names[name] = true

		for _, parameter := range function.Parameters {
			names[parameter.Name] = true
		}
	}

	for _, code := range problemCodes {
		names[code] = true
	}

	return names
}

// Every link inside the repository leads to an existing page, and to an existing heading.
func TestGuides_linksLeadSomewhere(t *testing.T) {
	t.Parallel()

	all := pages(t)

	for page, text := range all {
		for _, found := range link.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
			target, heading, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, ":") {
				continue
			}

			at := page
			if target != "" {
				at = filepath.ToSlash(filepath.Join(filepath.Dir(page), target))
			}

			if _, isPage := all[at+".md"]; isPage {
				at += ".md"
			}

			if _, err := os.Stat(filepath.Join(repository, at)); err != nil {
				t.Errorf("%s links to %s, which is not there", page, found[1])
			} else if heading != "" && !anchors(all[at])[heading] {
				t.Errorf("%s links to %s, which %s does not have", page, found[1], at)
			}
		}
	}
}

// guideCategories are the parts of the guides in the navigation of the registries.
var guideCategories = []string{
	"Concepts", "How-to guides: changes", "How-to guides: clusters", "How-to guides: machines", "How-to guides: networks",
	"How-to guides: recovery", "Reference", "Tutorial",
}

// Every guide is in a category, and the first page links to it. The summary of every page
// ends as a sentence.
func TestGuides_areInACategory(t *testing.T) {
	t.Parallel()

	all, used := pages(t), map[string]bool{}
	category := regexp.MustCompile(`(?m)^subcategory: "(.*)"$`)
	summary := regexp.MustCompile(`(?m)^description: \|-\n  (.*)$`)

	for page, text := range all {
		if found := summary.FindStringSubmatch(text); found != nil && !strings.HasPrefix(page, "docs/functions/") &&
			!strings.HasSuffix(found[1], ".") {
			t.Errorf("the summary of %s is cut off: %s", page, found[1])
		}

		name, guide := strings.CutPrefix(page, "docs/guides/")
		if !guide {
			continue
		}

		if found := category.FindStringSubmatch(text); found == nil || !slices.Contains(guideCategories, found[1]) {
			t.Errorf("%s is in none of the categories %v", page, guideCategories)
		} else {
			used[found[1]] = true
		}

		if !strings.Contains(all["docs/index.md"], "](guides/"+name+")") {
			t.Errorf("docs/index.md does not list %s", page)
		}
	}

	if got := slices.Sorted(maps.Keys(used)); !slices.Equal(got, guideCategories) {
		t.Errorf("guides are in %v, want %v", got, guideCategories)
	}
}

// The table of versions on the first page is that of Talos.
func TestGuides_versionsAreSupported(t *testing.T) {
	t.Parallel()

	index := pages(t)["docs/index.md"]

	for _, release := range talosversion.Known() {
		talos, err := machineconfig.ParseTalosVersion(release.String() + ".0")
		tftest.Must(t, err)

		var supported []string

		for minor := range 100 {
			version, err := machineconfig.ParseKubernetesVersion(fmt.Sprintf("v1.%d.0", minor))
			tftest.Must(t, err)

			if machineconfig.CheckKubernetesSupported(talos, version) == nil {
				supported = append(supported, fmt.Sprintf("1.%d", minor))
			}
		}

		row := fmt.Sprintf("| %s | %s to %s | 3.%d |", strings.TrimPrefix(release.String(), "v"), supported[0],
			supported[len(supported)-1], release.EtcdMinor)
		if !strings.Contains(index, row) {
			t.Errorf("docs/index.md has no row %s", row)
		}
	}
}

// anchors are those of a page's headings, as GitHub and the registries make them, and its explicit ones.
func anchors(page string) map[string]bool {
	found := map[string]bool{}

	for _, own := range anchor.FindAllStringSubmatch(page, -1) {
		found[own[1]] = true
	}

	for _, title := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(page, ""), -1) {
		found[strings.ReplaceAll(inAnchors.ReplaceAllString(strings.ToLower(title[1]), ""), " ", "-")] = true
	}

	return found
}
