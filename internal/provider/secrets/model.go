// Package secrets is the resource talosop_secrets, the only place that generates the secrets of a cluster.
package secrets

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

type secretsModel struct {
	ID          types.String `tfsdk:"id"`
	ClusterID   types.String `tfsdk:"cluster_id"`
	Bundle      types.String `tfsdk:"bundle"`
	Authorities types.Map    `tfsdk:"authorities"`

	DeletionProtection types.Bool   `tfsdk:"deletion_protection"`
	Rotate             types.Object `tfsdk:"rotate"`
}

// rotateTypes are those of the attributes of rotate.
var rotateTypes = map[string]attr.Type{
	"talos_ca": types.StringType, "kubernetes_ca": types.StringType, "aggregator_ca": types.StringType,
	"service_account_key": types.StringType, "cluster_token": types.StringType,
}

// guarded reports whether the secrets must stay; a state without a value is guarded.
func (m secretsModel) guarded() bool {
	return m.DeletionProtection.IsNull() || m.DeletionProtection.ValueBool()
}

var authorityType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"fingerprint": types.StringType,
	"not_after":   timetypes.RFC3339Type{},
}}

// secretsOf describes a bundle. The same bundle always gives the same model,
// whether it was generated, imported or read back from state.
func secretsOf(bundle *pki.Bundle, protection types.Bool) (secretsModel, error) {
	encoded, err := bundle.YAML()
	if err != nil {
		return secretsModel{}, err
	}

	authorities := map[string]attr.Value{}
	for _, a := range bundle.Authorities() {
		authorities[a.Name] = types.ObjectValueMust(authorityType.AttrTypes, map[string]attr.Value{
			"fingerprint": types.StringValue(a.Fingerprint),
			"not_after":   timetypes.NewRFC3339TimeValue(a.NotAfter.Truncate(time.Second)),
		})
	}

	return secretsModel{
		ID:          types.StringValue(bundle.ClusterID()),
		ClusterID:   types.StringValue(bundle.ClusterID()),
		Bundle:      types.StringValue(string(encoded)),
		Authorities: types.MapValueMust(authorityType, authorities),

		DeletionProtection: protection,
		Rotate:             types.ObjectNull(rotateTypes),
	}, nil
}
