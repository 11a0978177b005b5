// Package lifecycle brings a cluster to what is wanted. It observes, asks the planner of package cluster, runs the
// steps that may run now, and observes again, until nothing is left to do.
//
// No progress is stored. A run that was interrupted, failed or killed is finished by the next one, which observes the
// machines and continues from there. Every step is therefore safe to repeat, and the same step twice on an unchanged
// machine is an error instead of an endless loop.
//
// Steps on different machines run in parallel. The planner, which sees the running steps, decides which may. The
// package does all I/O through the interfaces in ports.go.
package lifecycle
