package talos

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// CheckWipe checks on a member that Talos would wipe what is selected, as its call Reset does (Talos 1.12 to 1.14,
// v1alpha1_server.go), and changes nothing. What it would refuse is a permanent error.
func (m *Machine) CheckWipe(ctx context.Context, selected wipe.Selection) error {
	s, err := m.changing(ctx, step.Member, "")
	if err != nil {
		return err
	}

	problems, err := bounded(ctx, m, func(ctx context.Context) ([]error, error) {
		volumes, err := s.unwipeableVolumes(ctx, selected.Volumes())
		if err != nil {
			return nil, err
		}

		disks, err := s.unwipeableDisks(ctx, selected.Disks())

		return append(volumes, disks...), err
	})
	if err != nil || len(problems) == 0 {
		return err
	}

	return wait.Permanent(fmt.Errorf("%w: %w", ErrRejected, errors.Join(problems...)))
}

// unwipeableVolumes says why volumes cannot be wiped. A directory is wiped with the volume below it.
func (s *session) unwipeableVolumes(ctx context.Context, selected []string) (problems []error, err error) {
	if len(selected) == 0 {
		return nil, nil
	}

	items, err := list[*block.VolumeStatus](ctx, s)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", block.VolumeStatusType, err)
	}

	found := map[string]block.VolumeStatusSpec{}
	for item := range items.All() {
		found[item.Metadata().ID()] = *item.TypedSpec()
	}

	for _, name := range selected {
		volume, ok := found[name]

		switch {
		case !ok:
			problems = append(problems, fmt.Errorf("it has no volume %s", name))
		case volume.Location != "" || volume.ParentID != "" && slices.Contains(selected, volume.ParentID):
		case volume.ParentID != "":
			problems = append(problems, fmt.Errorf("volume %s is a directory of %s, which is not wiped", name, volume.ParentID))
		default:
			problems = append(problems, fmt.Errorf("volume %s has no partition", name))
		}
	}

	return problems, nil
}

// unwipeableDisks says why disks cannot be wiped.
func (s *session) unwipeableDisks(ctx context.Context, selected []string) (problems []error, err error) {
	if len(selected) == 0 {
		return nil, nil
	}

	items, err := list[*block.Disk](ctx, s)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", block.DiskType, err)
	}

	disks := map[string]block.DiskSpec{}
	for item := range items.All() {
		disks[item.TypedSpec().DevPath] = *item.TypedSpec()
	}

	system, err := get[*block.SystemDisk](ctx, s, block.NamespaceName, block.SystemDiskType, block.SystemDiskID)
	if err != nil && !errors.Is(err, ErrGone) {
		return nil, err
	}

	for _, path := range selected {
		disk, ok := disks[path]

		switch {
		case !ok:
			problems = append(problems, fmt.Errorf("it has no disk %s", path))
		case disk.Readonly:
			problems = append(problems, fmt.Errorf("disk %s is read-only", path))
		case err == nil && system.TypedSpec().DevPath == path:
			problems = append(problems, fmt.Errorf("disk %s is the system disk", path))
		}
	}

	return problems, nil
}
