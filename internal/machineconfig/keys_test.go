package machineconfig

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// keyContracts are the contracts with keys in the main document, and in separate documents.
var keyContracts = []string{"v1.13", "v1.14"}

func generatedWith(t *testing.T, contract string, role Role, b *pki.Bundle) Config {
	t.Helper()

	config, err := Generate(testCluster(contract), testMachine(role), b)
	if err != nil {
		t.Fatal(err)
	}

	return config
}

func keysIn(t *testing.T, cfg []byte) rotation.Keys {
	t.Helper()

	keys, err := Keys(cfg)
	if err != nil {
		t.Fatal(err)
	}

	return keys
}

func turnedOver(t *testing.T, b *pki.Bundle) *pki.Bundle {
	t.Helper()

	out, err := b.Rotate(rotation.Kinds()...)
	if err != nil {
		t.Fatal(err)
	}

	return out.Advance()
}

func TestKeys_followTheBundle(t *testing.T) {
	for _, contract := range keyContracts {
		t.Run(contract, func(t *testing.T) { keysFollowTheBundle(t, contract) })
	}
}

func keysFollowTheBundle(t *testing.T, contract string) {
	t.Helper()

	before := testBundle(t)
	after := turnedOver(t, before)

	for _, role := range []Role{ControlPlane, Worker} {
		old, present, dropped := generatedWith(t, contract, role, before), generatedWith(t, contract, role, after),
			generatedWith(t, contract, role, after.Advance())

		if old.Digest != present.Digest || present.Digest != dropped.Digest {
			t.Errorf("%s: keys are a part of the digest", role)
		}

		was, is, end := keysIn(t, old.Bytes), keysIn(t, present.Bytes), keysIn(t, dropped.Bytes)

		if !is.Talos.Accepted.Has(was.Talos.Issuing) || is.Talos.Issuing == was.Talos.Issuing {
			t.Errorf("%s: Talos CA %v after %v", role, is.Talos, was.Talos)
		}

		if accepts := is.Kubernetes.Accepted.Has(was.Kubernetes.Issuing); accepts != (role == ControlPlane) {
			t.Errorf("%s: Kubernetes CA %v after %v", role, is.Kubernetes, was.Kubernetes)
		}

		if is.ClusterToken == was.ClusterToken || is.PodTokens == "" ||
			was.PodTokens != "" || (role == ControlPlane) != (is.ServiceAccount == is.PodTokens) {
			t.Errorf("%s: %s after %s", role, is, was)
		}

		if end.Talos.Accepted != "" || end.Kubernetes.Accepted != "" || end.Talos.Issuing != is.Talos.Issuing {
			t.Errorf("%s: without the previous keys %s", role, end)
		}

		if strings.Contains(string(old.Bytes), rotation.Annotation) || !strings.Contains(string(dropped.Bytes), rotation.Annotation) {
			t.Errorf("%s: the node tells keys that were never turned over, or none that were", role)
		}
	}
}

// Next keys are accepted where that is possible, and nothing else: no pod gets another token for them.
func TestKeys_acceptNextOnes(t *testing.T) {
	before := testBundle(t)

	next, err := before.Rotate(rotation.Kinds()...)
	if err != nil {
		t.Fatal(err)
	}

	for _, contract := range keyContracts {
		for _, role := range []Role{ControlPlane, Worker} {
			was, is, then := keysIn(t, generatedWith(t, contract, role, before).Bytes),
				keysIn(t, generatedWith(t, contract, role, next).Bytes),
				keysIn(t, generatedWith(t, contract, role, next.Advance()).Bytes)

			want := was
			want.Talos.Accepted = rotation.SetOf(then.Talos.Issuing)
			want.Kubernetes.Accepted = rotation.SetOf(then.Kubernetes.Issuing)

			if is != want {
				t.Errorf("%s %s: %s, want %s", contract, role, is, want)
			}
		}
	}
}

func TestWithKeys_findsThemAndChangesNothingElse(t *testing.T) {
	for _, contract := range keyContracts {
		t.Run(contract, func(t *testing.T) { keysAreFound(t, contract) })
	}
}

func keysAreFound(t *testing.T, contract string) {
	t.Helper()

	before := testBundle(t)
	after := turnedOver(t, before)

	for _, role := range []Role{ControlPlane, Worker} {
		old, wanted := generatedWith(t, contract, role, before), generatedWith(t, contract, role, after.Advance())
		was, is := keysIn(t, old.Bytes), keysIn(t, wanted.Bytes)

		accepts := was
		accepts.Talos.Accepted, accepts.Kubernetes.Accepted = rotation.SetOf(is.Talos.Issuing), rotation.SetOf(is.Kubernetes.Issuing)
		uses := is
		uses.Talos.Accepted, uses.Kubernetes.Accepted = rotation.SetOf(was.Talos.Issuing), rotation.SetOf(was.Kubernetes.Issuing)

		active := old.Bytes

		for _, step := range []rotation.Keys{accepts, uses, is} {
			// What the machine has is enough: state may have lost the former key by now.
			changed, err := WithKeys(wanted.Bytes, active, step, after.Advance().Keyring())
			if err != nil {
				t.Fatalf("%s: %v", role, err)
			}

			if got := keysIn(t, changed); got != step {
				t.Errorf("%s: carries %s, want %s", role, got, step)
			}

			digest, err := Digest(changed)
			if err != nil || digest != wanted.Digest {
				t.Errorf("%s: another digest: %v", role, err)
			}

			if _, err := configloader.NewFromBytes(changed); err != nil {
				t.Errorf("%s: Talos does not load it: %v", role, err)
			}

			if !bytes.Contains(changed, []byte(step.String())) {
				t.Errorf("%s: the node does not tell %s", role, step)
			}

			active = changed
		}

		if _, err := WithKeys(wanted.Bytes, nil, accepts, after.Advance().Keyring()); !errors.Is(err, ErrKeyUnknown) {
			t.Errorf("%s: a key that is nowhere: %v", role, err)
		}

		if joins, err := WithKeys(wanted.Bytes, nil, accepts, after.Keyring()); err != nil || keysIn(t, joins) != accepts {
			t.Errorf("%s: a machine that joins with the former keys: %v", role, err)
		}
	}
}

func TestWithKeys_leavesAConfigurationWithTheseKeysAlone(t *testing.T) {
	config := generatedWith(t, "v1.13", ControlPlane, testBundle(t)).Bytes

	same, err := WithKeys(config, nil, keysIn(t, config), pki.Keyring{})
	if err != nil || !slices.Equal(same, config) {
		t.Errorf("it is another one: %v", err)
	}
}

// The same keys have the same identifiers in both forms, so that a cluster can be moved to the documents.
func TestKeys_areTheSameInDocuments(t *testing.T) {
	after := turnedOver(t, testBundle(t))

	for _, role := range []Role{ControlPlane, Worker} {
		fields, documents := generatedWith(t, "v1.13", role, after).Bytes, generatedWith(t, "v1.14", role, after).Bytes

		if before, now := keysIn(t, fields), keysIn(t, documents); before != now {
			t.Errorf("%s: %s in documents, %s in the main one", role, now, before)
		}

		// The keys of a machine are found in the other form.
		was := keysIn(t, generatedWith(t, "v1.13", role, testBundle(t)).Bytes)
		was.PodTokens = keysIn(t, documents).PodTokens

		kept, err := WithKeys(documents, generatedWith(t, "v1.13", role, testBundle(t)).Bytes, was, pki.Keyring{})
		if err != nil {
			t.Fatal(err)
		}

		if got := keysIn(t, kept); got != was {
			t.Errorf("%s: carries %s, want %s", role, got, was)
		}
	}
}
