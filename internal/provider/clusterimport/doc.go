// Package clusterimport reads from machines what an import needs: that they belong to the cluster, their
// configuration, and the handle of the cluster.
package clusterimport
