package sim

import (
	"context"

	"github.com/talosop/terraform-provider-talosop/internal/sim/certs"
)

// runTrustd is the control-plane service that signs workers' API certificates.
func (b *boot) runTrustd(ctx context.Context, ca *certs.Authority) {
	if b.AwaitTime(ctx, "trustd") != nil {
		return
	}

	b.Services.Start("trustd")
	b.World.Update(func() { b.trust = ca })
}

// trustFor is who signs the API certificate of a machine: a trustd that has the same machine
// token. Others answer "invalid token" (Talos 1.13, trustd/main.go and
// grpc/middleware/auth/basic/token.go). world is held.
func (c *cluster) trustFor(b *boot) *certs.Authority {
	token := b.Config().Machine().Security().Token()

	for _, other := range c.boots {
		if other.trust != nil && other.Config().Machine().Security().Token() == token {
			return other.trust
		}
	}

	return nil
}
