package convert

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/labels"
	"go.yaml.in/yaml/v4"
)

// rewrites convert the parts that the table calls rewritten, by their path.
var rewrites = map[string]func(c *Converter, path []string){
	"cluster.acceptedCAs":                       (*Converter).acceptedCAs,
	"cluster.allowSchedulingOnControlPlanes":    (*Converter).allowScheduling,
	"cluster.allowSchedulingOnMasters":          (*Converter).allowScheduling,
	"cluster.apiServer.admissionControl":        (*Converter).admission,
	"cluster.apiServer.authorizationConfig":     (*Converter).authorizers,
	"cluster.apiServer.extraArgs":               (*Converter).apiServerArgs,
	"cluster.controlPlane.endpoint":             (*Converter).endpoint,
	"cluster.discovery":                         (*Converter).discover,
	"cluster.inlineManifests":                   (*Converter).inlineManifests,
	"cluster.network.cni":                       (*Converter).cni,
	"cluster.proxy.extraArgs":                   (*Converter).proxyArgs,
	"machine.features.hostDNS":                  (*Converter).hostDNS,
	"machine.features.kubePrism":                (*Converter).kubePrism,
	"machine.features.kubernetesTalosAPIAccess": (*Converter).apiAccess,
	"machine.features.stableHostname":           (*Converter).stableHostname,
	"machine.install":                           (*Converter).install,
	"machine.kernel":                            (*Converter).modules,
	"machine.kubelet.disableManifestsDirectory": (*Converter).manifestsDirectory,
	"machine.network.extraHostEntries":          (*Converter).hosts,
	"machine.network.hostname":                  (*Converter).hostname,
	"machine.network.nameservers":               (*Converter).nameservers,
	"machine.pods":                              (*Converter).pods,
	"machine.time.servers":                      (*Converter).timeServers,
}

// each converts a list whose elements become documents of their own, by their name. Elements that delete one become
// documents that do. The function has the fields of the document.
func (c *Converter) each(path []string, kind string, fields func(element, document *yaml.Node)) {
	value := c.value(path)

	for _, element := range value.Content {
		name := textOf(element, "name")

		switch {
		case name == "":
			c.mistake(path, "an element has no name")

			return
		case isDelete(element):
			c.drop(kind, name, element)
			delete(c.seen, kind+"/"+name)

			continue
		case c.again(kind + "/" + name):
			c.mistake(path, name+" is there twice, which "+kind+" cannot have")

			return
		}

		fields(element, c.documentOf(kind, name, element))
	}

	c.takeInto(path, value)
}

// takeInto takes a part that became documents. The comments of its key go to the first of them.
func (c *Converter) takeInto(path []string, value *yaml.Node) {
	key := c.take(path)

	if len(c.documents) == 0 {
		return
	}

	first := c.documents[len(c.documents)-max(1, min(len(value.Content), len(c.documents)))].node.Content[0]
	first.HeadComment = joined(key.HeadComment, first.HeadComment)
}

// allowScheduling is about the taint of control planes, which the document has, or not.
func (c *Converter) allowScheduling(path []string) {
	if !c.controlPlane {
		c.remove(path, "it has no effect on workers")

		return
	}

	allowed := isTrue(c.value(path))
	if strings.HasSuffix(path[1], "Masters") {
		c.masters = &allowed
	} else {
		c.scheduling = &allowed
	}

	// The newer field wins (machinery 1.14, v1alpha1, ScheduleOnControlPlanes).
	if c.scheduling != nil {
		allowed = *c.scheduling
	}

	key := c.take(path)
	if c.again("scheduling") && allowed == c.schedules {
		return
	}

	effect := text(constants.TaintEffectNoSchedule)
	if c.schedules = allowed; allowed {
		effect = mapping("$patch", "delete")
	}

	c.put(k8s.KubeNodeConfig, "", []string{"taints", constants.LabelNodeRoleControlPlane}, key, effect)
}

// hostname is a static name, beside which the document must not have another source of a name.
func (c *Converter) hostname(path []string) {
	value := c.value(path)
	key := c.take(path)

	if value.Value != "" {
		off := text("off")
		off.Style = yaml.DoubleQuotedStyle
		c.put(network.HostnameKind, "", []string{"hostname"}, key, value)
		c.put(network.HostnameKind, "", []string{"auto"}, key, off)
	}
}

// stableHostname goes where another patch has the document, which Talos refuses beside it.
func (c *Converter) stableHostname(path []string) {
	if c.named && isTrue(c.value(path)) {
		c.remove(path, "the static host name wins")
	} else {
		c.keep(path, "the generated document gives way to it, and machines reboot when it changes")
	}
}

func (c *Converter) nameservers(path []string) {
	value := c.value(path)
	servers := *value
	servers.Content = nil

	for _, element := range value.Content {
		if _, err := netip.ParseAddr(element.Value); err != nil {
			c.mistake(path, "an element is no IP address, which Talos ignores in the main document alone")

			return
		}

		server := mapping("address", element.Value)
		server.HeadComment, server.Content[1].LineComment = element.HeadComment, element.LineComment
		servers.Content = append(servers.Content, server)
	}

	servers.Style = 0
	c.put(network.ResolverKind, "", []string{"nameservers"}, c.take(path), &servers)
}

// hostDNS moves. The document refuses other settings beside enabled: false, as the main document does for one of them
// (machinery 1.14, network/resolver.go and v1alpha1_validation.go).
func (c *Converter) hostDNS(path []string) {
	value := c.value(path)

	if enabled := valueOf(value, "enabled"); enabled != nil && !isTrue(enabled) {
		if forward := valueOf(value, "forwardKubeDNSToHost"); forward == nil || isTrue(forward) {
			c.mistake(path, "enabled: false needs forwardKubeDNSToHost: false beside it")

			return
		}

		set(value, []string{"resolveMemberNames"}, blank(), scalar("false", "!!bool", blank()))
	}

	c.put(network.ResolverKind, "", []string{"hostDNS"}, c.take(path), value)
}

func (c *Converter) hosts(path []string) {
	value := c.value(path)

	for _, element := range value.Content {
		name := textOf(element, "ip")

		switch {
		case name == "":
			c.mistake(path, "an element has no ip")

			return
		case isDelete(element):
			c.drop(network.StaticHostKind, name, element)

			continue
		}

		host := c.documentOf(network.StaticHostKind, name, element)
		if aliases := valueOf(element, "aliases"); aliases != nil {
			set(host, []string{"hostnames"}, blank(), aliases)
		}
	}

	c.takeInto(path, value)
}

// timeServers are servers, or devices of the precision time protocol.
func (c *Converter) timeServers(path []string) {
	value := c.value(path)
	isDevice := func(server *yaml.Node) bool { return strings.HasPrefix(server.Value, "/dev/ptp") }
	devices := slices.ContainsFunc(value.Content, isDevice)
	c.devices = c.devices || devices
	c.servers = c.servers || slices.ContainsFunc(value.Content, func(n *yaml.Node) bool { return !isDevice(n) })

	switch {
	case c.devices && c.servers:
		c.mistake(path, "TimeSyncConfig has either servers or devices")
	case devices:
		c.put(network.TimeSyncKind, "", []string{"ptp", "devices"}, c.take(path), value)
	default:
		c.put(network.TimeSyncKind, "", []string{"ntp", "servers"}, c.take(path), value)
	}
}

func (c *Converter) modules(path []string) {
	path = append(slices.Clip(path), "modules")
	if c.value(path) == nil {
		return
	}

	c.each(path, runtime.KernelModuleConfigKind, func(element, document *yaml.Node) {
		if parameters := valueOf(element, "parameters"); parameters != nil {
			set(document, []string{"parameters"}, blank(), parameters)
		}
	})
}

func (c *Converter) pods(path []string) {
	value := c.value(path)

	for _, pod := range value.Content {
		name := podName(pod)

		switch {
		case isDelete(pod):
			c.mistake(path, "$patch: delete of a pod cannot be converted: delete its KubeStaticPodConfig")

			return
		case labels.ValidateDNS1123Subdomain(name) != nil:
			c.mistake(path, "a pod has no name that a KubeStaticPodConfig can have")

			return
		case c.again(k8s.KubeStaticPodConfig + "/" + name):
			c.mistake(path, "a pod is there twice: "+name)

			return
		}

		set(c.documentOf(k8s.KubeStaticPodConfig, name, pod), []string{"pod"}, blank(), pod)
	}

	c.takeInto(path, value)
}

// podName is the name that Talos has for a pod of the main document (machinery 1.14, v1alpha1_k8s_bridge.go).
func podName(pod *yaml.Node) string {
	name, namespace := "default", "default"

	if metadata := valueOf(pod, "metadata"); metadata != nil {
		if own := textOf(metadata, "name"); own != "" {
			name = own
		}

		if own := textOf(metadata, "namespace"); own != "" {
			namespace = own
		}
	}

	return namespace + "-" + name
}

func (c *Converter) inlineManifests(path []string) {
	for _, element := range c.value(path).Content {
		if labels.ValidateDNS1123Subdomain(textOf(element, "name")) != nil {
			c.keep(path, "a name is none that KubeInlineManifestConfig can have")

			return
		}
	}

	c.each(path, k8s.KubeInlineManifestConfig, func(element, document *yaml.Node) {
		if contents := valueOf(element, "contents"); contents != nil {
			// As the main document does (machinery 1.14, v1alpha1_types.go).
			contents.Value = strings.TrimLeft(contents.Value, "\t\n\v\f\r")
			set(document, []string{"manifest"}, blank(), contents)
		}
	})
}

// install finds a disk by an expression. The library loses it when it merges a document without one, so that each
// document of later patches has it, too.
func (c *Converter) install(path []string) {
	value := c.value(path)

	if c.installStays {
		c.keep(path, "UnattendedInstallConfig has no arguments of the kernel and no extensions, which a schematic has")

		return
	}

	var parsed v1alpha1.InstallConfig
	if err := value.Decode(&parsed); err != nil {
		c.mistake(path, "it cannot be read")

		return
	}

	if parsed.InstallDisk != "" || parsed.InstallDiskSelector != nil {
		expression, err := c.find(&parsed)
		if err != nil {
			c.mistake(path, "its disk cannot be found by an expression")

			return
		}

		c.disk = expression
	}

	c.putInstall(value, c.take(path))
}

func (c *Converter) putInstall(value, key *yaml.Node) {
	const kind = runtime.UnattendedInstallConfigKind

	if image := valueOf(value, "image"); image != nil {
		c.put(kind, "", []string{"installer", "image"}, key, image)
	}

	if c.disk != "" {
		c.put(kind, "", []string{"provisioning", "diskSelector", "match"}, key, text(c.disk))
	}

	// Its default is another one: true.
	if wipe := valueOf(value, "wipe"); wipe != nil {
		c.put(kind, "", []string{"provisioning", "wipe"}, key, wipe)
	} else if c.disk != "" && !c.again(kind) {
		c.put(kind, "", []string{"provisioning", "wipe"}, key, scalar("false", "!!bool", blank()))
	}
}

func (c *Converter) manifestsDirectory(path []string) {
	if isTrue(c.value(path)) {
		c.remove(path, "contract v1.14 always does it")
	} else {
		c.mistake(path, "the kubelet reads no directory of manifests with contract v1.14: write a KubeStaticPodConfig")
	}
}
