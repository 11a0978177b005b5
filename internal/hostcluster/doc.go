// Package hostcluster opens a Kubernetes cluster that Talos machines run on as pods, the host, and gives connections to
// the machines from wherever talosop runs. What there is for a machine is made and observed by package workload, what
// is asked of the host before anything is made is in package preflight.
package hostcluster
