package process

import "syscall"

// dieWithParent lets the kernel kill the child when the site's process is killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
