package rotation_test

import (
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

func TestKinds_inDisplayOrder(t *testing.T) {
	t.Parallel()

	if got := rotation.Kinds(); !slices.Equal(got, []rotation.Kind{rotation.TalosCA, rotation.KubernetesCA, rotation.AggregatorCA,
		rotation.ServiceAccountKey, rotation.ClusterToken}) {
		t.Error(got)
	}
}

func TestSamePods_ofOtherKeys(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		change func(*rotation.Keys)
		same   bool
	}{
		"none":            {func(*rotation.Keys) {}, true},
		"Talos CA":        {func(k *rotation.Keys) { k.Talos.Issuing = present }, true},
		"cluster token":   {func(k *rotation.Keys) { k.ClusterToken = present }, true},
		"Kubernetes CA":   {func(k *rotation.Keys) { k.Kubernetes.Accepted = present }, false},
		"aggregator CA":   {func(k *rotation.Keys) { k.Aggregator = present }, false},
		"service account": {func(k *rotation.Keys) { k.ServiceAccount = present }, false},
		"all three": {func(k *rotation.Keys) {
			k.Kubernetes.Issuing, k.Aggregator, k.ServiceAccount = present, present, present
		}, false},
	} {
		has := keys(rotation.Trust{Issuing: former}, former)
		other := has
		test.change(&other)

		if got := has.SamePods(other); got != test.same {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestIdentifier_isTheBeginningOfAHash(t *testing.T) {
	t.Parallel()

	const ofA = "ca978112ca1bbdca" // echo -n a | sha256sum

	if got := rotation.Identifier(sha256.New(), []byte("a")); got != ofA {
		t.Errorf("a key: %q", got)
	}

	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("a")})
	if got := rotation.AuthorityID(block); got != ofA {
		t.Errorf("a certificate: %q", got)
	}

	if got := rotation.AuthorityID([]byte("a")); got != ofA {
		t.Errorf("a certificate that is not PEM: %q", got)
	}

	if got := rotation.AuthorityID(nil); got != "" {
		t.Errorf("no certificate: %q", got)
	}
}

func TestSet_isSorted(t *testing.T) {
	t.Parallel()

	s := rotation.SetOf("c", "", "a", "c")
	if s != "a+c" || !slices.Equal(s.IDs(), []string{"a", "c"}) {
		t.Errorf("%q has %q", s, s.IDs())
	}

	if got := s.With("b", "a"); got != "a+b+c" {
		t.Errorf("with more: %q", got)
	}

	if got := s.Without("a", "b"); got != "c" {
		t.Errorf("with fewer: %q", got)
	}

	if !s.Has("c") || s.Has("b") || s.Has("") || rotation.SetOf("").Has("") {
		t.Errorf("%q has others", s)
	}

	if got := rotation.SetOf(""); got != "" || len(got.IDs()) != 0 {
		t.Errorf("an empty set is %q with %q", got, got.IDs())
	}
}

func TestKeys_inState(t *testing.T) {
	t.Parallel()

	want := keys(rotation.Trust{Issuing: former, Accepted: present}, former)

	encoded, err := json.Marshal(want)
	if err != nil || string(encoded) != `"talos=aaaa+bbbb kubernetes=aaaa+bbbb cluster-token=aaaa"` {
		t.Errorf("%s, %v", encoded, err)
	}

	var got rotation.Keys
	if err := json.Unmarshal(encoded, &got); err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
}
