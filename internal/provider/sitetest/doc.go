// Package sitetest has what tests of the provider need around it: simulated machines (Site), a cluster of them that
// runs (Living), their configuration as text, and the CLIs that apply it.
package sitetest
