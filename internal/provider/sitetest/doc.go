// Package sitetest has the test environment of the provider: simulated machines (Site), a running cluster of them
// (Living), configurations, and the CLIs that apply them.
package sitetest
