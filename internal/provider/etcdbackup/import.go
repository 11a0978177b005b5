package etcdbackup

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	frameworkpath "github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// given is a nested attribute with values from JSON.
func given(ctx context.Context, a schema.Attribute, values map[string]any, name string) (types.Object, error) {
	typ, ok := a.GetType().(types.ObjectType)
	if !ok || values == nil {
		return types.ObjectNull(typ.AttrTypes), nil
	}

	if err := forImports(a, values, name); err != nil {
		return types.Object{}, err
	}

	encoded, err := json.Marshal(values)
	if err != nil {
		return types.Object{}, err
	}

	raw, err := tfprotov6.RawState{JSON: encoded}.Unmarshal(typ.TerraformType(ctx))
	if err != nil {
		return types.Object{}, fmt.Errorf("%s is not as in a configuration: %w", name, err)
	}

	value, err := typ.ValueFromTerraform(ctx, raw)
	object, _ := value.(types.Object)

	return object, err
}

// forImports refuses values that a nested attribute does not have, or that are for configurations only.
func forImports(a schema.Attribute, values map[string]any, name string) error {
	nested, _ := a.(schema.SingleNestedAttribute)

	for key, value := range values {
		attribute, ok := nested.Attributes[key]
		if !ok || attribute.IsWriteOnly() {
			return fmt.Errorf("%s.%s is not for imports; credentials are those of s3 of the provider", name, key)
		}

		if deeper, ok := value.(map[string]any); ok {
			if err := forImports(attribute, deeper, name+"."+key); err != nil {
				return err
			}
		}
	}

	return nil
}

// ImportState implements resource.ResourceWithImportState.
func (r *Resource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	request, err := parseBackupImport(req.ID)
	if req.ID == "" && req.Identity != nil {
		request, err = readIdentity(ctx, req.Identity)
	}

	if err != nil {
		resp.Diagnostics.Append(notImported("the import ID", err,
			"Give a JSON object such as "+importOfBackup+"."))

		return
	}

	file, err := request.Read(r.ProviderData)
	if err != nil {
		resp.Diagnostics.Append(notImported("the secrets of the cluster", err, clusterimport.SourceHelp))

		return
	}

	ctx = tf.MaskSecrets(ctx, file.Text)

	model, diags := r.backupFrom(ctx, request, file, func() (seenCluster, diag.Diagnostics) {
		return r.see(ctx, request.ControlPlane, file)
	})
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	resp.Diagnostics.Append(r.setIdentity(ctx, resp.Identity, model)...)
	resp.Diagnostics.Append(tf.StorePrivate(ctx, resp.Private, importedKey, true)...)
}

// seenCluster is a cluster as its control planes report it.
type seenCluster struct {
	name   string
	handle types.Object
}

// see asks the control planes for the facts of their cluster.
func (r *Resource) see(
	ctx context.Context, addresses map[string]string, file clusterimport.SecretsFile,
) (seenCluster, diag.Diagnostics) {
	name, handle, diags, err := clusterimport.AccessSeen(ctx, r.ProviderData, addresses, file)
	if err != nil {
		diags.Append(notImported("the configurations of the control planes", err, ""))
	}

	return seenCluster{name, handle}, diags
}

// backupFrom is the model of a snapshot as its store describes it, with the cluster that its control planes report.
func (r *Resource) backupFrom(
	ctx context.Context, request backupImport, file clusterimport.SecretsFile, see func() (seenCluster, diag.Diagnostics),
) (Model, diag.Diagnostics) {
	model := Model{
		Retain: types.ObjectNull(retainType()), Triggers: types.MapNull(types.StringType), Timeouts: tf.NoTimeouts(ctx),
		Encryption: types.ObjectNull(encryptionType()),
	}

	bucket, folder, err := request.location(ctx)
	if err != nil {
		return model, diag.Diagnostics{notImported("the import ID", err, "")}
	}

	model.S3, model.File = bucket, folder

	if diags := store.ValidateStore(frameworkpath.Empty(), bucket, folder); diags.HasError() {
		return model, diags
	}

	seen, diags := see()
	if diags.HasError() {
		return model, diags
	}

	model.Cluster = seen.handle

	if err := r.adoptBackup(ctx, &model, request, ownerOf(seen.name, file.Bundle)); err != nil {
		diags.Append(notImported("the record of "+request.Key+" in "+model.place().String(), err,
			"Only a snapshot that this resource stored, with its record, can be imported. "+
				"The credentials are those in `s3` of the provider."))
	}

	return model, diags
}

// adoptBackup reads the facts of the snapshot from its record.
func (r *Resource) adoptBackup(ctx context.Context, m *Model, request backupImport, o owner) error {
	from := m.place()

	ctx, opened, err := from.Open(ctx, r.Stores)
	if err != nil {
		return err
	}

	if folder := path.Join(from.Prefix, o.Name); path.Dir(request.Key) != folder {
		return fmt.Errorf("the key is not one of %s/, where the snapshots of the cluster %s are", folder, o.Name)
	}

	archive := o.Archive(opened, from)

	record, err := archive.Recorded(ctx, request.Key)
	if err != nil {
		return err
	}

	if err := backup.Belongs(request.Key, record, o.Mark); err != nil {
		return err
	}

	switch {
	case !record.Authentic:
		return fmt.Errorf("%w: its record is unsigned or signed with another key", backup.ErrUntrusted)
	case len(request.Recipients) > 0 && record.Encryption == "":
		return fmt.Errorf("%w, and the import id has recipients", backup.ErrPlain)
	}

	if err := archive.Confirm(ctx, request.Key, record.Size, record.Checksum); err != nil {
		return err
	}

	left, err := retain(ctx, archive, backup.Retention{}, record.Key)
	if err != nil {
		return err
	}

	m.ID = types.StringValue(o.Name)
	m.record(*record)
	m.due(time.Now())
	m.Kept = types.Int64Value(left)
	m.Compression = tf.TextOrNull(record.Compression)
	m.IncludeSecrets = tf.TrueOrNull(record.Secrets.Key != "")

	if record.Encryption != "" {
		m.Encryption = types.ObjectValueMust(encryptionType(), map[string]attr.Value{
			"recipients": tf.ListOrNull(request.Recipients), "passphrase_wo": types.StringNull(),
			"passphrase_wo_version": types.StringNull(),
		})
	}

	return nil
}

// notImported is the error about what could not be read.
func notImported(what string, err error, solution string) diag.Diagnostic {
	return tf.Diagnostic(backupNotImported.With(
		finding.Args{"what": what, "causes": strings.Split(err.Error(), "\n"), "solution": solution}))
}
