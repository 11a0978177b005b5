package schematic

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/image"
)

// Ids that the Image Factory gave: those of its own tests (pkg/schematic/schematic_test.go, v1.5.0), and of schematics
// whose id is in many published configurations.
func TestID_isThatOfTheFactory(t *testing.T) {
	t.Parallel()

	for content, want := range map[string]string{
		`{}`:                                     image.VanillaSchematic,
		`customization: {}`:                      image.VanillaSchematic,
		`customization: {"extraKernelArgs": []}`: image.VanillaSchematic,
		`{"customization": {"extraKernelArgs": ["noapic", "nolapic"]}}`:                                                                   "9cba8e32753f91a16c1837ab8abf356af021706ef284aef07380780177d9a06c",
		`{"customization": {"extraKernelArgs": ["noapic", "nolapic"], "systemExtensions": {}}}`:                                           "9cba8e32753f91a16c1837ab8abf356af021706ef284aef07380780177d9a06c",
		`{"customization": {"meta": [{"key": 10, "value": "foo"}], "extraKernelArgs": [], "systemExtensions": {}}}`:                       "d308a2a5ee2277bed5fbaa104fcbc8d59122abfa737df987a95b4ca763459a7f",
		"customization:\n  meta:\n    - key: 0xa\n      value: foo\n":                                                                     "d308a2a5ee2277bed5fbaa104fcbc8d59122abfa737df987a95b4ca763459a7f",
		`{"overlay": {"name": "rpi_generic", "image": "siderolabs/sbc-raspberrypi"}}`:                                                     "ee21ef4a5ef808a9b7484cc0dda0f25075021691c8c09a276591eedb638ea1f9",
		`{"overlay": {"name": "rpi_generic", "image": "siderolabs/sbc-raspberrypi"},"customization":{}}`:                                  "ee21ef4a5ef808a9b7484cc0dda0f25075021691c8c09a276591eedb638ea1f9",
		`{"customization":{"secureboot": {"includeWellKnownCertificates": true}}}`:                                                        "fa8e05f142a851d3ee568eb0a8e5841eaf6b0ebc8df9a63df16ac5ed2c04f3e6",
		`{"customization":{"diskImage": {"sectorSize": 4096}}}`:                                                                           "92833e9ddd9bb9e11b2464fa5525429f01866306d52ebd882ee08d7918f6d1ea",
		"customization:\n  systemExtensions:\n    officialExtensions:\n      - siderolabs/qemu-guest-agent\n":                             "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515",
		"# comment\ncustomization:\n  systemExtensions:\n    officialExtensions: [siderolabs/iscsi-tools, siderolabs/util-linux-tools]\n": "613e1592b2da41ae5e265e8789429f22e121aab91cb4deb6bc3c0b6262961245",
		image.VanillaSchematic: image.VanillaSchematic,
	} {
		if got, err := IDOf(content); err != nil || got != want {
			t.Errorf("%s has the id %s, %v, want %s", content, got, err, want)
		}
	}
}

// The same by the factory's own code: pkg/schematic of github.com/siderolabs/image-factory v1.4.0, with its version of
// the YAML library, was given these.
func TestID_isThatOfTheFactorysCode(t *testing.T) {
	t.Parallel()

	recorded, err := os.ReadFile("testdata/ids.json")
	if err != nil {
		t.Fatal(err)
	}

	var ids [][2]string
	if err := json.Unmarshal(recorded, &ids); err != nil || len(ids) < 20 {
		t.Fatalf("%d ids: %v", len(ids), err)
	}

	for _, recorded := range ids {
		content, want := recorded[0], recorded[1]

		parsed, err := Parse(content)
		if err != nil {
			if want != "refused" {
				t.Errorf("%s: %v", content, err)
			}

			continue
		}

		if got, err := parsed.ID(); err != nil || got != want {
			text, _ := parsed.Content()
			t.Errorf("%s has the id %s, %v, want %s:\n%s", content, got, err, want, text)
		}
	}
}

// What the factory stores is content again, and has the same id: so has what is read back from there.
func TestContent_isReadBack(t *testing.T) {
	t.Parallel()

	parsed, err := Parse("customization:\n  bootloader: sd-boot\n  secureboot: {enrollKeys: force}\n" +
		"  embeddedMachineConfiguration: |\n    machine: {}\n    ---\n    kind: X\noverlay:\n  name: rpi_generic\n" +
		"  image: siderolabs/sbc-raspberrypi\n  options: {data: mydata, n: 1}\n")
	if err != nil {
		t.Fatal(err)
	}

	content, err := parsed.Content()
	if err != nil {
		t.Fatal(err)
	}

	want := "overlay:\n    image: siderolabs/sbc-raspberrypi\n    name: rpi_generic\n    options:\n        data: " +
		"mydata\n        \"n\": 1\ncustomization:\n    embeddedMachineConfiguration: |\n        machine: {}\n        ---\n" +
		"        kind: X\n    bootloader: sd-boot\n    secureboot:\n        enrollKeys: force\n"
	if diff := cmp.Diff(want, content); diff != "" {
		t.Error(diff)
	}

	again, err := Parse(content)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(parsed, again); diff != "" {
		t.Error(diff)
	}
}

func TestParse_refuses(t *testing.T) {
	t.Parallel()

	for content, want := range map[string]string{
		"":          "empty; use `customization: {}` for plain Talos",
		"# nothing": "empty",
		"customization:\n  extensions: [hunter2]": `unknown field "extensions" (line 2)`,
		"customization: hunter2":                  "not YAML in the format of a schematic (line 1)",
		"customization: {meta: [{key: 256}]}":     "not YAML in the format of a schematic (line 1)",
		"customization: [":                        "not YAML in the format of a schematic",
		"customization: {bootloader: lilo}":       "not YAML in the format of a schematic",
		"a: b: c":                                 "not YAML in the format of a schematic",
		"customization: {}\n---\nmachine: {}":     "several documents, expected one",
	} {
		_, err := IDOf(content)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %s", content, err, want)
		}

		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q is quoted: %v", content, err)
		}
	}

	for _, id := range []string{"abc", strings.ToUpper(image.VanillaSchematic), image.VanillaSchematic + "0"} {
		if _, err := IDOf(id); err == nil || !strings.Contains(err.Error(), "expected 64 lower-case hex digits") {
			t.Errorf("%s gives %v", id, err)
		}
	}
}

func TestSame_byIdAndContent(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		a, b string
		want bool
	}{
		{image.VanillaSchematic, "customization: {}", true},
		{"{}", "customization:\n  extraKernelArgs: []\n", true},
		{"", "", true},
		{"nonsense", "nonsense", true},
		{"", image.VanillaSchematic, false},
		{"nonsense", "customization: {}", false},
		{"customization: {extraKernelArgs: [a, b]}", "customization: {extraKernelArgs: [b, a]}", false},
	} {
		if got := Same(test.a, test.b); got != test.want {
			t.Errorf("%q and %q: %t", test.a, test.b, got)
		}
	}
}
