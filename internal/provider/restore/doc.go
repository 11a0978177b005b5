// Package restore is the snapshot of etcd that a cluster starts with: the argument restore_from, its checks in a
// plan, and its use in an apply.
package restore
