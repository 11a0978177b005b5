// Package addontest is what tests of addons run against: real Kubernetes, real repositories,
// the real helm.
package addontest
