package objects

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// plainKey is a key of the stand-in's that is no object of Kubernetes.
type plainKey struct {
	version int
	value   []byte
}

// objectPrefix is the prefix of Kubernetes' objects in etcd; tests write other keys.
const objectPrefix = "/registry/"

var keyBucket = []byte("key")

// Buckets of etcd's database (etcd 3.6, server/storage/schema).
var (
	metaBucket = []byte("meta")
)

// WriteSnapshot writes what is stored as a database of etcd's form and its SHA-256.
func (s *Store) WriteSnapshot(w io.Writer) (err error) {
	file, err := os.CreateTemp("", "talossim-snapshot-*")
	if err != nil {
		return fmt.Errorf("make snapshot: %w", err)
	}

	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()

	db, err := bolt.Open(file.Name(), 0o600, &bolt.Options{NoSync: true})
	if err != nil {
		return fmt.Errorf("make snapshot: %w", err)
	}

	defer func() { err = errors.Join(err, db.Close()) }()

	if err := db.Update(s.fill); err != nil {
		return fmt.Errorf("make snapshot: %w", err)
	}

	sum := sha256.New()

	err = db.View(func(tx *bolt.Tx) error {
		_, err := tx.WriteTo(io.MultiWriter(w, sum))

		return err
	})
	if err != nil {
		return err
	}

	_, err = w.Write(sum.Sum(nil))

	return err
}

// fill writes every key at the revision of its last change.
func (s *Store) fill(tx *bolt.Tx) error {
	meta, err := tx.CreateBucket(metaBucket)
	if err != nil {
		return err
	}

	if err := meta.Put([]byte("storageVersion"), []byte("3.6.0")); err != nil {
		return err
	}

	keys, err := tx.CreateBucket(keyBucket)
	if err != nil {
		return err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	for key, obj := range s.objects {
		value, err := obj.MarshalJSON()
		if err != nil {
			return err
		}

		version, err := strconv.Atoi(obj.GetResourceVersion())
		if err != nil {
			return err
		}

		if err := putRevision(keys, version, objectPrefix+storageKey(key), value); err != nil {
			return err
		}
	}

	for key, kept := range s.plain {
		if err := putRevision(keys, kept.version, key, kept.value); err != nil {
			return err
		}
	}

	return nil
}

// ReadSnapshot loads the content of a snapshot.
func (s *Store) ReadSnapshot(snapshot string) (err error) {
	db, err := bolt.Open(snapshot, 0o400, &bolt.Options{ReadOnly: true})
	if err != nil {
		return err
	}

	// Pages that are missing are a fault of the memory that the file is mapped to.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if damage := recover(); damage != nil {
			err = fmt.Errorf("%w: %v", ErrPanicked, damage)
		}

		err = errors.Join(err, db.Close())
	}()

	return db.View(func(tx *bolt.Tx) error {
		bucket := tx.Bucket(keyBucket)
		if bucket == nil {
			return fmt.Errorf("nil bucket: %q", keyBucket)
		}

		return bucket.ForEach(s.take)
	})
}

// take stores one key of a database.
func (s *Store) take(revision, kv []byte) error {
	version := int(binary.BigEndian.Uint64(revision)) //nolint:gosec // written by putRevision
	fields := map[protowire.Number][]byte{}

	for len(kv) > 0 {
		number, kind, n := protowire.ConsumeTag(kv)
		if n < 0 {
			return protowire.ParseError(n)
		}

		kv = kv[n:]

		if kind == protowire.BytesType {
			fields[number], _ = protowire.ConsumeBytes(kv)
		}

		if n = protowire.ConsumeFieldValue(number, kind, kv); n < 0 {
			return protowire.ParseError(n)
		}

		kv = kv[n:]
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.version = max(s.version, version)
	key, value := string(fields[kvKey]), bytes.Clone(fields[kvValue])

	name, object := strings.CutPrefix(key, objectPrefix)
	name = storeKey(name)

	// A revision that ends with this deletes the key (etcd 3.6, mvcc/revision.go).
	if bytes.HasSuffix(revision, []byte("t")) && len(revision) == deletion {
		delete(s.objects, name)
		delete(s.plain, key)

		return nil
	}

	if !object {
		s.plain[key] = plainKey{version: version, value: value}

		return nil
	}

	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal(value, obj); err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}

	s.objects[name] = obj

	return nil
}

// CheckSum compares the sum at the end of a snapshot (etcd 3.6, etcdutl, copyAndVerifyDB).
func CheckSum(snapshot string, skip bool) error {
	if skip {
		return nil
	}

	data, err := os.ReadFile(snapshot)
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}

	if len(data)%512 != sha256.Size {
		return errors.New("snapshot missing hash but --skip-hash-check=false")
	}

	want, got := data[len(data)-sha256.Size:], sha256.Sum256(data[:len(data)-sha256.Size])
	if !bytes.Equal(want, got[:]) {
		return fmt.Errorf("expected sha256 %v, got %v", want, got)
	}

	return nil
}

// putRevision writes a key as etcd's store does (etcd 3.6, mvcc/revision.go).
func putRevision(bucket *bolt.Bucket, version int, key string, value []byte) error {
	revision := append(binary.BigEndian.AppendUint64(nil, uint64(version)), '_') //nolint:gosec // never negative
	revision = binary.BigEndian.AppendUint64(revision, 0)

	kv := protowire.AppendString(protowire.AppendTag(nil, kvKey, protowire.BytesType), key)
	kv = protowire.AppendVarint(protowire.AppendTag(kv, kvModRevision, protowire.VarintType), uint64(version)) //nolint:gosec // as above
	kv = protowire.AppendBytes(protowire.AppendTag(kv, kvValue, protowire.BytesType), value)

	return bucket.Put(revision, kv)
}

const (
	kvKey    = 1
	deletion = 18 // bytes of a revision that deletes a key
)

const kvModRevision = 3

// Fields of mvccpb.KeyValue (etcd 3.6, api/mvccpb/kv.proto).
const (
	kvValue = 5
)

// ErrPanicked is the end of etcd's code on a database with unexpected pages. Talos runs that code in machined,
// which is process 1, and it panics in a separate goroutine (bbolt 1.4, Tx.Check): the machine goes down.
var ErrPanicked = errors.New("panic")
