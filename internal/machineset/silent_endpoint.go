package machineset

import (
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// WarnOfEndpoint warns about an endpoint that does not answer while the control planes behind it do.
func WarnOfEndpoint(want cluster.Spec, have cluster.Snapshot) finding.List {
	if !health.SilentEndpoint(want, have) {
		return nil
	}

	return finding.List{endpointSilent.With(silentEndpoint(want.Name, have))}
}

// EndpointFailed is the error of an update that planned the phase Ready and whose endpoint does not answer.
func EndpointFailed(p Set, have cluster.Snapshot) finding.Finding {
	return endpointFailed.With(silentEndpoint(p.Settings.Name, have))
}

func silentEndpoint(name string, have cluster.Snapshot) finding.Args {
	endpoint := have.Kubernetes.Endpoint

	return finding.Args{"cluster": name, "endpoint": endpoint.URL, "problem": endpoint.Cause}
}
