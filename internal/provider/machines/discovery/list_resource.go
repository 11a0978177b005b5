// Package discovery is the list resource talosop_machine: the machines that answer at addresses and in networks.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ list.ListResourceWithConfigure      = (*listResource)(nil)
	_ list.ListResourceWithValidateConfig = (*listResource)(nil)
)

// NewListResource is the constructor of the list resource.
func NewListResource() list.ListResource { return &listResource{} }

// listResource asks which machines answer at addresses. It changes nothing.
type listResource struct {
	providerdata.ConfiguredResource
}

// Metadata implements the framework.
func (l *listResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_machine"
}

// ListResourceConfigSchema implements the framework.
func (l *listResource) ListResourceConfigSchema(
	_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The Talos machines that answer at addresses and in networks, for `terraform query` " +
			"(Terraform 1.14): in maintenance mode, in known clusters, and in other clusters. Import members by their " +
			"listed identity; `-generate-config-out` writes their whole configuration. A machine in maintenance mode is no " +
			"resource yet: remove its `import` block ([guide](../guides/import-and-migration#discover-machines)).",
		Attributes: tf.ListAttributes(attributes()),
	}
}

// ValidateListResourceConfig implements list.ListResourceWithValidateConfig.
func (l *listResource) ValidateListResourceConfig(
	ctx context.Context, req list.ValidateConfigRequest, resp *list.ValidateConfigResponse,
) {
	var config model

	if resp.Diagnostics.Append(req.Config.Get(ctx, &config)...); !resp.Diagnostics.HasError() {
		_, diags := config.targets()
		resp.Diagnostics.Append(diags...)
	}
}

// List implements list.ListResource.
func (l *listResource) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var config model

	diags := req.Config.Get(ctx, &config)
	targets, more := config.targets()
	diags.Append(more...)

	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)

		return
	}

	ctx, sources, diags := config.sources(ctx, l.ProviderData)
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)

		return
	}

	found, unanswered, err := config.scan(l.ProviderData.Talos, sources).run(ctx, targets)
	if err != nil {
		stream.Results = list.ListResultsStreamDiagnostics(diag.Diagnostics{tf.Diagnostic(scanFailed.With(
			finding.Args{"cause": err.Error()}))})

		return
	}

	stream.Results = func(push func(list.ListResult) bool) {
		if len(unanswered) > 0 && !push(list.ListResult{Diagnostics: diag.Diagnostics{notFound(unanswered)}}) {
			return
		}

		l.tell(ctx, req, config.chosen(found), controlPlanes(found), push)
	}
}

// tell makes results from machines, up to the requested number.
func (l *listResource) tell(
	ctx context.Context, req list.ListRequest, found []machine, planes map[clusterimport.Source][]string,
	push func(list.ListResult) bool,
) {
	for i, m := range found {
		if req.Limit > 0 && int64(i) >= req.Limit {
			return
		}

		result := req.NewListResult(ctx)
		result.DisplayName = m.String()
		result.Diagnostics.Append(clusterimport.SetIdentityOf(ctx, result.Identity, m.from, planes[m.from], m.name(),
			m.address)...)

		if req.IncludeResource {
			l.describe(ctx, m, &result)
		}

		if !push(result) {
			return
		}
	}
}

// describe fills in the resource: for a member everything that an import reads, for others what they reported. A
// failed import is a warning, so that the others are still listed.
func (l *listResource) describe(ctx context.Context, m machine, result *list.ListResult) {
	set := func(name string, value types.String) {
		if !value.IsNull() {
			result.Diagnostics.Append(result.Resource.SetAttribute(ctx, path.Root(name), value)...)
		}
	}

	set("address", types.StringValue(m.address))
	set("name", types.StringValue(m.name()))
	set("uuid", tf.TextOrNull(m.UUID))
	set("talos_version", tf.TextOrNull(m.TalosVersion))
	set("platform", tf.TextOrNull(m.Platform))
	set("schematic", tf.TextOrNull(m.Schematic))
	set("role", tf.TextOrNull(string(m.Role)))

	if m.Access != step.Member {
		return
	}

	imported := l.imported(ctx, result)

	for _, d := range imported.Diagnostics {
		result.Diagnostics.AddWarning(d.Summary(), d.Detail())
	}

	if !imported.Diagnostics.HasError() {
		result.Resource.Raw = imported.State.Raw
	}
}

// imported is what an import by the identity of a result reads.
func (l *listResource) imported(ctx context.Context, result *list.ListResult) resource.ImportStateResponse {
	resp := resource.ImportStateResponse{State: tfsdk.State{Schema: result.Resource.Schema}}
	configured := resource.ConfigureResponse{}

	machine := machines.NewMachineResource()
	if c, ok := machine.(resource.ResourceWithConfigure); ok {
		c.Configure(ctx, resource.ConfigureRequest{ProviderData: l.ProviderData}, &configured)
		resp.Diagnostics.Append(configured.Diagnostics...)
	}

	if i, ok := machine.(resource.ResourceWithImportState); ok {
		i.ImportState(ctx, resource.ImportStateRequest{Identity: result.Identity}, &resp)
	}

	return resp
}

// notFound reports where no machine was found.
func notFound(unanswered []silent) diag.Diagnostic {
	var lines []string

	for _, s := range unanswered {
		lines = append(lines, s.address+": "+strings.TrimPrefix(s.err.Error(),
			"inspect the machine at "+s.address+": "))
	}

	return tf.Diagnostic(addressesSilent.With(finding.Args{"addresses": finding.Shortened(lines)}))
}

// unnameable is what names of machines must not contain.
var unnameable = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// name is the name of the machine in its configuration: its host name, or its address.
func (m machine) name() string {
	name := m.Hostname
	if name == "" {
		name = m.address
	}

	return strings.Trim(unnameable.ReplaceAllString(name, "-"), "._-")
}

// String names a machine for people.
func (m machine) String() string {
	who := "maintenance"

	switch m.Access {
	case step.Member:
		who = fmt.Sprintf("%s of %s, %s", m.Role, m.from.Cluster+m.from.Secrets, m.Stage)
	case step.Foreign:
		who = "member of another cluster, not asked"
	default:
	}

	return strings.Join(finding.NonEmpty(m.address+": "+who, finding.Prefixed("Talos ", m.TalosVersion), m.Hostname,
		finding.Prefixed("UUID ", m.UUID), finding.Prefixed("also at ", strings.Join(m.also, " "))), ", ")
}

var errUnknownClusters = errors.New("`clusters` of the provider are not known before an apply")
