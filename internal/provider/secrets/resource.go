package secrets

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ resource.Resource                = (*secretsResource)(nil)
	_ resource.ResourceWithConfigure   = (*secretsResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*secretsResource)(nil)
	_ resource.ResourceWithImportState = (*secretsResource)(nil)
)

// NewResource generates secrets with pki.Generate.
func NewResource() resource.Resource { return NewResourceOf(pki.Generate) }

// NewResourceOf generates secrets with generate, so that tests can use a fast generator.
func NewResourceOf(generate func() (*pki.Bundle, error)) resource.Resource {
	return &secretsResource{generate: generate}
}

// secretsResource is the only place that generates secrets of a cluster. No argument changes them, so only a
// requested replacement can generate new ones.
type secretsResource struct {
	providerdata.ConfiguredResource

	generate func() (*pki.Bundle, error)
}

func (r *secretsResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_secrets"
}

func (r *secretsResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	unchanged := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}

	resp.Schema = schema.Schema{
		MarkdownDescription: "The secrets of one cluster: certificate authorities, tokens and encryption keys, generated " +
			"once at create; only `rotate` renews single keys. A replacement generates new secrets that the existing " +
			"machines reject, so `deletion_protection` and plans of resources with running machines refuse it. State stores " +
			"the bundle for the life of the cluster: protect the state, and keep a copy of the bundle " +
			"([guide](../guides/secrets-and-state.md)).",
		Attributes: map[string]schema.Attribute{
			"deletion_protection": schema.BoolAttribute{
				Optional: true,
				Computed: true,
				Default:  booldefault.StaticBool(true),
				MarkdownDescription: "Whether the provider refuses plans that destroy or replace the secrets, until you apply " +
					"`false` (default `true`). `state rm` and `removed` with `destroy = false` never call the provider, so it " +
					"cannot refuse them." + tf.TerraformOnly,
			},
			"rotate": rotateAttribute(),
			"id": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       unchanged,
				MarkdownDescription: "The same as `cluster_id`.",
			},
			"cluster_id": schema.StringAttribute{
				Computed:      true,
				PlanModifiers: unchanged,
				MarkdownDescription: "Identity of the cluster at the discovery service (`cluster.id` in its machine " +
					"configurations). Not secret; it never changes.",
			},
			"bundle": schema.StringAttribute{
				Computed:      true,
				Sensitive:     true,
				PlanModifiers: unchanged,
				MarkdownDescription: "The secrets as YAML, in the format of `talosctl gen secrets`, for `secrets` of " +
					"`talosop_control_plane` or `talosop_cluster`. The bundle gives full administrator access to the cluster.",
			},
			"authorities": schema.MapNestedAttribute{
				Computed:      true,
				PlanModifiers: []planmodifier.Map{mapplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "The certificate authorities, by name: `talos` (Talos API), `kubernetes`, `etcd` and " +
					"`aggregator` (Kubernetes API extensions). Not secret.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"fingerprint": tf.ComputedString("SHA-256 of the certificate in DER form, in lower-case hexadecimal."),
					"not_after": tf.ComputedTime("When the authority and all certificates that it signed expire (RFC 3339, UTC): " +
						"ten years after the secrets were generated."),
				}},
			},
		},
	}
}

// ModifyPlan refuses to lose guarded secrets, and warns where necessary.
func (r *secretsResource) ModifyPlan(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	switch {
	case req.Plan.Raw.IsNull():
		var state secretsModel

		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

		if !resp.Diagnostics.HasError() {
			resp.Diagnostics.Append(tf.Diagnostics(r.planDestroy(state))...)
			resp.Diagnostics.Append(tf.StorePrivate(ctx, resp.Private, lossPlannedKey, true)...)
		}
	case req.State.Raw.IsNull():
		r.Ledger().PlanSecrets(true)
		resp.Diagnostics.Append(planReplace(ctx, req.Private)...)
	default:
		r.planUpdate(ctx, req, resp)
	}
}

func (r *secretsResource) planDestroy(state secretsModel) finding.List {
	if state.guarded() {
		return protected(state.ClusterID.ValueString(), "destroyed")
	}

	return warnOfLoss(state.ClusterID.ValueString(), kept(r.ProviderData, state.Bundle.ValueString()))
}

// planReplace refuses to replace guarded secrets. Without the guard there is no warning: the CLIs drop warnings of
// the create in a replacement (Terraform 1.15, OpenTofu 1.12).
func planReplace(ctx context.Context, private tf.PrivateState) diag.Diagnostics {
	var id string

	diags := tf.ReadPrivate(ctx, private, clusterIDKey, &id)
	if !tf.ProtectedFromReplace(ctx, private, &diags) {
		return diags
	}

	return append(diags, tf.Diagnostics(protected(id, "replaced by other secrets"))...)
}

func (r *secretsResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan secretsModel

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)

	if resp.Diagnostics.HasError() {
		return
	}

	bundle, err := r.generate()
	if err != nil {
		resp.Diagnostics.Append(tf.Diagnostic(secretsNotGenerated.With(finding.Args{"cause": err.Error()})))

		return
	}

	r.Ledger().PlanSecrets(false)
	r.Ledger().NoteUnused(bundle)
	resp.Diagnostics.Append(
		storeSecrets(ctx, bundle, plan.DeletionProtection, plan.Rotate, &resp.State, resp.Private)...)
}

// Read derives the computed values from the bundle in state; there is nothing else to ask.
func (r *secretsResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state secretsModel

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	if resp.Diagnostics.HasError() {
		return
	}

	ctx = tf.MaskSecrets(ctx, state.Bundle.ValueString())

	bundle, err := pki.Parse([]byte(state.Bundle.ValueString()))
	if err != nil {
		resp.Diagnostics.Append(tf.Diagnostic(secretsUnreadable.With(finding.Args{"cause": err.Error()})))

		return
	}

	resp.Diagnostics.Append(
		storeSecrets(ctx, bundle, types.BoolValue(state.guarded()), state.Rotate, &resp.State, resp.Private)...)
}

// Update changes the protection, and rotates keys or drops the former ones.
func (r *secretsResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state secretsModel

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	if resp.Diagnostics.HasError() {
		return
	}

	bundle, diags := turn(tf.MaskSecrets(ctx, state.Bundle.ValueString()), plan, state)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	r.Ledger().PlanRotation(bundle, nil)
	resp.Diagnostics.Append(
		storeSecrets(ctx, bundle, plan.DeletionProtection, plan.Rotate, &resp.State, resp.Private)...)
}

// Delete forgets the secrets, unless they are guarded: the plan of a tainted resource cannot see that. It warns of the
// loss unless the plan did, whose warnings the CLIs drop in a replacement. It does not ask the machines.
func (r *secretsResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state secretsModel

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	switch {
	case resp.Diagnostics.HasError():
	case state.guarded():
		resp.Diagnostics.Append(tf.Diagnostics(protected(state.ClusterID.ValueString(), "destroyed"))...)
	case tf.Remembers(ctx, req.Private, lossPlannedKey, &resp.Diagnostics):
	default:
		resp.Diagnostics.Append(tf.Diagnostics(
			warnOfLost(state.ClusterID.ValueString(), kept(r.ProviderData, state.Bundle.ValueString())))...)
	}
}

func (r *secretsResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	bundle, err := clusterimport.ReadBundleFile(req.ID)
	if err != nil {
		resp.Diagnostics.Append(tf.Diagnostic(secretsNotImported.With(
			finding.Args{"causes": strings.Split(err.Error(), "\n")})))

		return
	}

	resp.Diagnostics.Append(storeSecrets(
		ctx, bundle, types.BoolValue(true), types.ObjectNull(rotateTypes), &resp.State, resp.Private)...)
}

// clusterIDKey mirrors cluster_id in private state, for the messages about a replacement.
const clusterIDKey = "cluster_id"

// lossPlannedKey, in the private state of a planned destroy, says that its plan warned of the loss.
const lossPlannedKey = "loss_planned"

func storeSecrets(
	ctx context.Context, bundle *pki.Bundle, protection types.Bool, rotate types.Object, state *tfsdk.State,
	private tf.PrivateStore,
) diag.Diagnostics {
	model, err := secretsOf(bundle, protection)
	if err != nil {
		return diag.Diagnostics{tf.Bug("a valid secrets bundle could not be encoded: " + err.Error())}
	}

	model.Rotate = rotate
	diags := state.Set(tf.MaskSecrets(ctx, model.Bundle.ValueString()), model)
	diags.Append(tf.StoreProtection(ctx, private, protection)...)

	return append(diags, tf.StorePrivate(ctx, private, clusterIDKey, bundle.ClusterID())...)
}
