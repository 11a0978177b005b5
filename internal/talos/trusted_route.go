package talos

import (
	"context"
	"fmt"
	"net"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// verifiable is a connection over a path that an attacker may control, to a machine that is also reachable over a
// trusted route. It is for machines that cannot prove their identity yet.
type verifiable interface {
	// Beside makes another connection to the same machine, over the trusted route.
	Beside(ctx context.Context) (net.Conn, error)
}

// verifyInMaintenance compares the certificate of a machine in maintenance mode, which any server can make, with the
// one on the trusted route, if there is one. A machine with a certificate of the cluster's CA needs no such proof.
func (g *gatekeeper) verifyInMaintenance(ctx context.Context, raw net.Conn) error {
	route, ok := raw.(verifiable)
	if !ok || g.peer.access != step.Maintenance {
		return nil
	}

	trusted, err := route.Beside(ctx)
	if err != nil {
		return fmt.Errorf("%w: the machine is in maintenance mode, and its certificate could not be compared, because "+
			"the host API did not return it: %w", ErrUnreachable, err)
	}
	defer func() { _ = trusted.Close() }() // nothing is said on it

	pod := gatekeeper{host: g.host, identity: g.identity, now: g.now}
	if _, err := pod.handshake(ctx, trusted); err != nil {
		return fmt.Errorf("compare its certificate with the certificate of its pod: %w", err)
	}

	if pod.peer.fingerprint != g.peer.fingerprint {
		return foreignError("the server is not the pod of the machine: it is in maintenance mode with the certificate "+
			"fingerprint %s, but the pod, reached through the host API, has %s; find out which server uses this address",
			g.peer.fingerprint, pod.peer.fingerprint)
	}

	return nil
}
