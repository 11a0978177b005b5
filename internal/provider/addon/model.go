package addon

import (
	"cmp"
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

type addonModel struct {
	Cluster         types.Object `tfsdk:"cluster"`
	Kubeconfig      types.Object `tfsdk:"kubeconfig"`
	Name            types.String `tfsdk:"name"`
	Namespace       types.String `tfsdk:"namespace"`
	CreateNamespace types.Bool   `tfsdk:"create_namespace"`

	addonChartModel
	addonValuesModel
	addonOptionsModel

	DriftDetection types.String   `tfsdk:"drift_detection"`
	IgnoreDrift    types.List     `tfsdk:"ignore_drift"`
	KeepHistory    types.Bool     `tfsdk:"keep_history"`
	Adopt          types.Bool     `tfsdk:"adopt"`
	OnUnreachable  types.String   `tfsdk:"on_unreachable"`
	OnIncomplete   types.String   `tfsdk:"on_incomplete"`
	Timeouts       timeouts.Value `tfsdk:"timeouts"`

	addonSeenModel
}

// addonChartModel is the chart to install.
type addonChartModel struct {
	Chart            types.String `tfsdk:"chart"`
	Repository       types.String `tfsdk:"repository"`
	Version          types.String `tfsdk:"version"`
	Devel            types.Bool   `tfsdk:"devel"`
	DependencyUpdate types.Bool   `tfsdk:"dependency_update"`
	Verify           types.Bool   `tfsdk:"verify"`
	Keyring          types.String `tfsdk:"keyring"`
	Registry         types.Object `tfsdk:"registry"`
}

// addonValuesModel are the inputs of the chart. ValuesWO is null except in configurations.
type addonValuesModel struct {
	Values          types.List   `tfsdk:"values"`
	Set             types.List   `tfsdk:"set"`
	SetSensitive    types.List   `tfsdk:"set_sensitive"`
	ValuesWO        types.List   `tfsdk:"values_wo"`
	ValuesWOVersion types.String `tfsdk:"values_wo_version"`
	Patches         types.List   `tfsdk:"patches"`
}

// addonOptionsModel are the options for Helm.
type addonOptionsModel struct {
	Wait                     types.Bool   `tfsdk:"wait"`
	WaitForJobs              types.Bool   `tfsdk:"wait_for_jobs"`
	Timeout                  tf.Duration  `tfsdk:"wait_timeout"`
	Atomic                   types.Bool   `tfsdk:"atomic"`
	CleanupOnFail            types.Bool   `tfsdk:"cleanup_on_fail"`
	TakeOwnership            types.Bool   `tfsdk:"take_ownership"`
	Force                    types.Bool   `tfsdk:"force"`
	MaxHistory               types.Int64  `tfsdk:"max_history"`
	SkipCRDs                 types.Bool   `tfsdk:"skip_crds"`
	UpgradeCRDs              types.Bool   `tfsdk:"upgrade_crds"`
	IncludeCRDs              types.Bool   `tfsdk:"include_crds"`
	DisableHooks             types.Bool   `tfsdk:"disable_hooks"`
	DisableOpenAPIValidation types.Bool   `tfsdk:"disable_openapi_validation"`
	SkipSchemaValidation     types.Bool   `tfsdk:"skip_schema_validation"`
	EnableDNS                types.Bool   `tfsdk:"enable_dns"`
	SubNotes                 types.Bool   `tfsdk:"sub_notes"`
	Description              types.String `tfsdk:"description"`
	ReuseValues              types.Bool   `tfsdk:"reuse_values"`
	ResetThenReuseValues     types.Bool   `tfsdk:"reset_then_reuse_values"`
}

// addonSeenModel is what the cluster and the chart report.
type addonSeenModel struct {
	ID            types.String      `tfsdk:"id"`
	Revision      types.Int64       `tfsdk:"revision"`
	Status        types.String      `tfsdk:"status"`
	ChartName     types.String      `tfsdk:"chart_name"`
	ChartVersion  types.String      `tfsdk:"chart_version"`
	AppVersion    types.String      `tfsdk:"app_version"`
	ChartDigest   types.String      `tfsdk:"chart_digest"`
	Objects       types.List        `tfsdk:"objects"`
	FirstDeployed timetypes.RFC3339 `tfsdk:"first_deployed"`
	LastDeployed  timetypes.RFC3339 `tfsdk:"last_deployed"`
	Notes         types.String      `tfsdk:"notes"`
	Drift         types.List        `tfsdk:"drift"`
}

type settingModel struct {
	Name  types.String `tfsdk:"name"`
	Value types.String `tfsdk:"value"`
	Type  types.String `tfsdk:"type"`
}

type addonPatchModel struct {
	Patch  types.String `tfsdk:"patch"`
	Target types.Object `tfsdk:"target"`
}

type ignoreDriftModel struct {
	Kind      types.String `tfsdk:"kind"`
	Name      types.String `tfsdk:"name"`
	Namespace types.String `tfsdk:"namespace"`
	Paths     types.List   `tfsdk:"paths"`
}

// Release is the known part of the release's name.
func (m addonModel) Release() release.Name {
	return release.Name{Namespace: cmp.Or(m.Namespace.ValueString(), defaultAddonNamespace), Name: m.Name.ValueString()}
}

// unseenAddon is what is unknown before an install.
func unseenAddon() addonSeenModel {
	return addonSeenModel{
		ID: types.StringUnknown(), Revision: types.Int64Unknown(), Status: types.StringUnknown(),
		ChartName:    types.StringUnknown(),
		ChartVersion: types.StringUnknown(), AppVersion: types.StringUnknown(), ChartDigest: types.StringUnknown(),
		Objects: types.ListUnknown(types.StringType), FirstDeployed: timetypes.NewRFC3339Unknown(),
		LastDeployed: timetypes.NewRFC3339Unknown(),
		Notes:        types.StringUnknown(), Drift: tf.TextList(nil),
	}
}

// Fill puts a revision into the model. It keeps the model's objects when the revision is nil.
func (m *addonModel) Fill(r release.Revision) {
	var objects []string
	for _, o := range r.Objects {
		objects = append(objects, o.String())
	}

	m.ID = types.StringValue(m.Release().String())
	m.Revision, m.Status = types.Int64Value(int64(r.Number)), types.StringValue(r.Status)
	m.ChartName, m.ChartVersion, m.AppVersion = tf.TextOrNull(r.ChartName), tf.TextOrNull(r.ChartVersion),
		tf.TextOrNull(r.AppVersion)
	m.Objects = tf.TextList(objects)
	m.FirstDeployed, m.LastDeployed = tf.MomentOrNull(r.FirstDeployed), tf.MomentOrNull(r.LastDeployed)
	m.Notes = tf.TextOrNull(r.Notes)
}

// addonType is the type of a nested attribute, or that of the elements of a list of them.
func addonType(ctx context.Context, name string) types.ObjectType {
	switch t := addonAttributes(ctx)[name].GetType().(type) {
	case types.ObjectType:
		return t
	case types.ListType:
		if element, ok := t.ElemType.(types.ObjectType); ok {
			return element
		}
	}

	return types.ObjectType{AttrTypes: map[string]attr.Type{}}
}
