//go:build !unix

package safefile

// noFollow is zero where the system has no such flag: the opened file is compared with the one at the name.
const noFollow = 0
