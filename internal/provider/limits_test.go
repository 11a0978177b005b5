package provider

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
)

// What a reference page may be, so that a person reads it: what is longer belongs into a guide.
const (
	mostSentences = 3
	largestPage   = 45_000 // bytes of a page of a resource
)

var (
	quotedCode  = regexp.MustCompile("(?s)```.*?```|`[^`]*`")
	sentenceEnd = regexp.MustCompile(`[.!?…][)\]"'*_]*(\s|$)`)
)

// sentences counts the sentences of a description; what is quoted as code ends none.
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

// everyDescription are the descriptions of the whole provider, each with the first place that has it.
func everyDescription(t *testing.T) map[string]string {
	t.Helper()

	places := map[string]string{}
	add := func(where, description string) {
		if first, ok := places[description]; !ok || where < first {
			places[description] = where
		}
	}
	attribute := func(where string, a *tfprotov6.SchemaAttribute) { add(where, a.Description) }

	resp := schemas(t)
	add("provider", resp.Provider.Block.Description)
	walkAttributes("provider", resp.Provider.Block.Attributes, attribute)

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
		walkAttributes("action "+name, action.Schema.Block.Attributes, attribute)
	}

	for name, function := range resp.Functions {
		add("function "+name, function.Description)

		for _, p := range function.Parameters {
			add("function "+name+"."+p.Name, p.Description)
		}
	}

	everyAttribute(t, attribute)

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

	for _, kind := range []string{"resources", "data-sources", "ephemeral-resources"} {
		pages, err := filepath.Glob("../../docs/" + kind + "/*.md")
		must(t, err)

		if len(pages) == 0 {
			t.Errorf("docs/%s has no pages", kind)
		}

		for _, page := range pages {
			content, err := os.ReadFile(page)
			must(t, err)

			if kind == "resources" && len(content) > largestPage {
				t.Errorf("%s has %d bytes, at most %d: put the depth into a guide below templates/guides", page, len(content),
					largestPage)
			}

			category := regexp.MustCompile(`(?m)^subcategory: "(.+)"$`).FindSubmatch(content)
			if category == nil {
				t.Errorf("%s has no subcategory: add it to the list in templates/%s.md.tmpl", page, kind)

				continue
			}

			categories[string(category[1])] = true
		}
	}

	want := []string{"Addons", "Backups", "Clusters", "Credentials", "Observation"}
	if got := slices.Sorted(maps.Keys(categories)); !slices.Equal(got, want) {
		t.Errorf("subcategories are %v, expected %v", got, want)
	}
}
