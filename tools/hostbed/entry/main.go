// Command entry is what the test host's Talos image starts instead of /sbin/init: it makes of a privileged container of
// the host what Talos expects of one, and then becomes Talos. A host with cgroup v2 needs none of it.
//
//   - Of the sysctls that are not per namespace the container gets private copies, so that the kubelet in it does not
//     set the machine's.
//   - A host with cgroup v1 gives privileged containers the machine's cgroup namespace. Talos gets one of its own, with
//     a cgroup2 tree that begins at its own group.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

const cgroups = "/sys/fs/cgroup"

func main() {
	runtime.LockOSThread() // a cgroup namespace belongs to a thread

	err := prepare()
	if err == nil {
		err = syscall.Exec("/sbin/init", append([]string{"/sbin/init"}, os.Args[1:]...), os.Environ())
	}

	fmt.Fprintf(os.Stderr, "entry: %v\n", err)
	os.Exit(1)
}

func prepare() error {
	for _, tree := range []string{"kernel", "vm", "fs"} {
		if err := privateCopy(filepath.Join("/proc/sys", tree)); err != nil {
			return fmt.Errorf("give the container its own sysctls: %w", err)
		}
	}

	if err := syscall.Unshare(syscall.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("unshare the cgroup namespace: %w", err)
	}

	if err := syscall.Mount("cgroup2", cgroups, "cgroup2", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC,
		""); err != nil {
		return fmt.Errorf("mount cgroup2: %w", err)
	}

	return nil
}

// privateCopy mounts a copy of a tree of small files over it. What cannot be read is left out.
func privateCopy(root string) error {
	files := map[string][]byte{}

	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			files[path] = nil
		default:
			if content, err := os.ReadFile(path); err == nil {
				files[path] = append([]byte{}, content...)
			}
		}

		return nil
	})
	if err != nil {
		return err
	}

	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=2m,mode=755"); err != nil {
		return fmt.Errorf("mount a copy of %s: %w", root, err)
	}

	for path, content := range files {
		if content == nil {
			err = os.MkdirAll(path, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = os.WriteFile(path, content, 0o644)
		}

		if err != nil {
			return err
		}
	}

	return nil
}
