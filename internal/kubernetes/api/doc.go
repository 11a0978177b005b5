// Package api reaches the Kubernetes API of a cluster.
//
// A cluster's endpoint is often a load balancer or a virtual address that comes up late, or disappears with the
// machine that holds it, while the API servers behind it are healthy. So a [Client] knows the control planes too:
// it asks the endpoint first and each of them after that, and stays with the one that answered ([Failover]). TLS
// is verified the same way for all, by the cluster's CA and the dialed name; Talos signs each API server's
// certificate for the endpoint's host and for the machine's own addresses. An observation adds the control planes
// that the cluster itself names.
//
// Addresses are dialed directly, without proxies. A client of a kubeconfig has the one server that it names,
// through the proxy that it names. Libraries with their own requests to the API, such as Helm, use
// [Client.Config].
package api
