// Package tftest drives the provider in tests as a CLI does, in the protocol of the CLIs and without one:
//
//	server.go    the provider in this process, configured and impatient
//	values.go    configurations as Go maps, and values as the protocol has them
//	driven.go    a resource that is planned, applied, refreshed and imported
//	requests.go  single requests: validate, plan, read a data source, query
//	configs.go   configurations that are right, to be changed by a test
//	record.go    the record of machines in a state
//	secrets.go   bundles of secrets that cost no seconds
//	checks.go    what tests check of diagnostics and plans
//
// Tests that need machines take them from package sitetest. What only a CLI shows is tested under one, with the helpers
// of sitetest and package clitest.
package tftest
