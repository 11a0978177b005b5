// Package kubernetes speaks to the Kubernetes API of the managed cluster.
//
// A cluster's endpoint is often a load balancer or a virtual address that comes up
// late, or goes away with the machine that holds it, while the API servers behind it
// are well. So a [Client] knows the control planes too: it asks the endpoint first
// and each of them after that, and stays with the one that answered. TLS is verified
// the same way for all, by the cluster's CA and the name that was dialled; Talos
// signs each API server's certificate for the endpoint's host and for the machine's
// own addresses. An observation adds the control planes that the cluster itself names.
//
// Addresses are dialled directly, without regard to proxies. A client of a kubeconfig has the one
// server that it names, through the proxy that it names.
//
// # Objects of any kind
//
// Objects are applied, compared and removed as maps, of any kind that the API serves: where it does is
// asked of it and remembered. Libraries that speak to the API by themselves, such as Helm, do so with
// [Client.Config]. What keeps objects from being ready is told by [Client.Troubles].
//
// # Upgrades of Kubernetes
//
// Which component is upgraded when is decided by package cluster. What happens in the API of
// the cluster on the way is done with github.com/siderolabs/go-kubernetes, the library of
// talosctl upgrade-k8s:
//
//   - [Client.SyncManifests]: server-side apply, the inventory, pruning and the wait for
//     objects to be reconciled are its packages ssa and, before Talos 1.13, manifests. The
//     requests that it makes, to the API server that answers, and when the whole is repeated,
//     are ours; it makes no connections and prints nothing.
//   - [Client.UpgradeChecks]: the tables of what a minor version removes, and the search of
//     flags, feature gates and admission plugins in what Talos runs on each node are its
//     package upgrade. The names of the objects behind a removed API, and who requests a
//     deprecated one, are ours, as is that no source of these hides another.
//   - [Client.AwaitComponent] is ours: go-kubernetes has nothing for it, and talosctl watches
//     the pods through one API server.
//
// # What is left behind
//
// Three things are left in a cluster, besides the manifests and their inventory, which are
// Talos's: the annotation talosop.dev/cordoned on nodes that were cordoned from here, which
// is what may be uncordoned from here; the evictions of a drain, which is kubectl's selection
// of pods in a loop that says who is in the way; and the Lease kube-system/talosop, which
// whoever disrupts machines holds: see [Lock].
package kubernetes
