// Package dialer connects to machines and Kubernetes APIs through a proxy (SOCKS5 or HTTP CONNECT), through an SSH
// jump host, or through both. Names are resolved at the far end. Nothing is ever dialed around the way that was
// configured.
package dialer
