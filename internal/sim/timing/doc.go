// Package timing has what simulated machines wait with: pauses that end with a context, signals, and values
// computed once.
package timing
