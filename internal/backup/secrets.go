package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// secretsLimit is more bytes than any bundle of secrets has.
const secretsLimit = 1 << 20

// sealedSecrets are the secrets as they are stored, or nil.
func (r Request) sealedSecrets() ([]byte, error) {
	if r.Secrets == nil {
		return nil, nil
	}

	if r.Sealing.Encryption() == "" {
		return nil, errors.New("secrets must be encrypted: give age recipients or a passphrase")
	}

	// Encrypted secrets must be small enough to be read again.
	if len(r.Secrets) > secretsLimit/2 {
		return nil, fmt.Errorf("the secrets are too large (%d bytes)", len(r.Secrets))
	}

	var sealed bytes.Buffer

	w, err := Sealing{Recipients: r.Sealing.Recipients, Passphrase: r.Sealing.Passphrase}.seal(&sealed)
	if err != nil {
		return nil, err
	}

	if _, err := w.Write(r.Secrets); err != nil {
		return nil, fmt.Errorf("encrypt the secrets: %w", err)
	}

	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encrypt the secrets: %w", err)
	}

	return sealed.Bytes(), nil
}

// Secrets opens the secrets that were stored beside the snapshot of a key. Without secrets, the error is
// store.ErrNotFound. With the wrong keys it is ErrLocked. If the secrets are not the recorded ones, it is
// store.ErrDiffers.
func (a Archive) Secrets(ctx context.Context, key string, keys Keys) ([]byte, error) {
	record, err := a.Recorded(ctx, key)
	if err != nil && !Unrecorded(err) {
		return nil, err
	}

	if err := a.admit(key, record); err != nil {
		return nil, err
	}

	sealed, err := a.small(ctx, secretsKey(key), secretsLimit)
	if err != nil {
		return nil, err
	}

	if sum := sha256.Sum256(sealed); record != nil && hex.EncodeToString(sum[:]) != record.Secrets.SHA256 {
		return nil, fmt.Errorf("%w: the secrets of %s have SHA-256 %x", store.ErrDiffers, key, sum)
	}

	opened, _, err := keys.decrypt(bytes.NewReader(sealed))
	if err != nil {
		return nil, fmt.Errorf("decrypt the secrets of %s: %w", key, err)
	}

	secrets, err := io.ReadAll(opened)
	if err != nil {
		return nil, fmt.Errorf("decrypt the secrets of %s: %w: %w", key, ErrIncomplete, err)
	}

	return secrets, nil
}
