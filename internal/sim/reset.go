package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/talosop/terraform-provider-talosop/internal/sim/apid"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// Reset checks its input, answers, and resets in the background.
func (a *api) Reset(ctx context.Context, req *machine.ResetRequest) (*machine.ResetResponse, error) {
	b := a.b

	labels, err := b.resetTargets(req)
	if err != nil {
		return nil, err
	}

	apid.Annotate(ctx, strings.Join(labels, " "))

	actor := uuid.NewString()
	b.StartSequence("reset", actor, false, b.resetSequence(req, labels))

	return &machine.ResetResponse{Messages: []*machine.Reset{{ActorId: actor}}}, nil
}

// resetTargets validates a request; its errors are plain, so clients see Unknown.
// It returns the partitions to wipe, nil for the whole disk.
func (b *boot) resetTargets(req *machine.ResetRequest) ([]string, error) {
	if len(req.GetUserDisksToWipe()) > 0 && req.GetMode() == machine.ResetRequest_SYSTEM_DISK {
		return nil, errors.New("reset failed: invalid input, wipe mode SYSTEM_DISK doesn't support UserDisksToWipe parameter")
	}

	for _, device := range req.GetUserDisksToWipe() {
		if err := b.checkUserDisk(device); err != nil {
			return nil, err
		}
	}

	if len(req.GetSystemPartitionsToWipe()) == 0 {
		return nil, nil
	}

	if req.GetMode() == machine.ResetRequest_USER_DISKS {
		return nil, errors.New("reset failed: invalid input, wipe mode USER_DISKS doesn't support SystemPartitionsToWipe " +
			"parameter")
	}

	labels := []string{}

	ephemeral := slices.ContainsFunc(req.GetSystemPartitionsToWipe(), func(s *machine.ResetPartitionSpec) bool {
		return s.GetLabel() == "EPHEMERAL" && s.GetWipe()
	})

	for _, spec := range req.GetSystemPartitionsToWipe() {
		if err := b.checkVolume(spec.GetLabel(), ephemeral); err != nil {
			return nil, err
		}

		if spec.GetWipe() {
			labels = append(labels, spec.GetLabel())
		}
	}

	return labels, nil
}

func (b *boot) checkUserDisk(device string) error {
	for _, disk := range b.m.Disks {
		if disk.Path != device {
			continue
		}

		if device == b.m.SystemDisk() {
			return fmt.Errorf("reset user disk failed: device %s is the system disk", device)
		}

		return nil
	}

	return fmt.Errorf("reset user disk failed: device %s wasn't found", device)
}

// checkVolume finds a system volume. Directories have no location; in containers all volumes are directories. Up
// to Talos 1.13 a reset that names one is refused. From 1.14 on it is wiped with the volume below it, which has to
// be named as well, and in a container there is none (v1alpha1_server.go, Reset; system/volumes.go,
// FindBackingVolume).
func (b *boot) checkVolume(label string, ephemeral bool) error {
	directory := slices.Contains(machined.OwnVolumes, label) && (b.Since(1, 14) || label == "ETCD")
	known := label == "STATE" || label == "EPHEMERAL" || label == "META" || directory ||
		slices.Contains(b.UserVolumes(), label)
	nowhere := b.m.Platform == machined.Container || !b.m.Installed()

	switch {
	case !known:
		return fmt.Errorf("failed to get volume status with label %q: resource "+
			"VolumeStatuses.block.talos.dev(runtime/%s@undefined) doesn't exist",
			label, label)
	case !nowhere && (!directory || b.m.Disk.Own[label]):
		return nil
	case !b.Since(1, 14):
		return fmt.Errorf("failed to reset: volume %q is not located", label)
	case nowhere:
		return fmt.Errorf("failed to reset: volume %q is not located and doesn't reside on another volume", label)
	case !ephemeral:
		return fmt.Errorf("failed to reset: volume %[1]q resides on volume %[2]q, and therefore %[1]q cannot be wiped "+
			"without wiping %[2]q", label, "EPHEMERAL")
	default:
		return nil
	}
}

// resetSequence empties the named partitions, or the whole disk when labels is nil.
func (b *boot) resetSequence(req *machine.ResetRequest, labels []string) func(*machined.SequenceRun) error {
	return func(r *machined.SequenceRun) error {
		b.kubelet.BeginCordon(r.Ctx)

		if b.m.Platform == machined.Container {
			// Containers only stop: nothing is left, wiped or rebooted (Talos 1.13).
			if err := r.Phase("stopEverything", "stopAllServices", b.stopServices); err != nil {
				return err
			}

			return r.Shutdown()
		}

		if err := b.retire(r, req.GetGraceful()); err != nil {
			return err
		}

		if err := b.stopSequence(r, len(labels) > 0); err != nil {
			return err
		}

		if err := b.wipe(r, req, labels); err != nil {
			return err
		}

		if req.GetReboot() {
			return r.Reboot()
		}

		return r.Shutdown()
	}
}

// retire is the part of a reset in which the machine takes leave of its cluster.
func (b *boot) retire(r *machined.SequenceRun, graceful bool) error {
	if graceful && !b.Config().K8sNodeConfig().SkipNodeRegistration() {
		err := r.Phase("drain", "cordonAndDrainNode", func(ctx context.Context) error {
			if err := b.kubelet.CordonAndDrain(ctx); err != nil {
				b.World.Logf("%s: %v", b.m.Name(), err) // a reset goes on
			}

			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}

	cleanup := "stopAllPods"
	if graceful {
		cleanup = "removeAllPods"
	}

	if err := r.Phases("cleanup", cleanup, "dbus", "stopDBus"); err != nil {
		return err
	}

	if graceful && b.ControlPlane() {
		if err := r.Phase("leave", "leaveEtcd", b.etcd.LeaveForReset); err != nil {
			return err
		}
	}

	return r.Phases("preReset", "sendResetSignal")
}

func (b *boot) wipe(r *machined.SequenceRun, req *machine.ResetRequest, labels []string) error {
	if err := r.Phases("forceCleanup", "forceCleanup"); err != nil {
		return err
	}

	if req.GetMode() != machine.ResetRequest_USER_DISKS {
		if err := b.wipeSystemDisk(r, labels); err != nil {
			return err
		}
	}

	if len(req.GetUserDisksToWipe()) == 0 || req.GetMode() == machine.ResetRequest_SYSTEM_DISK {
		return nil
	}

	return r.Phase("resetUserDisks", "resetUserDisks", func(context.Context) error {
		b.m.WipeDisks(req.GetUserDisksToWipe())

		return nil
	})
}

// wipeSystemDisk empties the named partitions, or the whole disk when labels is nil.
func (b *boot) wipeSystemDisk(r *machined.SequenceRun, labels []string) error {
	phase, task := "resetSpec", "resetSystemDiskSpec"
	if labels == nil {
		phase, task = "reset", "resetSystemDisk"
		labels = append([]string{"META", "STATE", "EPHEMERAL"}, b.UserVolumes()...)
	}

	return r.Phase(phase, task, func(ctx context.Context) error {
		if err := timing.Pause(ctx, b.m.Delays.Reset); err != nil {
			return err
		}

		failure := b.m.TakeWipeFailure()
		whole := task == "resetSystemDisk" && failure == nil
		b.m.WipePartitions(slices.DeleteFunc(labels, failure.Spares), whole)

		return failure.Err()
	})
}
