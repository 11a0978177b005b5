// Package record has what state remembers of machines: one value for each machine, which a refresh and an apply write
// and a plan begins with, and how a machine differs from what was applied last. Pure.
package record
