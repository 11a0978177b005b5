package talos

import (
	"context"
	"fmt"
	"strings"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// Info is what a machine reports about itself, in maintenance mode or as a member.
type Info struct {
	// Access is Maintenance or Member.
	Access step.Access
	// Role is empty in maintenance mode.
	Role  step.Role
	Stage step.Stage
	Ready bool
	// TalosVersion such as v1.13.0; empty in maintenance mode before Talos 1.13.
	TalosVersion string
	// Platform such as metal or container.
	Platform string
	Hostname string
	// Fingerprint of the certificate the machine shows: base64 of the SHA-256 of
	// its public key. In maintenance mode it changes at every boot.
	Fingerprint string

	UUID         string
	Manufacturer string
	ProductName  string
	SerialNumber string

	// Addresses of the machine, without those of pods and services.
	Addresses []string
	Disks     []Disk
	// Schematic the image was made from; empty for an image no factory made.
	Schematic  string
	Extensions []Extension
}

// Disk is a block device that Talos could be installed to.
type Disk struct {
	// Path such as /dev/sda.
	Path string
	// Size in bytes.
	Size      uint64
	Model     string
	Serial    string
	WWID      string
	UUID      string
	BusPath   string
	Transport string
	// Rotational is true for spinning disks.
	Rotational bool
	ReadOnly   bool
	// System is true for the disk that Talos is installed on.
	System bool
	// Symlinks are stable names such as /dev/disk/by-id/....
	Symlinks []string
}

// Inspect asks the machine at an address about itself: authenticated when it is a member of the cluster of the
// credentials, else in maintenance mode. It changes nothing, needs no fleet and is bounded by
// Options.Timeouts.Observe. The fingerprint is that of [cluster.Wanted], and may be empty. The error has a class.
// With ErrForeign, the access of an apparent member of another cluster is Foreign, and its host name and
// fingerprint are unproven.
func Inspect(ctx context.Context, address, fingerprint string, o Options) (Info, error) {
	id, err := o.Credentials.parse()
	if err != nil {
		return Info{}, err
	}

	o = o.withDefaults()

	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeouts.Observe,
		fmt.Errorf("%w: no complete response within %s", ErrUnreachable, o.Timeouts.Observe))
	defer cancel()

	s, p, err := o.open(ctx, address, id, fingerprint)
	if err != nil {
		err = fmt.Errorf("inspect the machine at %s: %w", address, err)

		if p.access == step.Foreign {
			return Info{Access: p.access, Hostname: p.fqdn, Fingerprint: p.fingerprint}, err
		}

		return Info{}, err
	}

	defer s.close()

	info := Info{Access: s.peer.access, Fingerprint: s.peer.fingerprint}
	if err := s.inspect(ctx, &info); err != nil {
		return Info{}, fmt.Errorf("inspect the machine at %s: %w", address, err)
	}

	return info, nil
}

// inspect runs all reads side by side; each fills in fields of its own.
func (s *session) inspect(ctx context.Context, info *Info) error {
	calls, ctx := panics.WithContext(ctx)

	calls.Go(func() (err error) {
		info.Stage, info.Ready, _, err = s.machineStatus(ctx)

		return err
	})
	calls.Go(func() (err error) {
		if s.peer.access == step.Member {
			info.Role, err = s.machineType(ctx)
		}

		return err
	})
	calls.Go(func() error { return s.inspectVersion(ctx, info) })
	calls.Go(func() error { return s.inspectHardware(ctx, info) })
	calls.Go(func() error { return s.inspectNetwork(ctx, info) })
	calls.Go(func() (err error) {
		info.Disks, err = s.disks(ctx)

		return err
	})
	calls.Go(func() (err error) {
		info.Extensions, info.Schematic, err = s.extensions(ctx)

		return err
	})

	return calls.Wait()
}

func (s *session) inspectVersion(ctx context.Context, info *Info) error {
	version, err := s.version(ctx)
	if err != nil {
		return err
	}

	info.TalosVersion, info.Platform = version.GetVersion().GetTag(), version.GetPlatform().GetName()
	if info.Platform != "" {
		return nil
	}

	platform, err := get[*runtime.PlatformMetadata](ctx, s, runtime.NamespaceName, runtime.PlatformMetadataType,
		runtime.PlatformMetadataID)
	if err != nil {
		return optional(err)
	}

	info.Platform = platform.TypedSpec().Platform

	return nil
}

func (s *session) inspectHardware(ctx context.Context, info *Info) error {
	system, err := get[*hardware.SystemInformation](ctx, s, hardware.NamespaceName, hardware.SystemInformationType,
		hardware.SystemInformationID)
	if err != nil {
		return optional(err)
	}

	spec := system.TypedSpec()
	info.UUID = usableUUID(spec.UUID)
	info.Manufacturer, info.ProductName, info.SerialNumber = spec.Manufacturer, spec.ProductName, spec.SerialNumber

	return nil
}

func (s *session) inspectNetwork(ctx context.Context, info *Info) error {
	hostname, err := get[*network.HostnameStatus](ctx, s, network.NamespaceName, network.HostnameStatusType,
		network.HostnameID)
	if err == nil {
		info.Hostname = hostname.TypedSpec().FQDN()
	} else if optional(err) != nil {
		return err
	}

	// "current" with the filter that leaves out Kubernetes exists on configured
	// machines only; in maintenance mode there is nothing to leave out.
	ids := []string{network.FilteredNodeAddressID(network.NodeAddressCurrentID, k8s.NodeAddressFilterNoK8s),
		network.NodeAddressCurrentID}

	for _, id := range ids {
		addresses, err := get[*network.NodeAddress](ctx, s, network.NamespaceName, network.NodeAddressType, id)
		if optional(err) != nil {
			return err
		}

		if err != nil {
			continue
		}

		for _, prefix := range addresses.TypedSpec().Addresses {
			info.Addresses = append(info.Addresses, prefix.Addr().String())
		}

		return nil
	}

	return nil
}

func (s *session) disks(ctx context.Context) ([]Disk, error) {
	items, err := s.blockDevices(ctx)
	if err != nil {
		return nil, err
	}

	system := ""

	if found, err := s.systemDisk(ctx); err != nil {
		return nil, err
	} else if found != nil {
		system = found.TypedSpec().DevPath
	}

	var out []Disk

	for _, item := range items {
		spec := item.TypedSpec()
		if spec.CDROM || virtual(spec) {
			continue
		}

		out = append(out, Disk{
			Path: spec.DevPath, Size: spec.Size, Model: spec.Model, Serial: spec.Serial, WWID: spec.WWID,
			UUID: spec.UUID, BusPath: spec.BusPath, Transport: spec.Transport, Rotational: spec.Rotational,
			ReadOnly: spec.Readonly, System: spec.DevPath != "" && spec.DevPath == system, Symlinks: spec.Symlinks,
		})
	}

	return out, nil
}

// blockDevices are all that Talos lists as disks, CD drives and loops included.
func (s *session) blockDevices(ctx context.Context) ([]*block.Disk, error) {
	items, err := list[*block.Disk](ctx, s)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", block.DiskType, err)
	}

	return safe.ToSlice(items, func(disk *block.Disk) *block.Disk { return disk }), nil
}

// systemDisk is the disk that Talos is on; nil where it is on none.
func (s *session) systemDisk(ctx context.Context) (*block.SystemDisk, error) {
	found, err := get[*block.SystemDisk](ctx, s, block.NamespaceName, block.SystemDiskType, block.SystemDiskID)
	if err != nil {
		return nil, optional(err)
	}

	return found, nil
}

// virtual devices are loops and device mapper targets, which nothing is installed to.
func virtual(spec *block.DiskSpec) bool {
	return spec.Transport == "" &&
		(strings.HasPrefix(spec.DevPath, "/dev/loop") || strings.HasPrefix(spec.DevPath, "/dev/dm-"))
}
