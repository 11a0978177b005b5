// Package record has the recorded state of machines: one value for each machine, and how it differs from what was
// applied last. A refresh and an apply write it, and a plan begins with it. Pure.
package record
