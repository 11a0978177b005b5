// Package kube has the Kubernetes API servers of simulated control planes: a stand-in that
// keeps objects in memory and serves any version, and real kube-apiservers on a real etcd.
// Both know the machines behind them as a [Site].
package kube
