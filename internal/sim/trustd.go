package sim

import (
	"bytes"
	"context"
	"slices"

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
// token, and whose own certificate the machine takes. Others answer "invalid token" (Talos 1.13, trustd/main.go and
// grpc/middleware/auth/basic/token.go). It hands out what it accepts itself, which is what the worker then accepts of
// clients (trustd/internal/reg/reg.go, secrets/api.go generateWorker). world is held.
func (c *cluster) trustFor(b *boot) *certs.Authority {
	security := b.Config().Machine().Security()
	taken := [][]byte{security.IssuingCA().Crt}

	for _, ca := range security.AcceptedCAs() {
		taken = append(taken, ca.Crt)
	}

	for _, other := range c.boots {
		if other.trust == nil {
			continue
		}

		theirs := other.Config().Machine().Security()

		ca, err := certs.LoadAuthority(theirs.IssuingCA())
		if err != nil || theirs.Token() != security.Token() || !slices.ContainsFunc(taken, func(crt []byte) bool {
			return bytes.Equal(bytes.TrimSpace(crt), bytes.TrimSpace(theirs.IssuingCA().Crt))
		}) {
			continue
		}

		ca.Accepted = append(ca.Accepted, theirs.IssuingCA().Crt)
		for _, accepted := range theirs.AcceptedCAs() {
			ca.Accepted = append(ca.Accepted, accepted.Crt)
		}

		return ca
	}

	return nil
}
