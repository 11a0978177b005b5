package providerdata

import (
	"context"
	"net"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// ClientName is the name of talosop in audit logs of the clusters that it works on.
const ClientName = "talosop"

// afterTimeout is how long credentials last beyond the timeout of an operation, for its cleanup.
const afterTimeout = 5 * time.Minute

// lifetime is how long the credentials of an operation last. They are issued for it and never leave the process.
func lifetime(ctx context.Context) time.Duration {
	end, bounded := ctx.Deadline()
	if !bounded {
		return pki.OperationLifetime
	}

	return max(pki.OperationLifetime, time.Until(end)+afterTimeout)
}

// TalosCredentials are those of a Talos API client with the given roles, none without roles.
func TalosCredentials(ctx context.Context, bundle *pki.Bundle, roles []string) (talos.Credentials, error) {
	if len(roles) == 0 {
		return talos.Credentials{}, nil
	}

	c, err := bundle.TalosClient(roles, lifetime(ctx))

	return talosCredentials(c), err
}

func talosCredentials(c pki.Credentials) talos.Credentials {
	out := talos.Credentials{CA: c.CA, Cert: c.Certificate, Key: c.Key}

	for _, former := range c.Former {
		out.Former = append(out.Former, talosCredentials(former))
	}

	return out
}

// FleetOf is the Talos APIs of machines, with credentials for this operation. The caller must call Close.
func (m *ProviderData) FleetOf(
	ctx context.Context, access pki.Access, p machineset.Set, bundle *pki.Bundle,
) (*talos.Fleet, error) {
	options := m.Talos

	var err error
	if options.Credentials, err = TalosCredentials(ctx, bundle, access.Talos); err != nil {
		return nil, err
	}

	if access.Part.Of == pki.Configurations {
		if options.ForConfigurations, err = TalosCredentials(ctx, bundle, access.Part.Roles); err != nil {
			return nil, err
		}
	}

	options.Endpoints, options.ControlPlanes = p.DialedAt(), p.ControlPlaneAddresses()

	return talos.NewFleet(options)
}

// KubernetesOf completes the options of a client with the settings of the pool, and with credentials for this
// operation.
func KubernetesOf(
	ctx context.Context, access pki.Access, p machineset.Set, bundle *pki.Bundle, options api.Options,
) (*kubernetes.Client, error) {
	credentials, err := bundle.KubernetesClient(ClientName, []string{pki.GroupAdmin}, lifetime(ctx))
	if err != nil {
		return nil, err
	}

	options.Endpoint = p.Settings.Endpoint
	for _, endpoint := range p.Endpoints {
		options.Fallbacks = append(options.Fallbacks, machineset.HostOf(endpoint))
	}

	for _, other := range p.Others {
		if slices.Contains(p.Endpoints, other.Address) {
			continue // already an endpoint
		}

		options.Fallbacks = append(options.Fallbacks, machineset.HostOf(other.Address))
	}

	options.Dial = around(options.Dial, p.DialedAt())

	options.Cluster, options.OwnerKeys = bundle.Mark(), bundle.OwnerKeys()
	options.CA, options.Cert, options.Key = credentials.CA, credentials.Certificate, credentials.Key

	for _, former := range credentials.Former {
		options.Former = append(options.Former,
			api.Options{CA: former.CA, Cert: former.Certificate, Key: former.Key})
	}

	options.Limit = LimitOf(access.Kubernetes)

	return kubernetes.New(options)
}

// around dials API servers at the hosts of the machines' endpoints, if they have any: what leads to the Talos API of
// a machine leads to its Kubernetes API, too, unless it is a forwarded port.
func around(dial dialer, dialedAt map[string]string) dialer {
	if len(dialedAt) == 0 {
		return dial
	}

	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}

	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, port, err := net.SplitHostPort(address); err == nil && dialedAt[host] != "" {
			address = net.JoinHostPort(machineset.HostOf(dialedAt[host]), port)
		}

		return dial(ctx, network, address)
	}
}

// LimitOf is what a client with an access may send besides reads; nil is no limit.
func LimitOf(access pki.KubernetesAccess) *api.Limit {
	if access.All {
		return nil
	}

	return &api.Limit{Writes: access.Writes, Secrets: access.Secrets, DryRuns: access.DryRuns}
}

// Lasts reports whether the credentials of a client last as long as an operation may take.
func Lasts(ctx context.Context, api *kubernetes.Client) bool {
	end, bounded := ctx.Deadline()

	return api.ValidUntil.IsZero() || time.Now().Before(api.ValidUntil) && (!bounded || end.Before(api.ValidUntil))
}
