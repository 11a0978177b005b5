package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// Source streams a snapshot of a member of etcd.
type Source func(ctx context.Context, to io.Writer) error

// Request is a request for a snapshot.
type Request struct {
	// At is the time in the key.
	At      time.Time
	Facts   Facts
	Sealing Sealing
	// Secrets are stored in a separate object, sealed for the same keys as the snapshot,
	// so only with encryption; nil for none.
	Secrets []byte
	Source  Source
}

// cleanup is how long removing what a failed call left may take.
const cleanup = time.Minute

// Take stores a new snapshot, the secrets beside it and its record. When it returns no
// error, the stream's sum and the pages of the database were verified and the store holds
// what was sent. After an error nothing is stored. A stream that is not whole is
// ErrIncomplete, a database that is not sound ErrDamaged.
func (a Archive) Take(ctx context.Context, r Request) (Record, error) {
	if err := a.valid(); err != nil {
		return Record{}, err
	}

	secrets, err := r.sealedSecrets()
	if err != nil {
		return Record{}, err
	}

	record, err := a.stored(ctx, r)
	if err != nil {
		return Record{}, fmt.Errorf("store the etcd snapshot: %w", err)
	}

	if err := a.accompany(ctx, &record, secrets); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
		defer cancel()

		return Record{}, errors.Join(err, a.Remove(ctx, record.Key))
	}

	return record, nil
}

// stored is the record of a snapshot that was stored, as yet alone.
func (a Archive) stored(ctx context.Context, r Request) (_ Record, err error) {
	pages, err := newScan(a.Scratch)
	if err != nil {
		return Record{}, err
	}

	defer func() { err = errors.Join(err, pages.Close()) }()

	pages.objects = newObjects()

	var (
		key  = newKey(a.folder(), r.At, a.Mark, r.Sealing)
		sent streamed
	)

	object, err := piped(ctx, func(ctx context.Context, to io.Writer) (err error) {
		sent, err = stream(ctx, pages, r.Sealing, r.Source, to)
		return err
	}, func(body io.Reader) (store.Object, error) { return a.Store.Put(ctx, key, body) })
	if err != nil {
		return Record{}, err
	}

	return Record{
		Key: key, Cluster: a.Cluster, Mark: a.Mark, At: r.At.UTC().Truncate(time.Second), Size: object.Size,
		SHA256:   hex.EncodeToString(sent.sum),
		Checksum: object.Checksum, Compression: r.Sealing.Compression(), Encryption: r.Sealing.Encryption(),
		Database: sent.database, Objects: sent.objects, Facts: r.Facts, Authentic: len(a.RecordKeys) > 0,
	}, nil
}

// accompany stores the objects beside a snapshot: the secrets, and last the record, which names them.
func (a Archive) accompany(ctx context.Context, record *Record, secrets []byte) error {
	if secrets != nil {
		object, err := a.Store.Put(ctx, secretsKey(record.Key), bytes.NewReader(secrets))
		if err != nil {
			return fmt.Errorf("store the cluster secrets: %w", err)
		}

		sum := sha256.Sum256(secrets)
		record.Secrets = Secrets{Key: object.Key, SHA256: hex.EncodeToString(sum[:])}
	}

	data, err := record.encoded(a.RecordKeys)
	if err != nil {
		return err
	}

	if _, err := a.Store.Put(ctx, record.Key+recordSuffix, bytes.NewReader(data)); err != nil {
		return fmt.Errorf("store the snapshot record: %w", err)
	}

	return nil
}
