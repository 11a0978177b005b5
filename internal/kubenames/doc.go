// Package kubenames has the names that Talos and Kubernetes give to what they make: nodes after host names, the
// configuration of a static pod in its annotations, releases of Kubernetes in the tags of images.
//
// The package is pure.
package kubenames
