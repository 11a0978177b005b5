package talos

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// wipeMark is what a wipe found. A wipe drops a partition, and the next boot makes another one with another UUID (Talos
// 1.12 to 1.14, partition/wipe.go).
type wipeMark struct {
	boot string
	// partitions are the UUIDs of the selected partitions by their volumes.
	partitions map[string]string
}

// markWipe reads what the wipe of a selection is compared with.
func (s *session) markWipe(ctx context.Context, selected wipe.Selection) (mark wipeMark, err error) {
	if mark.boot, err = s.bootID(ctx); err != nil || len(selected.Volumes()) == 0 {
		return mark, err
	}

	mark.partitions, err = s.volumePartitions(ctx)
	maps.DeleteFunc(mark.partitions, func(volume, uuid string) bool {
		return uuid == "" || !slices.Contains(selected.Volumes(), volume)
	})

	return mark, err
}

func (m *Machine) keepWipe(mark wipeMark) {
	m.mu.Lock()
	defer m.mu.Unlock()

	m.wiped = mark
}

func (m *Machine) lastWipe() wipeMark {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.wiped
}

// observeWipe names the volumes that a wipe of this run left, once the machine is in the boot after it.
func (m *Machine) observeWipe(ctx context.Context, s *session, out *step.MachineState) error {
	mark := m.lastWipe()
	if len(mark.partitions) == 0 {
		return nil
	}

	boot, err := bounded(ctx, m, s.bootID)
	if err != nil || boot == mark.boot {
		return err
	}

	now, err := bounded(ctx, m, s.volumePartitions)
	if err != nil {
		return err
	}

	var left []string

	for _, volume := range slices.Sorted(maps.Keys(mark.partitions)) {
		if now[volume] == mark.partitions[volume] {
			left = append(left, volume)
		}
	}

	out.Unwiped = strings.Join(left, ", ")

	return nil
}
