package etcdbackup

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	listschema "github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ list.ListResourceWithConfigure      = (*listResource)(nil)
	_ list.ListResourceWithValidateConfig = (*listResource)(nil)
)

// NewListResource is the list resource talosop_etcd_backup.
func NewListResource() list.ListResource { return &listResource{} }

// listResource lists the snapshots of a store for a cluster. It changes nothing.
type listResource struct {
	providerdata.ConfiguredResource
}

// queryModel is the configuration of a list of backups.
type queryModel struct {
	Cluster      types.String `tfsdk:"cluster"`
	SecretsFile  types.String `tfsdk:"secrets_file"`
	ControlPlane types.List   `tfsdk:"control_plane"`
	Recipients   types.List   `tfsdk:"recipients"`
	S3           types.Object `tfsdk:"s3"`
	File         types.Object `tfsdk:"file"`
}

// queryTimeout is the timeout for a store, however many records it has. A user who waits can interrupt it.
const queryTimeout = 10 * time.Minute

// Metadata implements the framework.
func (l *listResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_etcd_backup"
}

// ListResourceConfigSchema implements the framework.
func (l *listResource) ListResourceConfigSchema(
	_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse,
) {
	attributes := tf.ListAttributes(map[string]schema.Attribute{
		"cluster": tf.RequiredString("Name of the cluster whose snapshots to list. Its secrets are those of this name in " +
			"`clusters` of the provider, unless you set `secrets_file`."),
		"secrets_file": tf.OptionalString("Path of a file with the secrets of the cluster: from `talosctl gen secrets`, " +
			"the configuration of a control-plane machine, or the state Secret of talos-operator."),
		"control_plane": tf.OptionalStrings("Addresses of all control planes, for imports: the provider reads the handle " +
			"of the resource from them. It contacts machines only if the list includes resources."),
		"recipients": tf.OptionalStrings("`encryption.recipients` of encrypted snapshots, for imports, because snapshots " +
			"do not contain them."),
	})
	maps.Copy(attributes, store.QueriesBackups())

	resp.Schema = listschema.Schema{
		MarkdownDescription: "The etcd snapshots of a cluster in a bucket or folder, newest first, for `terraform query` " +
			"(Terraform 1.14); in configurations, use `talosop_etcd_backups`. Import a snapshot with a record of the " +
			"cluster by its listed identity, which needs `control_plane`.",
		Attributes: attributes,
	}
}

// ValidateListResourceConfig implements list.ListResourceWithValidateConfig.
func (l *listResource) ValidateListResourceConfig(
	ctx context.Context, req list.ValidateConfigRequest, resp *list.ValidateConfigResponse,
) {
	var config queryModel

	if resp.Diagnostics.Append(req.Config.Get(ctx, &config)...); !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(store.ValidateStore(path.Empty(), config.S3, config.File)...)
	}
}

// List implements list.ListResource.
func (l *listResource) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var config queryModel

	diags := req.Config.Get(ctx, &config)
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)

		return
	}

	ctx, backups, file, diags := l.snapshots(ctx, config)
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)

		return
	}

	// All snapshots are of one cluster, which is asked once, and only when resources are requested.
	seen := sync.OnceValues(func() (seenCluster, diag.Diagnostics) {
		planes, _ := tf.KnownStrings(config.ControlPlane)

		return l.resource().see(ctx, byAddress(planes), file)
	})

	stream.Results = func(push func(list.ListResult) bool) {
		if len(diags) > 0 && !push(list.ListResult{Diagnostics: diags}) {
			return
		}

		for i, b := range backups {
			if req.Limit > 0 && int64(i) >= req.Limit || !push(l.result(ctx, req, config, file, seen, b)) {
				return
			}
		}
	}
}

// snapshots are those of the cluster, and its secrets, which the context hides from logs.
func (l *listResource) snapshots(ctx context.Context, config queryModel) (
	context.Context, []judged, clusterimport.SecretsFile, diag.Diagnostics,
) {
	name, at := config.Cluster.ValueString(), store.PlaceOf(config.S3, config.File)

	file, err := config.source().Read(l.ProviderData)
	if err != nil {
		return ctx, nil, file, diag.Diagnostics{tf.Diagnostic(secretsNotRead.With(
			finding.Args{"cluster": name, "causes": strings.Split(err.Error(), "\n")}))}
	}

	ctx = tf.MaskSecrets(ctx, file.Text)

	asking, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()

	entries, err := listed(asking, l.ProviderData, at, ownerOf(name, file.Bundle))
	if err != nil {
		return ctx, nil, file, diag.Diagnostics{unlisted(name, at, err)}
	}

	backups := Judge(entries, clusterhandle.AccessModel{})

	return ctx, backups, file, append(missingFolder(at), unreadable(name, backups)...)
}

// resource is the resource that imports a snapshot.
func (l *listResource) resource() *Resource {
	return &Resource{ConfiguredResource: l.ConfiguredResource}
}

// source locates the secrets of the cluster.
func (m queryModel) source() clusterimport.Source {
	if !m.SecretsFile.IsNull() {
		return clusterimport.Source{Secrets: m.SecretsFile.ValueString()}
	}

	return clusterimport.Source{Cluster: m.Cluster.ValueString()}
}

// result is a snapshot in a list. A failed import of it is a warning, so that the others are still listed.
func (l *listResource) result(
	ctx context.Context, req list.ListRequest, config queryModel, file clusterimport.SecretsFile,
	seen func() (seenCluster, diag.Diagnostics), b judged,
) list.ListResult {
	result := req.NewListResult(ctx)
	result.DisplayName = b.String()

	known := Model{S3: config.S3, File: config.File, storedModel: storedModel{Key: types.StringValue(b.Key)}}
	if b.Name.Encrypted {
		known.Encryption = types.ObjectValueMust(map[string]attr.Type{"recipients": config.Recipients.Type(ctx)},
			map[string]attr.Value{"recipients": config.Recipients})
	}

	result.Diagnostics.Append(storeIdentity(ctx, result.Identity, config.source(), config.ControlPlane, known)...)

	if req.IncludeResource {
		l.describe(ctx, file, seen, b, &result)
	}

	return result
}

// describe fills in the resource: everything that an import reads, or the facts from the store.
func (l *listResource) describe(
	ctx context.Context, file clusterimport.SecretsFile, seen func() (seenCluster, diag.Diagnostics), b judged,
	result *list.ListResult,
) {
	request, err := readIdentity(ctx, result.Identity)
	if err == nil {
		model, diags := l.resource().backupFrom(ctx, request, file, seen)

		for _, d := range diags {
			result.Diagnostics.AddWarning(d.Summary(), d.Detail())
		}

		if !diags.HasError() {
			result.Diagnostics.Append(result.Resource.Set(ctx, &model)...)

			return
		}
	}

	result.Diagnostics.Append(result.Resource.SetAttribute(ctx, path.Root("key"), b.Key)...)
	result.Diagnostics.Append(result.Resource.SetAttribute(ctx, path.Root("size"), b.Size)...)
	result.Diagnostics.Append(result.Resource.SetAttribute(ctx, path.Root("time"), b.Value().Attributes()["time"])...)
}

// String names the snapshot for people.
func (j judged) String() string {
	parts := []string{j.Name.At.UTC().Format(time.RFC3339), fmt.Sprintf("%d bytes", j.Size)}

	if j.Name.Encrypted {
		parts = append(parts, "encrypted")
	}

	if r := j.Record; r != nil {
		parts = append(parts, finding.Prefixed("Talos ", r.TalosVersion),
			finding.Prefixed("Kubernetes ", r.KubernetesVersion), finding.Prefixed("from ", r.Member))
	}

	parts = append(parts, finding.Prefixed("not restorable: ", j.Reason))

	return strings.Join(finding.NonEmpty(parts...), ", ")
}
