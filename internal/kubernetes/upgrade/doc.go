// Package upgrade has the checks before an upgrade of Kubernetes and its rollout.
//
// Package cluster decides which component is upgraded when. The changes in the API of the cluster use
// github.com/siderolabs/go-kubernetes, the library of talosctl upgrade-k8s:
//
//   - [Upgrade.SyncManifests]: server-side apply, the inventory, pruning and the wait for reconciliation are its
//     packages ssa and, before Talos 1.13, manifests. Its requests, to the API server that answers, and its
//     retries are ours; it makes no connections and prints nothing.
//   - [Upgrade.UpgradeChecks]: the tables of what a minor version removes, and the search of flags, feature gates
//     and admission plugins in what Talos runs on each node are its package upgrade. The names of the objects
//     behind a removed API, and the clients of a deprecated one, are ours, and so is that no source of these hides
//     another.
//   - [Upgrade.AwaitComponent] is ours: go-kubernetes has nothing for it, and talosctl watches the pods through
//     one API server.
package upgrade
