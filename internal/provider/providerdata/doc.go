// Package providerdata is what a configured provider gives its resources: how to reach machines and clusters, and
// what the operations of a process share. Here the provider meets the adapters. Resources embed Configured…, which
// get it from the framework.
package providerdata
