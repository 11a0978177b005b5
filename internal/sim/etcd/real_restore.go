package etcd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/sim/objects"
	"github.com/talosop/terraform-provider-talosop/internal/sim/process"
)

// Restore runs etcd's own etcdutl, whose package Talos uses, with what Talos gives it: the
// cluster's token is empty then, so a restored member's id is not the one it had before.
func (e *Real) Restore(ctx context.Context, h Host, snapshot string, skipHashCheck bool) (Node, error) {
	m, err := e.newMember(h, &RealGroup{})
	if err != nil {
		return nil, err
	}

	m.initial, m.state = m.name+"="+m.peerURL(), "new"

	if err := e.etcdutl(ctx, snapshot, "snapshot", "status", snapshot); err != nil {
		m.Wipe()

		return nil, fmt.Errorf("error verifying snapshot: %w", err)
	}

	args := []string{
		"snapshot", "restore", snapshot, "--data-dir=" + m.dataDir(), "--name=" + m.name, "--initial-cluster=" + m.initial,
		"--initial-cluster-token=", "--initial-advertise-peer-urls=" + m.peerURL(),
	}
	if skipHashCheck {
		args = append(args, "--skip-hash-check")
	}

	if err := e.etcdutl(ctx, snapshot, args...); err != nil {
		err = fmt.Errorf("error recovering from the snapshot: %w", err)

		if left, listErr := os.ReadDir(m.dataDir()); listErr != nil || len(left) == 0 {
			m.Wipe()

			return nil, err
		}

		return &ruinedMember{m}, err
	}

	return m, nil
}

func (m *realMember) dataDir() string { return filepath.Join(m.dir, "data") }

// etcdutl runs etcd's tool for files. What it says of an error is returned as Talos would
// say it, with the machine's own name of the snapshot.
func (e *Real) etcdutl(ctx context.Context, snapshot string, args ...string) error {
	path, err := process.FindProgram(e.Folder, "etcdutl")
	if err != nil {
		return err
	}

	output, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err == nil {
		return nil
	}

	// It logs to the same stream, and the error is the last it says.
	_, reason, found := strings.Cut(string(output), "Error: ")

	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !found:
		return fmt.Errorf("%w: etcdutl %s: %w: %.200s", objects.ErrPanicked, args[1], err, output)
	}

	return errors.New(strings.ReplaceAll(strings.TrimSpace(reason), snapshot, constants.EtcdRecoverySnapshotPath))
}

func (m *realMember) RaftSnapshots() (map[string]time.Time, error) {
	entries, err := os.ReadDir(filepath.Join(m.dataDir(), "member", "snap"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}

	made := map[string]time.Time{}

	for _, entry := range entries {
		// A file that disappears meanwhile does not count.
		if info, err := entry.Info(); err == nil {
			made[entry.Name()] = info.ModTime()
		}
	}

	return made, nil
}
