// Package kubenames has the names that Talos and Kubernetes give to nodes, to the configuration of static pods and
// to the images of a release.
//
// The package is pure.
package kubenames
