package machineconfig

import (
	"net/netip"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/system"
)

// Cluster is what all machines of a cluster have in common. The zero value of an optional field means
// Talos's own default. Names of fields in errors follow the provider's attributes (snake case).
type Cluster struct {
	// Name is the name of the cluster. Talos shows it and puts it in kubeconfigs.
	Name string
	// Endpoint is the URL of the Kubernetes API as all machines reach it: https://<host>:<port>.
	Endpoint string
	// KubernetesVersion has a leading v, such as v1.35.2.
	KubernetesVersion string
	// Contract is the version contract the cluster is pinned to, such as "v1.13". It decides the shape of
	// the generated documents and must not be newer than the Talos version of any machine. It is set when
	// the cluster is created and does not follow upgrades by itself.
	Contract string
	// CertSANs are further addresses and names of the Talos API and the Kubernetes API certificates.
	CertSANs []string
	// Container is true when the machines are containers, all of them: pods of a host cluster, or those of
	// talosctl's docker provisioner. They install nothing, and get the settings that Talos needs there. What is about
	// hardware or the kernel has no effect, see container.go.
	Container bool
	// FindsLinks is true where machines are asked which links have their addresses, see Machine.Link.
	FindsLinks bool
	// PodCIDRs and ServiceCIDRs have at most one network for each address family; the first is the primary
	// one. Defaults: 10.244.0.0/16 and 10.96.0.0/12, whatever the family of the endpoint; those of containers are
	// ContainerPodCIDR and ContainerServiceCIDR.
	PodCIDRs, ServiceCIDRs []string
	// DNSDomain is the domain of cluster services. Default: cluster.local.
	DNSDomain string
	// CNI is the pod network. Default: flannel.
	CNI CNI
	// KubeProxy is false where kube-proxy is left out, for pod networks that replace it. Nil means that Talos deploys it.
	KubeProxy *bool
	// AllowSchedulingOnControlPlanes allows ordinary pods on control-plane machines.
	AllowSchedulingOnControlPlanes bool
	// Discovery switches the discovery service on or off. Nil means on, unless AirGapped. It sends
	// encrypted data about members to discovery.talos.dev; nothing but KubeSpan needs it.
	Discovery *bool
	// Isolated keeps the cluster apart from one that runs with the same secrets: no discovery, and no other endpoint. See
	// isolated.go.
	Isolated bool
	// AirGapped says that machines reach no public network. It switches the discovery service off, and
	// time synchronization too, unless a patch configures it: kubelet and etcd wait for the first
	// synchronization, which would never happen. Images must come from Registries or the image cache.
	AirGapped bool
	// ImageCache uses the image cache that is built into the boot medium (machine.features.imageCache) and
	// keeps it in an IMAGECACHE volume on the system disk. The volume is made at installation; switching
	// this on later has no effect on machines that are installed already.
	ImageCache bool
	// Registries configures how container images are pulled.
	Registries Registries
	// Settings are those that pools and machines may have as well.
	Settings setting.Values
	// Patches are applied to all machines, before those of pools and machines. ProvidedPatches follow them at once;
	// they are of the provider's configuration, and in no state.
	Patches, ProvidedPatches []string
}

// The names of pod networks.
const (
	CNIFlannel = "flannel"
	CNICustom  = "custom"
	CNINone    = "none"
)

// CNI selects the pod network.
type CNI struct {
	// Name is CNIFlannel, CNICustom or CNINone. With CNINone nodes do not become Ready until one is installed by
	// other means. Empty means the default of Talos, flannel.
	Name string
	// URLs are manifests that Talos applies at bootstrap; for CNICustom only, where one is needed.
	URLs []string
	// Flannel are options of flannel; for CNIFlannel only.
	Flannel *Flannel
}

// Flannel are the options of the flannel pod network.
type Flannel struct {
	// ExtraArgs are further arguments of flanneld.
	ExtraArgs []string
	// KubeNetworkPolicies deploys kube-network-policies beside flannel. Needs contract v1.13.
	KubeNetworkPolicies bool
}

// Registries says how container images are pulled, by Talos itself and for pods.
type Registries struct {
	// Mirrors are by registry, such as "docker.io", or "*" for all.
	Mirrors map[string]RegistryMirror
	// Auth and TLS are by the host, and port if any, of the registry or mirror.
	Auth map[string]RegistryAuth
	TLS  map[string]RegistryTLS
}

// RegistryMirror is where the images of a registry are pulled from instead.
type RegistryMirror struct {
	// Endpoints are tried in order.
	Endpoints []RegistryEndpoint
	// SkipFallback stops after them; otherwise the registry itself is tried last.
	SkipFallback bool
}

// RegistryEndpoint is one mirror.
type RegistryEndpoint struct {
	// URL is http or https.
	URL string
	// OverridePath uses the path of the URL as it is, without /v2/. Before contract v1.12 it can only be the same
	// for all endpoints of a mirror.
	OverridePath bool
}

// RegistryAuth is how a registry knows the machines: a username with a password, a raw auth string, or an
// identity token. It prints redacted.
type RegistryAuth struct {
	Username, Password string
	Auth               string
	IdentityToken      string
}

// RegistryTLS is how machines know a registry, and the certificate they show it. It prints redacted.
type RegistryTLS struct {
	// CA is a PEM certificate to trust in addition to the public ones.
	CA string
	// ClientCertificate and ClientKey are PEM; both or none.
	ClientCertificate, ClientKey string
	// InsecureSkipVerify trusts anyone.
	InsecureSkipVerify bool
}

// Role is the role of a machine in its cluster.
type Role string

// The roles, with the values of machine.type in Talos.
const (
	ControlPlane Role = "controlplane"
	Worker       Role = "worker"
)

// Mode is the platform of a machine.
type Mode string

// The modes. The zero value means Metal.
const (
	// Metal is a physical or virtual machine that installs Talos on a disk.
	Metal Mode = "metal"
	// Container is Talos in a container, which has no disk and installs nothing.
	Container Mode = "container"
)

// Machine has the settings of one machine.
type Machine struct {
	// Role is required.
	Role Role
	// Mode decides what the configuration is checked against. In a cluster of containers it is Container.
	Mode Mode
	// Hostname is a static host name; one that a patch sets takes its place, and so does `auto: stable`. Empty means one
	// derived from the machine's identity by Talos.
	Hostname string
	// CertSANs are additional addresses and names of this machine alone, in the certificates of its Talos API and,
	// on a control plane, of its API server: a container has its own name.
	CertSANs []string
	// PeerAddress of a control plane in a container reaches it at any address of the container, such as that of a
	// Service of a host cluster. Its etcd is known to the others by it, see container.go. It must be set from the
	// first configuration on, because a running etcd does not take it. Not valid means the address of the
	// container. All other machines have none.
	PeerAddress netip.Addr
	// Link is the one that has the address of the machine, which has the virtual IP where no other one is given. Empty
	// while it is not known.
	Link string
	// EndpointAddress is where a container finds the endpoint of its cluster without DNS. Not valid means by its name.
	EndpointAddress netip.Addr
	// Install says where Talos is installed. A container has none.
	Install Install
	// System has the settings of its volumes, of the isolation of workloads, and of its images.
	System system.Settings
	// TalosVersion is the version that the machine has to run. A setting that it does not know is an error; empty
	// disables the check.
	TalosVersion string
	// PoolSettings are the settings of the machine's pool, and Settings its own. They override those of the
	// cluster: see setting.Merge.
	PoolSettings, Settings setting.Values
	// PoolPatches are those of the pool the machine belongs to, Patches its own. They are applied in
	// this order, after those of the cluster. ProvidedPatches are the last; they are of the provider's configuration, and
	// in no state.
	PoolPatches, Patches, ProvidedPatches []string
}

// Install is what a machine installs and where.
type Install struct {
	// Disk is the device, such as /dev/sda or a link under /dev/disk/by-id. Disk or DiskSelector is needed
	// on Metal, unless a patch gives one.
	Disk string
	// DiskSelector finds the disk by its properties; it excludes Disk.
	DiskSelector *DiskSelector
	// Wipe erases the whole disk first.
	Wipe bool
	// Image is the installer image. Empty means plain Talos of the version that runs, and loses the
	// extensions of the boot image.
	Image string
	// ExtraKernelArgs are for machines that boot with GRUB; with a UKI (SecureBoot, and UEFI from 1.10)
	// they have no effect and belong in the schematic. From contract v1.12 they switch grubUseUKICmdline
	// off, because Talos refuses both.
	ExtraKernelArgs []string
}

// DiskSelector matches a disk that has all the properties given. Text may contain * and ?. (Talos 1.13 still
// has a selector by name in its schema, and refuses it.)
type DiskSelector struct {
	// Size is a comparison, such as ">= 100GB" or "== 1TB".
	Size string
	// Type is "ssd", "hdd", "nvme" or "sd".
	Type string

	Model, Serial, Modalias, UUID, WWID, BusPath string
}
