package machines

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/restore"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// restore puts the snapshot that etcd starts with into a set.
func (m settingsModel) restore(ctx context.Context, p *writtenSet) diag.Diagnostics {
	r := &tf.Reader{}

	p.snapshot, p.snapshotGiven = tf.Object[restore.Snapshot](ctx, r, m.RestoreFrom)
	p.Restore.From, p.Restore.KeyAt = p.snapshot.Name(r), p.snapshot.KeyPath()
	p.Unknown.Note(machineset.UnknownSnapshot, r.Unknown)
	p.Unknown.Note(machineset.UnknownConfiguration, r.Unknown)

	return r.Diags
}

// unlock takes from a configuration the access to the host cluster, and the access and keys of the snapshot: they
// are write-only, and in no plan.
func (p *writtenSet) unlock(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	diags := p.reach(ctx, config)

	if p.Restore.From == "" {
		return diags
	}

	var from types.Object

	diags.Append(config.GetAttribute(ctx, tf.Path(machineset.RestorePath()), &from)...)

	r := &tf.Reader{}
	if model, ok := tf.Object[restore.Snapshot](ctx, r, from); ok {
		p.snapshot = model
	}

	return append(diags, r.Diags...)
}

// refuseLocked refuses a snapshot that a plan restores and that the configuration cannot decrypt, judging by its
// name. A snapshot that was already restored is not decrypted.
func refuseLocked(
	ctx context.Context, planned func(context.Context) (writtenSet, diag.Diagnostics), before CommonModel,
	config tfsdk.Config,
) finding.List {
	p, _ := planned(ctx) // the plan reports its mistakes

	name, ok := backup.ParseKey(p.Restore.Asked(before.restored.From.ValueString()))
	if !ok {
		return nil
	}

	diags := tf.Findings(p.unlock(ctx, config))
	diags.Append(p.snapshot.RefuseLocked(name, p.Restore.From)...)

	return diags
}

// reach takes the kubeconfig of the host cluster from a configuration: it is write-only, and in no plan.
func (p *writtenSet) reach(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	if p.Host == nil {
		return nil
	}

	var content types.String

	diags := config.GetAttribute(ctx, path.Root("host").AtName("kubeconfig_wo"), &content)

	if content.ValueString() != "" {
		p.Host.Connection.Content = []byte(content.ValueString())
	}

	p.Host.Connection.Unknown = p.Host.Connection.Unknown || content.IsUnknown()

	return diags
}

// anonymous reports whether the run fetched a snapshot of an unknown cluster.
func (s *session) anonymous() bool {
	snapshot, ok := s.runner.Restoration.(*restore.Restoration)

	return ok && snapshot.Anonymous()
}

// restore lets a session restore the snapshot of its spec.
func (s *session) restore(ctx context.Context, snapshot *restore.Restoration) {
	if s.want.RestoreFrom == "" {
		return
	}

	s.runner.Restoration = snapshot
	closeRest := s.Close

	s.Close = func() {
		closeRest()

		if err := snapshot.Close(); err != nil {
			tf.LogWarn(ctx, "the fetched snapshot could not be removed", map[string]any{"error": err.Error()})
		}
	}
}
