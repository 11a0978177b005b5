package machines

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

// confirmReady observes the machines that an update leaves unchanged. Its plan says Ready because the last refresh
// did, which may be long ago: a saved plan, or -refresh=false. An error is the only way to store another phase than
// the planned one. The settings of the update are still stored, as they touch no machine.
func (m *CommonModel) confirmReady(
	ctx context.Context, data *providerdata.ProviderData, p machineset.Set,
) finding.List {
	record, diags := m.Recorded(ctx, p)
	recorded, more := machineset.NewPriorState(record, p, p)
	diags.Append(more...)

	if diags.HasError() {
		return diags
	}

	want, have, err := observe(ctx, data, p, recorded, nil)
	if err != nil {
		return append(diags, m.notConfirmed(p, []string{err.Error()}))
	}

	if troubles := machineset.LinesOfTroubles(health.TroublesOf(want, have)); len(troubles) > 0 {
		return append(diags, m.notConfirmed(p, troubles))
	}

	if health.SilentEndpoint(want, have) {
		m.Phase = types.StringValue(string(cluster.Degraded))

		return append(diags, machineset.EndpointFailed(p, have))
	}

	return diags
}

func (m *CommonModel) notConfirmed(p machineset.Set, causes []string) finding.Finding {
	m.Phase = types.StringValue(string(cluster.Degraded))

	return notConfirmed.Report(finding.Path{}, finding.Args{"object": objectOf(p)}, finding.Report{Cause: causes})
}
