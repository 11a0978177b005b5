//go:build !linux

package process

import "syscall"

// dieWithParent has no counterpart here: a site that is killed leaves its children.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
