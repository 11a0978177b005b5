//go:build !unix

package safefile

// noFollow is nothing where the system has no such flag: what was opened is compared with what is at the name.
const noFollow = 0
