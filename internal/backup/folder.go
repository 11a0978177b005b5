package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Folder keeps snapshots as files of one folder, readable by their owner alone: a
// database of etcd holds every Secret of its cluster.
type Folder struct {
	// Path of the folder; it is made when it is missing.
	Path string
	// Cluster names the files.
	Cluster string
}

// Keep writes what take streams to a new file and returns its path, such as
// prod-etcd-20260102T150405Z.snapshot in the folder. The file appears under that name once
// it is whole, verified and on the disk; otherwise nothing is left. Trouble with the folder
// is permanent (wait.IsPermanent), trouble with the stream is not.
func (f Folder) Keep(ctx context.Context, at time.Time, take func(context.Context, io.Writer) error) (path string, err error) {
	if err := os.MkdirAll(f.Path, 0o700); err != nil {
		return "", wait.Permanent(fmt.Errorf("make the folder for snapshots: %w", err))
	}

	file, err := os.CreateTemp(f.Path, ".etcd-snapshot-*")
	if err != nil {
		return "", wait.Permanent(fmt.Errorf("make a file for the snapshot: %w", err))
	}

	defer func() { err = errors.Join(err, removed(file.Name())) }()

	if err := fill(ctx, file, take); err != nil {
		return "", errors.Join(err, file.Close())
	}

	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return "", wait.Permanent(fmt.Errorf("write the snapshot: %w", err))
	}

	path = filepath.Join(f.Path, fmt.Sprintf("%s-etcd-%s.snapshot", f.Cluster, at.UTC().Format("20060102T150405Z")))

	// A link fails where a rename would replace a snapshot of the same second.
	if err := os.Link(file.Name(), path); err != nil {
		return "", wait.Permanent(fmt.Errorf("name the snapshot: %w", err))
	}

	return path, nil
}

// fill streams a snapshot into a file and verifies it.
func fill(ctx context.Context, file *os.File, take func(context.Context, io.Writer) error) error {
	v := newVerifier()

	if err := take(ctx, io.MultiWriter(file, v)); err != nil {
		return err
	}

	return v.verify()
}

// removed takes the unnamed file away, also after the run was interrupted.
func removed(path string) error {
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove the unnamed snapshot: %w", err)
	}

	return nil
}
