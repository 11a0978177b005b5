package image

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const schematic = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"

func TestInstaller_referencesAreReadBack(t *testing.T) {
	for _, test := range []struct {
		name      string
		installer Installer
		want      string
	}{
		{"plain", Installer{Version: "v1.13.0"}, "ghcr.io/siderolabs/installer:v1.13.0"},
		{"plain, metal", Installer{Version: "v1.13.0", Platform: "metal"}, "ghcr.io/siderolabs/installer:v1.13.0"},
		{"plain, no longer beside the factory", Installer{Version: "v1.14.0"},
			"factory.talos.dev/metal-installer/" + VanillaSchematic + ":v1.14.0"},
		{"a schematic", Installer{Version: "v1.13.0", Schematic: schematic},
			"factory.talos.dev/metal-installer/" + schematic + ":v1.13.0"},
		{"a cloud", Installer{Version: "v1.12.6", Schematic: schematic, Platform: "aws"},
			"factory.talos.dev/aws-installer/" + schematic + ":v1.12.6"},
		{"SecureBoot", Installer{Version: "v1.13.0-rc.1", Schematic: schematic, SecureBoot: true},
			"factory.talos.dev/metal-installer-secureboot/" + schematic + ":v1.13.0-rc.1"},
		{"SecureBoot without extensions", Installer{Version: "v1.13.0", SecureBoot: true},
			"factory.talos.dev/metal-installer-secureboot/" + VanillaSchematic + ":v1.13.0"},
		{"a cloud without extensions", Installer{Version: "v1.13.0", Platform: "equinix-metal"},
			"factory.talos.dev/equinix-metal-installer/" + VanillaSchematic + ":v1.13.0"},
		{"another factory", Installer{Version: "v1.13.0", Schematic: schematic, Registry: "factory.local:5000"},
			"factory.local:5000/metal-installer/" + schematic + ":v1.13.0"},
		{"a mirror with a path", Installer{Version: "v1.13.0", Schematic: schematic,
			Registry: "mirror.local:5000/talos/factory"},
			"mirror.local:5000/talos/factory/metal-installer/" + schematic + ":v1.13.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.installer.Reference()
			if err != nil || got != test.want {
				t.Fatalf("got %s, %v, want %s", got, err, test.want)
			}

			reference, err := ParseReference(got)
			if err != nil || reference.String() != got {
				t.Fatalf("parsed as %s, %v", reference, err)
			}

			installer, ok := reference.Installer()
			if !ok {
				t.Fatal("not recognized")
			}

			if again, err := installer.Reference(); err != nil || again != got {
				t.Errorf("read back as %+v, which is %s, %v", installer, again, err)
			}
		})
	}
}

func TestInstaller_refuses(t *testing.T) {
	for _, test := range []struct {
		installer Installer
		want      string
	}{
		{Installer{}, `version "": expected a Talos version with a leading v`},
		{Installer{Version: "1.13.0"}, `version "1.13.0": expected a Talos version with a leading v`},
		{Installer{Version: "v1.13"}, `version "v1.13": expected a Talos version with three numbers`},
		{Installer{Version: "v1.13.0", Schematic: "abc"},
			`schematic ID "abc": expected 64 lower-case hex digits`},
		{Installer{Version: "v1.13.0", Schematic: strings.ToUpper(schematic)}, "expected 64 lower-case hex digits"},
		{Installer{Version: "v1.13.0", Platform: "Bare Metal"},
			`platform "Bare Metal": expected lower-case letters, digits and dashes, such as metal or aws`},
		{Installer{Version: "v1.13.0", Registry: "https://factory.local"}, "not a registry host"},
	} {
		if got, err := test.installer.Reference(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v gives %q, %v, want %q", test.installer, got, err, test.want)
		}
	}
}

func TestParseReference_parts(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)

	for text, want := range map[string]Reference{
		"ghcr.io/siderolabs/installer:v1.13.0":        {"ghcr.io", "siderolabs/installer", "v1.13.0", ""},
		"ghcr.io/siderolabs/installer":                {"ghcr.io", "siderolabs/installer", "", ""},
		"localhost:5000/installer":                    {"localhost:5000", "installer", "", ""},
		"localhost/installer:x":                       {"localhost", "installer", "x", ""},
		"10.0.0.5:5000/siderolabs/installer:v1.13.0":  {"10.0.0.5:5000", "siderolabs/installer", "v1.13.0", ""},
		"[fd00::5]:5000/siderolabs/installer:v1.13.0": {"[fd00::5]:5000", "siderolabs/installer", "v1.13.0", ""},
		"ghcr.io/siderolabs/installer@" + digest:      {"ghcr.io", "siderolabs/installer", "", digest},
		"r.local:5000/a/b__c/d.e-f:v1.13.0@" + digest: {"r.local:5000", "a/b__c/d.e-f", "v1.13.0", digest},
		"siderolabs/installer:v1":                     {"docker.io", "siderolabs/installer", "v1", ""},
		"alpine":                                      {"docker.io", "alpine", "", ""},
	} {
		got, err := ParseReference(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}

		if again, err := ParseReference(got.String()); err != nil || again != got {
			t.Errorf("%s is written as %s, which is read as %+v, %v", text, got, again, err)
		}
	}

	for text, want := range map[string]string{
		"":                                 `"" is not an image name`,
		"ghcr.io/":                         `"" is not an image name`,
		"ghcr.io/Siderolabs/installer":     `"Siderolabs/installer" is not an image name`,
		"https://ghcr.io/siderolabs/x":     `not a registry host`,
		"ghcr.io/siderolabs/installer:":    `"" is not a tag`,
		"ghcr.io/siderolabs/installer:a b": `"a b" is not a tag`,
		"ghcr.io/siderolabs/installer@abc": `"abc" is not a digest`,
		"ghcr.io/x@sha256:abc":             `"sha256:abc" is not a digest`,
		"ghcr.io:port/x":                   `"ghcr.io:port" is not a registry host`,
		"ghcr.io/x y":                      `"x y" is not an image name`,
	} {
		_, err := ParseReference(text)
		if !errors.Is(err, ErrInvalidReference) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %s", text, err, want)
		}
	}
}

func TestInstaller_ofOthers(t *testing.T) {
	for text, want := range map[string]Installer{
		"factory.talos.dev/installer/" + schematic +
			":v1.9.0": {Version: "v1.9.0", Schematic: schematic, Platform: "metal"},
		"factory.talos.dev/installer-secureboot/" + schematic +
			":v1.9.0": {Version: "v1.9.0", Schematic: schematic, Platform: "metal", SecureBoot: true},
	} {
		reference, err := ParseReference(text)
		if err != nil {
			t.Fatal(err)
		}

		got, ok := reference.Installer()
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%s: %t\n%s", text, ok, diff)
		}
	}

	for _, text := range []string{
		"ghcr.io/siderolabs/installer", "ghcr.io/siderolabs/installer:latest", "ghcr.io/me/installer:v1.13.0",
		"factory.talos.dev/metal-installer/abc:v1.13.0",
		"factory.talos.dev/imager/" + schematic + ":v1.13.0",
		"ghcr.io/siderolabs/installer@sha256:" + strings.Repeat("a", 64), "x.test/" + schematic + ":v1.13.0",
	} {
		reference, err := ParseReference(text)
		if err != nil {
			t.Fatal(err)
		}

		if installer, ok := reference.Installer(); ok {
			t.Errorf("%s is taken for %+v", text, installer)
		}
	}
}

func TestReference_withTag(t *testing.T) {
	reference, err := ParseReference("r.local:5000/installer:v1.12.0@sha256:" + strings.Repeat("a", 64))
	if err != nil {
		t.Fatal(err)
	}

	if got := reference.WithTag("v1.13.0").String(); got != "r.local:5000/installer:v1.13.0" {
		t.Error(got)
	}
}

func FuzzParseReference(f *testing.F) {
	f.Add("ghcr.io/siderolabs/installer:v1.13.0")
	f.Add("[fd00::1]:5000/x@sha256:" + schematic)

	f.Fuzz(func(t *testing.T, text string) {
		reference, err := ParseReference(text)
		if err != nil {
			return
		}

		if again, err := ParseReference(reference.String()); err != nil || again != reference {
			t.Errorf("%q is %+v, written %s, read %+v, %v", text, reference, reference, again, err)
		}
	})
}
