package places

import (
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cluster"
	"github.com/siderolabs/talos/pkg/machinery/config/types/container"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cri"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime/extensions"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// facts are those below, which fact adds.
var facts []Fact

func fact(path string, document Spot, options ...func(*Fact)) Fact {
	f := Fact{Main: in("", path), Document: document}
	for _, option := range options {
		option(&f)
	}

	facts = append(facts, f)

	return f
}

func in(kind, path string) Spot {
	return Spot{kind, slices.DeleteFunc(strings.Split(path, "."), func(key string) bool { return key == "" })}
}

// nowhere is for facts without a separate document.
var nowhere Spot

func refused(f *Fact) { f.Beside = f.Document.Kind }
func workers(f *Fact) { f.Workers = true }
func rotated(f *Fact) { f.Rotated = true }
func secret(f *Fact)  { f.Secret = true }
func plain(f *Fact)   { f.Plain = true }

func beside(kind string) func(*Fact)  { return func(f *Fact) { f.Beside = kind } }
func instead(text string) func(*Fact) { return func(f *Fact) { f.Instead = text } }

func image(of kubenames.Component, off string) func(*Fact) {
	return func(f *Fact) { f.Image, f.Off = of, in("", off) }
}

func under(key string) func(*Fact) {
	return func(f *Fact) { f.Main, f.Document = f.Main.Under(key), f.Document.Under(key) }
}

// The identity of a machine's cluster, and the keys that it carries.
var (
	MachineType           = fact("machine.type", nowhere)
	MachineToken          = fact("machine.token", nowhere)
	TalosCA               = fact("machine.ca", nowhere, rotated)
	TalosAcceptedCAs      = fact("machine.acceptedCAs", nowhere, rotated)
	BootstrapToken        = fact("cluster.token", nowhere, rotated)
	EtcdCA                = fact("cluster.etcd.ca", nowhere)
	KubernetesCA          = fact("cluster.ca", in(k8s.KubeAPIServerCAConfig, "issuingCA"), refused, rotated)
	KubernetesAcceptedCAs = fact("cluster.acceptedCAs", in(k8s.KubeAPIServerCAConfig, "acceptedCAs"), refused, rotated)
	AggregatorCA          = fact("cluster.aggregatorCA", in(k8s.KubeAggregatorCAConfig, "issuingCA"), refused, rotated)
	ServiceAccount        = fact("cluster.serviceAccount", in(k8s.KubeServiceAccountConfig, ""), refused)
	ServiceAccountKey     = fact("cluster.serviceAccount.key", in(k8s.KubeServiceAccountConfig, "issuer.privateKey"),
		rotated)
	ClusterID     = fact("cluster.id", in(cluster.DiscoveryIdentityKind, "clusterID"), refused)
	ClusterSecret = fact("cluster.secret", in(cluster.DiscoveryIdentityKind, "clusterSecret"), refused)
	SecretboxKey  = fact("cluster.secretboxEncryptionSecret", in(k8s.KubeEtcdEncryptionConfig, ""), refused)
	AESCBCKey     = fact("cluster.aescbcEncryptionSecret", in(k8s.KubeEtcdEncryptionConfig, ""), refused)
)

// The cluster and its networks.
var (
	ClusterName  = fact("cluster.clusterName", in(k8s.KubeClusterConfig, "clusterName"), refused)
	PodCIDRs     = fact("cluster.network.podSubnets", in(k8s.KubeNetworkConfig, "podSubnets"))
	ServiceCIDRs = fact("cluster.network.serviceSubnets", in(k8s.KubeNetworkConfig, "serviceSubnets"))
	DNSDomain    = fact("cluster.network.dnsDomain", in(k8s.KubeNetworkConfig, "dnsDomain"))
	Discovery    = fact("cluster.discovery", in(cluster.DiscoveryServiceKind, ""), refused,
		instead("attribute discovery"))
)

// The components of Kubernetes.
var (
	KubeletImage = fact("machine.kubelet.image", in(k8s.KubeletConfig, "image"),
		image(kubenames.Kubelet, ""), workers, plain)
	KubeletExtraArgs = fact("machine.kubelet.extraArgs", in(k8s.KubeletConfig, "extraArgs"))
	APIServerArgs    = fact("cluster.apiServer.extraArgs", in(k8s.KubeAPIServerConfig, "extraArgs"))
	MachineSANs      = fact("machine.certSANs", nowhere)
	APIServerSANs    = fact("cluster.apiServer.certSANs", in(k8s.KubeAPIServerConfig, "certExtraSANs"),
		refused, instead("attribute cert_sans"))
)

// The node of a machine.
var (
	Hostname        = fact("machine.network.hostname", in(network.HostnameKind, "hostname"), plain)
	StableHostname  = fact("machine.features.stableHostname", in(network.HostnameKind, "auto"), plain)
	NodeLabels      = fact("machine.nodeLabels", in(k8s.KubeNodeConfig, "labels"), refused, plain)
	NodeAnnotations = fact("machine.nodeAnnotations", in(k8s.KubeNodeConfig, "annotations"), refused)
	NodeTaints      = fact("machine.nodeTaints", in(k8s.KubeNodeConfig, "taints"), refused, plain)
	NodeSubnets     = fact("machine.kubelet.nodeIP.validSubnets", in(k8s.KubeNodeConfig, "nodeIP.validSubnets"))
	// CarriedKeys is where a node shows which keys its machine carries.
	CarriedKeys = fact("machine.nodeAnnotations", NodeAnnotations.Document, under(rotation.Annotation), rotated)
)

// The machine itself.
var (
	InstallerImage = fact("machine.install.image", in(runtime.UnattendedInstallConfigKind, "installer.image"), plain)

	Sysctls    = fact("machine.sysctls", in(runtime.SysctlConfigKind, "params"), plain)
	KubePrism  = fact("machine.features.kubePrism", in(k8s.KubePrismConfig, ""), refused, plain)
	ImageCache = fact("machine.features.imageCache", in(cri.ImageCacheConfig, ""), refused)
	// WorkloadIsolation has a document alone.
	WorkloadIsolation = fact("", in(runtime.SecurityProfileConfigKind, "workloadIsolation"), plain)
	// Each link and each host may have a separate document, by its name.
	Interfaces  = fact("machine.network.interfaces", nowhere)
	HostEntries = fact("machine.network.extraHostEntries", nowhere)
)

// What nothing asks for by name. Talos 1.13 and 1.14, controllers/k8s: control_plane.go has the images of static pods
// and kube-proxy with their switches.
var _ = []Fact{
	fact("cluster.apiServer.image", in(k8s.KubeAPIServerConfig, "image"), image(kubenames.KubeAPIServer, "")),
	fact("cluster.controllerManager.image", in(k8s.KubeControllerManagerConfig, "image"),
		image(kubenames.KubeControllerManager, "machine.controlPlane.controllerManager.disabled")),
	fact("cluster.scheduler.image", in(k8s.KubeSchedulerConfig, "image"),
		image(kubenames.KubeScheduler, "machine.controlPlane.scheduler.disabled")),
	fact("cluster.proxy.image", in(k8s.KubeProxyConfig, "image"),
		image(kubenames.KubeProxy, "cluster.proxy.disabled")),

	fact("cluster.apiServer", in(k8s.KubeAPIServerConfig, ""), refused),
	fact("cluster.apiServer.admissionControl", in(k8s.KubeAdmissionControlConfig, ""),
		beside(k8s.KubeAPIServerConfig)),
	fact("cluster.apiServer.auditPolicy", in(k8s.KubeAuditPolicyConfig, ""), beside(k8s.KubeAPIServerConfig)),
	fact("cluster.apiServer.authorizationConfig", in(k8s.KubeAuthorizerConfig, ""), beside(k8s.KubeAPIServerConfig)),
	fact("cluster.controlPlane.localAPIServerPort", in(k8s.KubeAPIServerConfig, "apiPort"), refused),
	fact("cluster.controlPlane", in(k8s.KubeClusterConfig, ""), refused),
	fact("cluster.controllerManager", in(k8s.KubeControllerManagerConfig, ""), refused),
	fact("machine.controlPlane.controllerManager", in(k8s.KubeControllerManagerConfig, ""), refused),
	fact("cluster.scheduler", in(k8s.KubeSchedulerConfig, ""), refused),
	fact("machine.controlPlane.scheduler", in(k8s.KubeSchedulerConfig, ""), refused),
	fact("cluster.proxy", in(k8s.KubeProxyConfig, ""), refused),
	fact("cluster.network.cni", in(k8s.KubeFlannelCNIConfig, ""), beside(k8s.KubeNetworkConfig),
		instead("attribute cni")),
	fact("cluster.network", in(k8s.KubeNetworkConfig, ""), refused),
	fact("cluster.coreDNS", in(k8s.KubeCoreDNSConfig, ""), refused),
	fact("cluster.allowSchedulingOnControlPlanes", nowhere, beside(k8s.KubeNodeConfig),
		instead("attribute allow_scheduling_on_control_planes")),
	fact("cluster.extraManifestHeaders", in(k8s.KubeExternalManifestConfig, "headers"), secret),
	fact("cluster.inlineManifests.contents", in(k8s.KubeInlineManifestConfig, "manifest"), secret),
	fact("", in(k8s.KubeStaticPodConfig, "pod"), secret),

	fact("machine.kubelet", in(k8s.KubeletConfig, ""), refused),
	fact("machine.kubelet.nodeIP", in(k8s.KubeNodeConfig, "nodeIP"), beside(k8s.KubeletConfig)),
	fact("machine.kubelet.registerWithFQDN", in(k8s.KubeNodeConfig, "registerWithFQDN"), beside(k8s.KubeletConfig)),
	fact("machine.kubelet.skipNodeRegistration", in(k8s.KubeNodeConfig, "skipNodeRegistration"),
		beside(k8s.KubeletConfig)),
	fact("machine.kubelet.credentialProviderConfig", in(k8s.KubeCredentialProviderConfig, "configuration"),
		beside(k8s.KubeletConfig), secret),
	fact("machine.kubelet.extraConfig", in(k8s.KubeletConfig, "config"), refused),
	fact("machine.kubelet.extraMounts", nowhere, beside(k8s.KubeletConfig),
		instead("user volumes (UserVolumeConfig), which are mounted for the kubelet, as KubeletConfig has no mounts")),

	fact("machine.features", nowhere, plain),
	fact("machine.features.kubernetesTalosAPIAccess", in(k8s.KubeTalosAPIAccessConfig, ""), refused),
	fact("machine.features.hostDNS", in(network.ResolverKind, "hostDNS"), refused),
	fact("machine.network.nameservers", in(network.ResolverKind, "nameservers"), refused),
	fact("machine.network.searchDomains", in(network.ResolverKind, "searchDomains.domains"), refused),
	fact("machine.network.disableSearchDomain", in(network.ResolverKind, "searchDomains.disableDefault"), refused),
	// Talos 1.13, network/kubespan.go.
	fact("machine.network.kubespan", in(network.KubeSpanKind, ""), refused),
	fact("machine.baseRuntimeSpecOverrides", in(cri.CRIBaseRuntimeSpecConfigKind, "overrides"), refused),
	fact("machine.install", in(runtime.UnattendedInstallConfigKind, ""), refused, instead("attribute install")),
	fact("machine.install.disk", in(runtime.UnattendedInstallConfigKind, "provisioning"), plain),
	fact("", in(runtime.UnattendedInstallConfigKind, "installer"), plain),
	fact("", in(runtime.UnattendedInstallConfigKind, "reboot"), plain),

	fact("machine.sysfs", in(runtime.SysfsConfigKind, "params"), plain),
	fact("machine.time", nowhere, plain),
	fact("", in(block.FilesystemTrimConfigKind, ""), plain),
	fact("machine.env", in(runtime.EnvironmentConfigKind, "variables"), secret),
	fact("machine.files.content", in(runtime.EtcFileConfigKind, "contents"), secret),
	fact("", in(cri.CRICustomizationConfigKind, "content"), secret),
	fact("", in(extensions.ServiceConfigKind, "environment"), secret),
	fact("", in(extensions.ServiceConfigKind, "configFiles.content"), secret),
	fact("", in(container.ContainerConfigKind, "environment"), secret),
}
