package provider_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// The limits of a readable reference page: longer text belongs in a guide.
const (
	mostSentences = 3
	largestPage   = 51_000 // bytes of a page of a resource
)

var (
	quotedCode  = regexp.MustCompile("(?s)```.*?```|`[^`]*`")
	sentenceEnd = regexp.MustCompile(`[.!?…][)\]"'*_]*(\s|$)`)
)

// sentences counts the sentences of a description; text in code style ends none.
func sentences(description string) int {
	text := strings.TrimSpace(quotedCode.ReplaceAllString(description, "x"))
	if text == "" {
		return 0
	}

	ends := sentenceEnd.FindAllStringIndex(text, -1)
	if len(ends) == 0 || ends[len(ends)-1][1] < len(text) {
		return len(ends) + 1 // the last one has no full stop
	}

	return len(ends)
}

// everyDescription are the descriptions of the whole provider, each with its first place.
func everyDescription(t *testing.T) map[string]string {
	t.Helper()

	places := map[string]string{}
	add := func(where, description string) {
		if first, ok := places[description]; !ok || where < first {
			places[description] = where
		}
	}
	attribute := func(where string, a *tfprotov6.SchemaAttribute) { add(where, a.Description) }

	resp := tftest.Schemas(t)
	add("provider", resp.Provider.Block.Description)
	tftest.WalkAttributes("provider", resp.Provider.Block.Attributes, attribute)

	for prefix, kind := range map[string]map[string]*tfprotov6.Schema{
		"resource ": resp.ResourceSchemas, "data ": resp.DataSourceSchemas, "ephemeral ": resp.EphemeralResourceSchemas,
		"list ": resp.ListResourceSchemas,
	} {
		for name, schema := range kind {
			add(prefix+name, schema.Block.Description)
		}
	}

	for name, action := range resp.ActionSchemas {
		add("action "+name, action.Schema.Block.Description)
		tftest.WalkAttributes("action "+name, action.Schema.Block.Attributes, attribute)
	}

	for name, function := range resp.Functions {
		add("function "+name, function.Description)

		for _, p := range function.Parameters {
			add("function "+name+"."+p.Name, p.Description)
		}
	}

	tftest.EveryAttribute(t, attribute)

	return places
}

func TestSchema_descriptionsAreShort(t *testing.T) {
	t.Parallel()

	var long []string

	for description, where := range everyDescription(t) {
		if count := sentences(description); count > mostSentences {
			long = append(long, fmt.Sprintf("%s: %d sentences: %s", where, count, strings.Join(strings.Fields(description), " ")))
		}
	}

	if slices.Sort(long); len(long) > 0 {
		t.Errorf("%d descriptions have more than %d sentences, put the rest into a guide below templates/guides:\n%s",
			len(long), mostSentences, strings.Join(long, "\n"))
	}
}

func TestSchema_sentencesAreCounted(t *testing.T) {
	t.Parallel()

	for description, want := range map[string]int{
		"":                               0,
		"One, such as `a. b. c`":         1,
		"One (`x.y`). talosctl is two. ": 2,
		"At most 1.5 GiB: one. **Two.** Default: `3.`. Four!": 4,
		"One ([guide](../guides/a.md)).\n\n```\na. b.\n```":   2,
	} {
		if got := sentences(description); got != want {
			t.Errorf("%q has %d sentences, counted %d", description, want, got)
		}
	}
}

func TestSchema_pagesAreShortAndInACategory(t *testing.T) {
	t.Parallel()

	categories := map[string]bool{}

	for _, kind := range []string{"resources", "data-sources", "ephemeral-resources", "functions", "actions",
		"list-resources"} {
		pages, err := filepath.Glob("../../docs/" + kind + "/*.md")
		tftest.Must(t, err)

		if len(pages) == 0 {
			t.Errorf("docs/%s has no pages", kind)
		}

		for _, page := range pages {
			content, err := os.ReadFile(page)
			tftest.Must(t, err)

			if kind == "resources" && len(content) > largestPage {
				t.Errorf("%s has %d bytes, at most %d: put the depth into a guide below templates/guides", page, len(content),
					largestPage)
			}

			if text := string(content); strings.Contains(text, "†") &&
				!strings.Contains(text, "\n† marks arguments whose change touches no machine.\n") {
				t.Errorf("%s does not explain the mark †", page)
			}

			category := regexp.MustCompile(`(?m)^subcategory: "(.+)"$`).FindSubmatch(content)
			if category == nil {
				t.Errorf("%s has no subcategory: add it to the list in templates/%s.md.tmpl", page, kind)

				continue
			}

			categories[string(category[1])] = true
		}
	}

	want := []string{"Addons", "Backups", "Clusters", "Configuration", "Credentials", "Images", "Observation",
		"Operations"}
	if got := slices.Sorted(maps.Keys(categories)); !slices.Equal(got, want) {
		t.Errorf("subcategories are %v, expected %v", got, want)
	}
}

// changePhrases are all phrases for the effect of a change on running machines.
var changePhrases = []string{
	"is applied without a reboot",
	"is applied in place; pods keep running",
	"upgrades these machines, as `talos_version` of the cluster does",
	"is refused: create another pool instead",
	"is refused: destroy the cluster and create another one",
	"restarts the API servers, without a reboot",
	"restarts the kubelet; pods keep running",
	"replaces the pods, each drained first",
	"replaces the cluster: every machine is wiped, etcd included",
	"replaces the resource: its workers are drained, wiped, and join again",
	"replaces the resource: the machine is drained, leaves etcd (control planes), is wiped, and joins again",
	"affects only machines installed after it",
	"is applied to running machines, with a drain and a reboot if the plan says so",
	"makes talosop look for the same machine at both addresses",
	"upgrades running machines to the same Talos version with the new schematic",
	"upgrades machines whose image talosop installed to the new image of the same Talos; others get it with their next " +
		"upgrade",
	"upgrades running machines one minor version at a time: each is drained and rebooted, control planes one at a time",
	"upgrades Kubernetes on running machines, without a reboot, one minor version at a time: see the [guide](",
}

// inOwnWords are the arguments that describe a change without a fixed phrase: the identity of the machines, and what
// connects them to their cluster.
var inOwnWords = []string{"cluster", "control_plane", "host", "hostname", "image_cache", "locked", "machines", "name",
	"rejoin", "replica_config_patches", "replicas", "secrets", "uuid", "version_contract", "workers"}

// A fixed phrase describes the effect of a change on machines, the same for the same effect.
func TestSchema_changesAreDescribedByFixedPhrases(t *testing.T) {
	t.Parallel()

	phrase := regexp.MustCompile(`A change ([^.]*)\.`)
	used := map[string]bool{}

	for name, resource := range tftest.Schemas(t).ResourceSchemas {
		if !slices.Contains([]string{"talosop_cluster", "talosop_control_plane", "talosop_worker", "talosop_machine"}, name) {
			continue
		}

		tftest.WalkAttributes(name, resource.Block.Attributes, func(where string, a *tfprotov6.SchemaAttribute) {
			found := phrase.FindAllStringSubmatch(a.Description, -1)
			for _, text := range found {
				used[text[1]] = true

				if !slices.Contains(changePhrases, text[1]) {
					t.Errorf("%s has a phrase of its own: %s", where, text[0])
				}
			}

			argument := (a.Optional || a.Required) && strings.Count(where, ".") == 1
			described := len(found) > 0 || strings.Contains(a.Description, tf.TerraformOnly) ||
				slices.Contains(inOwnWords, a.Name)
			if argument && !described {
				t.Errorf("%s does not say what a change does to machines: %s", where, a.Description)
			}
		})
	}

	for _, text := range changePhrases {
		if !used[text] {
			t.Errorf("nothing says %s", text)
		}
	}
}
