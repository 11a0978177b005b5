package machineconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A shown configuration keeps its order and its values, except those that plans do not show.
func TestRedacted_hidesWhatPlansHide(t *testing.T) {
	t.Parallel()

	const config = `version: v1alpha1
machine:
  type: worker
  token: abcdef.0123456789abcdef
  sysctls: {b: "1", a: "2"}
  env: {http_proxy: "http://user:hunter2@proxy:3128"}
  files: [{content: hunter2, path: /etc/a, permissions: 0o600}]
  install: {image: "https://user:hunter2@registry/installer", wipe: false}
cluster:
  controlPlane: {endpoint: "https://10.0.0.10:6443"}
---
apiVersion: v1alpha1
kind: HostnameConfig
auto: stable
---
apiVersion: v9
kind: Future
name: of-tomorrow
nested: {key: hunter2, list: [1, null, true], none: {}}
`

	const want = `version: v1alpha1
machine:
    type: worker
    token: (sensitive value)
    sysctls: {b: "1", a: "2"}
    env: {http_proxy: (sensitive value)}
    files: [{content: (sensitive value), path: /etc/a, permissions: 0o600}]
    install: {image: "https://(sensitive value)@registry/installer", wipe: false}
cluster:
    controlPlane: {endpoint: "https://10.0.0.10:6443"}
---
apiVersion: v1alpha1
kind: HostnameConfig
auto: stable
---
apiVersion: v9
kind: Future
name: of-tomorrow
nested: {key: (sensitive value), list: [(sensitive value), null, (sensitive value)], none: {}}
`

	got, err := Redacted([]byte(config))
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	if _, err := Redacted([]byte("a: [")); err == nil {
		t.Error("what is no YAML is shown")
	}
}

// Every value that Diff hides is hidden, of all documents that are generated.
func TestRedacted_ofGeneratedConfigurations(t *testing.T) {
	t.Parallel()

	for _, contract := range contracts {
		for _, role := range []Role{ControlPlane, Worker} {
			config := generated(t, testCluster(contract), testMachine(role))

			changes, err := DiffWhole("", string(config.Bytes))
			if err != nil {
				t.Fatal(err)
			}

			redacted, err := Redacted(config.Bytes)
			if err != nil {
				t.Fatal(err)
			}

			hidden, err := split(redacted)
			if err != nil {
				t.Fatal(err)
			}

			shown := map[string]string{}

			for _, c := range hidden {
				content, err := decodeNode(c.node)
				if err != nil {
					t.Fatal(err)
				}

				for _, leaf := range flatten(content) {
					shown[identify(c.node).String()+leaf.path.String()] = show(leaf, leaf.value == Sensitive)
				}
			}

			for _, change := range changes {
				if got := shown[change.Document+change.Path.String()]; got != change.New {
					t.Errorf("%s %s: %s %s is %s, and plans show %s", contract, role, change.Document, change.Path, got, change.New)
				}
			}
		}
	}
}
