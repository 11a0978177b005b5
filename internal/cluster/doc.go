// Package cluster is the vocabulary of talosop and the place of its decisions.
//
// [Spec] says what is wanted, [Snapshot] what was observed, and [Plan] compares
// the two and answers with steps that may run now, holds that say why other work
// must wait, and refusals that no waiting will cure. [PlanTeardown] does the same
// for taking machines out of service. [Forecast] runs the planner against a model
// of the machines, which is how a Terraform plan can list the operations of an
// apply before any machine was asked.
//
// The package is pure: no clock (time is a field of Snapshot), no network, no
// goroutines. It imports nothing that acts (imports_test.go), so that every rule
// about quorum, bootstrap and order can be read and tested in one place.
package cluster
