// Package restore is the snapshot of etcd that a cluster begins with: the argument restore_from, what can be said of it
// in a plan, and how it is fetched, opened and verified in an apply.
package restore
