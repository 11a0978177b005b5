// Package upgrade has the checks before an upgrade of Kubernetes and its rollout.
//
// Package cluster decides which component is upgraded when. The changes in the API of the cluster use
// github.com/siderolabs/go-kubernetes, the library of talosctl upgrade-k8s:
//
//   - [Upgrade.SyncManifests]: server-side apply, the inventory, pruning and the wait for reconciliation are its
//     packages ssa and, before Talos 1.13, manifests. Its requests, to the API server that answers, and its
//     retries are ours; it makes no connections and prints nothing.
//   - [Upgrade.UpgradeChecks]: the tables of what a minor version removes are its package upgrade, for arguments of
//     components through package removals. The API versions that a minor version removes, the names of the objects
//     behind them, and the clients of a deprecated one, are ours, and so is that no source of these hides another.
//   - [Upgrade.AwaitComponent] is ours: go-kubernetes has nothing for it, and talosctl watches the pods through
//     one API server.
package upgrade
