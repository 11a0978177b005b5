package credentials

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ resource.ResourceWithConfigure      = (*fileResource)(nil)
	_ resource.ResourceWithValidateConfig = (*fileResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*fileResource)(nil)
)

// fileKind is what is specific to one kind of file.
type fileKind struct {
	// name is kubeconfig or talosconfig.
	name string
	// authority is the one that signs the certificates.
	authority string
	// only reports whether content contains only credentials of the authorities.
	only  func(content []byte, authorities ...string) bool
	model func() credentialsFile
	// attributes are the arguments of this kind alone.
	attributes map[string]schema.Attribute
	// use is the purpose of the file, for its description.
	use string
}

// fileResource is a file with short-lived credentials for a person. State has its path, its expiry and its
// fingerprint.
type fileResource struct {
	providerdata.ConfiguredResource

	kind fileKind
}

// orderKey is the key of the file's order in private state.
const orderKey = "order"

// rewritten ends the description of arguments.
const rewritten = " A change writes new credentials."

func (r *fileResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + r.kind.name + "_file"
}

func (r *fileResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := fileAttributes()
	maps.Copy(attributes, r.kind.attributes)

	resp.Schema = schema.Schema{
		MarkdownDescription: "A file with short-lived credentials for the " + r.kind.use + ", made from its secrets " +
			"without contacting a machine. State stores only path, expiry and fingerprint; an apply writes new ones when " +
			"due (`renew_before`), if the file is missing or changed, or if arguments change. See the [guide to " +
			"credentials](../guides/credentials.md), and the ephemeral resource `talosop_" + r.kind.name + "` for other " +
			"providers.",
		Attributes: attributes,
	}
}

func fileAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cluster": clusterhandle.HandleWriteOnly(),
		"path": schema.StringAttribute{
			Required:      true,
			PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			MarkdownDescription: "Path of the file, relative to the folder where Terraform runs. The provider creates " +
				"missing folders, and keeps them. A change writes a new file and deletes the old one.",
		},
		"ttl": tf.OptionalDuration("Lifetime of the credentials, such as `8h`, limited by the lifetime of the signing " +
			"authority. Default: `24h`; at most `720h`." + rewritten),
		"renew_before": tf.OptionalDuration("Remaining part of `ttl` at which the credentials are due and later plans " +
			"write new ones. Shorter than `ttl`; default: a third of it." + rewritten),
		"status": tf.ComputedString("`valid` if the file contained what was written at the last refresh. Any other " +
			"status plans new credentials: `due` before they expire, `missing` without the file, `changed` if the content " +
			"differs or others may read it."),
		"not_after": tf.ComputedTime("When the credentials expire (RFC 3339, UTC)."),
		"fingerprint": tf.ComputedString("SHA-256 of the file without its private key, in hexadecimal: the output of " +
			"`grep -vE '^ +(client-key-data|key):' FILE | sha256sum`."),
	}
}

// ValidateConfig implements resource.ResourceWithValidateConfig.
func (r *fileResource) ValidateConfig(
	ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse,
) {
	config := r.kind.model()

	if tf.ReadForValidation(ctx, req.Config, config, &resp.Diagnostics) {
		resp.Diagnostics.Append(config.common().validateCommon()...)
		resp.Diagnostics.Append(config.validate()...)
	}
}

// ModifyPlan decides whether the file is written. It uses configuration and state alone, so that both planning
// passes of an apply agree regardless of the time. A file that must not be lost is refused as it is now.
func (r *fileResource) ModifyPlan(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	if req.Plan.Raw.IsNull() {
		return
	}

	plan, config, state := r.kind.model(), r.kind.model(), r.kind.model()

	resp.Diagnostics.Append(req.Plan.Get(ctx, plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, config)...)

	if !req.State.Raw.IsNull() {
		resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	}

	var was order

	resp.Diagnostics.Append(tf.ReadPrivate(ctx, req.Private, orderKey, &was)...)

	if resp.Diagnostics.HasError() {
		return
	}

	want, known := orderOf(ctx, r.ProviderData, config, r.kind.authority, &resp.Diagnostics)
	p, had := plan.common(), state.common()

	// A file as it was written, or one that is removed before this one is created, is no conflict.
	replaces := req.State.Raw.IsNull() && was.Authority != ""
	if !replaces && (had.Status.ValueString() != statusValid || !p.Path.Equal(had.Path)) {
		resp.Diagnostics.Append(r.refuseForeign(ctx, p.Path, want, was)...)
	}

	switch {
	case resp.Diagnostics.HasError():
		return
	case req.State.Raw.IsNull(), !known, !want.same(was), had.Status.ValueString() != statusValid:
		p.writtenModel = toBeWritten()
	default:
		p.writtenModel = had.writtenModel
	}

	if changed := want.clusterChanges(was); known && !req.State.Raw.IsNull() && len(changed) > 0 {
		resp.Diagnostics.Append(tf.Diagnostic(rewrittenForCluster.With(finding.Args{
			"path": p.Path.ValueString(), "changes": changed, "ends": had.NotAfter.ValueString()})))
	}

	if known && p.Fingerprint.IsUnknown() {
		resp.Diagnostics.Append(r.foresee(ctx, config, want)...)
	}

	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}

// foresee reports what would prevent writing a file.
func (r *fileResource) foresee(ctx context.Context, config credentialsFile, want order) diag.Diagnostics {
	handle, bundle, diags := r.ClusterOf(ctx, config.common().Cluster)
	if r.ProviderData == nil || diags.HasError() {
		return diags
	}

	ctx = tf.MaskSecrets(ctx, handle.Secrets.ValueString())

	return append(diags, config.foresee(ctx, r.ProviderData, handle, bundle, want)...)
}

// Create implements resource.Resource.
func (r *fileResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	plan, config := r.kind.model(), r.kind.model()

	resp.Diagnostics.Append(req.Plan.Get(ctx, plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, config)...)

	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(r.write(ctx, plan.common(), config, order{}, resp.Private)...)
	}

	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	}
}

// Update writes the file again, unless values that were unknown to the plan turn out unchanged.
func (r *fileResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	plan, config, state := r.kind.model(), r.kind.model(), r.kind.model()

	resp.Diagnostics.Append(req.Plan.Get(ctx, plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, config)...)
	resp.Diagnostics.Append(req.State.Get(ctx, state)...)

	var was order

	resp.Diagnostics.Append(tf.ReadPrivate(ctx, req.Private, orderKey, &was)...)

	if resp.Diagnostics.HasError() {
		return
	}

	had := state.common().writtenModel

	if want, known := orderOf(ctx, r.ProviderData, config, r.kind.authority, &resp.Diagnostics); known && want.same(was) &&
		had.Status.ValueString() == statusValid {
		plan.common().writtenModel = had
	} else if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(r.write(ctx, plan.common(), config, was, resp.Private)...)
	}

	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	}
}

// write makes credentials and writes them to the file. was is the order of the existing file, if any.
func (r *fileResource) write(
	ctx context.Context, plan *fileModel, config credentialsFile, was order, private tf.PrivateStore,
) diag.Diagnostics {
	handle, bundle, diags := r.ClusterOf(ctx, config.common().Cluster)
	if diags.HasError() {
		return diags
	}

	ctx = tf.MaskSecrets(ctx, handle.Secrets.ValueString())

	want, _ := orderOf(ctx, r.ProviderData, config, r.kind.authority, &diags)

	out, more := config.issue(ctx, r.ProviderData, handle, bundle, want)
	diags.Append(more...)

	if diags.HasError() {
		return diags
	}

	mode, err := r.placeOf(plan.Path, want, was).write(ctx, out.file)

	switch {
	case errors.Is(err, errForeign):
		return append(diags, r.foreign(plan.Path, err))
	case err != nil:
		return append(diags, tf.Diagnostic(notWritten.At(finding.Root("path"), finding.Args{
			"kind": r.kind.name, "path": plan.Path.ValueString(), "cause": err.Error()})))
	}

	plan.writtenModel, want.Mode = written(out), mode

	return slices.Concat(diags, warnOfReaders(plan.Path.ValueString(), mode),
		tf.StorePrivate(ctx, private, orderKey, want))
}

// warnOfReaders warns of a file that was written for its owner alone and is readable by others, because its file
// system has no such permissions.
func warnOfReaders(at string, mode fs.FileMode) diag.Diagnostics {
	if !opened(mode, 0) {
		return nil
	}

	return diag.Diagnostics{tf.Diagnostic(readableByOthers.With(finding.Args{"path": at, "mode": mode}))}
}

// Read observes the file.
func (r *fileResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	state := r.kind.model()

	resp.Diagnostics.Append(req.State.Get(ctx, state)...)

	var was order

	resp.Diagnostics.Append(tf.ReadPrivate(ctx, req.Private, orderKey, &was)...)

	if resp.Diagnostics.HasError() {
		return
	}

	m := state.common()

	status, err := r.observe(ctx, m, was)
	if err != nil {
		resp.Diagnostics.Append(tf.Diagnostic(notReadFile.With(
			finding.Args{"kind": r.kind.name, "path": m.Path.ValueString(), "cause": err.Error()})))
	} else {
		m.Status = types.StringValue(status)
	}

	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

// observe returns the status of a file.
func (r *fileResource) observe(ctx context.Context, m *fileModel, was order) (string, error) {
	content, mode, err := r.placeOf(m.Path, was).read(ctx)

	ends, diags := m.NotAfter.ValueRFC3339Time()
	if diags.HasError() {
		return statusDue, nil
	}

	switch {
	case errors.Is(err, fs.ErrNotExist):
		return statusMissing, nil
	case errors.Is(err, errForeign):
		return statusChanged, nil
	case err != nil:
		return "", err
	case pki.ConfigFingerprint(content) != m.Fingerprint.ValueString(), opened(mode, was.Mode):
		return statusChanged, nil
	case was.due(time.Now(), ends):
		return statusDue, nil
	default:
		return statusValid, nil
	}
}

// Delete removes the file, unless it contains more than credentials of the cluster.
func (r *fileResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	state := r.kind.model()

	resp.Diagnostics.Append(req.State.Get(ctx, state)...)

	var was order

	resp.Diagnostics.Append(tf.ReadPrivate(ctx, req.Private, orderKey, &was)...)

	if resp.Diagnostics.HasError() {
		return
	}

	at := state.common().Path

	switch err := r.placeOf(at, was).remove(ctx, state.common().Fingerprint.ValueString()); {
	case errors.Is(err, errForeign), errors.Is(err, errOthers):
		resp.Diagnostics.Append(tf.Diagnostic(fileStays.With(
			finding.Args{"path": at.ValueString(), "content": err.Error()})))
	case err != nil:
		resp.Diagnostics.Append(tf.Diagnostic(notDeleted.With(
			finding.Args{"kind": r.kind.name, "path": at.ValueString(), "cause": err.Error()})))
	}
}

// placeOf is where a file is that contains credentials of any of the orders.
func (r *fileResource) placeOf(at types.String, orders ...order) place {
	var authorities []string

	for _, o := range orders {
		if o.Authority != "" {
			authorities = append(authorities, o.Authority)
		}
	}

	return place{path: at.ValueString(), own: func(content []byte) bool { return r.kind.only(content, authorities...) }}
}

// refuseForeign refuses to overwrite what must not be lost.
func (r *fileResource) refuseForeign(ctx context.Context, at types.String, orders ...order) diag.Diagnostics {
	if at.IsUnknown() {
		return nil
	}

	if err := r.placeOf(at, orders...).check(ctx); errors.Is(err, errForeign) {
		return diag.Diagnostics{r.foreign(at, err)}
	}

	return nil // the write reports other errors
}

func (r *fileResource) foreign(at types.String, err error) diag.Diagnostic {
	return tf.Diagnostic(pathTaken.At(finding.Root("path"), finding.Args{"path": at.ValueString(), "content": err.Error(),
		"kind": r.kind.name, "kubeconfig": r.kind.authority == "kubernetes"}))
}
