package etcdbackup

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// An identity has the content of an import ID, in the types that identities allow: the content of `s3` and `file` is
// on the top level, and only import IDs have what is nested deeper.

// The attributes of identities that are no attributes of `s3`.
const (
	identityControlPlane = "control_plane"
	identityKey          = "key"
	identityPath         = "path"
	identityRecipients   = "recipients"
)

// identitySchema describes the identity of a backup: the snapshot that the resource took last.
func identitySchema() identityschema.Schema {
	attributes := clusterimport.SourceIdentity()
	attributes[identityControlPlane] = identityschema.ListAttribute{
		RequiredForImport: true, ElementType: types.StringType,
		Description: "Addresses of all control planes, as in the handle.",
	}
	attributes[identityKey] = identityschema.StringAttribute{
		RequiredForImport: true, Description: "Key of the snapshot in the bucket, or its path below the folder.",
	}
	attributes[identityPath] = identityschema.StringAttribute{
		OptionalForImport: true, Description: "`file.path`: the folder of the snapshot.",
	}
	attributes[identityRecipients] = identityschema.ListAttribute{
		OptionalForImport: true, ElementType: types.StringType,
		Description: "`encryption.recipients`, which snapshots do not contain.",
	}

	for name, attribute := range store.BucketAttributes("", "") {
		description := "`s3." + name + "`."

		switch attribute.(type) {
		case schema.StringAttribute:
			attributes[name] = identityschema.StringAttribute{OptionalForImport: true, Description: description}
		case schema.BoolAttribute:
			attributes[name] = identityschema.BoolAttribute{OptionalForImport: true, Description: description}
		default: // nested values
		}
	}

	return identityschema.Schema{Version: clusterimport.IdentityVersion, Attributes: attributes}
}

// IdentitySchema implements resource.ResourceWithIdentity.
func (r *Resource) IdentitySchema(
	_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse,
) {
	resp.IdentitySchema = identitySchema()
}

// UpgradeIdentity implements resource.ResourceWithUpgradeIdentity.
func (r *Resource) UpgradeIdentity(context.Context) map[int64]resource.IdentityUpgrader {
	return clusterimport.UpgradeIdentity(identitySchema())
}

// setIdentity stores the identity of the last snapshot; CLIs without identities store none.
func (r *Resource) setIdentity(ctx context.Context, identity *tfsdk.ResourceIdentity, m Model) diag.Diagnostics {
	// The secrets are not needed: they are in no identity.
	handle, diags := clusterhandle.AccessFrom(ctx, m.Cluster)

	diags.Append(storeIdentity(ctx, identity, clusterimport.Source{Cluster: handle.Name.ValueString()},
		handle.TalosEndpoints, m)...)

	return diags
}

// storeIdentity stores the request for an import of a snapshot.
func storeIdentity(
	ctx context.Context, identity *tfsdk.ResourceIdentity, from clusterimport.Source, planes types.List, m Model,
) diag.Diagnostics {
	values := from.Identity()
	values[identityKey] = m.Key

	if texts, known := tf.KnownStrings(planes); known {
		values[identityControlPlane] = tf.ListOrNull(texts)
	}

	if recipients, ok := m.Encryption.Attributes()["recipients"].(types.List); ok {
		values[identityRecipients] = recipients
	}

	if path, ok := m.File.Attributes()[identityPath]; ok {
		values[identityPath] = path
	}

	for name, value := range m.S3.Attributes() {
		switch value.(type) {
		case types.String, types.Bool:
			values[name] = value
		default: // nested values
		}
	}

	return clusterimport.StoreIdentity(ctx, identity, identitySchema(), values)
}

// readIdentity reads an identity as an import id.
func readIdentity(ctx context.Context, identity *tfsdk.ResourceIdentity) (backupImport, error) {
	var object types.Object

	if identity.Get(ctx, &object).HasError() {
		return backupImport{}, errors.New("the identity is not of the type that its schema has")
	}

	f := tf.Fields{Reader: &tf.Reader{}, Attributes: object}
	request := backupImport{
		Source: clusterimport.SourceIn(object), ControlPlane: byAddress(f.Texts(identityControlPlane)),
		Key: f.Text(identityKey), Recipients: f.Texts(identityRecipients),
	}

	if folder, given := f.Value(identityPath); given {
		request.File = map[string]any{identityPath: folder}
	}

	for name := range store.BucketAttributes("", "") {
		var value any

		switch v := object.Attributes()[name].(type) {
		case types.String:
			value = v.ValueString()
		case types.Bool:
			value = v.ValueBool()
		}

		if value == nil || f.Absent(name) {
			continue
		}

		if request.S3 == nil {
			request.S3 = map[string]any{}
		}

		request.S3[name] = value
	}

	if err := request.check(); err != nil {
		return request, fmt.Errorf("the identity: %w", err)
	}

	return request, nil
}

// byAddress are machines whose names do not matter.
func byAddress(addresses []string) map[string]string {
	machines := map[string]string{}
	for _, address := range addresses {
		machines[address] = address
	}

	return machines
}
