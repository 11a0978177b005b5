// Package sitetest has the test environment of the provider: simulated machines (Site), a running cluster of them
// (Living), their configuration as text, and the CLIs that apply it.
package sitetest
