// Package kubernetes speaks to the Kubernetes API of the managed cluster. Each concept has its own package;
// [Client] is all of them for one cluster:
//
//   - api: connections, the failover between API servers, kubeconfigs
//   - nodes: observe, cordon, drain, delete
//   - objects: server-side apply, comparison and deletion of objects of any kind
//   - diagnose: why pods and their controllers are not ready; nodes and pods as files of a support bundle
//   - lock: the right to disrupt machines, a Lease
//   - upgrade: the checks before an upgrade of Kubernetes, its manifests, the wait for its components
//
// # What is left behind
//
// Three things are left in a cluster, besides the manifests of Talos and their inventory: the annotation
// talosop.dev/cordoned on nodes that talosop cordoned, the evictions of a drain, and the Lease
// kube-system/talosop.
package kubernetes
