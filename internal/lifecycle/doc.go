// Package lifecycle takes a cluster from what it is to what is wanted: it
// observes, asks the planner of package cluster, runs the steps that may run now,
// and observes again, until nothing is left to do.
//
// Nothing stores how far a run has come. A run that was interrupted, failed or
// killed is finished by the next one, which observes the machines and goes on
// from what it finds. Every step is therefore safe to repeat, and the same step
// twice on a machine that did not change is an error instead of an endless loop.
//
// Steps on different machines run side by side; which steps may is the planner's
// decision, and it sees the steps that are still running. The package reaches the
// world through the interfaces in ports.go only.
package lifecycle
