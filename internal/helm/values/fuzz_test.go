package values_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	nodes "go.yaml.in/yaml/v4"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
)

// FuzzValuesSurvive writes random values as YAML in several styles, and checks whether a template sees them.
func FuzzValuesSurvive(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 6))
		want := randomMap(random, 0)
		chart := echoChart(t, "{}", echoTemplate)

		for style, text := range styles(t, want) {
			merged := merge(t, text)
			if !values.Equal(want, merged) {
				t.Fatalf("%s: %v\n%s", style, values.Differences(want, merged, nil), text)
			}

			seen := echoed(t, render(t, chart, merged))
			delete(seen, "global")

			if !values.Equal(want, seen) {
				t.Errorf("%s: in a template %v\n%s", style, values.Differences(want, seen, nil), text)
			}
		}
	})
}

// styles are texts of the same values.
func styles(t *testing.T, value map[string]any) map[string]string {
	t.Helper()

	plain, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}

	flow, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}

	var indented bytes.Buffer
	if err := json.Indent(&indented, flow, "", "  "); err != nil {
		t.Fatal(err)
	}

	var quoted nodes.Node
	if err := nodes.Unmarshal(flow, &quoted); err != nil {
		t.Fatal(err)
	}

	restyle(&quoted)

	mixed, err := nodes.Marshal(&quoted)
	if err != nil {
		t.Fatal(err)
	}

	return map[string]string{
		"plain": string(plain), "flow": string(flow), "indented": indented.String(), "quoted": string(mixed),
		"windows": strings.ReplaceAll(string(plain), "\n", "\r\n"),
	}
}

// restyle writes blocks instead of braces, and single quotes where the text allows.
func restyle(node *nodes.Node) {
	node.Style = 0

	if node.Kind == nodes.ScalarNode && node.Tag == "!!str" {
		node.Style = nodes.DoubleQuotedStyle
		if !strings.ContainsAny(node.Value, "\n\r\t\u2028\x00\x7f\u0085") {
			node.Style = nodes.SingleQuotedStyle
		}
	}

	for _, child := range node.Content {
		restyle(child)
	}
}

var awkward = []string{
	"", " ", "1e3", "0x10", "007", "0o7", "1_000", "on", "yes", "y", "n", "null", "~", ".inf",
	"=", "<<", "-", "- a", "a: b", "a #b", "#", "%", "@", "`", "{{ .Values.x }}",
	"{}", "[]",
	"|", ">", "'", `"`, `\`, "\\n", "a\nb", "a\n", "a\n\n", "\na", "  a\n b\n", "\ta", "a\t", "a \n b", "ü", "😀",
	"\u2028", "<&>", "2001-01-01", "12:30", "1.0", "-1", "+1",
	"0b1", "190:20:30", "*a", "&a", "!a", "!!int", "---", "...",
	"a\n---\nb", "true", "True", "1.e+3", "18446744073709551616", strings.Repeat("long ", 60),
}

var numbers = []any{
	int64(0), int64(1), int64(-1), int64(999999), int64(1000000), int64(math.MaxInt64), int64(math.MinInt64),
	uint64(math.MaxUint64),
	0.5, -1.5, 1e21, 1e-9, 123456789.125, math.MaxFloat64, math.SmallestNonzeroFloat64,
}

func randomMap(random *rand.Rand, depth int) map[string]any {
	made := map[string]any{}

	for range random.IntN(6) {
		key := awkward[random.IntN(len(awkward))]
		if random.IntN(2) == 0 || key == "<<" { // Helm merges what is below <<, in quotes too
			key = string(rune('a' + random.IntN(20)))
		}

		made[key] = randomValue(random, depth+1)
	}

	return made
}

func randomValue(random *rand.Rand, depth int) any {
	switch kind := random.IntN(10); {
	case kind < 2 && depth < 5:
		return randomMap(random, depth)
	case kind < 4 && depth < 5:
		list := make([]any, random.IntN(4))
		for i := range list {
			list[i] = randomValue(random, depth+1)
		}

		return list
	case kind < 6:
		return numbers[random.IntN(len(numbers))]
	case kind == 6:
		return []any{true, false, nil}[random.IntN(3)]
	default:
		return awkward[random.IntN(len(awkward))]
	}
}

// TestMerge_asHelm compares what templates see with the helm command.
func TestMerge_asHelm(t *testing.T) {
	t.Parallel()

	documents := []string{
		"dropped: {a: null, c: [1, 2.5, '3']}\nreplaced: []\nmore: {x: 1}\nanchors: {base: &base {a: 1}, merged: {<<: " +
			"*base, b: 0x10}}\n",
		"more: {y: on, z: \"on\"}\ntext: |\n  ü\n    😀\n\nfolded: >-\n  a\n  b\n\nempty: {a: {}, b: []}\nquoted: ['1e3', " +
			"007, '1_000', \"\\u2028\"]\n",
		"# nothing\n",
	}
	settings := []values.Setting{
		{Name: "list[1].a", Value: "x"}, {Name: `a\.b.c`, Value: `{1,2,x\,y}`},
	}

	merged, _, err := values.Merge(values.Given{Documents: documents, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}

	ours := echoed(t, render(t, echoChart(t, chartDefault, echoTemplate), merged))
	theirs := echoed(t, helmTemplate(t, chartDefault, echoTemplate, documents, "--set", "list[1].a=x", "--set",
		`a\.b.c={1,2,x\,y}`))

	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Error(diff)
	}
}
