package values_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"
	helmvalues "helm.sh/helm/v3/pkg/cli/values"
	"helm.sh/helm/v3/pkg/getter"

	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
)

// FuzzMerge_typesAsHelm loads random documents with Helm's own code, in each style of YAML and JSON.
func FuzzMerge_typesAsHelm(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, seed uint64) {
		first := styles(t, randomMap(rand.New(rand.NewPCG(seed, 7)), 0))
		second := styles(t, randomMap(rand.New(rand.NewPCG(seed, 8)), 0))

		for style := range first {
			documents := []string{first[style], second[style]}

			for part, given := range map[values.Part]values.Given{
				values.PartDocuments: {Documents: documents}, values.PartSecret: {Secret: documents},
			} {
				got, _, err := values.Merge(given)
				if err != nil {
					t.Fatal(err)
				}

				if want := helmMerge(t, documents, helmvalues.Options{}); !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %s: %s", style, part, cmp.Diff(want, got))
				}
			}

			one, err := chartutil.ReadValues([]byte(first[style]))
			if got := merge(t, first[style]); err != nil || !reflect.DeepEqual(got, one.AsMap()) {
				t.Errorf("%s, alone (%v): %s", style, err, cmp.Diff(one.AsMap(), got))
			}
		}
	})
}

// helmMerge is the result of the helm command for files and flags.
func helmMerge(t *testing.T, documents []string, options helmvalues.Options) map[string]any {
	t.Helper()

	folder := t.TempDir()

	for i, document := range documents {
		path := filepath.Join(folder, strconv.Itoa(i)+".yaml")
		if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}

		options.ValueFiles = append(options.ValueFiles, path)
	}

	merged, err := options.MergeValues(getter.Providers{})
	if err != nil {
		t.Fatal(err)
	}

	return merged
}

// Numbers as people write them, in YAML 1.1 and JSON.
var writtenNumbers = []string{
	"0", "-0", "1", "-1", "80", "007", "0o7", "0x10", "0b1", "1_000", "1e3", "1E3", "1.0", "-1.50", "1.", ".5", "+1",
	"1000000", "21e20", "1e999", "12:30", "190:20:30",
	"9007199254740992", "9007199254740993", "-9007199254740993", "9223372036854775807", "9223372036854775808",
	"18446744073709551615", "18446744073709551616", "-9223372036854775809", "0.1000000000000000055",
}

func TestMerge_numbersAsHelm(t *testing.T) {
	t.Parallel()

	for _, number := range writtenNumbers {
		for _, format := range []string{"n: %s", "n: [%s]", "{n: {n: %s}}", "n: '%s'"} {
			text := fmt.Sprintf(format, number)
			if got, want := merge(t, text), helmMerge(t, []string{text}, helmvalues.Options{}); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %#v, Helm has %#v", text, got, want)
			}
		}
	}
}

func TestSettings_typesAsHelm(t *testing.T) {
	t.Parallel()

	for _, number := range writtenNumbers {
		for kind, options := range map[values.Type]helmvalues.Options{
			values.Auto:    {Values: []string{"a.n=" + number}},
			values.String:  {StringValues: []string{"a.n=" + number}},
			values.Literal: {LiteralValues: []string{"a.n=" + number}},
			values.JSON:    {JSONValues: []string{"a.n=" + number}},
		} {
			checkSetting(t, values.Setting{Name: "a.n", Value: number, Type: kind}, options)
		}

		list := "[" + number + ", {\"b\": " + number + "}]"
		checkSetting(t, values.Setting{Name: "a.list[1]", Value: list, Type: values.JSON},
			helmvalues.Options{JSONValues: []string{"a.list[1]=" + list}})

		list = "{" + number + ",x}"
		checkSetting(t, values.Setting{Name: "a.n", Value: list}, helmvalues.Options{Values: []string{"a.n=" + list}})
	}
}

// checkSetting compares one setting above a document with what Helm makes of it, or whether Helm refuses it.
func checkSetting(t *testing.T, setting values.Setting, options helmvalues.Options) {
	t.Helper()

	const document = "a: {n: 1, list: [1, 2.5]}\n"

	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}

	options.ValueFiles = []string{path}
	want, refused := options.MergeValues(getter.Providers{})

	for _, sensitive := range []bool{false, true} {
		setting.Sensitive = sensitive

		got, _, err := values.Merge(values.Given{Documents: []string{document}, Settings: []values.Setting{setting}})
		if (err != nil) != (refused != nil) {
			t.Errorf("%s as %s: error %v, Helm says %v", setting.Value, setting.Type, err, refused)
		}

		if err == nil && refused == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s as %s: %#v, Helm has %#v", setting.Value, setting.Type, got, want)
		}
	}
}

// typesTemplate shows the types of its values, as far as a template can.
const typesTemplate = `apiVersion: v1
kind: Types
metadata: {name: types}
spec:
  replicas: {{ if kindIs "float64" .Values.replicas }}{{ .Values.replicas }}{{ else }}1{{ end }}
  port: {{ printf "%.0f" .Values.port }}
  has: {{ has 80.0 .Values.ports }}
  hasDefault: {{ has .Values.known .Values.ports }}
  eq: {{ eq .Values.replicas .Values.default }}
  kinds: {{ kindOf .Values.replicas }} {{ typeOf .Values.port }} {{ kindOf (index .Values.ports 0) }}
  kind: {{ kindOf .Values.big }}
  plain: "{{ .Values.big }} {{ .Values.million }} {{ .Values.million | int }} {{ .Values.ratio }}"
  json: '{{ .Values | toJson }}'
`

// TestMerge_templatesAsHelm renders a template that depends on types, by the engine and by the helm command.
func TestMerge_templatesAsHelm(t *testing.T) {
	t.Parallel()

	const (
		defaults = "default: 3\nknown: 80\nreplicas: 1\nport: 1\nports: [1]\nbig: 1\nmillion: 1\nratio: 1.5\n"
		document = "replicas: 3\nport: 9200\nports: [80]\nbig: 9007199254740993\nmillion: 1000000\nratio: 2.0\n"
	)

	for name, test := range map[string]struct {
		documents []string
		settings  []values.Setting
		flags     []string
	}{
		"documents": {documents: []string{document}},
		"two documents": {documents: []string{"replicas: 5\nport: 1\n" + "million: 1000000\nratio: 2.0\n",
			"replicas: 3\nport: 9200\nports: [80]\nbig: 9007199254740993\n"}},
		"setting": {documents: []string{document}, settings: []values.Setting{{Name: "ports[0]", Value: "80"},
			{Name: "big", Value: "9007199254740993"}},
			flags: []string{"--set", "ports[0]=80", "--set", "big=9007199254740993"}},
		"JSON": {documents: []string{document}, settings: []values.Setting{{Name: "ports", Value: "[80]", Type: values.JSON},
			{Name: "replicas", Value: "3", Type: values.JSON}},
			flags: []string{"--set-json", "ports=[80]", "--set-json", "replicas=3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			theirs := echoed(t, helmTemplate(t, defaults, typesTemplate, test.documents, test.flags...))

			for part, given := range map[values.Part]values.Given{
				values.PartDocuments: {Documents: test.documents, Settings: test.settings},
				values.PartSecret:    {Secret: test.documents},
			} {
				if part == values.PartSecret && test.settings != nil {
					continue // secret documents come after settings
				}

				merged, _, err := values.Merge(given)
				if err != nil {
					t.Fatal(err)
				}

				if diff := cmp.Diff(theirs, echoed(t, render(t, echoChart(t, defaults, typesTemplate), merged))); diff != "" {
					t.Errorf("%s: %s", part, diff)
				}
			}
		})
	}
}

// Neighbors beyond 2^53 that a float64 does not hold apart.
var neighbors = [][2]string{
	{"9007199254740993", "9007199254740992"}, {"-9007199254740993", "-9007199254740992"},
	{"9223372036854775807", "9223372036854775806"}, {"18446744073709551615", "18446744073709551614"},
}

func TestSame_exactIntegers(t *testing.T) {
	t.Parallel()

	for _, pair := range neighbors {
		for _, format := range []string{"a: %s", "a: {b: [1, %s]}", `{"a": %s}`} {
			a, b := fmt.Sprintf(format, pair[0]), fmt.Sprintf(format, pair[1])

			if values.Same([]string{a}, []string{b}) {
				t.Errorf("%s is the same as %s", a, b)
			}

			if !values.Same([]string{a}, []string{"# comment\n" + a}) || !values.Same([]string{b, a}, []string{a}) {
				t.Errorf("%s is not the same as itself", a)
			}
		}
	}

	for a, b := range map[string]string{"a: 1e3": "a: 1000", "a: 0x10": "a: 16", "a: 1.0": "a: 1", "a: -0": "a: 0"} {
		if !values.Same([]string{a}, []string{b}) {
			t.Errorf("%s is not the same as %s", a, b)
		}
	}

	if values.Same([]string{"a: 1"}, []string{"a: '1'"}) || values.Same([]string{"a: ["}, []string{"a: ["}) {
		t.Error("a text is the same as a number, or what cannot be read the same as itself")
	}
}

// Templates see integers of set exactly, and Helm's record rounds them.
func TestEqual_exactIntegersOfSettings(t *testing.T) {
	t.Parallel()

	for _, pair := range neighbors[:3] {
		a, b := set(t, pair[0]), set(t, pair[1])

		rounded, err := strconv.ParseFloat(pair[0], 64)
		if err != nil {
			t.Fatal(err)
		}

		record := map[string]any{"a": map[string]any{"n": []any{rounded}}}

		if values.Equal(a, b) || values.Digest(a) == values.Digest(b) {
			t.Errorf("%s is %s", pair[0], pair[1])
		}

		want := []string{"a.n[0]: " + pair[0] + " -> " + pair[1]}
		if diff := cmp.Diff(want, values.Differences(a, b, nil)); diff != "" {
			t.Error(diff)
		}

		if !values.Equal(a, record) || !values.Equal(record, b) || len(values.Differences(a, record, nil)) > 0 {
			t.Errorf("%s is not what its record has", pair[0])
		}

		if back := values.Restored(record, a); values.Digest(back) != values.Digest(a) {
			t.Errorf("restored %v of %v", back, a)
		}
	}

	other := map[string]any{"a": "x", "b": []any{1.0}, "c": 9007199254740996.0}
	known := map[string]any{"a": int64(1), "b": map[string]any{}, "c": int64(9007199254740993), "d": int64(1)}

	if back := values.Restored(other, known); !reflect.DeepEqual(back, other) {
		t.Errorf("restored %v", back)
	}
}

func set(t *testing.T, number string) map[string]any {
	t.Helper()

	merged, _, err := values.Merge(values.Given{Settings: []values.Setting{{Name: "a.n[0]", Value: number}}})
	if err != nil {
		t.Fatal(err)
	}

	return merged
}

// A template writes a number in several ways, none of which may show a secret one.
func TestMerge_hidesSecretNumbersAsRendered(t *testing.T) {
	t.Parallel()

	const template = `{{ .Values.pin }} {{ .Values.pin | toJson }} {{ printf "%.0f" .Values.pin }} {{ int64 .Values.pin }}
{{ toYaml .Values.pin }} {{ .Values.pin | quote }} {{ .Values.pin | toString }}`

	for _, number := range []string{
		"12345678", "1000000", "4711", "9007199254740993", "9223372036854775807", "1234.5678",
	} {
		for _, given := range []values.Given{
			{Secret: []string{"pin: " + number}},
			{Settings: []values.Setting{{Name: "pin", Value: number, Type: values.JSON, Sensitive: true}}},
		} {
			merged, secrets, err := values.Merge(given)
			if err != nil {
				t.Fatal(err)
			}

			texts := append(strings.Fields(render(t, echoChart(t, "{}", template), merged)), number)
			for _, text := range texts {
				if shown := strings.Trim(secrets.Redact(text), `"`); shown != "(sensitive)" && text != "1235" && text != "1234" {
					t.Errorf("%s is shown as %s", number, shown)
				}
			}
		}
	}
}
