// Package providerdata is what a configured provider gives its resources (ProviderData): how machines, their
// clusters and the hosts of their pods are reached, and what operations of one process share. Here the provider
// meets the adapters. Resources embed Configured…, which get it from the framework.
package providerdata
