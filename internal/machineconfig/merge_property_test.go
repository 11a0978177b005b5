package machineconfig

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fields"
)

// sampleValues are tried for a field until one has the right type.
var sampleValues = []any{"a.test", 7, true, "10.0.0.1", "10.0.0.0/24", "10.0.0.1:80", "https://a.test/", "5s", "10GiB",
	"aGk=", "tcp", "02:00:00:00:00:01", "0x2", "disk.rotational", "off", "1-2", "accept", "fq_codel", "ext4", "luks2",
	"[a.test]", "broadcast"}

// sampleDocuments are small documents of a kind: one for each field, as far as a value for it is found, and one of all
// fields together.
func sampleDocuments(t *testing.T, kind string) []map[string]any {
	t.Helper()

	plain := map[string]any{"apiVersion": "v1alpha1", "kind": kind}
	if kind == mainDocument {
		plain = map[string]any{"version": "v1alpha1", "debug": true}
	}

	document := typeOf(t, plain)
	if _, ok := document.(config.NamedDocument); ok {
		plain["name"] = "a"
	}

	samples, together := []map[string]any{plain}, plain

	fitting := map[reflect.Type]any{}

	for _, leaf := range leavesOf(nil, reflect.TypeOf(document), nil) {
		values := sampleValues
		if known, ok := fitting[leaf.of]; ok {
			values = append([]any{known}, values...)
		}

		for _, value := range values {
			sample := with1(plain, leaf.path, value)
			if _, err := configloader.NewFromBytes(yamlOf(t, sample), configloader.WithNoValidation()); err != nil {
				continue
			}

			samples = append(samples, sample)
			fitting[leaf.of] = value

			if both := with1(together, leaf.path, value); loads(yamlOf(t, both)) {
				together = both
			}

			break
		}
	}

	return append(samples, together)
}

func loads(text []byte) bool {
	_, err := configloader.NewFromBytes(text)

	return err == nil
}

func typeOf(t *testing.T, content map[string]any) config.Document {
	t.Helper()

	loaded, err := configloader.NewFromBytes(yamlOf(t, content), configloader.WithNoValidation())
	if err != nil {
		t.Fatal(err)
	}

	return loaded.Documents()[0]
}

func yamlOf(t *testing.T, content any) []byte {
	t.Helper()

	text, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}

	return text
}

// with1 is a copy of content with a value at a path; "*" is a key of a map, "[]" an element of a list.
func with1(content any, path []string, value any) map[string]any {
	made, _ := put(content, path, value).(map[string]any)

	return made
}

func put(content any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}

	if path[0] == "[]" {
		list, _ := content.([]any)

		return append(slices.Clip(list), put(nil, path[1:], value))
	}

	made := map[string]any{}
	if present, ok := content.(map[string]any); ok {
		made = maps.Clone(present)
	}

	made[path[0]] = put(made[path[0]], path[1:], value)

	return made
}

// sampleField is a field that has no fields itself.
type sampleField struct {
	path []string
	of   reflect.Type
}

func leavesOf(at []string, of reflect.Type, outer []reflect.Type) (leaves []sampleField) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}

	pointer := reflect.PointerTo(of)
	_, own := pointer.MethodByName("UnmarshalYAML")
	isValue := own || pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())

	switch {
	case slices.Contains(outer, of):
		return nil
	case isValue || of.Kind() != reflect.Struct && of.Kind() != reflect.Map && of.Kind() != reflect.Slice:
		return []sampleField{{at, of}}
	}

	outer = append(slices.Clip(outer), of)

	switch of.Kind() {
	case reflect.Map:
		return leavesOf(append(slices.Clip(at), "*"), of.Elem(), outer)
	case reflect.Slice:
		return leavesOf(append(slices.Clip(at), "[]"), of.Elem(), outer)
	}

	for _, field := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")

		switch {
		case !field.IsExported() || name == "-" || name == "kind" || name == "apiVersion" || name == "name" && len(at) == 0:
		case strings.Contains(options, "inline") && field.Type.Kind() == reflect.Map:
			leaves = append(leaves, leavesOf(append(slices.Clip(at), "*"), field.Type.Elem(), outer)...)
		case name != "":
			leaves = append(leaves, leavesOf(append(slices.Clip(at), name), field.Type, outer)...)
		}
	}

	return leaves
}

// TestMerge_addsNothing merges documents of every kind: merging is idempotent, keeps identity, adds no field, and the
// result has the effect of its parts.
func TestMerge_addsNothing(t *testing.T) {
	t.Parallel()

	kinds := fields.Kinds()
	if len(kinds) < 85 {
		t.Fatalf("only %d kinds", len(kinds))
	}

	for _, kind := range kinds {
		samples := sampleDocuments(t, kind)
		for i, sample := range samples {
			base, patch := yamlOf(t, sample), yamlOf(t, samples[(i+1)%len(samples)])
			if loads(base) && loads(patch) {
				addsNothing(t, string(base), string(patch), string(yamlOf(t, samples[len(samples)-1])))
			}
		}
	}
}

// addsNothing checks one merge, and its effect on a third document.
func addsNothing(t *testing.T, base, patch, third string) {
	t.Helper()

	merged, err := Merge(base, []string{patch})
	if err != nil {
		if _, machinery := strategic(base, patch); machinery == nil {
			t.Errorf("%v\n%s---\n%s", err, base, patch)
		}

		return
	}

	source := pathsOf(t, base+"---\n"+patch)
	for path := range pathsOf(t, merged) {
		if !source[path] {
			t.Errorf("%s is added to\n%s---\n%s:\n%s", path, base, patch, merged)
		}
	}

	if again, err := Merge(merged, nil); err != nil || again != merged {
		t.Errorf("merged again: %v\n%s, was\n%s", err, again, merged)
	}

	each, errEach := strategic(third, base, patch)
	atOnce, err := strategic(third, merged)

	if errEach == nil && (err != nil || each != atOnce) {
		t.Errorf("%s---\n%s, each and merged: %v\n%s", base, patch, err, cmp.Diff(each, atOnce))
	}
}

// strategic applies texts by the machinery library alone.
func strategic(base string, patches ...string) (string, error) {
	merged, err := configloader.NewFromBytes([]byte(base))
	if err != nil {
		return "", err
	}

	for _, text := range patches {
		loaded, err := configloader.NewFromBytes([]byte(text))
		if err != nil {
			return "", err
		}

		if merged, err = configpatcher.StrategicMerge(merged, configpatcher.NewStrategicMergePatch(loaded)); err != nil {
			return "", err
		}
	}

	written, err := merged.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))

	return string(written), err
}

// pathsOf are the paths of a text of one or more documents, with the identity of each; elements of lists have no index.
func pathsOf(t *testing.T, text string) map[string]bool {
	t.Helper()

	chunks, err := split(text)
	if err != nil {
		t.Fatal(err)
	}

	paths := map[string]bool{}

	for _, c := range chunks {
		addPaths(paths, identify(c.node).String(), c.node)
	}

	return paths
}

func addPaths(paths map[string]bool, at string, node *yaml.Node) {
	paths[at] = true

	for i, inner := range node.Content {
		switch {
		case node.Kind == yaml.SequenceNode:
			addPaths(paths, at, inner)
		case i%2 == 1:
			addPaths(paths, fmt.Sprintf("%s.%s", at, node.Content[i-1].Value), inner)
		}
	}
}

// A merge keeps what its sources write in forms that the library writes in another way.
func TestMerge_keepsWhatIsWritten(t *testing.T) {
	t.Parallel()

	const kubeNetwork = "apiVersion: v1alpha1\nkind: KubeNetworkConfig\n"

	for _, test := range []struct {
		base, patch, want string
	}{
		{kubeNetwork + "dnsDomain: x.local\n", "", kubeNetwork + "dnsDomain: x.local\n"},
		{kubeNetwork + "podSubnets: []\n", "", kubeNetwork + "podSubnets: []\n"},
		{kubeNetwork + "podSubnets: null\n", "", kubeNetwork + "podSubnets: null\n"},
		{"machine: {type: worker}", "cluster: {network: {dnsDomain: x.local}}",
			"machine:\n    type: worker\ncluster:\n    network:\n        dnsDomain: x.local\n"},
		{"machine: {sysctls: {a: null, 0x1F: b}}", "", "machine:\n    sysctls:\n        \"0x1F\": b\n        a: null\n"},
		{"machine: {network: {interfaces: [{interface: a, vlans: [{vlanId: 1, mtu: 9}]}, {interface: b}]}}",
			"machine: {network: {interfaces: [{interface: a, vlans: [{vlanId: 1, dhcp: true}]}]}}",
			"machine:\n    network:\n        interfaces:\n            - interface: a\n              vlans:\n" +
				"                - vlanId: 1\n                  mtu: 9\n                  dhcp: true\n            - interface: b\n"},
	} {
		got, err := Merge(test.base, []string{test.patch})
		if err != nil || !sameYAML(got, test.want) {
			t.Errorf("%s with %s gives %v\n%s, want\n%s", test.base, test.patch, err, got, test.want)
		}
	}
}

func sameYAML(a, b string) bool {
	var one, other any

	return yaml.Unmarshal([]byte(a), &one) == nil && yaml.Unmarshal([]byte(b), &other) == nil && reflect.DeepEqual(one, other)
}
