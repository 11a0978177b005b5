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

	return finding.List{finding.Warn("The Kubernetes endpoint does not answer", silentEndpoint(have).String())}
}

// EndpointFailed is the error of an update that planned the phase Ready and whose endpoint does not answer.
func EndpointFailed(p Set, have cluster.Snapshot) finding.Finding {
	what := silentEndpoint(have)
	what.Attempted = "see that the endpoint answers, after the machines became Ready as planned"

	return finding.Unable("confirm", p.Object, what)
}

func silentEndpoint(have cluster.Snapshot) finding.Report {
	endpoint := have.Kubernetes.Endpoint

	return finding.Report{
		Cause: []string{endpoint.URL + ": " + endpoint.Cause},
		Now: []string{"the control planes answer at their own addresses",
			"kubeconfigs lead to the endpoint and do not work from this computer; the phase is Degraded"},
		Next: "See that the name of the endpoint resolves here, that its load balancer or virtual IP leads to port 6443 of " +
			"the control planes, and that its certificate has that name. Then apply again. When only this computer cannot " +
			"reach the endpoint, list it in `unreachable_endpoints` of the provider.",
	}
}
