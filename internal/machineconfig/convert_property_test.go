package machineconfig

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// conversionOf is the row of the table that says what becomes of a field of the main document.
func conversionOf(field []string) (found places.Fact, ok bool) {
	path := slices.DeleteFunc(slices.Clone(field), func(step string) bool { return step == "[]" })

	for _, f := range places.All() {
		if f.Conversion != "" && len(f.Main.Path) <= len(path) && slices.Equal(f.Main.Path, path[:len(f.Main.Path)]) {
			return f, true
		}
	}

	return places.Fact{}, false
}

// Each field of the main document either becomes a document with the same effect as Talos reads it, or stays, or the
// table has the reason why it does not.
func TestConvertPatches_everyFieldOfTheMainDocument(t *testing.T) {
	t.Parallel()

	plain := map[string]any{"machine": map[string]any{}, "cluster": map[string]any{}}
	leaves := leavesOf(nil, reflect.TypeFor[v1alpha1.Config](), nil)

	if len(leaves) < 200 {
		t.Fatalf("only %d fields", len(leaves))
	}

	for _, role := range []Role{ControlPlane, Worker} {
		base := basesOf(t, role)

		for _, leaf := range leaves {
			name := strings.Join(leaf.path, ".")

			t.Run(string(role)+"/"+name, func(t *testing.T) {
				t.Parallel()

				fact, ok := conversionOf(leaf.path)
				if !ok {
					t.Fatal("no row of the table says what becomes of the field")
				}

				var patches []string

				for _, value := range valuesFor(name) {
					patch := string(yamlOf(t, with1(plain, leaf.path, value)))
					if !loads([]byte(patch)) || len(patches) > 2 {
						continue
					}

					patches = append(patches, patch)

					if err := sameEffect(t, base, role, patch); err != nil &&
						(fact.Conversion == places.Moves || fact.Conversion == places.Stays) {
						t.Errorf("%v is refused: %v", value, err)
					}
				}

				// One after the other; some parts cannot be in several patches.
				_ = sameEffect(t, base, role, patches...)

				if len(patches) == 0 && name != "machine.type" {
					t.Error("the library takes no sample value")
				}
			})
		}
	}
}

// bases are the readings of generated configurations without patches.
type bases struct{ old, updated effects }

func basesOf(t *testing.T, role Role) bases {
	t.Helper()

	old, err := merged(t, "v1.13", role)
	if err != nil {
		t.Fatal(err)
	}

	updated, err := merged(t, documentContract, role)
	if err != nil {
		t.Fatal(err)
	}

	return bases{old, updated}
}

// sameEffect holds that patches and what they are converted to have the same effect. It returns the error of the
// conversion.
func sameEffect(t *testing.T, base bases, role Role, patches ...string) error {
	t.Helper()

	converted, err := ConvertPatches(patches, role, "v1.13", documentContract)
	if err != nil {
		return err
	}

	old, unmerged := merged(t, "v1.13", role, patches...)
	if unmerged != nil {
		return nil //nolint:nilerr // patches that do not merge have no effect to compare
	}

	updated, err := merged(t, documentContract, role, converted.Patches...)
	if err != nil {
		t.Fatalf("%s\n%v", strings.Join(converted.Patches, "---\n"), err)
	}

	if found := differences(base.old, old, base.updated, updated); len(found) > 0 {
		t.Errorf("%s became\n%s\n%s", strings.Join(patches, "---\n"), strings.Join(converted.Patches, "---\n"),
			strings.Join(found, "\n"))
	}

	return nil
}

func valuesFor(field string) []any {
	if own, ok := fieldValues[field]; ok {
		return own
	}

	return slices.Concat(certificates, sampleValues)
}

// fieldValues are those of fields whose documents check more than the main one does.
var fieldValues = map[string][]any{
	"machine.type": {}, // a patch cannot change it
	"machine.network.kubespan.filters.excludeAdvertisedNetworks.[]": {"10.1.0.0/16", "fd00::/8"},
	"cluster.network.podSubnets.[]":                                 {"10.1.0.0/16", "fd00::/56"},
	"cluster.network.serviceSubnets.[]":                             {"10.1.0.0/16", "fd00::/112"},
	"cluster.discovery.registries.service.endpoint":                 {"https://a.test/", "http://10.0.0.1:3000/"},
	"cluster.controlPlane.endpoint":                                 {"https://a.test:6443", "https://10.0.0.9:443/a"},
	"cluster.network.cni.urls.[]":                                   {"https://a.test/cni.yaml"},
	"cluster.inlineManifests": {
		[]any{map[string]any{"name": "a", "contents": "\nb: c\n"}},
		[]any{map[string]any{"name": "a", "contents": "b"}, map[string]any{"name": "b.c", "contents": "d"}},
	},
}
