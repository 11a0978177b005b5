package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Folder keeps snapshots as plain files of one folder, for people who look there after an
// upgrade went wrong. It has no records and removes nothing; an Archive does both.
type Folder struct {
	// Path of the folder; it is made when it is missing.
	Path string
	// Cluster names the files.
	Cluster string
}

// Keep writes what take streams to a new file and returns its path, such as
// prod-etcd-20260102T150405Z.snapshot in the folder. The file appears under that name once
// it is whole, verified and on the disk; otherwise nothing is left. An error of the folder
// is permanent (wait.IsPermanent), one of the stream is not.
func (f Folder) Keep(ctx context.Context, at time.Time, take func(context.Context, io.Writer) error) (string, error) {
	var (
		name   = fmt.Sprintf("%s-etcd-%s.snapshot", f.Cluster, at.UTC().Format("20060102T150405Z"))
		stream error
	)

	_, err := piped(ctx, func(ctx context.Context, to io.Writer) error {
		stream = verified(ctx, take, to)
		return stream
	}, func(body io.Reader) (store.Object, error) { return file.Store{Path: f.Path}.Put(ctx, name, body) })

	switch {
	case err == nil:
		return filepath.Join(f.Path, name), nil
	case ctx.Err() != nil, stream != nil && errors.Is(err, stream) && !errors.Is(stream, err):
		return "", err // the stream's, which the folder passes on; one of the folder ends the stream with itself
	default:
		return "", wait.Permanent(err)
	}
}

// verified streams a snapshot and reports whether it was complete.
func verified(ctx context.Context, take Source, to io.Writer) error {
	v := newVerifier()

	if err := take(ctx, io.MultiWriter(to, v)); err != nil {
		return err
	}

	return v.verify()
}
