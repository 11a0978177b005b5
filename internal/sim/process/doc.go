// Package process starts programs that do not outlive the simulator, and passes connections
// on to them.
package process
