// Package talos speaks the Talos API of one machine at a time.
//
// # One connection, one identity
//
// A [Fleet] holds the credentials of a cluster; [Fleet.Machine] is the API of one
// of its machines. Every machine has its own connection, to its own address,
// without node metadata: the machine itself answers and never a machine
// that forwards. The exception are machines that are only reached through control planes.
//
// This package dials each connection before gRPC sees it (TCP, then TLS 1.3), for two
// reasons. The errors of the handshake keep their Go types, so no decision here
// depends on error texts. And the connection is used once: when it breaks,
// gRPC cannot silently replace it by another one, which may lead to another machine.
// So what the session learned about the peer, its certificate and its hardware UUID,
// holds for every later call.
//
// # Who answers
//
// The handshake decides, by the certificate that the server shows:
//
//   - signed by this cluster's CA: a member. The client sends its certificate, and Talos accepts or refuses it
//     after the handshake, as TLS 1.3 prescribes; a refusal is an alert on the first read;
//   - common name maintenance-service.talos.dev: maintenance mode. The certificate is self-signed and new at every
//     boot (Talos 1.13), so only a fingerprint read from the machine's console can prove it. The client sends no
//     certificate;
//   - anything else: foreign. The client aborts the handshake and sends nothing.
//
// While nothing answers at the new address of a machine, its former address is tried, too.
// There, only its hardware UUID counts.
//
// # Through control planes
//
// Calls to a machine with [cluster.Machine].Through go to apid of a control plane, with the machine's address as
// node metadata, as calls of talosctl with --nodes do. Each machine still has its own connections. The client
// tries the control planes ([Options].ControlPlanes) in turn until one reaches the machine, and never dials the
// machine itself. The identity is checked in two steps. First, the control plane shows its certificate and has to
// be a member, since apid in maintenance mode ignores the metadata. Then it demands from the machine a certificate
// of this cluster's CA for the address (Talos 1.13 and 1.14, internal/app/apid/pkg/backend). Right before each
// change, the hardware UUID is compared on the same route. In between, the control plane may reconnect, but only
// to a member of this cluster that has the address by then.
//
// Control planes cannot proxy to machines in maintenance mode, which have no such certificate. Such a machine is
// reached at its maintenance address, or not at all. A control plane that does not answer says nothing about the
// machines behind it.
//
// # Calls
//
// Every call has its own deadline beside its context. Reads use the existing
// session and dial once more when it turns out to be broken, for example
// after a reboot. Calls that change a machine always begin with a new session. There
// is no keepalive by HTTP/2 pings: Talos sets no enforcement policy, and a gRPC
// server then closes a connection that is pinged more often than every five minutes.
//
// Talos answers OK to a reset, a reboot or an upgrade that it then does not run, and
// answers get lost. In both cases the client looks for the effect, and never repeats the
// call.
package talos
