// Package clusterimport reads from the machines of a cluster what an import needs: that they belong to it, how they
// are configured, and the handle of their cluster.
package clusterimport
