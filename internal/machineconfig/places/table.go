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

func whole(f *Fact)    { f.Whole = true }
func appended(f *Fact) { f.Appended = true }

func moves(f *Fact)   { f.Conversion = Moves }
func inverts(f *Fact) { f.Conversion = Inverts }

func rewritten(form string) func(*Fact) {
	return func(f *Fact) { f.Conversion, f.Why = Rewritten, form }
}
func stays(why string) func(*Fact)   { return func(f *Fact) { f.Conversion, f.Why = Stays, why } }
func removed(why string) func(*Fact) { return func(f *Fact) { f.Conversion, f.Why = Removed, why } }
func lost(why string) func(*Fact)    { return func(f *Fact) { f.Conversion, f.Why = Lost, why } }

func beside(kind string) func(*Fact)  { return func(f *Fact) { f.Beside = kind } }
func instead(text string) func(*Fact) { return func(f *Fact) { f.Instead = text } }

func image(of kubenames.Component, off string) func(*Fact) {
	return func(f *Fact) { f.Image, f.Off = of, in("", off) }
}

func under(key string) func(*Fact) {
	return func(f *Fact) { f.Main, f.Document = f.Main.Under(key), f.Document.Under(key) }
}

// Reasons that several fields have.
const (
	onlyMain   = "only the main document has it"
	ofTheKeys  = "it is a key of the cluster, which talosop takes from its secrets alone"
	noVolumes  = "the document has no volumes"
	notApplied = "Kubernetes has had no pod security policies since 1.25"
)

// The identity of a machine's cluster, and the keys that it carries.
var (
	MachineType      = fact("machine.type", nowhere, stays(onlyMain))
	MachineToken     = fact("machine.token", nowhere, stays(onlyMain))
	TalosCA          = fact("machine.ca", nowhere, rotated, stays(onlyMain))
	TalosAcceptedCAs = fact("machine.acceptedCAs", nowhere, rotated, stays(onlyMain))
	BootstrapToken   = fact("cluster.token", nowhere, rotated, stays(onlyMain))
	EtcdCA           = fact("cluster.etcd.ca", nowhere)
	KubernetesCA     = fact("cluster.ca", in(k8s.KubeAPIServerCAConfig, "issuingCA"), refused, rotated,
		lost(ofTheKeys))
	KubernetesAcceptedCAs = fact("cluster.acceptedCAs", in(k8s.KubeAPIServerCAConfig, "acceptedCAs"), refused, rotated,
		rewritten("a list of PEM certificates"))
	AggregatorCA = fact("cluster.aggregatorCA", in(k8s.KubeAggregatorCAConfig, "issuingCA"), refused, rotated,
		lost(ofTheKeys))
	ServiceAccount    = fact("cluster.serviceAccount", in(k8s.KubeServiceAccountConfig, ""), refused, lost(ofTheKeys))
	ServiceAccountKey = fact("cluster.serviceAccount.key", in(k8s.KubeServiceAccountConfig, "issuer.privateKey"),
		rotated)
	ClusterID     = fact("cluster.id", in(cluster.DiscoveryIdentityKind, "clusterID"), refused, moves)
	ClusterSecret = fact("cluster.secret", in(cluster.DiscoveryIdentityKind, "clusterSecret"), refused, moves)
	SecretboxKey  = fact("cluster.secretboxEncryptionSecret", in(k8s.KubeEtcdEncryptionConfig, ""), refused,
		lost(ofTheKeys))
	AESCBCKey = fact("cluster.aescbcEncryptionSecret", in(k8s.KubeEtcdEncryptionConfig, ""), refused, lost(ofTheKeys))
)

// The cluster and its networks.
var (
	ClusterName  = fact("cluster.clusterName", in(k8s.KubeClusterConfig, "clusterName"), refused, moves)
	PodCIDRs     = fact("cluster.network.podSubnets", in(k8s.KubeNetworkConfig, "podSubnets"), moves)
	ServiceCIDRs = fact("cluster.network.serviceSubnets", in(k8s.KubeNetworkConfig, "serviceSubnets"), moves)
	DNSDomain    = fact("cluster.network.dnsDomain", in(k8s.KubeNetworkConfig, "dnsDomain"), moves)
	Discovery    = fact("cluster.discovery", in(cluster.DiscoveryServiceKind, ""), refused,
		instead("attribute discovery"), rewritten("a document for each service; none switches discovery off"))
)

// The components of Kubernetes.
var (
	KubeletImage = fact("machine.kubelet.image", in(k8s.KubeletConfig, "image"),
		image(kubenames.Kubelet, ""), workers, plain, moves)
	KubeletExtraArgs = fact("machine.kubelet.extraArgs", in(k8s.KubeletConfig, "extraArgs"), moves)
	APIServerArgs    = fact("cluster.apiServer.extraArgs", in(k8s.KubeAPIServerConfig, "extraArgs"),
		rewritten("arguments of OIDC become a KubeAuthenticationConfig"))
	MachineSANs   = fact("machine.certSANs", nowhere, stays(onlyMain))
	APIServerSANs = fact("cluster.apiServer.certSANs", in(k8s.KubeAPIServerConfig, "certExtraSANs"),
		refused, instead("attribute cert_sans"), moves)
)

// The node of a machine.
var (
	Hostname = fact("machine.network.hostname", in(network.HostnameKind, "hostname"), plain,
		rewritten("with auto: off"))
	StableHostname = fact("machine.features.stableHostname", in(network.HostnameKind, "auto"), plain,
		rewritten("stays, as machines reboot when it changes; a static name takes its place"))
	NodeLabels      = fact("machine.nodeLabels", in(k8s.KubeNodeConfig, "labels"), refused, plain, moves)
	NodeAnnotations = fact("machine.nodeAnnotations", in(k8s.KubeNodeConfig, "annotations"), refused, moves)
	NodeTaints      = fact("machine.nodeTaints", in(k8s.KubeNodeConfig, "taints"), refused, plain, moves)
	NodeSubnets     = fact("machine.kubelet.nodeIP.validSubnets", in(k8s.KubeNodeConfig, "nodeIP.validSubnets"), moves)
	// CarriedKeys is where a node shows which keys its machine carries.
	CarriedKeys = fact("machine.nodeAnnotations", NodeAnnotations.Document, under(rotation.Annotation), rotated)
)

// The machine itself.
var (
	InstallerImage = fact("machine.install.image", in(runtime.UnattendedInstallConfigKind, "installer.image"), plain)

	Sysctls   = fact("machine.sysctls", in(runtime.SysctlConfigKind, "params"), plain, moves)
	KubePrism = fact("machine.features.kubePrism", in(k8s.KubePrismConfig, ""), refused, plain,
		rewritten("no document switches it off"))
	ImageCache = fact("machine.features.imageCache", in(cri.ImageCacheConfig, ""), refused)
	// WorkloadIsolation has a document alone.
	WorkloadIsolation = fact("", in(runtime.SecurityProfileConfigKind, "workloadIsolation"), plain)
	// Each link and each host may have a separate document, by its name.
	Interfaces = fact("machine.network.interfaces", nowhere, stays("it is valid beside documents of links such as "+
		"LinkConfig, which configure links in another way"))
	HostEntries = fact("machine.network.extraHostEntries", nowhere, rewritten("a StaticHostConfig for each address"))
)

// What nothing asks for by name. Talos 1.13 and 1.14, controllers/k8s: control_plane.go has the images of static pods
// and kube-proxy with their switches.
var _ = []Fact{
	fact("cluster.apiServer.image", in(k8s.KubeAPIServerConfig, "image"), image(kubenames.KubeAPIServer, ""), moves),
	fact("cluster.controllerManager.image", in(k8s.KubeControllerManagerConfig, "image"),
		image(kubenames.KubeControllerManager, "machine.controlPlane.controllerManager.disabled"), moves),
	fact("cluster.scheduler.image", in(k8s.KubeSchedulerConfig, "image"),
		image(kubenames.KubeScheduler, "machine.controlPlane.scheduler.disabled"), moves),
	fact("cluster.proxy.image", in(k8s.KubeProxyConfig, "image"),
		image(kubenames.KubeProxy, "cluster.proxy.disabled"), moves),

	fact("cluster.apiServer", in(k8s.KubeAPIServerConfig, ""), refused),
	fact("cluster.apiServer.env", in(k8s.KubeAPIServerConfig, "env"), moves),
	fact("cluster.apiServer.resources", in(k8s.KubeAPIServerConfig, "resources"), moves),
	fact("cluster.apiServer.extraVolumes", nowhere, lost(noVolumes)),
	fact("cluster.apiServer.disablePodSecurityPolicy", nowhere, removed(notApplied)),
	fact("cluster.apiServer.admissionControl", in(k8s.KubeAdmissionControlConfig, ""),
		beside(k8s.KubeAPIServerConfig), rewritten("a document for each plugin")),
	fact("cluster.apiServer.auditPolicy", in(k8s.KubeAuditPolicyConfig, "configuration"),
		beside(k8s.KubeAPIServerConfig), moves),
	fact("cluster.apiServer.authorizationConfig", in(k8s.KubeAuthorizerConfig, ""), beside(k8s.KubeAPIServerConfig),
		rewritten("a document for each authorizer")),
	fact("cluster.controlPlane.endpoint", in(k8s.KubeClusterConfig, "endpoint"),
		rewritten("service accounts keep it as their issuer")),
	fact("cluster.controlPlane.localAPIServerPort", in(k8s.KubeAPIServerConfig, "apiPort"), refused, moves),
	fact("cluster.controlPlane", in(k8s.KubeClusterConfig, ""), refused),
	fact("cluster.controllerManager", in(k8s.KubeControllerManagerConfig, ""), refused),
	fact("cluster.controllerManager.extraArgs", in(k8s.KubeControllerManagerConfig, "extraArgs"), moves),
	fact("cluster.controllerManager.env", in(k8s.KubeControllerManagerConfig, "env"), moves),
	fact("cluster.controllerManager.resources", in(k8s.KubeControllerManagerConfig, "resources"), moves),
	fact("cluster.controllerManager.extraVolumes", nowhere, lost(noVolumes)),
	fact("machine.controlPlane.controllerManager", in(k8s.KubeControllerManagerConfig, ""), refused),
	fact("machine.controlPlane.controllerManager.disabled", in(k8s.KubeControllerManagerConfig, "enabled"), inverts),
	fact("cluster.scheduler", in(k8s.KubeSchedulerConfig, ""), refused),
	fact("cluster.scheduler.extraArgs", in(k8s.KubeSchedulerConfig, "extraArgs"), moves),
	fact("cluster.scheduler.env", in(k8s.KubeSchedulerConfig, "env"), moves),
	fact("cluster.scheduler.resources", in(k8s.KubeSchedulerConfig, "resources"), moves),
	fact("cluster.scheduler.config", in(k8s.KubeSchedulerConfig, "config"), moves),
	fact("cluster.scheduler.extraVolumes", nowhere, lost(noVolumes)),
	fact("machine.controlPlane.scheduler", in(k8s.KubeSchedulerConfig, ""), refused),
	fact("machine.controlPlane.scheduler.disabled", in(k8s.KubeSchedulerConfig, "enabled"), inverts),
	fact("cluster.proxy", in(k8s.KubeProxyConfig, ""), refused),
	fact("cluster.proxy.disabled", in(k8s.KubeProxyConfig, "enabled"), inverts),
	fact("cluster.proxy.mode", in(k8s.KubeProxyConfig, "mode"), moves),
	fact("cluster.proxy.extraArgs", in(k8s.KubeProxyConfig, "config"), rewritten("kube-proxy reads its configuration, "+
		"and ignores most arguments beside it")),
	fact("cluster.network.cni", in(k8s.KubeFlannelCNIConfig, ""), beside(k8s.KubeNetworkConfig),
		instead("attribute cni"), rewritten("no document switches Flannel off; manifests are KubeExternalManifestConfig")),
	fact("cluster.network", in(k8s.KubeNetworkConfig, ""), refused),
	fact("cluster.coreDNS", in(k8s.KubeCoreDNSConfig, ""), refused),
	fact("cluster.coreDNS.disabled", in(k8s.KubeCoreDNSConfig, "enabled"), inverts),
	fact("cluster.coreDNS.image", in(k8s.KubeCoreDNSConfig, "image"), moves),
	fact("cluster.allowSchedulingOnControlPlanes", in(k8s.KubeNodeConfig, ""), beside(k8s.KubeNodeConfig),
		instead("attribute allow_scheduling_on_control_planes"),
		rewritten("the taint node-role.kubernetes.io/control-plane, or none")),
	fact("cluster.allowSchedulingOnMasters", in(k8s.KubeNodeConfig, ""), beside(k8s.KubeNodeConfig),
		instead("attribute allow_scheduling_on_control_planes"),
		rewritten("the taint node-role.kubernetes.io/control-plane, or none")),
	fact("cluster.etcd", nowhere, stays(onlyMain)),
	fact("cluster.externalCloudProvider", nowhere, stays(onlyMain)),
	fact("cluster.adminKubeconfig", nowhere, stays(onlyMain)),
	fact("cluster.extraManifests", nowhere, stays("it is valid beside the documents KubeExternalManifestConfig, "+
		"which have names")),
	fact("cluster.extraManifestHeaders", in(k8s.KubeExternalManifestConfig, "headers"), secret,
		stays("it belongs to extraManifests")),
	fact("cluster.inlineManifests", in(k8s.KubeInlineManifestConfig, ""), rewritten("a document for each manifest")),
	fact("cluster.inlineManifests.contents", in(k8s.KubeInlineManifestConfig, "manifest"), secret),
	fact("", in(k8s.KubeStaticPodConfig, "pod"), secret),

	fact("machine.kubelet", in(k8s.KubeletConfig, ""), refused),
	fact("machine.kubelet.clusterDNS", in(k8s.KubeletConfig, "clusterDNS"), moves),
	fact("machine.kubelet.defaultRuntimeSeccompProfileEnabled",
		in(k8s.KubeletConfig, "defaultRuntimeSeccompProfileEnabled"), moves),
	fact("machine.kubelet.disableManifestsDirectory", nowhere,
		rewritten("true is removed, as contract v1.14 always does it; false has no successor but KubeStaticPodConfig")),
	fact("machine.kubelet.nodeIP", in(k8s.KubeNodeConfig, "nodeIP"), beside(k8s.KubeletConfig)),
	fact("machine.kubelet.registerWithFQDN", in(k8s.KubeNodeConfig, "registerWithFQDN"), beside(k8s.KubeletConfig),
		moves),
	fact("machine.kubelet.skipNodeRegistration", in(k8s.KubeNodeConfig, "skipNodeRegistration"),
		beside(k8s.KubeletConfig), moves),
	fact("machine.kubelet.credentialProviderConfig", in(k8s.KubeCredentialProviderConfig, "configuration"),
		beside(k8s.KubeletConfig), secret, whole, moves),
	fact("machine.kubelet.extraConfig", in(k8s.KubeletConfig, "config"), refused, moves),
	fact("machine.kubelet.extraMounts", nowhere, beside(k8s.KubeletConfig),
		instead("user volumes (UserVolumeConfig), which are mounted for the kubelet, as KubeletConfig has no mounts"),
		lost("KubeletConfig has no mounts; user volumes (UserVolumeConfig) are mounted for the kubelet")),
	fact("machine.pods", in(k8s.KubeStaticPodConfig, ""), rewritten("a document for each pod")),

	fact("machine.features", nowhere, plain),
	fact("machine.features.rbac", nowhere, stays(onlyMain)),
	fact("machine.features.apidCheckExtKeyUsage", nowhere, stays(onlyMain)),
	fact("machine.features.diskQuotaSupport", nowhere, stays(onlyMain)),
	fact("machine.features.nodeAddressSortAlgorithm", nowhere, stays(onlyMain)),
	fact("machine.features.imageCache.localEnabled", in(cri.ImageCacheConfig, "local.enabled"), moves),
	fact("machine.features.kubernetesTalosAPIAccess", in(k8s.KubeTalosAPIAccessConfig, ""), refused,
		rewritten("no document switches it off")),
	fact("machine.features.hostDNS", in(network.ResolverKind, "hostDNS"), refused,
		rewritten("enabled: false needs forwardKubeDNSToHost: false")),
	fact("machine.network.nameservers", in(network.ResolverKind, "nameservers"), refused,
		rewritten("a list of addresses")),
	fact("machine.network.searchDomains", in(network.ResolverKind, "searchDomains.domains"), refused, appended,
		moves),
	fact("machine.network.disableSearchDomain", in(network.ResolverKind, "searchDomains.disableDefault"), refused, moves),
	// Talos 1.13, network/kubespan.go.
	fact("machine.network.kubespan", in(network.KubeSpanKind, ""), refused, moves),
	fact("machine.baseRuntimeSpecOverrides", in(cri.CRIBaseRuntimeSpecConfigKind, "overrides"), refused, whole,
		moves),
	fact("machine.install", in(runtime.UnattendedInstallConfigKind, ""), refused, instead("attribute install"),
		rewritten("a disk is found by an expression; arguments and extensions stay, as a schematic has them")),
	fact("machine.install.disk", in(runtime.UnattendedInstallConfigKind, "provisioning"), plain),
	fact("", in(runtime.UnattendedInstallConfigKind, "installer"), plain),
	fact("", in(runtime.UnattendedInstallConfigKind, "reboot"), plain),

	fact("machine.sysfs", in(runtime.SysfsConfigKind, "params"), plain, moves),
	fact("machine.kernel", in(runtime.KernelModuleConfigKind, ""), rewritten("a KernelModuleConfig for each module")),
	fact("machine.udev", in(runtime.UdevRulesConfigKind, ""), moves),
	fact("machine.time", nowhere, plain),
	fact("machine.time.disabled", in(network.TimeSyncKind, "enabled"), inverts),
	fact("machine.time.servers", in(network.TimeSyncKind, "ntp.servers"), rewritten("devices are ptp.devices")),
	fact("machine.time.bootTimeout", in(network.TimeSyncKind, "bootTimeout"), moves),
	fact("", in(block.FilesystemTrimConfigKind, ""), plain),
	fact("machine.env", in(runtime.EnvironmentConfigKind, "variables"), secret, moves),
	fact("machine.files", nowhere, stays("it is valid beside EtcFileConfig and CRICustomizationConfig, and machines "+
		"reboot when it changes")),
	fact("machine.files.content", in(runtime.EtcFileConfigKind, "contents"), secret),
	fact("machine.disks", nowhere, stays("it is valid beside UserVolumeConfig, which names its partitions otherwise")),
	fact("machine.systemDiskEncryption", nowhere, stays("it is valid beside VolumeConfig, and machines reboot when it "+
		"changes")),
	fact("machine.registries", nowhere, stays("it is valid beside RegistryMirrorConfig, RegistryAuthConfig and "+
		"RegistryTLSConfig")),
	fact("machine.logging", nowhere, stays(onlyMain)),
	fact("machine.seccompProfiles", nowhere, stays(onlyMain)),
	fact("version", nowhere, stays(onlyMain)),
	fact("debug", nowhere, stays(onlyMain)),
	fact("persist", nowhere, stays(onlyMain)),
	fact("", in(cri.CRICustomizationConfigKind, "content"), secret),
	fact("", in(extensions.ServiceConfigKind, "environment"), secret),
	fact("", in(extensions.ServiceConfigKind, "configFiles.content"), secret),
	fact("", in(container.ContainerConfigKind, "environment"), secret),
}
