package pki

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

func encoded(t *testing.T, b *Bundle) string {
	t.Helper()

	text, err := b.YAML()
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

// next is a bundle with next keys, and turned one that has taken them.
func next(t *testing.T, b *Bundle, kinds ...rotation.Kind) *Bundle {
	t.Helper()

	out, err := b.Rotate(kinds...)
	if err != nil {
		t.Fatal(err)
	}

	return out
}

func turned(t *testing.T, b *Bundle, kinds ...rotation.Kind) *Bundle {
	t.Helper()

	return next(t, b, kinds...).Advance()
}

func fingerprintsOf(b *Bundle) map[string]string {
	out := map[string]string{}
	for _, a := range b.Authorities() {
		out[a.Name] = a.Fingerprint
	}

	return out
}

func TestRotate_exchangesOneKindAndKeepsTheFormerKey(t *testing.T) {
	before := testBundle(t)

	for _, kind := range rotation.Kinds() {
		after := turned(t, before, kind)

		if got := after.previous.kinds(); !slices.Equal(got, []rotation.Kind{kind}) || !slices.Equal(got, after.Rotated()) {
			t.Errorf("%s: previous %v, rotated %v", kind, got, after.Rotated())
		}

		if after.Mark() != before.Mark() || !slices.EqualFunc(after.RecordKeys(), before.RecordKeys(), bytes.Equal) {
			t.Errorf("%s: the cluster is another one now", kind)
		}

		was, is := before.Keyring(), after.Keyring()
		for name, pair := range map[string][2][]string{
			string(rotation.ServiceAccountKey): {was.ServiceAccount, is.ServiceAccount},
			string(rotation.ClusterToken):      {was.BootstrapToken, is.BootstrapToken},
		} {
			if changed := pair[0][0] != pair[1][0]; changed != (name == string(kind)) {
				t.Errorf("%s: %s changed: %t", kind, name, changed)
			} else if changed && !slices.Contains(pair[1], pair[0][0]) {
				t.Errorf("%s: the former one is gone", kind)
			}
		}

		for name, changes := range map[string]bool{"talos": kind == rotation.TalosCA,
			"kubernetes": kind == rotation.KubernetesCA, "aggregator": kind == rotation.AggregatorCA, "etcd": false} {
			if changed := fingerprintsOf(before)[name] != fingerprintsOf(after)[name]; changed != changes {
				t.Errorf("%s: the authority %s changed: %t", kind, name, changed)
			}
		}

		again, err := Parse([]byte(encoded(t, after)))
		if err != nil || encoded(t, again) != encoded(t, after) {
			t.Errorf("%s: parsed and encoded again it differs: %v", kind, err)
		}

		if _, err := again.Rotate(kind); !errors.Is(err, ErrRotating) {
			t.Errorf("%s: a second rotation while the former key is accepted: %v", kind, err)
		}

		dropped := again.Advance()
		if len(dropped.Turning()) > 0 || strings.Contains(encoded(t, dropped), "previous") ||
			!slices.Equal(dropped.Rotated(), []rotation.Kind{kind}) {
			t.Errorf("%s: without previous: %v", kind, dropped.Turning())
		}

		turned(t, dropped, kind)
	}
}

// The next key is in the bundle, and so in state, before any machine works with it.
func TestRotate_keepsTheNextKeyBesideThePresentOne(t *testing.T) {
	before := testBundle(t)

	for _, kind := range rotation.Kinds() {
		ahead := next(t, before, kind)

		if got := ahead.next.kinds(); !slices.Equal(got, []rotation.Kind{kind}) || len(ahead.Rotated()) > 0 ||
			!slices.Equal(ahead.Turning(), got) || !ahead.Rotates() {
			t.Errorf("%s: next %v, rotated %v", kind, got, ahead.Rotated())
		}

		was, is := before.Keyring(), ahead.Keyring()
		if was.ServiceAccount[0] != is.ServiceAccount[0] || was.BootstrapToken[0] != is.BootstrapToken[0] ||
			!maps.Equal(fingerprintsOf(before), fingerprintsOf(ahead)) {
			t.Errorf("%s: the present keys are others", kind)
		}

		again, err := Parse([]byte(encoded(t, ahead)))
		if err != nil || encoded(t, again) != encoded(t, ahead) {
			t.Errorf("%s: parsed and encoded again it differs: %v", kind, err)
		}

		if _, err := again.Rotate(kind); !errors.Is(err, ErrRotating) {
			t.Errorf("%s: a second rotation before the first one: %v", kind, err)
		}

		if after := again.Advance(); !slices.Equal(after.previous.kinds(), []rotation.Kind{kind}) ||
			len(after.next.kinds()) > 0 || encoded(t, after.Advance()) == encoded(t, before) {
			t.Errorf("%s: advanced it has previous %v, next %v", kind, after.previous.kinds(), after.next.kinds())
		}
	}
}

// No machine works with an authority that the state of its resource does not know.
func TestFollowing_acceptsWhatStateDoesNotKnow(t *testing.T) {
	kinds := []rotation.Kind{rotation.TalosCA, rotation.KubernetesCA}
	before := testBundle(t)
	ahead := next(t, before, kinds...)
	after := ahead.Advance()
	dropped := after.Advance()

	for name, c := range map[string]struct {
		planned, state, want *Bundle
	}{
		"a step":           {after, ahead, after},
		"the last step":    {dropped, after, dropped},
		"two steps":        {after, before, ahead},
		"two of the other": {dropped, ahead, dropped},
		"all of them":      {dropped, before, ahead},
	} {
		got := c.planned.Following(c.state)
		if !maps.Equal(fingerprintsOf(got), fingerprintsOf(c.want)) ||
			!slices.Equal(got.next.kinds(), c.want.next.kinds()) || !slices.Equal(got.previous.kinds(), c.want.previous.kinds()) {
			t.Errorf("%s: next %v, previous %v", name, got.next.kinds(), got.previous.kinds())
		}
	}
}

// Dropped keys are known to those alone who have a machine on record that works with them.
func TestKnowingFormer_ofMachinesThatWorkWithThem(t *testing.T) {
	before := testBundle(t)
	dropped := turned(t, before, rotation.Kinds()...).Advance()
	late := rotation.Keys{Talos: rotation.Trust{Issuing: rotation.AuthorityID(before.secrets.Certs.OS.Crt)}}
	done := rotation.Keys{Talos: rotation.Trust{Issuing: rotation.AuthorityID(dropped.secrets.Certs.OS.Crt)}}

	again, err := Parse([]byte(encoded(t, dropped)))
	if err != nil || encoded(t, again) != encoded(t, dropped) {
		t.Fatalf("parsed and encoded again it differs: %v", err)
	}

	if len(again.Turning()) > 0 || len(again.Previous().Talos) > 0 || len(again.everyTalosCA()) != 1 {
		t.Errorf("dropped keys are in use: turning %v, %d authorities", again.Turning(), len(again.everyTalosCA()))
	}

	if known := again.KnowingFormer(done, rotation.Keys{}); known != again {
		t.Error("former keys are known although no machine works with them")
	}

	known := again.KnowingFormer(done, late)
	if lost := known.Unknown(late); len(lost) > 0 || len(known.everyKubernetesCA()) != 2 {
		t.Errorf("a machine that works with a former key is not known: %v", lost)
	}

	if encoded(t, known) != encoded(t, again) {
		t.Error("who knows former keys stores others")
	}

	if second := turned(t, dropped, rotation.TalosCA).Advance(); len(second.KnowingFormer(late).Unknown(late)) != 1 ||
		len(second.former.kinds()) != len(rotation.Kinds()) {
		t.Errorf("after a second rotation former are %v", second.former.kinds())
	}
}

func TestUnknown_namesWhatMachinesWorkWith(t *testing.T) {
	before := testBundle(t)
	after := turned(t, before, rotation.TalosCA, rotation.KubernetesCA)
	carried := rotation.Keys{
		Talos:      rotation.Trust{Issuing: rotation.AuthorityID(before.secrets.Certs.OS.Crt)},
		Kubernetes: rotation.Trust{Issuing: rotation.AuthorityID(before.secrets.Certs.K8s.Crt)},
	}

	if got := after.Unknown(carried); len(got) > 0 {
		t.Errorf("with the previous keys: %v", got)
	}

	if got := after.Advance().Unknown(carried); !slices.Equal(got, []rotation.Kind{rotation.TalosCA, rotation.KubernetesCA}) {
		t.Errorf("without the previous keys: %v", got)
	}

	if before.Identity() != after.Advance().Identity() || before.Identity() == otherBundle(t).Identity() {
		t.Error("the identity is not that of the cluster")
	}
}

func TestYAML_bundleThatWasNeverTurnedOverStaysAsTalosctlWritesIt(t *testing.T) {
	if text := encoded(t, testBundle(t)); strings.Contains(text, "previous") || strings.Contains(text, "rotated") {
		t.Error("it has parts that talosctl does not write")
	}
}

// talosctl reads the file with LoadBundle.
func TestYAML_talosctlReadsABundleWithPreviousKeys(t *testing.T) {
	after := turned(t, testBundle(t), rotation.Kinds()...)
	path := filepath.Join(t.TempDir(), "secrets.yaml")

	if err := os.WriteFile(path, []byte(encoded(t, after)), 0o600); err != nil {
		t.Fatal(err)
	}

	loaded, err := secrets.LoadBundle(path)
	if err != nil {
		t.Fatal(err)
	}

	if err := loaded.Validate(config.TalosVersionCurrent); err != nil {
		t.Fatal(err)
	}

	if !bytes.Equal(loaded.Certs.OS.Crt, after.Keyring().Talos[0].Crt) {
		t.Error("talosctl does not take the present key")
	}
}

func TestParse_namesWhatIsWrongWithPreviousKeys(t *testing.T) {
	text := encoded(t, turned(t, testBundle(t), rotation.TalosCA, rotation.ClusterToken))
	_, part, _ := strings.Cut(text, "previous:")
	_, key, _ := strings.Cut(part, "key: ")
	key, _, _ = strings.Cut(key, "\n")

	for name, c := range map[string]struct{ text, want string }{
		"key":   {strings.Replace(text, key, "", 1), "previous.certs.os: key is missing"},
		"shape": {text + "\n  surplus: x\n", ""},
		"token": {strings.Replace(text, "    bootstraptoken: ", "    bootstraptoken: no-dot-", 2), ""},
	} {
		if name == "token" {
			before, after, _ := strings.Cut(text, "previous:")
			c.text = before + "previous:" + strings.Replace(after, ".", "", 1)
			c.want = "previous.bootstraptoken does not have the format <id>.<secret>"
		}

		if name == "shape" {
			c.text, c.want = strings.Replace(text, "previous:\n", "previous:\n    surplus: x\n", 1),
				"previous (line "
		}

		_, err := Parse([]byte(c.text))
		if !errors.Is(err, ErrInvalidBundle) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClients_trustAndHaveBothAuthorities(t *testing.T) {
	before := testBundle(t)
	after := turned(t, before, rotation.TalosCA, rotation.KubernetesCA)

	talos, err := after.TalosClient([]string{"os:admin"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	kubernetes, err := after.KubernetesClient("somebody", nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	for name, c := range map[string]Credentials{"talos": talos, "kubernetes": kubernetes} {
		if bytes.Count(c.CA, []byte("BEGIN CERTIFICATE")) != 2 || len(c.Former) != 1 {
			t.Fatalf("%s: %d authorities, %d former clients", name, bytes.Count(c.CA, []byte("BEGIN")), len(c.Former))
		}

		verify(t, c)
		verify(t, c.Former[0])
	}

	// The earlier keys in state continue to work beside a bundle that lacks them.
	known := after.Advance().Knowing(before)
	if c, err := known.TalosClient([]string{"os:admin"}, time.Hour); err != nil || len(c.Former) != 1 {
		t.Errorf("with the bundle before: %d former clients, %v", len(c.Former), err)
	}

	if encoded(t, known) != encoded(t, after.Advance()) {
		t.Error("the file has the keys of another bundle")
	}

	if other := after.Knowing(otherBundle(t)); other != after {
		t.Error("the keys of another cluster are taken")
	}
}
