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

// named are the facts below.
var named []Fact

func fact(f Fact) Fact {
	named = append(named, f)

	return f
}

func main(path string) Spot { return in("", path) }

func in(kind, path string) Spot {
	return Spot{kind, slices.DeleteFunc(strings.Split(path, "."), func(key string) bool { return key == "" })}
}

// What a machine belongs to, and the keys that it carries.
var (
	MachineType      = fact(Fact{Main: main("machine.type")})
	MachineToken     = fact(Fact{Main: main("machine.token")})
	TalosCA          = fact(Fact{Main: main("machine.ca"), Rotated: true})
	TalosAcceptedCAs = fact(Fact{Main: main("machine.acceptedCAs"), Rotated: true})
	BootstrapToken   = fact(Fact{Main: main("cluster.token"), Rotated: true})
	EtcdCA           = fact(Fact{Main: main("cluster.etcd.ca")})
	KubernetesCA     = fact(Fact{Main: main("cluster.ca"), Document: in(k8s.KubeAPIServerCAConfig, "issuingCA"),
		Beside: k8s.KubeAPIServerCAConfig, Rotated: true})
	KubernetesAcceptedCAs = fact(Fact{Main: main("cluster.acceptedCAs"),
		Document: in(k8s.KubeAPIServerCAConfig, "acceptedCAs"), Beside: k8s.KubeAPIServerCAConfig, Rotated: true})
	AggregatorCA = fact(Fact{Main: main("cluster.aggregatorCA"), Document: in(k8s.KubeAggregatorCAConfig, "issuingCA"),
		Beside: k8s.KubeAggregatorCAConfig, Rotated: true})
	ServiceAccount = fact(Fact{Main: main("cluster.serviceAccount"), Document: in(k8s.KubeServiceAccountConfig, ""),
		Beside: k8s.KubeServiceAccountConfig})
	ServiceAccountKey = fact(Fact{Main: main("cluster.serviceAccount.key"),
		Document: in(k8s.KubeServiceAccountConfig, "issuer.privateKey"), Rotated: true})
	ClusterID = fact(Fact{Main: main("cluster.id"), Document: in(cluster.DiscoveryIdentityKind, "clusterID"),
		Beside: cluster.DiscoveryIdentityKind})
	ClusterSecret = fact(Fact{Main: main("cluster.secret"), Document: in(cluster.DiscoveryIdentityKind, "clusterSecret"),
		Beside: cluster.DiscoveryIdentityKind})
	SecretboxKey = fact(Fact{Main: main("cluster.secretboxEncryptionSecret"),
		Document: in(k8s.KubeEtcdEncryptionConfig, ""), Beside: k8s.KubeEtcdEncryptionConfig})
	AESCBCKey = fact(Fact{Main: main("cluster.aescbcEncryptionSecret"), Document: in(k8s.KubeEtcdEncryptionConfig, ""),
		Beside: k8s.KubeEtcdEncryptionConfig})
)

// The cluster and its networks.
var (
	ClusterName = fact(Fact{Main: main("cluster.clusterName"), Document: in(k8s.KubeClusterConfig, "clusterName"),
		Beside: k8s.KubeClusterConfig})
	PodCIDRs     = fact(Fact{Main: main("cluster.network.podSubnets"), Document: in(k8s.KubeNetworkConfig, "podSubnets")})
	ServiceCIDRs = fact(Fact{Main: main("cluster.network.serviceSubnets"),
		Document: in(k8s.KubeNetworkConfig, "serviceSubnets")})
	DNSDomain = fact(Fact{Main: main("cluster.network.dnsDomain"), Document: in(k8s.KubeNetworkConfig, "dnsDomain")})
	Discovery = fact(Fact{Main: main("cluster.discovery"), Document: in(cluster.DiscoveryServiceKind, ""),
		Beside: cluster.DiscoveryServiceKind, Instead: "attribute discovery"})
)

// The components of Kubernetes. Talos 1.13 and 1.14, controllers/k8s: control_plane.go has the static pods and
// kube-proxy with their switches, kubelet_config.go the kubelet.
var (
	APIServerImage = fact(Fact{Main: main("cluster.apiServer.image"), Document: in(k8s.KubeAPIServerConfig, "image"),
		Image: kubenames.KubeAPIServer})
	ControllerManagerImage = fact(Fact{Main: main("cluster.controllerManager.image"),
		Document: in(k8s.KubeControllerManagerConfig, "image"), Image: kubenames.KubeControllerManager,
		Off: main("machine.controlPlane.controllerManager.disabled")})
	SchedulerImage = fact(Fact{Main: main("cluster.scheduler.image"), Document: in(k8s.KubeSchedulerConfig, "image"),
		Image: kubenames.KubeScheduler, Off: main("machine.controlPlane.scheduler.disabled")})
	ProxyImage = fact(Fact{Main: main("cluster.proxy.image"), Document: in(k8s.KubeProxyConfig, "image"),
		Image: kubenames.KubeProxy, Off: main("cluster.proxy.disabled")})
	KubeletImage = fact(Fact{Main: main("machine.kubelet.image"), Document: in(k8s.KubeletConfig, "image"),
		Image: kubenames.Kubelet, Workers: true, Plain: true})
	KubeletExtraArgs = fact(Fact{Main: main("machine.kubelet.extraArgs"), Document: in(k8s.KubeletConfig, "extraArgs")})
	MachineSANs      = fact(Fact{Main: main("machine.certSANs")})
	APIServerSANs    = fact(Fact{Main: main("cluster.apiServer.certSANs"),
		Document: in(k8s.KubeAPIServerConfig, "certExtraSANs"), Beside: k8s.KubeAPIServerConfig,
		Instead: "attribute cert_sans"})
)

// The node of a machine.
var (
	Hostname = fact(Fact{Main: main("machine.network.hostname"), Document: in(network.HostnameKind, "hostname"),
		Plain: true})
	StableHostname = fact(Fact{Main: main("machine.features.stableHostname"), Document: in(network.HostnameKind, "auto"),
		Plain: true})
	NodeLabels = fact(Fact{Main: main("machine.nodeLabels"), Document: in(k8s.KubeNodeConfig, "labels"),
		Beside: k8s.KubeNodeConfig, Plain: true})
	NodeAnnotations = fact(Fact{Main: main("machine.nodeAnnotations"), Document: in(k8s.KubeNodeConfig, "annotations"),
		Beside: k8s.KubeNodeConfig})
	NodeTaints = fact(Fact{Main: main("machine.nodeTaints"), Document: in(k8s.KubeNodeConfig, "taints"),
		Beside: k8s.KubeNodeConfig, Plain: true})
	NodeSubnets = fact(Fact{Main: main("machine.kubelet.nodeIP.validSubnets"),
		Document: in(k8s.KubeNodeConfig, "nodeIP.validSubnets")})
	// CarriedKeys is where a node tells which keys its machine carries.
	CarriedKeys = fact(Fact{Main: NodeAnnotations.Main.Under(rotation.Annotation),
		Document: NodeAnnotations.Document.Under(rotation.Annotation), Rotated: true})
)

// The machine itself.
var (
	Sysctls   = fact(Fact{Main: main("machine.sysctls"), Document: in(runtime.SysctlConfigKind, "params"), Plain: true})
	KubePrism = fact(Fact{Main: main("machine.features.kubePrism"), Document: in(k8s.KubePrismConfig, ""),
		Beside: k8s.KubePrismConfig, Plain: true})
	ImageCache = fact(Fact{Main: main("machine.features.imageCache"), Document: in(cri.ImageCacheConfig, ""),
		Beside: cri.ImageCacheConfig})
)

// others are facts that nothing asks for by name.
var others = []Fact{
	{Main: main("cluster.apiServer"), Document: in(k8s.KubeAPIServerConfig, ""), Beside: k8s.KubeAPIServerConfig},
	{Main: main("cluster.apiServer.admissionControl"), Document: in(k8s.KubeAdmissionControlConfig, ""),
		Beside: k8s.KubeAPIServerConfig},
	{Main: main("cluster.apiServer.auditPolicy"), Document: in(k8s.KubeAuditPolicyConfig, ""),
		Beside: k8s.KubeAPIServerConfig},
	{Main: main("cluster.apiServer.authorizationConfig"), Document: in(k8s.KubeAuthorizerConfig, ""),
		Beside: k8s.KubeAPIServerConfig},
	{Main: main("cluster.controlPlane.localAPIServerPort"), Document: in(k8s.KubeAPIServerConfig, "apiPort"),
		Beside: k8s.KubeAPIServerConfig},
	{Main: main("cluster.controlPlane"), Document: in(k8s.KubeClusterConfig, ""), Beside: k8s.KubeClusterConfig},
	{Main: main("cluster.controllerManager"), Document: in(k8s.KubeControllerManagerConfig, ""),
		Beside: k8s.KubeControllerManagerConfig},
	{Main: main("machine.controlPlane.controllerManager"), Document: in(k8s.KubeControllerManagerConfig, ""),
		Beside: k8s.KubeControllerManagerConfig},
	{Main: main("cluster.scheduler"), Document: in(k8s.KubeSchedulerConfig, ""), Beside: k8s.KubeSchedulerConfig},
	{Main: main("machine.controlPlane.scheduler"), Document: in(k8s.KubeSchedulerConfig, ""),
		Beside: k8s.KubeSchedulerConfig},
	{Main: main("cluster.proxy"), Document: in(k8s.KubeProxyConfig, ""), Beside: k8s.KubeProxyConfig},
	{Main: main("cluster.network.cni"), Document: in(k8s.KubeFlannelCNIConfig, ""), Beside: k8s.KubeNetworkConfig,
		Instead: "attribute cni"},
	{Main: main("cluster.network"), Document: in(k8s.KubeNetworkConfig, ""), Beside: k8s.KubeNetworkConfig},
	{Main: main("cluster.coreDNS"), Document: in(k8s.KubeCoreDNSConfig, ""), Beside: k8s.KubeCoreDNSConfig},
	{Main: main("cluster.allowSchedulingOnControlPlanes"), Beside: k8s.KubeNodeConfig,
		Instead: "attribute allow_scheduling_on_control_planes"},
	{Main: main("cluster.extraManifestHeaders"), Document: in(k8s.KubeExternalManifestConfig, "headers"), Secret: true},
	{Main: main("cluster.inlineManifests.contents"), Document: in(k8s.KubeInlineManifestConfig, "manifest"), Secret: true},
	{Document: in(k8s.KubeStaticPodConfig, "pod"), Secret: true},

	{Main: main("machine.kubelet"), Document: in(k8s.KubeletConfig, ""), Beside: k8s.KubeletConfig},
	{Main: main("machine.kubelet.nodeIP"), Document: in(k8s.KubeNodeConfig, "nodeIP"), Beside: k8s.KubeletConfig},
	{Main: main("machine.kubelet.registerWithFQDN"), Document: in(k8s.KubeNodeConfig, "registerWithFQDN"),
		Beside: k8s.KubeletConfig},
	{Main: main("machine.kubelet.skipNodeRegistration"), Document: in(k8s.KubeNodeConfig, "skipNodeRegistration"),
		Beside: k8s.KubeletConfig},
	{Main: main("machine.kubelet.credentialProviderConfig"),
		Document: in(k8s.KubeCredentialProviderConfig, "configuration"), Beside: k8s.KubeletConfig, Secret: true},
	{Main: main("machine.kubelet.extraConfig"), Document: in(k8s.KubeletConfig, "config"), Beside: k8s.KubeletConfig},
	{Main: main("machine.kubelet.extraMounts"), Beside: k8s.KubeletConfig, Instead: "user volumes (UserVolumeConfig), " +
		"which are mounted for the kubelet, as " + k8s.KubeletConfig + " has no mounts"},

	{Main: main("machine.features"), Plain: true},
	{Main: main("machine.features.kubernetesTalosAPIAccess"), Document: in(k8s.KubeTalosAPIAccessConfig, ""),
		Beside: k8s.KubeTalosAPIAccessConfig},
	{Main: main("machine.features.hostDNS"), Document: in(network.ResolverKind, "hostDNS"), Beside: network.ResolverKind},
	{Main: main("machine.network.nameservers"), Document: in(network.ResolverKind, "nameservers"),
		Beside: network.ResolverKind},
	{Main: main("machine.network.searchDomains"), Document: in(network.ResolverKind, "searchDomains.domains"),
		Beside: network.ResolverKind},
	{Main: main("machine.network.disableSearchDomain"), Document: in(network.ResolverKind, "searchDomains.disableDefault"),
		Beside: network.ResolverKind},
	// Talos 1.13, network/kubespan.go.
	{Main: main("machine.network.kubespan"), Document: in(network.KubeSpanKind, ""), Beside: network.KubeSpanKind},
	{Main: main("machine.baseRuntimeSpecOverrides"), Document: in(cri.CRIBaseRuntimeSpecConfigKind, "overrides"),
		Beside: cri.CRIBaseRuntimeSpecConfigKind},
	{Main: main("machine.install"), Document: in(runtime.UnattendedInstallConfigKind, ""),
		Beside: runtime.UnattendedInstallConfigKind, Instead: "attribute install"},
	{Main: main("machine.install.disk"), Document: in(runtime.UnattendedInstallConfigKind, "provisioning"), Plain: true},
	{Main: main("machine.install.image"), Document: in(runtime.UnattendedInstallConfigKind, "installer"), Plain: true},
	{Document: in(runtime.UnattendedInstallConfigKind, "reboot"), Plain: true},

	{Main: main("machine.sysfs"), Document: in(runtime.SysfsConfigKind, "params"), Plain: true},
	{Main: main("machine.time"), Plain: true},
	{Document: in(runtime.SecurityProfileConfigKind, ""), Plain: true},
	{Document: in(block.FilesystemTrimConfigKind, ""), Plain: true},
	{Main: main("machine.env"), Document: in(runtime.EnvironmentConfigKind, "variables"), Secret: true},
	{Main: main("machine.files.content"), Document: in(runtime.EtcFileConfigKind, "contents"), Secret: true},
	{Document: in(cri.CRICustomizationConfigKind, "content"), Secret: true},
	{Document: in(extensions.ServiceConfigKind, "environment"), Secret: true},
	{Document: in(extensions.ServiceConfigKind, "configFiles.content"), Secret: true},
	{Document: in(container.ContainerConfigKind, "environment"), Secret: true},
}
