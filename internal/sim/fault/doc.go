// Package fault records the calls that reach simulated machines, and makes them go wrong.
package fault
