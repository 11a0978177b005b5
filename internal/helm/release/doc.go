// Package release keeps Helm releases on a cluster in their wanted state.
//
// [Decide] decides the next step from the wanted release and Helm's own history, without any I/O; [Cluster]
// observes and acts. Charts come from package chart, and values from package values. Package client provides what
// Helm's actions need of a cluster, bound to a context, so nothing runs in the background when an operation ends.
package release
