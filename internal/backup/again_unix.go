//go:build !windows

package backup

import (
	"fmt"
	"os"
	"syscall"
)

// again opens a file once more that has no name.
func again(file *os.File) (*os.File, error) {
	// No program that is started meanwhile inherits it.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()

	descriptor, err := syscall.Dup(int(file.Fd())) //nolint:gosec // a descriptor is small
	if err != nil {
		return nil, fmt.Errorf("reopen the snapshot: %w", err)
	}

	syscall.CloseOnExec(descriptor)

	return os.NewFile(uintptr(descriptor), file.Name()), nil
}
