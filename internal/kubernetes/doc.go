// Package kubernetes speaks to the Kubernetes API of the managed cluster.
//
// A cluster's endpoint is often a load balancer or a virtual address that comes up
// late, or goes away with the machine that holds it, while the API servers behind it
// are well. So a [Client] knows the control planes too: it asks the endpoint first
// and each of them after that, and stays with the one that answered. TLS is verified
// the same way for all, by the cluster's CA and the name that was dialled; Talos
// signs each API server's certificate for the endpoint's host and for the machine's
// own addresses.
//
// Addresses are dialled directly, without regard to proxies.
//
// Three things are left in a cluster: the annotation talosop.dev/cordoned on nodes that
// were cordoned from here, which is what may be uncordoned from here; the evictions of a
// drain, which is kubectl's selection of pods in a loop that says who is in the way; and
// the Lease kube-system/talosop, which whoever disrupts machines holds: see [Lock].
package kubernetes
