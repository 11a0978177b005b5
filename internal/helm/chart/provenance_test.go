package chart

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	helmchart "helm.sh/helm/v3/pkg/chart"
	helmprovenance "helm.sh/helm/v3/pkg/provenance"
	helmregistry "helm.sh/helm/v3/pkg/registry"
)

// newKeyring makes a key, and the file with its public part.
func newKeyring(t *testing.T, folder, name string) (*openpgp.Entity, string) {
	t.Helper()
	key, err := openpgp.NewEntity(name, "", name+"@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	var public bytes.Buffer
	if err := key.Serialize(&public); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, name+".gpg")
	write(t, file, public.String())
	return key, file
}

// signed is the provenance file of a package.
func signed(t *testing.T, key *openpgp.Entity, name string, content []byte) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := (&helmprovenance.Signatory{Entity: key}).ClearSign(file)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}

func TestProvenance_verified(t *testing.T) {
	s, oci, store := serve(t), serveRegistry(t), newStore(t, Options{})
	keys := t.TempDir()
	key, keyring := newKeyring(t, keys, "owner")
	_, stranger := newKeyring(t, keys, "stranger")
	const name = "web-1.0.0.tgz"
	content := packed(t, simple("web", "1.0.0"))
	proof := signed(t, key, name, content)
	s.publish(t, "", map[string][]byte{name: content})
	s.put("/"+name+".prov", proof)
	oci.push(t, "web:1.0.0", content, helmregistry.PushOptProvData(proof))
	oci.push(t, "bare:1.0.0", packed(t, simple("bare", "1.0.0")))
	file := filepath.Join(t.TempDir(), name)
	write(t, file, string(content))
	write(t, file+".prov", string(proof))
	for _, from := range []Source{s.of("web", ""), {Chart: s.URL + "/" + name, CA: s.CA}, oci.of("web", ""),
		{Chart: file}} {
		from.Verify, from.Keyring = true, keyring
		p, err := store.Fetch(t.Context(), from)
		installable(t, p, err, "web", "1.0.0")
		for _, other := range []string{stranger, filepath.Join(keys, "none.gpg"), ""} {
			from.Keyring = other
			if _, err := store.Fetch(t.Context(), from); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s with %q: %v", from.Chart, other, err)
			}
		}
	}
	bare := oci.of("bare", "")
	bare.Verify, bare.Keyring = true, keyring
	_, err := store.Fetch(t.Context(), bare)
	if !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	texts(t, err, "bare", "no provenance file")
	folder := Source{Chart: folderOf(t, t.TempDir(), simple("web", "1.0.0"), nil), Verify: true, Keyring: keyring}
	if _, err = store.Fetch(t.Context(), folder); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

func TestProvenance_otherPackage(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	key, keyring := newKeyring(t, t.TempDir(), "owner")
	content := packed(t, simple("web", "1.0.0"))
	other := packed(t, simple("web", "1.0.0"), func(c *helmchart.Chart) { c.Metadata.Description = "other" })
	s.publish(t, "", map[string][]byte{"web-1.0.0.tgz": content})
	from := s.of("web", "")
	from.Verify, from.Keyring = true, keyring
	for what, proof := range map[string][]byte{
		"none":          nil,
		"other content": signed(t, key, "web-1.0.0.tgz", other),
		"other name":    signed(t, key, "web-1.0.1.tgz", content),
		"no signature":  []byte("hello"),
	} {
		s.put("/web-1.0.0.tgz.prov", proof)
		_, err := NewStore(Options{}).Fetch(t.Context(), from)
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
		texts(t, err, "web-1.0.0.tgz", "provenance")
	}
	// Resolve reads the index alone, signed or not.
	if _, err := store.Resolve(t.Context(), from); err != nil {
		t.Error(err)
	}
}
