// Package upgrade is the checks before an upgrade of Kubernetes and its rollout.
//
// Which component is upgraded when is decided by package cluster. What happens in the API of
// the cluster on the way is done with github.com/siderolabs/go-kubernetes, the library of
// talosctl upgrade-k8s:
//
//   - [Upgrade.SyncManifests]: server-side apply, the inventory, pruning and the wait for
//     objects to be reconciled are its packages ssa and, before Talos 1.13, manifests. The
//     requests that it makes, to the API server that answers, and when the whole is repeated,
//     are ours; it makes no connections and prints nothing.
//   - [Upgrade.UpgradeChecks]: the tables of what a minor version removes, and the search of
//     flags, feature gates and admission plugins in what Talos runs on each node are its
//     package upgrade. The names of the objects behind a removed API, and who requests a
//     deprecated one, are ours, as is that no source of these hides another.
//   - [Upgrade.AwaitComponent] is ours: go-kubernetes has nothing for it, and talosctl watches
//     the pods through one API server.
package upgrade
