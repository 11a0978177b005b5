// Package kube has the Kubernetes API servers of simulated control planes: stand-ins in memory for any version, and
// real kube-apiservers on a real etcd. Both know the machines behind them as a [Site].
package kube
