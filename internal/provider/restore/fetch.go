package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	storepkg "github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Restoration is a snapshot on its way from a store to a machine, as lifecycle.Restoration
// has it.
type Restoration struct {
	Set machineset.Set
	// Snapshot is how it is reached and decrypted.
	Snapshot Snapshot
	// Mark is that of the cluster, RecordKeys authenticate its records, and Fallback are the credentials of the
	// provider.
	Mark       string
	RecordKeys [][]byte
	Fallback   storepkg.Credentials

	// Fetched is set by Fetch.
	Fetched *backup.Snapshot
	members []string
}

// Fetch gets the snapshot into a file without a name. It verifies that the snapshot is complete, sound, of this
// cluster, and readable by its versions. Stores do their own retries, so all errors are permanent. It is idempotent.
func (r *Restoration) Fetch(ctx context.Context) error {
	if r.Fetched != nil {
		return nil
	}

	keys := r.Snapshot.keys()
	if masks := finding.NonEmpty(append(keys.Identities, keys.Passphrase)...); len(masks) > 0 {
		ctx = tflog.MaskLogStrings(ctx, masks...)
	}

	ctx, from, key, err := storepkg.PlaceOf(r.Snapshot.S3, r.Snapshot.File).Snapshot(ctx, r.Fallback)
	if err != nil {
		return wait.Permanent(r.Because(err))
	}

	archive := backup.Archive{Store: from, Mark: r.Mark, RecordKeys: r.RecordKeys}

	record, err := archive.Recorded(ctx, key)
	if err != nil && !backup.Unrecorded(err) && !errors.Is(err, backup.ErrRecord) {
		return wait.Permanent(r.Because(err))
	}

	// A record by another writer proves nothing, also about versions.
	if record != nil && record.Authentic {
		if problem := r.tooNew(record.Facts); problem != nil {
			return wait.Permanent(problem)
		}
	}

	fetched, err := archive.Fetch(ctx, key, keys)
	if err != nil {
		return wait.Permanent(r.Because(err))
	}

	// A snapshot whose preparation failed must not count as fetched.
	if err := r.prepare(ctx, fetched); err != nil {
		return wait.Permanent(errors.Join(err, fetched.Close()))
	}

	r.Fetched = fetched

	if r.Fetched.RecordErr != nil {
		tf.LogWarn(ctx, "the record of the snapshot may not be read, if there is one",
			map[string]any{
				"error": r.Fetched.RecordErr.Error(),
			})
	}

	return nil
}

// prepare finds the cluster of a fetched snapshot, and separates an isolated cluster from that.
func (r *Restoration) prepare(ctx context.Context, fetched *backup.Snapshot) (err error) {
	if r.members, err = fetched.Members(); err != nil {
		return r.Because(err)
	}

	if !r.Set.Settings.Isolated {
		return nil
	}

	if conflict := r.Set.RefuseAddressesOf(r.members); conflict != nil {
		return &Error{At: conflict.At, From: r.Set.Restore.From, cause: conflict, message: snapshotAddresses,
			args: finding.Args{"solution": conflict.Remedy}}
	}

	deleted, err := fetched.Isolate(ctx)
	if err != nil {
		return r.Because(err)
	}

	tf.LogInfo(ctx, "deleted from the snapshot, because it connects to the cluster that the snapshot is of",
		map[string]any{"keys": deleted})

	return nil
}

// Members are the hosts of the control planes of the snapshot.
func (r *Restoration) Members() []string { return r.members }

// Reader reads the fetched snapshot from its beginning.
func (r *Restoration) Reader() io.Reader { return r.Fetched.Reader() }

// Anonymous reports whether the cluster of the fetched snapshot is unknown.
func (r *Restoration) Anonymous() bool {
	if r.Fetched == nil || r.Fetched.Record != nil {
		return false
	}

	_, marked := backup.ParseKey(r.Set.Restore.From)

	return !marked
}

// Close removes the fetched file.
func (r *Restoration) Close() error {
	if r.Fetched == nil {
		return nil
	}

	return r.Fetched.Close()
}

// Error is why a snapshot cannot be restored, with its attribute.
type Error struct {
	At      finding.Path
	From    string
	cause   error
	message finding.Message
	// args are those of the message besides the cluster, the snapshot and the cause.
	args finding.Args
}

func (e *Error) Error() string { return fmt.Sprintf("fetch %s: %s", e.From, e.cause) }
func (e *Error) Unwrap() error { return e.cause }

// Diagnostic is the error as shown to the user.
func (e *Error) Diagnostic(p machineset.Set) finding.Finding {
	args := finding.Args{"cluster": p.Settings.Name, "from": e.From, "cause": e.cause.Error()}
	maps.Copy(args, e.args)

	return e.message.At(e.At, args)
}

// Diagnosis returns why the object or file could not be read, and what to do about it.
func (s Snapshot) Diagnosis(err error) (cause, remedy string) {
	from := storepkg.PlaceOf(s.S3, s.File)

	if from.Bucket.Bucket != "" {
		lines, remedy := from.Diagnosis(err)

		return strings.Join(lines, "; "), remedy
	}

	info, unseen := os.Stat(from.Folder)

	switch {
	case errors.Is(err, store.ErrNotFound):
		return "there is no such file", ""
	case unseen == nil && info.IsDir():
		return from.Folder + " is a folder", "Set the path of a file in it."
	default:
		return err.Error(), ""
	}
}

// Because finds the attribute for an error of the fetch.
func (r *Restoration) Because(err error) error {
	asked := r.Snapshot
	cause, remedy := asked.Diagnosis(err)
	problem := &Error{At: asked.KeyPath(), From: r.Set.Restore.From, cause: errors.New(cause)}

	var untrusted *backup.UntrustedError

	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &untrusted):
		problem.message, problem.args = snapshotUntrusted, finding.Args{"sha256": untrusted.SHA256}
	case errors.Is(err, backup.ErrOtherSum):
		problem.At, problem.message = machineset.RestorePath().AtName("sha256"), snapshotOtherChecksum
	case errors.Is(err, backup.ErrPlain):
		problem.message = snapshotNotEncrypted
	case errors.Is(err, store.ErrNotFound):
		problem.message = snapshotMissing
	case errors.Is(err, backup.ErrForeign):
		problem.message = snapshotForeign
	case errors.Is(err, backup.ErrLocked):
		problem.At, problem.message = machineset.RestorePath(), snapshotLocked

		switch {
		case !asked.Passphrase.IsNull() && !asked.Identities.IsNull():
			problem.At, problem.cause = machineset.RestorePath().AtName("passphrase_wo"),
				errors.New("neither the passphrase nor any of the identities opens it")
		case !asked.Passphrase.IsNull():
			problem.At, problem.cause = machineset.RestorePath().AtName("passphrase_wo"),
				errors.New("the passphrase does not open it")
		case !asked.Identities.IsNull():
			problem.At, problem.cause = machineset.RestorePath().AtName("identities_wo"),
				errors.New("none of the identities opens it")
		}
	case errors.Is(err, backup.ErrIncomplete), errors.Is(err, backup.ErrDamaged), errors.Is(err, store.ErrDiffers),
		errors.Is(err, store.ErrTooLarge):
		problem.message = snapshotDamaged
	default:
		problem.message, problem.args = snapshotUnreadable, finding.Args{"solution": remedy}
	}

	return problem
}

// tooNew is why the wanted versions cannot read what newer ones wrote. A snapshot without a record contains no
// versions.
func (r *Restoration) tooNew(facts backup.Facts) error {
	p := r.Set
	problem := &Error{
		At: p.ClusterPath("kubernetes_version"), From: p.Restore.From,
		message: snapshotTooNew,
	}

	if reason := machineset.KubernetesTooOldFor(facts, p.Settings.KubernetesVersion); reason != "" {
		problem.cause = errors.New(reason)

		return problem
	}

	for _, g := range p.Groups {
		if reason := machineset.EtcdTooOldFor(facts, g.TalosVersion); reason != "" && g.Role == step.ControlPlane {
			problem.At, problem.cause = g.VersionAt, errors.New(reason)

			return problem
		}
	}

	return nil
}
