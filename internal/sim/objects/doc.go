// Package objects stores Kubernetes objects and the plain keys of tests: what the stand-ins
// of etcd and of the Kubernetes API share instead of a key-value store.
package objects
