package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usage is the resource usage of the providers of a workspace.
type usage struct {
	// mib is the most resident memory that one of them had.
	mib int
	// cpu is the processor time of all of them.
	cpu time.Duration
}

// watch looks at the provider processes of a folder until stop is called, which tells what they took. Processes come
// and go while they are looked at; the last moments of one are not seen.
func watch(dir string) (stop func() usage) {
	seen := map[int]usage{}

	end := repeatedly(func() {
		for pid, u := range providers(dir) {
			seen[pid] = u
		}
	})

	return func() usage {
		end()

		var all usage
		for _, u := range seen {
			all.mib, all.cpu = max(all.mib, u.mib), all.cpu+u.cpu
		}

		return all
	}
}

// providers are the providers that run in a folder, by their process ids.
func providers(dir string) map[int]usage {
	found := map[int]usage{}

	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}

	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}

		proc := filepath.Join("/proc", e.Name())

		if cwd, err := os.Readlink(filepath.Join(proc, "cwd")); err != nil || cwd != dir {
			continue
		}

		if exe, err := os.Readlink(filepath.Join(proc, "exe")); err == nil && strings.Contains(exe, "terraform-provider-") {
			found[pid] = usage{mib: highWater(proc), cpu: processorTime(proc)}
		}
	}

	return found
}

// highWater is the most resident memory that a process had, in MiB; zero when it is gone.
func highWater(proc string) int {
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		return 0
	}

	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.Fields(value)[0])
			if err == nil {
				return kib / 1024
			}
		}
	}

	return 0
}

// tick is the unit of processor time in /proc (USER_HZ, proc(5)).
const tick = 10 * time.Millisecond

// processorTime is the processor time of a process, in user mode and in the kernel; zero when it is gone.
func processorTime(proc string) time.Duration {
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return 0
	}

	// The second field is the name, in brackets; 14 and 15 are the times.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))

	var ticks int

	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0
		}

		ticks += n
	}

	return time.Duration(ticks) * tick
}
