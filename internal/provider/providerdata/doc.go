// Package providerdata is what a configured provider gives to its resources (ProviderData): how machines, the clusters
// that they are of and the hosts of their pods are reached, and what operations of one process share. It is where the
// provider meets the adapters. Resources embed Configured…, which take it from the framework.
package providerdata
