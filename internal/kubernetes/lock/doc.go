// Package lock is the right to disrupt machines of a cluster: the Lease kube-system/talosop in the cluster
// itself, for which the runs of one process queue up.
package lock
