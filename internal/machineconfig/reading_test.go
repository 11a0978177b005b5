package machineconfig

import (
	"reflect"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/tree"
)

// All readers of a text share the result: none of them changes it.
func TestReadings_areNotChangedByTheirReaders(t *testing.T) {
	t.Parallel()

	for _, contract := range contracts {
		cfg := generated(t, everything(contract), everyMachine(ControlPlane, contract)).Bytes
		other := generated(t, testCluster(contract), testMachine(ControlPlane)).Bytes

		read, err := readAll(cfg)
		if err != nil {
			t.Fatal(err)
		}

		for _, r := range read {
			node := cloneNode(r.node, map[*yaml.Node]*yaml.Node{})

			first, err := r.loaded()
			if err != nil {
				t.Fatal(err)
			}

			content, written := tree.Clone(first.content), encodedBy(t, first)

			readInEveryWay(t, cfg, other)

			if !sameNode(node, r.node) {
				t.Errorf("contract %s: the node of %s is another one", contract, first.id)
			}

			if !reflect.DeepEqual(content, first.content) {
				t.Errorf("contract %s: the content of %s is another one", contract, first.id)
			}

			if encodedBy(t, first) != written {
				t.Errorf("contract %s: %s is written in another way", contract, first.id)
			}
		}
	}
}

// encodedBy is how the machinery library writes a document that it knows.
func encodedBy(t *testing.T, d document) string {
	t.Helper()

	if d.provider == nil {
		return ""
	}

	encoded, err := d.provider.EncodeBytes()
	if err != nil {
		t.Fatal(err)
	}

	return string(encoded)
}

// readInEveryWay calls every function that reads a configuration.
func readInEveryWay(t *testing.T, cfg, other []byte) {
	t.Helper()

	keys, err := Keys(cfg)
	if err != nil {
		t.Fatal(err)
	}

	for name, read := range map[string]func() error{
		"Digest":      func() error { _, err := Digest(cfg); return err },
		"Documents":   func() error { _, err := Documents(cfg); return err },
		"Redacted":    func() error { _, err := Redacted(cfg); return err },
		"Diff":        func() error { _, err := Diff(cfg, other); return err },
		"NeedsReboot": func() error { _, _, err := NeedsReboot(cfg, other, ""); return err },
		"WithImages": func() error {
			_, err := WithImages(cfg, kubenames.Images{"kubelet": "registry.example/kubelet:v1.33.2"})

			return err
		},
		"WithKeys": func() error { _, err := WithKeys(cfg, other, keys, testBundle(t).Keyring()); return err },
	} {
		if err := read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
