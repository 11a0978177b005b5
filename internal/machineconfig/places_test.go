package machineconfig

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fields"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// spotsOf are the forms of a fact.
func spotsOf(f places.Fact) []places.Spot {
	return slices.DeleteFunc([]places.Spot{f.Main, f.Document}, func(at places.Spot) bool {
		return at.Kind == "" && len(at.Path) == 0
	})
}

// sample is a document with a value at a path, and the same without it.
type sample struct {
	with, without map[string]any
	path          fieldpath.Path
	value         any
}

// certificates are in the main document what the library decodes as a whole.
var certificates = []any{map[string]any{"crt": "aGk="}, map[string]any{"key": "aGk="}}

// sampled is a value that the library takes at a spot, in a part that none of some facts is about where there is one.
func sampled(t *testing.T, at places.Spot, among []places.Fact, values ...any) sample {
	t.Helper()

	without := map[string]any{"apiVersion": "v1alpha1", "kind": at.Kind}
	if at.Kind == "" {
		without = map[string]any{"machine": map[string]any{"type": "controlplane"}, "cluster": map[string]any{}}
	}

	document := typeOf(t, without)
	if _, ok := document.(config.NamedDocument); ok {
		without["name"] = "a"
	}

	var parts []sample

	for _, leaf := range leavesOf(nil, reflect.TypeOf(document), nil) {
		path, leads := into(leaf, at.Path)
		if !leads {
			continue
		}

		for _, value := range slices.Concat(values, certificates, sampleValues) {
			with := with1(without, path, value)
			if !loads(yamlOf(t, with)) {
				continue
			}

			found := sample{with, without, flatten(put(nil, path, value))[0].path, value}
			if parts = append(parts, found); !found.isPart(at, among) {
				return found
			}

			break
		}
	}

	if len(parts) == 0 {
		t.Fatalf("%s: the library has no such place, or takes no value there", at)
	}

	return parts[0]
}

// isPart reports whether one of some facts is about a part of what is at a spot, and the value is in that.
func (s sample) isPart(of places.Spot, facts []places.Fact) bool {
	return slices.ContainsFunc(facts, func(f places.Fact) bool {
		at, ok := f.Of(of.Kind)

		return ok && len(at.Path) > len(of.Path) && at.Covers(s.path)
	})
}

func (s sample) isOf(facts []places.Fact, kind string) bool {
	return slices.ContainsFunc(facts, func(f places.Fact) bool { return f.Covers(kind, s.path) })
}

// into is the path of a field, with a key for each map, if it leads to or into what the keys lead to. What the library
// decodes as a whole may lead there by keys of its own.
func into(leaf sampleField, keys []string) (path []string, leads bool) {
	path = slices.Clone(leaf.path)

	for i, step := range path {
		switch {
		case step == "[]" || len(keys) == 0:
			continue
		case step == "*":
			path[i] = keys[0]
		case step != keys[0]:
			return nil, false
		}

		keys = keys[1:]
	}

	if len(keys) > 0 && leaf.of.Kind() == reflect.Slice {
		path = append(path, "[]")
	}

	return append(path, keys...), len(keys) == 0 || leaf.of.Kind() == reflect.Slice || leaf.of.Kind() == reflect.Struct
}

// A value at each place of the table is found by all that are to find it, in either form.
func TestPlaces_valuesAreFound(t *testing.T) {
	t.Parallel()

	for _, f := range places.All() {
		for _, at := range spotsOf(f) {
			t.Run(at.String(), func(t *testing.T) {
				t.Parallel()

				if at.Kind != "" && fields.Since(at.Kind) == 0 {
					t.Errorf("no supported Talos has the document %s", at.Kind)
				}

				s := sampled(t, at, places.All(), ownValues(f)...)
				main := string(yamlOf(t, map[string]any{"machine": map[string]any{"type": "controlplane"},
					"cluster": map[string]any{}}))

				before, after := string(yamlOf(t, s.without)), string(yamlOf(t, s.with))
				if at.Kind != "" {
					before, after = before+"---\n"+main, after+"---\n"+main
				}

				left := s.isOf(slices.Concat(places.Rotated(), places.Images()), at.Kind)
				// An installation ends in a reboot by default (withInstallReboot).
				left = left || at.Kind == runtime.UnattendedInstallConfigKind && s.path[len(s.path)-1] == "reboot"

				if same := digest(t, before) == digest(t, after); same != left {
					t.Errorf("the digest is the same: %t", same)
				}

				if image := imagesOf(t, []byte(after))[f.Image]; f.Image != "" && image != s.value {
					t.Errorf("the image is %q, want %q", image, s.value)
				}

				was, is := keysIn(t, []byte(before)), keysIn(t, []byte(after))
				if s.isOf(places.Rotated(), at.Kind) == (was == is) {
					t.Errorf("the keys were %s and are %s", was, is)
				}

				valueIsShown(t, f, at, before, after)
			})
		}
	}
}

// ownValues are those of facts that take no others.
func ownValues(f places.Fact) []any {
	switch f.Main.String() {
	case places.CarriedKeys.Main.String():
		// Of carried keys a node tells those that pods were made with.
		return []any{rotation.Keys{PodTokens: "a1"}.String()}
	case "cluster.inlineManifests":
		return []any{[]any{map[string]any{"name": "a", "contents": "b"}}}
	}

	return nil
}

// emptyValues are values of fields that the library writes beside others.
var emptyValues = []string{`""`, "0", "null", "false", "{}", "[]"}

// valueIsShown holds that differences name the place of a fact, and show what they may.
func valueIsShown(t *testing.T, f places.Fact, at places.Spot, before, after string) {
	t.Helper()

	changes, err := DiffWhole(before, after)
	if err != nil {
		t.Fatal(err)
	}

	found := false

	for _, change := range changes {
		if change.Kind == Removed || slices.Contains(emptyValues, change.New) {
			continue
		}

		if change.documentKind() != at.Kind || !f.Covers(at.Kind, change.Path) {
			t.Errorf("another difference: %s", change)
		}

		if f.Secret && change.New != Sensitive || f.Plain && !change.plain() {
			t.Errorf("what is secret (%t) or plain (%t) is shown as %s", f.Secret, f.Plain, change)
		}

		if renames := change.Path[len(change.Path)-1] == "hostname"; change.Renames() != renames {
			t.Errorf("%s gives another host name: %t", change, !renames)
		}

		found = true
	}

	if !found {
		t.Errorf("no difference in %v", changes)
	}
}

// Each place is written once.
func TestPlaces_areWrittenOnce(t *testing.T) {
	t.Parallel()

	seen := map[string]bool{}

	for _, f := range places.All() {
		for _, at := range spotsOf(f) {
			// Some documents take the place of several parts.
			if text := at.String(); len(at.Path) > 0 && seen[text] {
				t.Errorf("%s is there twice", text)
			} else {
				seen[text] = true
			}
		}

		if f.Beside != "" && len(f.Main.Path) == 0 {
			t.Errorf("%s: nothing is beside %s", f.Document, f.Beside)
		}
	}
}

// besides are documents that generated configurations do not have, or that no longer yield to a field.
const besides = `apiVersion: v1alpha1
kind: KubeTalosAPIAccessConfig
allowedRoles: [os:reader]
allowedKubernetesNamespaces: [talos]
---
apiVersion: v1alpha1
kind: CRIBaseRuntimeSpecConfig
overrides: {process: {rlimits: []}}
---
apiVersion: v1alpha1
kind: ImageCacheConfig
local: {enabled: true}
---
apiVersion: v1alpha1
kind: KubePrismConfig
port: 7446
---
apiVersion: v1alpha1
kind: KubeSpanConfig
enabled: true
---
apiVersion: v1alpha1
kind: UnattendedInstallConfig
installer: {image: a.test/installer}
---
apiVersion: v1alpha1
kind: DiscoveryServiceConfig
name: default
endpoint: https://a.test
`

// What a document has taken the place of is refused at the patch that sets it, with where it is set instead.
func TestPlaces_partsBesideTheirDocumentsAreRefused(t *testing.T) {
	t.Parallel()

	beside := slices.DeleteFunc(slices.Clone(places.All()), func(f places.Fact) bool { return f.Beside == "" })

	for _, f := range beside {
		t.Run(f.Main.String(), func(t *testing.T) {
			t.Parallel()

			s := sampled(t, f.Main, beside)
			delete(s.with["machine"].(map[string]any), "type")

			_, err := with(t, documentContract, besides, string(yamlOf(t, s.with)))

			mistakes := FieldErrors(err)
			if len(mistakes) != 1 || mistakes[0].Field != "patches[1]" ||
				!strings.HasSuffix(mistakes[0].Found, "beside the document "+f.Beside) ||
				!strings.Contains(mistakes[0].Fix, f.Document.Kind) || !strings.Contains(mistakes[0].Fix, f.Instead) {
				t.Errorf("%v", err)
			}
		})
	}
}

// What settings say is read back from its place in the form of a contract, and written to that place again.
func TestPlaces_settingsAreReadBack(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		places.Fact

		key   string
		value any
	}{
		{places.ClusterName, "", "other"}, {places.PodCIDRs, "", []any{"10.1.0.0/16"}},
		{places.ServiceCIDRs, "", []any{"10.2.0.0/16"}}, {places.DNSDomain, "", "a.test"},
		{places.MachineSANs, "", []any{"a.test"}}, {places.Hostname, "", "cp-1"},
		{places.KubeletImage, "", "ghcr.io/siderolabs/kubelet:v1.33.2"}, {places.NodeLabels, "rack", "b2"},
		{places.NodeAnnotations, "a", "b"}, {places.NodeTaints, "a", "NoSchedule"}, {places.KubeletExtraArgs, "v", "4"},
		{places.Sysctls, "vm.max_map_count", "1"},
	} {
		for _, contract := range keyContracts {
			text := string(generated(t, testCluster(contract), testMachine(ControlPlane)).Bytes)

			at := test.Main
			if kind := test.Document.Kind; contract == documentContract && kind != "" {
				if at = test.Document; !strings.Contains(text, "\nkind: "+kind+"\n") {
					text += "---\napiVersion: v1alpha1\nkind: " + kind + "\n"
				}
			} else if strings.Contains(text, "\nkind: "+kind+"\n") {
				at = test.Document
			}

			if test.key != "" {
				at = at.Under(test.key)
			}

			c, m, err := SettingsOf([]byte(withValue(t, text, at, test.value)), testBundle(t), allSettings()...)
			if err != nil {
				t.Fatalf("%s: %v", at, err)
			}

			again, err := loadWhole(generated(t, c, m).Bytes)
			if err != nil {
				t.Fatal(err)
			}

			i := slices.IndexFunc(again, func(d document) bool { return d.id.kind == at.Kind })
			if i < 0 {
				t.Fatalf("%s: there is no document %s", contract, at.Kind)
			}

			root, _ := again[i].content.(map[string]any)
			if got := valueIn(root, at.Path); !reflect.DeepEqual(got, test.value) {
				t.Errorf("%s: %s has %v, want %v", contract, at, got, test.value)
			}
		}
	}
}

// withValue is a configuration with another value at a spot.
func withValue(t *testing.T, text string, at places.Spot, value any) string {
	t.Helper()

	chunks, err := split(text)
	if err != nil {
		t.Fatal(err)
	}

	var texts []string

	for _, c := range chunks {
		content, err := decodeNode(c.node)
		if err != nil {
			t.Fatal(err)
		}

		if identify(c.node).kind == at.Kind {
			content = put(content, at.Path, value)
		}

		texts = append(texts, string(yamlOf(t, content)))
	}

	return strings.Join(texts, "---\n")
}
