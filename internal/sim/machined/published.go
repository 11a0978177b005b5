package machined

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/netip"
	"strconv"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/extensions"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	clusterres "github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
)

// newNodeID is a random node identity; a new one is made when STATE is empty.
func newNodeID() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails, see crypto/rand

	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// stableHostname is Talos's derivation of a hostname from the node identity.
func stableHostname(nodeID string) string {
	sum := sha256.Sum256([]byte(nodeID))
	digits := new(big.Int).SetBytes(sum[:8]).Text(36)

	return fmt.Sprintf("talos-%s-%s", digits[1:4], digits[4:7])
}

// Hostname follows Talos's layers: configuration, then platform, then the default
// the configuration asks for. Without a configuration only the platform names a machine.
func (b *Boot) Hostname() string {
	cfg := b.Config()

	if cfg != nil && cfg.NetworkHostnameConfig() != nil {
		if name := cfg.NetworkHostnameConfig().Hostname(); name != "" {
			return name
		}
	}

	if b.platformName != "" {
		return b.platformName
	}

	if cfg == nil || cfg.NetworkHostnameConfig() == nil {
		return ""
	}

	switch cfg.NetworkHostnameConfig().AutoHostname() {
	case nethelpers.AutoHostnameKindStable:
		return stableHostname(b.NodeID())
	case nethelpers.AutoHostnameKindAddr:
		return "talos-" + strings.ReplaceAll(b.Address().String(), ".", "-")
	default:
		return ""
	}
}

// NodeID is the node identity on STATE.
func (b *Boot) NodeID() string {
	b.World.Lock()
	defer b.World.Unlock()

	return b.Disk.NodeID
}

// PublishHardware writes the resources that do not depend on a configuration.
func (b *Boot) PublishHardware() error {
	m := b.Hardware

	Modify(b, runtime.NewVersion(), func(r *runtime.Version) {
		r.TypedSpec().Name, r.TypedSpec().Version = "Talos", b.TalosVersion()
	})
	b.followTime()
	Modify(b, runtime.NewPlatformMetadataSpec(runtime.NamespaceName, runtime.PlatformMetadataID),
		func(r *runtime.PlatformMetadata) {
			r.TypedSpec().Platform, r.TypedSpec().Hostname = m.Platform.String(), b.platformName
		})
	Modify(b, runtime.NewSecurityStateSpec(runtime.NamespaceName), func(r *runtime.SecurityState) {
		r.TypedSpec().SecureBoot = m.Platform == Metal && m.secureBoot.Load()
	})
	Modify(b, clusterres.NewIdentity(clusterres.NamespaceName, clusterres.LocalIdentity), func(r *clusterres.Identity) {
		r.TypedSpec().NodeID = b.NodeID()
	})

	for _, id := range []string{
		network.NodeAddressDefaultID, network.NodeAddressCurrentID, network.NodeAddressRoutedID,
		network.NodeAddressAccumulativeID,
	} {
		Modify(b, network.NewNodeAddress(network.NamespaceName, id), func(r *network.NodeAddress) {
			r.TypedSpec().Addresses = []netip.Prefix{netip.PrefixFrom(m.Address(), 24)}
		})
	}

	own := netip.PrefixFrom(m.Address(), 24)
	Modify(b, network.NewAddressStatus(network.NamespaceName, network.AddressID(linkName, own)),
		func(r *network.AddressStatus) { r.TypedSpec().Address, r.TypedSpec().LinkName = own, linkName })

	if m.Platform == Metal {
		b.publishMetal()
	}

	return b.publishConfig()
}

// linkName is that of the only link of a machine.
const linkName = "eth0"

func (b *Boot) publishMetal() {
	m := b.Hardware

	b.publishMeta()

	for _, d := range m.Disks {
		id := strings.TrimPrefix(d.Path, "/dev/")
		Modify(b, block.NewDisk(block.NamespaceName, id), func(r *block.Disk) {
			spec := r.TypedSpec()
			spec.DevPath, spec.Size, spec.Model, spec.Serial, spec.Transport = d.Path, d.Size, d.Model, d.Serial, d.Transport
			spec.Symlinks = d.Symlinks
			spec.SectorSize, spec.IOSize, spec.PrettySize = 512, 512, prettySize(d.Size)
		})
	}

	if b.System.Schematic != "" {
		Modify(b, runtime.NewExtensionStatus(runtime.NamespaceName, "0"), func(r *runtime.ExtensionStatus) {
			r.TypedSpec().Image = "0.sqsh"
			r.TypedSpec().Metadata = extensions.Metadata{
				Name: "schematic", Version: b.System.Schematic, Author: "Image Factory",
				Description: "Virtual extension which specifies the schematic of the image built with Image Factory.",
			}
		})
	}

	for i, name := range m.extensions[b.System.Schematic] {
		id := strconv.Itoa(i + 1)
		Modify(b, runtime.NewExtensionStatus(runtime.NamespaceName, id), func(r *runtime.ExtensionStatus) {
			r.TypedSpec().Image = id + ".sqsh"
			r.TypedSpec().Metadata = extensions.Metadata{Name: name, Version: b.System.Version, Author: "Sidero Labs"}
		})
	}

	if disk := m.SystemDisk(); disk != "" {
		b.publishSystemDisk(disk)
	}
}

// publishSystemDisk makes the installed disk and its partitions visible.
func (b *Boot) publishSystemDisk(disk string) {
	Modify(b, block.NewSystemDisk(block.NamespaceName, block.SystemDiskID), func(r *block.SystemDisk) {
		r.TypedSpec().DevPath, r.TypedSpec().DiskID = disk, strings.TrimPrefix(disk, "/dev/")
	})

	for i, label := range systemVolumes {
		Modify(b, block.NewVolumeStatus(block.NamespaceName, label), func(r *block.VolumeStatus) {
			r.TypedSpec().Phase = block.VolumePhaseReady
			r.TypedSpec().Location = fmt.Sprintf("%s%d", disk, firstPartition+i)
			r.TypedSpec().ParentLocation, r.TypedSpec().Type = disk, block.VolumeTypePartition
			r.TypedSpec().PartitionUUID = b.PartitionUUID(label)

			if label == "EPHEMERAL" && b.EphemeralBroken() {
				r.TypedSpec().Phase = block.VolumePhaseFailed
			}
		})
	}

	if !b.Since(1, 14) {
		return
	}

	// Talos 1.14, block/internal/volumes/volumeconfig/system_volumes.go.
	for i, label := range OwnVolumes {
		Modify(b, block.NewVolumeStatus(block.NamespaceName, label), func(r *block.VolumeStatus) {
			r.TypedSpec().Phase = block.VolumePhaseReady

			if b.Disk.Own[label] {
				r.TypedSpec().Location, r.TypedSpec().ParentLocation = fmt.Sprintf("%s%d", disk, 7+i), disk
				r.TypedSpec().Type, r.TypedSpec().PartitionUUID = block.VolumeTypePartition, b.PartitionUUID(label)
			} else {
				r.TypedSpec().Type, r.TypedSpec().ParentID = block.VolumeTypeDirectory, "EPHEMERAL"
			}
		})
	}
}

// UserVolumes are the volumes that the configuration adds, by the IDs of their statuses.
func (b *Boot) UserVolumes() []string {
	b.Mu.Lock()
	cfg := b.active
	b.Mu.Unlock()

	if cfg == nil {
		return nil
	}

	var ids []string

	for _, volume := range cfg.UserVolumeConfigs() {
		ids = append(ids, constants.UserVolumePrefix+volume.Name())
	}

	for _, volume := range cfg.RawVolumeConfigs() {
		ids = append(ids, constants.RawVolumePrefix+volume.Name())
	}

	for _, volume := range cfg.ExistingVolumeConfigs() {
		ids = append(ids, constants.ExistingVolumePrefix+volume.Name())
	}

	return ids
}

// publishUserVolumes makes the volumes of the configuration visible on an installed machine.
func (b *Boot) publishUserVolumes(disk string) {
	for i, id := range b.UserVolumes() {
		Modify(b, block.NewVolumeStatus(block.NamespaceName, id), func(r *block.VolumeStatus) {
			r.TypedSpec().Phase, r.TypedSpec().Type = block.VolumePhaseReady, block.VolumeTypePartition
			r.TypedSpec().Location, r.TypedSpec().ParentLocation = fmt.Sprintf("%s%d", disk, 11+i), disk
			r.TypedSpec().PartitionUUID = b.PartitionUUID(id)
		})
	}
}

func prettySize(bytes uint64) string { return fmt.Sprintf("%d GB", bytes/1_000_000_000) }

// publishConfig writes what follows from the configuration.
func (b *Boot) publishConfig() error {
	b.Mu.Lock()
	active, persistent := b.active, b.persistent
	b.Mu.Unlock()

	ctx := context.Background()

	if active != nil {
		if err := Replace(ctx, b.Resources, configres.NewMachineConfigWithID(active, configres.ActiveID)); err != nil {
			return err
		}
	}

	if persistent != nil {
		if err := Replace(ctx, b.Resources,
			configres.NewMachineConfigWithID(persistent, configres.PersistentID)); err != nil {
			return err
		}
	}

	machineType := configres.NewMachineType()
	machineType.SetMachineType(b.MachineType())

	if err := Replace(ctx, b.Resources, machineType); err != nil {
		return err
	}

	name := b.Hostname()
	if name != "" {
		Modify(b, network.NewHostnameStatus(network.NamespaceName, network.HostnameID), func(r *network.HostnameStatus) {
			r.TypedSpec().Hostname, r.TypedSpec().Domainname, _ = strings.Cut(name, ".")
		})
	}

	Modify(b, network.NewStatus(network.NamespaceName, network.StatusID), func(r *network.Status) {
		s := r.TypedSpec()
		s.AddressReady, s.ConnectivityReady, s.EtcFilesReady, s.HostnameReady = true, true, true, name != ""
	})

	if !b.InMaintenance() {
		b.publishCluster()

		if disk := b.SystemDisk(); disk != "" {
			b.publishUserVolumes(disk)
			b.provision(disk)
		}
	}

	b.publishDiscovered()

	return nil
}

// publishCluster writes the cluster section of the configuration.
func (b *Boot) publishCluster() {
	cfg := b.Config()

	Modify(b, clusterres.NewInfo(), func(r *clusterres.Info) {
		r.TypedSpec().ClusterID = cfg.DiscoveryIdentityConfig().ClusterID()
		r.TypedSpec().ClusterName = cfg.K8sClusterConfig().ClusterName()
	})
	Modify(b, k8s.NewNodename(k8s.NamespaceName, k8s.NodenameID), func(r *k8s.Nodename) {
		r.TypedSpec().Nodename = b.Nodename()
		r.TypedSpec().SkipNodeRegistration = cfg.K8sNodeConfig().SkipNodeRegistration()
	})
	Modify(b, k8s.NewNodeIP(k8s.NamespaceName, k8s.KubeletID), func(r *k8s.NodeIP) {
		r.TypedSpec().Addresses = []netip.Addr{b.Address()}
	})
}

// Nodename is the name of the machine's Kubernetes node.
func (b *Boot) Nodename() string {
	name := strings.ToLower(b.Hostname())
	if cfg := b.Config(); !cfg.K8sNodeConfig().RegisterWithFQDN() {
		name, _, _ = strings.Cut(name, ".")
	}

	return name
}

// publishService mirrors a service into its resource, which exists while it runs.
func (b *Boot) publishService(id string, running bool, health *machine.ServiceHealth) {
	if !running {
		Remove(b, v1alpha1.NewService(id))

		return
	}

	Modify(b, v1alpha1.NewService(id), func(r *v1alpha1.Service) {
		r.TypedSpec().Running, r.TypedSpec().Healthy, r.TypedSpec().Unknown = true, health.GetHealthy(), health.GetUnknown()
	})
}

// publishNodeStatus mirrors the machine's own Kubernetes node.
func (b *Boot) publishNodeStatus(name string, seen, ready, unschedulable bool) {
	if !seen {
		Remove(b, k8s.NewNodeStatus(k8s.NamespaceName, name))

		return
	}

	Modify(b, k8s.NewNodeStatus(k8s.NamespaceName, name), func(r *k8s.NodeStatus) {
		r.TypedSpec().Nodename, r.TypedSpec().NodeReady, r.TypedSpec().Unschedulable = name, ready, unschedulable
	})
}
