// Package hostcluster opens the host, a Kubernetes cluster that runs Talos machines as pods. It connects to the
// machines from any computer that runs talosop. Package workload makes and observes the objects of a machine;
// package preflight has the checks before anything is made.
package hostcluster
