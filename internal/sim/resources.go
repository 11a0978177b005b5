package sim

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/netip"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
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

// hostname follows Talos's layers: configuration, then platform, then the default
// the configuration asks for. Without a configuration only the platform names a machine.
func (b *boot) hostname() string {
	cfg := b.config()

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
		return stableHostname(b.nodeID())
	case nethelpers.AutoHostnameKindAddr:
		return "talos-" + strings.ReplaceAll(b.m.Address().String(), ".", "-")
	default:
		return ""
	}
}

func (b *boot) nodeID() string {
	b.sim.mu.Lock()
	defer b.sim.mu.Unlock()

	return b.m.disk.nodeID
}

// publishHardware writes what does not depend on a configuration.
func (b *boot) publishHardware() error {
	m := b.m

	modify(b, runtime.NewVersion(), func(r *runtime.Version) {
		r.TypedSpec().Name, r.TypedSpec().Version = "Talos", b.talosVersion()
	})
	b.followTime()
	modify(b, runtime.NewPlatformMetadataSpec(runtime.NamespaceName, runtime.PlatformMetadataID), func(r *runtime.PlatformMetadata) {
		r.TypedSpec().Platform, r.TypedSpec().Hostname = m.platform.String(), b.platformName
	})
	modify(b, runtime.NewSecurityStateSpec(runtime.NamespaceName), func(*runtime.SecurityState) {})
	modify(b, clusterres.NewIdentity(clusterres.NamespaceName, clusterres.LocalIdentity), func(r *clusterres.Identity) {
		r.TypedSpec().NodeID = b.nodeID()
	})

	for _, id := range []string{
		network.NodeAddressDefaultID, network.NodeAddressCurrentID, network.NodeAddressRoutedID, network.NodeAddressAccumulativeID,
	} {
		modify(b, network.NewNodeAddress(network.NamespaceName, id), func(r *network.NodeAddress) {
			r.TypedSpec().Addresses = []netip.Prefix{netip.PrefixFrom(m.Address(), 24)}
		})
	}

	if m.platform == Metal {
		b.publishMetal()
	}

	return b.publishConfig()
}

func (b *boot) publishMetal() {
	m := b.m

	b.publishMeta()

	for _, d := range m.opts.Disks {
		id := strings.TrimPrefix(d.Path, "/dev/")
		modify(b, block.NewDisk(block.NamespaceName, id), func(r *block.Disk) {
			spec := r.TypedSpec()
			spec.DevPath, spec.Size, spec.Model, spec.Serial, spec.Transport = d.Path, d.Size, d.Model, d.Serial, d.Transport
			spec.SectorSize, spec.IOSize, spec.PrettySize = 512, 512, prettySize(d.Size)
		})
	}

	if b.system.schematic != "" {
		modify(b, runtime.NewExtensionStatus(runtime.NamespaceName, "0"), func(r *runtime.ExtensionStatus) {
			r.TypedSpec().Image = "0.sqsh"
			r.TypedSpec().Metadata = extensions.Metadata{
				Name: "schematic", Version: b.system.schematic, Author: "Image Factory",
				Description: "Virtual extension which specifies the schematic of the image built with Image Factory.",
			}
		})
	}

	if m.Installed() && len(m.opts.Disks) > 0 {
		b.publishSystemDisk()
	}
}

// publishSystemDisk makes the installed disk and its partitions visible.
func (b *boot) publishSystemDisk() {
	disk := b.m.opts.Disks[0].Path

	modify(b, block.NewSystemDisk(block.NamespaceName, block.SystemDiskID), func(r *block.SystemDisk) {
		r.TypedSpec().DevPath, r.TypedSpec().DiskID = disk, strings.TrimPrefix(disk, "/dev/")
	})

	for i, label := range []string{"META", "STATE", "EPHEMERAL"} {
		modify(b, block.NewVolumeStatus(block.NamespaceName, label), func(r *block.VolumeStatus) {
			r.TypedSpec().Phase = block.VolumePhaseReady
			r.TypedSpec().Location = fmt.Sprintf("%s%d", disk, 4+i)
			r.TypedSpec().ParentLocation = disk
		})
	}
}

func prettySize(bytes uint64) string { return fmt.Sprintf("%d GB", bytes/1_000_000_000) }

// talosVersion is the release that is running.
func (b *boot) talosVersion() string { return b.system.version }

// publishConfig writes what follows from the configuration.
func (b *boot) publishConfig() error {
	b.mu.Lock()
	active, persistent := b.active, b.persistent
	b.mu.Unlock()

	ctx := context.Background()

	if active != nil {
		if err := replace(ctx, b.resources, configres.NewMachineConfigWithID(active, configres.ActiveID)); err != nil {
			return err
		}
	}

	if persistent != nil {
		if err := replace(ctx, b.resources, configres.NewMachineConfigWithID(persistent, configres.PersistentID)); err != nil {
			return err
		}
	}

	machineType := configres.NewMachineType()
	machineType.SetMachineType(b.machineType())

	if err := replace(ctx, b.resources, machineType); err != nil {
		return err
	}

	name := b.hostname()
	if name != "" {
		modify(b, network.NewHostnameStatus(network.NamespaceName, network.HostnameID), func(r *network.HostnameStatus) {
			r.TypedSpec().Hostname, r.TypedSpec().Domainname, _ = strings.Cut(name, ".")
		})
	}

	modify(b, network.NewStatus(network.NamespaceName, network.StatusID), func(r *network.Status) {
		s := r.TypedSpec()
		s.AddressReady, s.ConnectivityReady, s.EtcFilesReady, s.HostnameReady = true, true, true, name != ""
	})

	if !b.inMaintenance() {
		b.publishCluster()
	}

	return nil
}

// publishCluster writes what the cluster section of the configuration says.
func (b *boot) publishCluster() {
	cfg := b.config()

	modify(b, clusterres.NewInfo(), func(r *clusterres.Info) {
		r.TypedSpec().ClusterID, r.TypedSpec().ClusterName = cfg.Cluster().ID(), cfg.Cluster().Name()
	})
	modify(b, k8s.NewNodename(k8s.NamespaceName, k8s.NodenameID), func(r *k8s.Nodename) {
		r.TypedSpec().Nodename = b.nodename()
		r.TypedSpec().SkipNodeRegistration = cfg.Machine().Kubelet().SkipNodeRegistration()
	})
	modify(b, k8s.NewNodeIP(k8s.NamespaceName, k8s.KubeletID), func(r *k8s.NodeIP) {
		r.TypedSpec().Addresses = []netip.Addr{b.m.Address()}
	})
}

// nodename is the name of the machine's Kubernetes node.
func (b *boot) nodename() string {
	name := strings.ToLower(b.hostname())
	if cfg := b.config(); !cfg.Machine().Kubelet().RegisterWithFQDN() {
		name, _, _ = strings.Cut(name, ".")
	}

	return name
}

// publishService mirrors a service into its resource, which exists while it runs.
func (b *boot) publishService(id string, running bool, health *machine.ServiceHealth) {
	if !running {
		remove(b, v1alpha1.NewService(id))

		return
	}

	modify(b, v1alpha1.NewService(id), func(r *v1alpha1.Service) {
		r.TypedSpec().Running, r.TypedSpec().Healthy, r.TypedSpec().Unknown = true, health.GetHealthy(), health.GetUnknown()
	})
}

// publishNodeStatus mirrors the machine's own Kubernetes node.
func (b *boot) publishNodeStatus(name string, seen, ready, unschedulable bool) {
	if !seen {
		remove(b, k8s.NewNodeStatus(k8s.NamespaceName, name))

		return
	}

	modify(b, k8s.NewNodeStatus(k8s.NamespaceName, name), func(r *k8s.NodeStatus) {
		r.TypedSpec().Nodename, r.TypedSpec().NodeReady, r.TypedSpec().Unschedulable = name, ready, unschedulable
	})
}
