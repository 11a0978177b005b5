package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
	bolt "go.etcd.io/bbolt"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// Attacks by a client that may write the bucket and has no key of the cluster. The attacker knows all that is no
// secret: names, marks, public recipients, what records look like, and how to make a custom etcd.

// attacked is a bucket with a real snapshot, and a foreign one of another etcd to put in its place.
type attacked struct {
	backup.Archive

	t      *testing.T
	folder string
	record backup.Record
	keys   backup.Keys
	// forged is the foreign snapshot, as it is stored, and what its record says.
	forged       []byte
	forgedRecord string
}

// underAttack stores a snapshot in one way, and makes another one that is sealed in some other.
func underAttack(t *testing.T, sealed, other string) attacked {
	t.Helper()

	var (
		kinds         = sealings(t)
		a, s          = archive(t)
		elsewhere, to = archive(t)
	)

	record, err := a.Take(t.Context(),
		backup.Request{At: taken, Sealing: kinds[sealed].Sealing, Source: inPieces(whole(t), 5000)})
	if err != nil {
		t.Fatal(err)
	}

	// Only the cluster has its keys.
	elsewhere = keyless(elsewhere)

	theirs, err := elsewhere.Take(t.Context(),
		backup.Request{At: taken, Sealing: kinds[other].Sealing, Source: inPieces(otherDatabase(t), 5000)})
	if err != nil {
		t.Fatal(err)
	}

	text := string(read(t, to, theirs.Key+".json", store.Range{}))

	return attacked{
		Archive: a, t: t, folder: s.Path, record: record, keys: kinds[sealed].keys,
		forged: read(t, to, theirs.Key, store.Range{}), forgedRecord: editRecord(text, theirs.Key, record.Key),
	}
}

// otherDatabase is a whole snapshot of another etcd.
func otherDatabase(t *testing.T) []byte {
	t.Helper()

	db, err := bolt.Open(written(t, whole(t)[:len(whole(t))-sha256.Size]), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}

	defer func() { must(t, db.Close()) }()

	must(t, db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("key")).Put(revision(1_000_000), []byte("a ClusterRoleBinding of an attacker"))
	}))

	var data bytes.Buffer

	must(t, db.View(func(tx *bolt.Tx) error {
		_, err := tx.WriteTo(&data)
		return err
	}))

	return summed(data.Bytes())
}

func must(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

// editRecord is a record in which a text is another one, with the sum that goes with it.
func editRecord(record, before, after string) string {
	text, _, _ := strings.Cut(strings.ReplaceAll(record, before, after), ",\n  \"sum\"")

	return text + fmt.Sprintf(",\n  \"sum\": \"%x\"\n}\n", sha256.Sum256([]byte(text)))
}

// put replaces the content of a key.
func (a attacked) put(key string, data []byte) {
	a.t.Helper()

	path := filepath.Join(a.folder, filepath.FromSlash(key))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		a.t.Fatal(err)
	}

	if err := os.WriteFile(path, data, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// refused checks that the snapshot is not opened, for a reason that has this text.
func (a attacked) refused(what, key string, keys backup.Keys, want error) {
	a.t.Helper()

	snapshot, err := a.Fetch(a.t.Context(), key, keys)
	if err == nil {
		a.t.Errorf("%s: etcd would begin with the data of an attacker", what)
		_ = snapshot.Close()

		return
	}

	if !errors.Is(err, want) {
		a.t.Errorf("%s: %v, want %v", what, err, want)
	}

	left(a.t, a.Scratch, 0)
}

// In the place of a real snapshot lies one of another etcd, with a record that bears out.
func TestFetch_refusesAForgedSnapshot(t *testing.T) {
	t.Parallel()

	for _, kind := range []string{".db", ".db.zst", ".db.age", ".db.zst.age"} {
		a := underAttack(t, kind, kind)
		a.put(a.record.Key, a.forged)
		a.refused(kind+" alone", a.record.Key, a.keys, store.ErrDiffers)

		a.put(a.record.Key+".json", []byte(a.forgedRecord))
		a.refused(kind+" with a record", a.record.Key, a.keys, backup.ErrUntrusted)

		a.put(a.record.Key+".json", []byte("{}"))
		a.refused(kind+" with none that can be read", a.record.Key, a.keys, backup.ErrUntrusted)

		if err := os.Remove(filepath.Join(a.folder, filepath.FromSlash(a.record.Key)) + ".json"); err != nil {
			t.Fatal(err)
		}

		a.refused(kind+" without a record", a.record.Key, a.keys, backup.ErrUntrusted)
	}
}

// With the key of an encrypted snapshot, Fetch refuses one that is not encrypted.
func TestFetch_refusesPlainDataForEncrypted(t *testing.T) {
	t.Parallel()

	for _, kind := range []string{".db", ".db.zst"} {
		a := underAttack(t, kind+".age", kind)

		for name, keys := range map[string]backup.Keys{
			"identities": a.keys, "a passphrase": {Passphrase: "correct horse"}, "nothing": {},
		} {
			a.put(a.record.Key, a.forged)
			a.put(a.record.Key+".json", []byte(a.forgedRecord))
			a.refused(kind+" with "+name, a.record.Key, keys, backup.ErrPlain)

			a.put("other"+kind, a.forged)

			if name != "nothing" {
				a.refused("another name, with "+name, "other"+kind, keys, backup.ErrPlain)
			}
		}
	}
}

// A recipient is public: any client that knows it can encrypt for it. A passphrase is secret.
func TestFetch_trustsAPassphraseAndNoRecipient(t *testing.T) {
	t.Parallel()

	a := underAttack(t, ".db.age", ".db.age")

	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}

	both := backup.Keys{Identities: []string{identity.String()}, Passphrase: "correct horse"}

	a.put("other.age", encrypted(t, whole(t), identity.Recipient()))
	a.refused("for a recipient", "other.age", backup.Keys{Identities: both.Identities}, backup.ErrUntrusted)
	a.refused("for a recipient, with a passphrase, too", "other.age", both, backup.ErrUntrusted)

	secret, err := age.NewScryptRecipient("correct horse")
	if err != nil {
		t.Fatal(err)
	}

	secret.SetWorkFactor(10)
	a.put("other.age", encrypted(t, whole(t), secret))

	snapshot, err := a.Fetch(t.Context(), "other.age", both)
	if err != nil {
		t.Fatal(err)
	}

	same(t, snapshot)

	// Of a name of this package the cluster has a record that says which one it was: this is an older one, or of
	// another cluster with the same passphrase.
	key := strings.Replace(a.record.Key, "15-04-05", "16-04-05", 1)
	a.put(key, encrypted(t, whole(t), secret))
	a.refused("another one of the passphrase", key, backup.Keys{Passphrase: "correct horse"}, backup.ErrUntrusted)
}

func encrypted(t *testing.T, data []byte, to age.Recipient) []byte {
	t.Helper()

	var sealed bytes.Buffer

	w, err := age.Encrypt(&sealed, to)
	if err != nil {
		t.Fatal(err)
	}

	if _, err = w.Write(data); err != nil {
		t.Fatal(err)
	}

	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	return sealed.Bytes()
}

// counting is a store that counts what is read of objects.
type counting struct {
	store.Store

	read *int64
}

func (c counting) Open(ctx context.Context, key string, part store.Range) (io.ReadCloser, error) {
	body, err := c.Store.Open(ctx, key, part)
	if err != nil {
		return nil, err
	}

	return struct {
		io.Reader
		io.Closer
	}{io.TeeReader(body, counter{c.read}), body}, nil
}

type counter struct{ n *int64 }

func (c counter) Write(p []byte) (int, error) {
	*c.n += int64(len(p))

	return len(p), nil
}

// What unpacks to more than it can be is not unpacked to its end.
func TestFetch_boundsWhatItUnpacks(t *testing.T) {
	t.Parallel()

	a := underAttack(t, ".db.zst", ".db.zst")

	var bomb bytes.Buffer

	w, err := zstd.NewWriter(&bomb)
	if err != nil {
		t.Fatal(err)
	}

	for range 256 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}

	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	a.put(a.record.Key, bomb.Bytes())
	a.refused("a bomb", a.record.Key, a.keys, store.ErrTooLarge)

	a.put(a.record.Key, make([]byte, 4*len(whole(t))))
	a.refused("a large object", a.record.Key, a.keys, store.ErrTooLarge)
}

// What comes before the encrypted bytes is small, and costs no more than other passphrases do.
func TestFetch_boundsTheHeadOfAnArchive(t *testing.T) {
	t.Parallel()

	a := underAttack(t, ".db.age", ".db.age")

	// age 1.3.2 bounds the number of stanzas, and not their size.
	stanza := "-> grease x\n" + strings.Repeat(strings.Repeat("A", 64)+"\n", 1<<10) + "\n"
	a.put(a.record.Key, []byte("age-encryption.org/v1\n"+strings.Repeat(stanza, 1<<7)))

	var bytesRead int64

	a.Store = counting{a.Store, &bytesRead}
	a.refused("an endless head", a.record.Key, a.keys, store.ErrTooLarge)

	if bytesRead > 1<<20 {
		t.Errorf("%d bytes of it were read", bytesRead)
	}

	secret, err := age.NewScryptRecipient("correct horse")
	if err != nil {
		t.Fatal(err)
	}

	secret.SetWorkFactor(10)

	dear := encrypted(t, whole(t), secret)
	first, rest, _ := bytes.Cut(dear, []byte(" 10\n"))
	a.put(a.record.Key, append(append(bytes.Clone(first), " 21\n"...), rest...))
	a.refused("a passphrase that costs 2 GiB", a.record.Key, backup.Keys{Passphrase: "correct horse"}, store.ErrTooLarge)
}

// The listing of a folder is bounded, whatever is stored there.
func TestStoreList_boundsAFolder(t *testing.T) {
	t.Parallel()

	s := file.Store{Path: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(s.Path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}

	for i := range 100_001 {
		if err := os.WriteFile(filepath.Join(s.Path, "x", fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	if objects, err := s.List(t.Context(), "x/"); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("listed %d (%v)", len(objects), err)
	}
}

// threeReal are three real snapshots, a day old and older, of which a retention of three removes none.
func threeReal(t *testing.T) (a attacked, keys []string) {
	t.Helper()

	a = underAttack(t, ".db", ".db")
	keys = append(keys, a.record.Key)

	for i := range 2 {
		record, err := a.Take(t.Context(),
			backup.Request{At: taken.Add(time.Duration(i+1) * time.Hour), Source: inPieces(whole(t), 5000)})
		if err != nil {
			t.Fatal(err)
		}

		keys = append(keys, record.Key)
	}

	return a, keys
}

// A client that may put objects, and may not delete any, cannot make a retention delete the real ones.
func TestRetain_isNotMovedByForgedSnapshots(t *testing.T) {
	t.Parallel()

	name := func(at time.Time, i int) string {
		return fmt.Sprintf("x/y/prod/etcd-snapshot-%s-%s-zzzz%02d.db", at.Format("2006-01-02T15-04-05Z"), ours, i)
	}

	now := taken.Add(24 * time.Hour)

	for what, forge := range map[string]func(a attacked, own []string){
		"names alone": func(a attacked, _ []string) {
			for i := range 5 {
				a.put(name(now.Add(-time.Minute), i), a.forged)
			}
		},
		"names from the future": func(a attacked, _ []string) {
			for i := range 5 {
				a.put(name(now.Add(time.Hour), i), a.forged)
			}
		},
		"records": func(a attacked, _ []string) {
			for i := range 5 {
				key := name(now.Add(-time.Minute), i)
				a.put(key, a.forged)
				a.put(key+".json", []byte(editRecord(a.forgedRecord, a.record.Key, key)))
			}
		},
		"real ones below another folder": func(a attacked, own []string) {
			for i := range 5 {
				for _, ending := range []string{"", ".json"} {
					data := read(a.t, a.Store, own[2]+ending, store.Range{})
					a.put(fmt.Sprintf("x/y/prod/etcd-snapshot-%d/%s", i, path.Base(own[2])+ending), data)
				}
			}
		},
		"real ones under other names": func(a attacked, own []string) {
			for i := range 5 {
				for _, ending := range []string{"", ".json"} {
					a.put(name(now.Add(-time.Minute), i)+ending, read(a.t, a.Store, own[2]+ending, store.Range{}))
				}
			}
		},
	} {
		a, own := threeReal(t)
		forge(a, own)

		done, err := a.Retain(t.Context(), backup.Retention{Count: 3}, "", now)
		if err != nil || len(done.Removed) > 0 || done.Left != 3 {
			t.Errorf("%s: %+v (%v)", what, done, err)
		}
	}
}

// A replaced snapshot counts no more, and does not stand in for an older one.
func TestRetain_doesNotCountAReplacedSnapshot(t *testing.T) {
	t.Parallel()

	a, own := threeReal(t)
	a.put(own[2], []byte("junk"))

	done, err := a.Retain(t.Context(), backup.Retention{Count: 2}, "", taken.Add(24*time.Hour))
	if err != nil || len(done.Removed) > 0 || done.Left != 2 || len(done.Uncounted) != 1 {
		t.Errorf("%+v (%v)", done, err)
	}
}

// The store's clock says when an object came there: a name that says that it was later says nothing.
func TestExpired_isNeverNewerThanItsObject(t *testing.T) {
	t.Parallel()

	var objects []store.Object
	for _, age := range []time.Duration{0, time.Hour, 2 * time.Hour} {
		objects = append(objects, store.Object{Key: key(ours, age, "aaaaaa"), Modified: taken.Add(-age)})
	}

	// Put there long ago, with a name of a minute before now.
	objects = append(objects,
		store.Object{Key: key(ours, -time.Minute, "aaaaaa"), Modified: taken.Add(-100 * time.Hour)})

	got := backup.Retention{Count: 3}.Expired(objects, ours, "", taken.Add(2*time.Minute))
	if len(got) != 1 || got[0] != objects[3].Key {
		t.Errorf("%v go, want the one whose name is newer than its object", got)
	}
}

// A bucket tells the sums of its objects: one of the same size that came in the place of a real one is none.
func TestRetain_comparesSumsWhereTheStoreKnowsThem(t *testing.T) {
	t.Parallel()

	s := opened(t, newBucketServer(t).config())
	a := backup.Archive{Store: s, Cluster: "prod", Mark: ours, RecordKeys: recordKeys, Scratch: t.TempDir()}

	var last backup.Record

	for i := range 4 {
		var err error
		if last, err = a.Take(t.Context(),
			backup.Request{At: taken.Add(time.Duration(i) * time.Hour), Source: inPieces(whole(t), 5000)}); err != nil {
			t.Fatal(err)
		}
	}

	now := taken.Add(24 * time.Hour)
	must(t, s.Delete(t.Context(), last.Key))

	if _, err := s.Put(t.Context(), last.Key, bytes.NewReader(make([]byte, last.Size))); err != nil {
		t.Fatal(err)
	}

	done, err := a.Retain(t.Context(), backup.Retention{Count: 3}, "", now)
	if err != nil || len(done.Removed) > 0 || done.Left != 3 || len(done.Uncounted) != 1 {
		t.Errorf("%+v (%v), want that none goes", done, err)
	}

	if done, err = a.Retain(t.Context(), backup.Retention{Count: 2}, "", now); err != nil || len(done.Removed) != 1 ||
		done.Left != 2 || done.Uncounted[0] != last.Key {
		t.Errorf("%+v (%v), want that the oldest goes", done, err)
	}
}

// Each of the keys of a cluster verifies, and the first one signs: what a former one wrote stays good.
func TestRecorded_withAFormerKey(t *testing.T) {
	t.Parallel()

	a, _ := archive(t)

	record, err := a.Take(t.Context(), backup.Request{At: taken, Source: inPieces(whole(t), 5000)})
	if err != nil || !record.Authentic {
		t.Fatalf("recorded %+v (%v)", record, err)
	}

	for what, c := range map[string]struct {
		keys [][]byte
		want bool
	}{
		"a newer one before it": {[][]byte{[]byte("newer"), recordKeys[0]}, true},
		"a newer one alone":     {[][]byte{[]byte("newer")}, false},
		"none":                  {nil, false},
	} {
		a.RecordKeys = c.keys
		if found, err := a.Recorded(t.Context(), record.Key); err != nil || found.Authentic != c.want {
			t.Errorf("%s: authentic: %t, want %t (%v)", what, found.Authentic, c.want, err)
		}
	}
}
