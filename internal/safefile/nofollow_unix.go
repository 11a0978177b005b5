//go:build unix

package safefile

import "syscall"

// noFollow refuses a link at the end of a path, and does not wait for the other end of a pipe.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
