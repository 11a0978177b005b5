package chart

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"helm.sh/helm/v3/pkg/provenance"
)

// verify checks the signature of a package against the keys in a file.
func (p download) verify(ctx context.Context, keyring string) (err error) {
	if keyring == "" {
		return newError("verify "+p.from+": no keyring is given", nil, ErrDamaged)
	}
	signed, err := p.provenance(ctx)
	if errors.Is(err, errGone) {
		return newError(p.from+" has no provenance file", err, ErrDamaged)
	}
	if err != nil {
		return err
	}
	keys, err := provenance.NewFromKeyring(keyring, "")
	if err != nil {
		return newError("read the keyring "+keyring, err, ErrDamaged)
	}
	// Helm verifies files alone, and their names are part of what is signed.
	folder, err := os.MkdirTemp("", "talosop-verify-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	name := filepath.Join(folder, filepath.Base(p.name))
	if err := os.WriteFile(name, p.archive, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(name+".prov", signed, 0o600); err != nil {
		return err
	}
	if _, err := keys.Verify(name, name+".prov"); err != nil {
		return newError("verify the provenance of "+p.from, err, ErrDamaged)
	}
	return nil
}
