// Package dialer makes the TCP connections to the machines and Kubernetes APIs of clusters that are not reached
// directly: through a proxy (SOCKS5 or HTTP CONNECT), through an SSH jump host, or through the one to the other. Names
// are resolved at the far end. Nothing is ever dialed around the way that was configured.
package dialer
