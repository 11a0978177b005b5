// Package cluster has the terms and the decisions of talosop.
//
// [Spec] is what is wanted and [Snapshot] what was observed. [Plan] compares the two. It returns steps that may run
// now, holds that say why other work must wait, and refusals that waiting cannot resolve. [PlanTeardown] does the
// same for taking machines out of service. [Forecast] runs the planner against a model of the machines. With it, a
// Terraform plan lists the operations of an apply before any machine was asked.
//
// The package is pure: no clock (time is a field of Snapshot), no network, no goroutines. It imports nothing that
// acts (imports_test.go), so that every rule about quorum, bootstrap and order can be read and tested in one place.
package cluster
