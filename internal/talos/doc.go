// Package talos speaks the Talos API of one machine at a time.
//
// # One connection, one identity
//
// A [Fleet] holds the credentials of a cluster; [Fleet.Machine] is the API of one
// of its machines. Every machine gets a connection of its own, to its own address,
// without node metadata: what answers is the machine itself and never a machine
// that forwards. Those that are only reached through control planes are the exception.
//
// A connection is made by hand before gRPC sees it (TCP, then TLS 1.3), for two
// reasons. The errors of the handshake keep their Go types, so that nothing here is
// decided by reading error texts. And the connection is used once: when it breaks,
// gRPC cannot quietly replace it by another one, behind which another machine may
// be. What was learned about the peer, its certificate and its hardware UUID,
// therefore holds for every later call of the same session.
//
// # Who answers
//
// The handshake decides, by the certificate that the server shows:
//
//   - signed by this cluster's CA: a member. The client certificate is sent, and
//     Talos gives its verdict on it after the handshake, as TLS 1.3 prescribes; a
//     refusal is an alert on the first read;
//   - common name maintenance-service.talos.dev: maintenance mode. The certificate is
//     self-signed and made anew at every boot (Talos 1.13), so that only a fingerprint
//     read from the machine's console can prove it. No client certificate is sent;
//   - anything else: foreign. The handshake is broken off and nothing is sent.
//
// A machine whose address changes is looked for at its former one too, as long as
// nobody answers at the new one; there it counts by its hardware UUID alone.
//
// # Through control planes
//
// The calls to a machine with [cluster.Machine].Through go to apid of a control plane with the machine's address as
// node metadata, as those of talosctl with --nodes. Each machine still has connections of its own: one control plane
// after the other ([Options].ControlPlanes) is tried until one gets through, and nothing is dialed at the machine. Who
// answers is decided in two steps. The control plane shows its certificate here and has to be a member, since apid in
// maintenance mode ignores the metadata. It then demands of the machine a certificate of this cluster's CA for the
// address (Talos 1.13 and 1.14, internal/app/apid/pkg/backend). The hardware UUID is compared right before each change,
// on the same way; in between the control plane may connect anew, to nobody but a member of this cluster that has the
// address by then.
//
// No control plane gets through to maintenance mode, which has no such certificate: there a machine is reached at its
// maintenance address, or not at all. A control plane that does not answer says nothing about the machines behind it.
//
// # Calls
//
// Every call has a deadline of its own beside its context. Reads use the session
// that is there and dial once more when it turns out to be broken, for example
// after a reboot. Calls that change a machine always begin with a new session. There
// is no keepalive by HTTP/2 pings: Talos sets no enforcement policy, and a gRPC
// server then closes a connection that is pinged more often than every five minutes.
//
// Talos answers OK to a reset, a reboot or an upgrade that it then does not run, and
// answers get lost. Both are settled by looking for the effect, never by repeating the
// call.
package talos
