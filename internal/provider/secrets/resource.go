package secrets

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ resource.Resource                = (*secretsResource)(nil)
	_ resource.ResourceWithImportState = (*secretsResource)(nil)
)

// NewResource generates secrets with pki.Generate.
func NewResource() resource.Resource { return NewResourceOf(pki.Generate) }

// NewResourceOf generates secrets as it is told. Tests give it what takes less than seconds.
func NewResourceOf(generate func() (*pki.Bundle, error)) resource.Resource {
	return &secretsResource{generate: generate}
}

// secretsResource is the only place where secrets of a cluster come into being.
// It has no arguments, so nothing but a replacement that somebody asked for can
// ever make new ones.
type secretsResource struct {
	generate func() (*pki.Bundle, error)
}

func (r *secretsResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_secrets"
}

func (r *secretsResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The secrets of one cluster: its certificate authorities, tokens and encryption keys. They " +
			"are generated once, when the resource is created, without touching any machine. No change of a version or a name " +
			"ever generates them again; only replacing this resource (`-replace`, or `taint`) does, and the machines of the " +
			"old secrets then refuse to talk to talosop.\n\nThe bundle is stored in state, as it has to be for the life of " +
			"the cluster. Protect the state, and keep a copy of the bundle where you keep other keys.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "The same as `cluster_id`.",
			},
			"cluster_id": schema.StringAttribute{
				Computed: true,
				MarkdownDescription: "Identity of the cluster at the discovery service (`cluster.id` of its machine " +
					"configurations). Not secret; it never changes.",
			},
			"bundle": schema.StringAttribute{
				Computed:  true,
				Sensitive: true,
				MarkdownDescription: "The secrets as YAML, in the format of `talosctl gen secrets`. Given to `secrets` of " +
					"`talosop_control_plane` or `talosop_cluster`. Whoever has it is administrator of the cluster.",
			},
			"authorities": schema.MapNestedAttribute{
				Computed: true,
				MarkdownDescription: "The certificate authorities, by name: `talos` (Talos API), `kubernetes`, `etcd` and " +
					"`aggregator` (Kubernetes API extensions). Not secret.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"fingerprint": schema.StringAttribute{
						Computed:            true,
						MarkdownDescription: "SHA-256 of the certificate in DER form, in lower-case hexadecimal.",
					},
					"not_after": schema.StringAttribute{
						Computed:   true,
						CustomType: timetypes.RFC3339Type{},
						MarkdownDescription: "When the authority, and with it every certificate it signed, stops being valid " +
							"(RFC 3339, UTC). Ten years after the secrets were generated.",
					},
				}},
			},
		},
	}
}

func (r *secretsResource) Create(ctx context.Context, _ resource.CreateRequest, resp *resource.CreateResponse) {
	bundle, err := r.generate()
	if err != nil {
		resp.Diagnostics.Append(tf.Unable("generate", "secrets",
			finding.Report{Cause: []string{err.Error()}, Now: []string{"nothing was stored"}}))

		return
	}

	resp.Diagnostics.Append(storeSecrets(ctx, bundle, &resp.State)...)
}

// Read derives what is shown from the bundle in state; there is nothing else to ask.
func (r *secretsResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state secretsModel

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	if resp.Diagnostics.HasError() {
		return
	}

	ctx = tf.MaskSecrets(ctx, state.Bundle.ValueString())

	bundle, err := pki.Parse([]byte(state.Bundle.ValueString()))
	if err != nil {
		resp.Diagnostics.Append(tf.Unable("read", "secrets", finding.Report{
			Cause: []string{err.Error()},
			Now:   []string{"the bundle in state is kept as it is"},
			Next:  "Restore the state from a copy, or import the secrets again from a file.",
		}))

		return
	}

	resp.Diagnostics.Append(storeSecrets(ctx, bundle, &resp.State)...)
}

// Update has nothing to do: there are no arguments that could change.
func (r *secretsResource) Update(_ context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.State.Raw = req.Plan.Raw
}

// Delete forgets the secrets. The machines are not asked.
func (r *secretsResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

func (r *secretsResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	bundle, err := clusterimport.ReadBundleFile(req.ID)
	if err != nil {
		resp.Diagnostics.Append(tf.Unable("import", "secrets", finding.Report{
			Attempted: "read the file named by the import id",
			Cause:     strings.Split(err.Error(), "\n"),
			Next: "Give the path of a file written by `talosctl gen secrets`, or of the configuration of a control-plane " +
				"machine.",
		}))

		return
	}

	resp.Diagnostics.Append(storeSecrets(ctx, bundle, &resp.State)...)
}

func storeSecrets(ctx context.Context, bundle *pki.Bundle, state *tfsdk.State) diag.Diagnostics {
	model, err := secretsOf(bundle)
	if err != nil {
		return diag.Diagnostics{tf.Bug("a valid secrets bundle could not be encoded: " + err.Error())}
	}

	return state.Set(tf.MaskSecrets(ctx, model.Bundle.ValueString()), model)
}
