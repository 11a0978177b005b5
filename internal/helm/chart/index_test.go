package chart

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// However an index is written, it is read as helm reads it.
func TestIndex_readAsHelmDoes(t *testing.T) {
	item := func(name, version, more string) string {
		return fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\ndigest: abc\nurls:\n- %s.tgz\n- other\n%s", name, version,
			version, more)
	}
	list := func(indent string, items ...string) string {
		var b strings.Builder
		for _, one := range items {
			lines := strings.Split(strings.TrimSuffix(one, "\n"), "\n")
			fmt.Fprintf(&b, "%s- %s\n", indent, strings.Join(lines, "\n"+indent+"  "))
		}
		return b.String()
	}
	usual := "  a:\n" + list("  ", item("a", "1.0.0", ""), item("a", "2.0.0", "")) + "  b:\n" +
		list("  ", item("b", "1.0.0", ""))
	for name, text := range map[string]string{
		"usual":         "apiVersion: v1\nentries:\n" + usual + "generated: \"2026-01-01T00:00:00Z\"\n",
		"entries first": "entries:\n" + usual + "apiVersion: v1\n",
		"no last line":  "apiVersion: v1\nentries:\n" + strings.TrimSuffix(usual, "\n"),
		"separator":     "---\napiVersion: v1\nentries:\n" + usual,
		"comments": "# by hand\napiVersion: v1\nentries: \n\n# first\n" +
			strings.ReplaceAll(usual, "  b:", "# b\n  # c\n\n  b:"),
		"carriage": strings.ReplaceAll("apiVersion: v1\nentries:\n"+usual, "\n", "\r\n"),
		"deeper lists": "apiVersion: v1\nentries:\n    a:\n" + list("      ", item("a", "1.0.0", "")) + "    b:\n" +
			list("      ", item("b", "1.0.0", "")),
		"flat lists": "apiVersion: v1\nentries:\n a:\n" + list(" ", item("a", "1.0.0", "")) + " b:\n" +
			list(" ", item("b", "1.0.0", "")),
		"block scalars": "apiVersion: v1\nentries:\n  a:\n" +
			list("  ", item("a", "1.0.0", "description: |\n  entries:\n    b:\n   - x\n\n  # no comment\n")) + "  b:\n" +
			list("  ", item("b", "1.0.0", "description: >-\n  folded\n  b:\n")),
		"quoted lines": "apiVersion: v1\nentries:\n  a:\n" +
			list("  ", item("a", "1.0.0", "description: \"one\n  b:\n  two\"\n")),
		"odd quotes": "apiVersion: v1\nentries:\n  a:\n  - {apiVersion: v2, name: a, version: 1.0.0, description: " +
			"\"one\n  b: two\", urls: [x]}\n",
		"quoted names": "apiVersion: v1\nentries:\n  \"a\":\n" + list("  ", item("a", "1.0.0", "")) + "  'b':\n" +
			list("  ", item("b", "1.0.0", "")),
		"empty chart": "apiVersion: v1\nentries:\n  a: []\n  b:\n" + list("  ", item("b", "1.0.0", "")),
		"anchors": "apiVersion: v1\nentries:\n  a:\n  - &x\n    apiVersion: v2\n    name: a\n    version: 1.0.0\n   " +
			" urls: [x]\n  b:\n  - *x\n",
		"no entries":   "apiVersion: v1\nentries: {}\n",
		"null entries": "apiVersion: v1\nentries:\ngenerated: \"2026-01-01T00:00:00Z\"\n",
		"flow":         "apiVersion: v1\nentries: {a: [{apiVersion: v2, name: a, version: 1.0.0, urls: [x]}]}\n",
		"json":         `{"apiVersion":"v1","entries":{"a":[{"apiVersion":"v2","name":"a","version":"1.0.0","urls":["x"]}]}}`,
		"invalid entry": "apiVersion: v1\nentries:\n  a:\n" +
			list("  ", item("a", "1.0.0", ""), item("a", "no version", "")),
		"same chart":    "apiVersion: v1\nentries:\n" + usual + usual,
		"same key":      "apiVersion: v1\nentries:\n" + usual + "apiVersion: v1\n",
		"twice entries": "apiVersion: v1\nentries:\n" + usual + "entries:\n" + usual,
		"unknown field": "apiVersion: v1\nentries:\n  a:\n" + list("  ", item("a", "1.0.0", "surprise: true\n")),
		"unknown key":   "apiVersion: v1\nentries:\n" + usual + "surprise: true\n",
		"no apiVersion": "entries:\n" + usual,
		"tabs":          "apiVersion: v1\nentries:\n\ta:\n",
		"less indented": "apiVersion: v1\nentries:\n   a:\n" + list("   ", item("a", "1.0.0", "")) + "  b:\n" +
			list("  ", item("b", "1.0.0", "")),
		"list of charts": "apiVersion: v1\nentries:\n- a\n- b\n",
	} {
		t.Run(name, func(t *testing.T) {
			want, wantErr := readPart(filepath.Join(t.TempDir(), "index.yaml"), []byte(text))
			got, err := readIndex(t.Context(), []byte(text))
			if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
				t.Fatalf("%v, helm says %v", err, wantErr)
			}
			if err == nil && !reflect.DeepEqual(got, want) {
				t.Errorf("%v, helm reads %v", got, want)
			}
		})
	}
}

func TestIndex_usualOnesAreSplit(t *testing.T) {
	_, parts, ok := splitIndex(largeIndex(3, 2))
	if !ok || len(parts) != 3 {
		t.Fatalf("%d parts, %v", len(parts), ok)
	}
	for n, part := range parts {
		if !bytes.HasPrefix(part, fmt.Appendf(nil, "  chart%d:\n", n)) || bytes.Count(part, []byte("urls:")) != 2 {
			t.Errorf("part %d: %s", n, part)
		}
	}
}

// Of a large index, helm's code sees a small part at a time.
func TestIndex_largeOneIsReadInParts(t *testing.T) {
	body := largeIndex(100, 60)
	beside, parts, ok := splitIndex(body)
	if !ok || len(parts) != 100 || len(beside) > 100 {
		t.Fatalf("%d parts, %v", len(parts), ok)
	}
	for _, part := range parts {
		if len(part) > len(body)/50 {
			t.Errorf("a part of %d bytes of %d", len(part), len(body))
		}
	}
	read, err := readIndex(t.Context(), body)
	if err != nil {
		t.Fatal(err)
	}
	if len(read.versions) != 100 || read.size() > int64(len(body))/4 {
		t.Errorf("%d charts in %d bytes of %d", len(read.versions), read.size(), len(body))
	}
	if chart := read.versions["chart7"]; len(chart) != 60 || chart[0].number != "1.59.0" {
		t.Errorf("%v", chart)
	}
}

// largeIndex is an index like Bitnami's.
func largeIndex(charts, versions int) []byte {
	var b bytes.Buffer
	b.WriteString("apiVersion: v1\nentries:\n")
	for c := range charts {
		fmt.Fprintf(&b, "  chart%d:\n", c)
		for v := range versions {
			fmt.Fprintf(&b, "  - annotations:\n      images: |\n        - name: chart%d\n          image: "+
				"docker.io/chart%d:%d\n", c, c, v)
			fmt.Fprintf(&b, "    apiVersion: v2\n    appVersion: 1.%d.0\n    created: \"2026-01-01T00:00:00Z\"\n", v)
			fmt.Fprintf(&b, "    dependencies:\n    - name: common\n      repository: oci://registry.example.com\n      "+
				"version: 2.x.x\n")
			fmt.Fprintf(&b, "    description: %s\n    digest: %064x\n    home: https://example.com\n",
				strings.Repeat("words ", 100), v)
			fmt.Fprintf(&b, "    keywords:\n    - one\n    - two\n    maintainers:\n    - name: Someone\n    name: chart%d\n", c)
			fmt.Fprintf(&b, "    urls:\n    - https://charts.example.com/chart%d-1.%d.0.tgz\n    version: 1.%d.0\n", c, v, v)
		}
	}
	b.WriteString("generated: \"2026-01-01T00:00:00Z\"\n")
	return b.Bytes()
}
