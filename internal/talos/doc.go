// Package talos speaks the Talos API of one machine at a time.
//
// # One connection, one identity
//
// A [Fleet] holds the credentials of a cluster; [Fleet.Machine] is the API of one
// of its machines. Every machine gets a connection of its own, to its own address,
// without node metadata: what answers is the machine itself and never a machine
// that forwards.
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
