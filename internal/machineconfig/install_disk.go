package machineconfig

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	blockpb "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/block"
	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/imager/quirks"
	"github.com/siderolabs/talos/pkg/machinery/proto"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
)

// InstallDisk is the disk that a configuration installs Talos on, by its path or by an expression. The zero value is a
// configuration that names none.
type InstallDisk struct {
	path  string
	match *cel.Expression
	// ephemeral is the least size of EPHEMERAL in bytes; zero where that is on another disk.
	ephemeral uint64
	// talos is the version that is installed, such as v1.13.0; the newest one where it is empty.
	talos string
}

// String is the path or the expression.
func (d InstallDisk) String() string {
	if d.match != nil {
		return d.match.String()
	}

	return d.path
}

// Is reports whether it is the disk of these settings.
func (d InstallDisk) Is(i Install) bool {
	if d.match == nil {
		return d.path == i.Disk && i.DiskSelector == nil
	}

	wanted, err := i.expression()

	return err == nil && wanted.String() == d.match.String()
}

// ForTalos is the same disk for a version of Talos, such as v1.13.0, by which the sizes of partitions differ.
func (d InstallDisk) ForTalos(version string) InstallDisk {
	d.talos = version

	return d
}

// Problem says why Talos cannot be installed on a machine that has these disks: it lacks the disk, or the disk is too
// small. It is empty where Talos can be installed, and where nothing tells. Talos takes the first disk that an
// expression matches (Talos 1.13, v1alpha1_sequencer_tasks.go, Install; Talos 1.14, runtime/unattended_install.go).
//
// A container installs nothing and lists no device at all, while any other machine lists loop devices (Talos 1.13,
// block/devices.go).
func (d InstallDisk) Problem(disks []*block.Disk) (string, error) {
	if len(disks) == 0 {
		return "", nil
	}

	i, err := d.find(disks)

	switch {
	case err != nil:
		return "", err
	case i < 0 && d.judged():
		return fmt.Sprintf("no disk matches %s; the machine has %s", d, describeDisks(disks)), nil
	case i < 0:
		return "", nil
	}

	if least := d.least(); disks[i].TypedSpec().Size < least {
		return fmt.Sprintf("%s is too small: it has %s, and Talos needs %s", disks[i].TypedSpec().DevPath,
			humanize.IBytes(disks[i].TypedSpec().Size), humanize.IBytes(least)), nil
	}

	return "", nil
}

// find is the index of the disk; -1 where there is none.
func (d InstallDisk) find(disks []*block.Disk) (int, error) {
	for i, disk := range disks {
		found := disk.TypedSpec().DevPath == d.path || slices.Contains(disk.TypedSpec().Symlinks, d.path)

		if d.match != nil {
			var err error
			if found, err = matches(d.match, disk); err != nil {
				return -1, err
			}
		}

		if found {
			return i, nil
		}
	}

	return -1, nil
}

// judged is false for paths that Talos follows and does not list with its disks, such as /dev/mapper/mpatha.
func (d InstallDisk) judged() bool {
	name, device := strings.CutPrefix(d.path, "/dev/")

	return d.match != nil || device && !strings.Contains(name, "/") || strings.HasPrefix(d.path, linksOfDisks)
}

// gptOverhead is what the partition table and the alignment of partitions take, in bytes (Talos 1.13,
// pkg/cluster/check/nodes.go).
const gptOverhead = 10 << 20

// least is the size that the partitions of Talos need, in bytes (Talos 1.13, internal/pkg/partition/partition.go).
func (d InstallDisk) least() uint64 {
	sizes := quirks.New(d.talos).PartitionSizes()

	return sizes.UKIEFISize() + sizes.METASize() + sizes.StateSize() + d.ephemeral + gptOverhead
}

// matches evaluates an expression as blockhelpers.MatchDisks does (machinery 1.14).
func matches(match *cel.Expression, disk *block.Disk) (bool, error) {
	spec := &blockpb.DiskSpec{}
	if err := proto.ResourceSpecToProto(disk, spec); err != nil {
		return false, fmt.Errorf("read the disk %s: %w", disk.TypedSpec().DevPath, err)
	}

	found, err := match.EvalBool(celenv.DiskLocator(), map[string]any{"disk": spec, "system_disk": false})
	if err != nil {
		return false, fmt.Errorf("compare the disk %s with %s: %w", disk.TypedSpec().DevPath, match, err)
	}

	return found, nil
}

// describeDisks lists disks with their distinguishing properties.
func describeDisks(disks []*block.Disk) string {
	var found []string

	for _, disk := range disks {
		spec := disk.TypedSpec()
		if spec.CDROM || spec.Size == 0 || strings.HasPrefix(spec.DevPath, "/dev/loop") {
			continue
		}

		about := strings.Join(slices.DeleteFunc([]string{humanize.Bytes(spec.Size), spec.Transport, spec.Model},
			func(s string) bool { return s == "" }), ", ")
		found = append(found, spec.DevPath+" ("+about+")")
	}

	if len(found) == 0 {
		return "no disks"
	}

	return strings.Join(found, ", ")
}

// ephemeralSize is the least size of EPHEMERAL on the disk of Talos (Talos 1.13,
// block/internal/volumes/volumeconfig/system_volumes.go).
func ephemeralSize(p coreconfig.Provider) uint64 {
	least := quirks.New("").PartitionSizes().EphemeralMinSize()

	volume, ok := p.Volumes().ByName(constants.EphemeralPartitionLabel)
	if !ok {
		return least
	}

	if _, elsewhere := volume.Provisioning().DiskSelector().Get(); elsewhere {
		return 0
	}

	return volume.Provisioning().MinSize().ValueOr(least)
}
