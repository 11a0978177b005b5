package machineconfig

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// BoundPart is a part of a patch, by its index, that only works on the machines that it was written for.
type BoundPart struct {
	Patch int
	// Path is a field of the main document, or the kind and name of a document.
	Path string
	// Reason is what it is about: one of the reasons below.
	Reason string
}

// What a machine has that a copy of its cluster does not have.
const (
	boundDisk    = "disks and volumes"
	boundNetwork = "addresses and links"
	boundKernel  = "kernel and devices"
	boundPeer    = "other systems"
)

// boundKinds are the documents that are bound to a machine or its site (machinery 1.14).
var boundKinds = map[string]string{
	"ExistingVolumeConfig": boundDisk, "ExternalVolumeConfig": boundDisk, "FilesystemScrubConfig": boundDisk,
	"FilesystemTrimConfig": boundDisk, "ImageCacheConfig": boundDisk, "LVMLogicalVolumeConfig": boundDisk,
	"LVMVolumeGroupConfig": boundDisk, "RAIDArrayConfig": boundDisk, "RawVolumeConfig": boundDisk,
	"SwapVolumeConfig": boundDisk, "UnattendedInstallConfig": boundDisk, "UserVolumeConfig": boundDisk,
	"VolumeConfig": boundDisk, "ZswapConfig": boundDisk,

	"BGPInstanceConfig": boundNetwork, "BlackholeRouteConfig": boundNetwork, "BondConfig": boundNetwork,
	"BridgeConfig": boundNetwork, "DHCPv4Config": boundNetwork, "DHCPv6Config": boundNetwork,
	"DummyLinkConfig": boundNetwork, "EthernetConfig": boundNetwork, "HCloudVIPConfig": boundNetwork,
	"HostnameConfig": boundNetwork, "Layer2VIPConfig": boundNetwork, "LinkAliasConfig": boundNetwork,
	"LinkConfig": boundNetwork, "NetworkDefaultActionConfig": boundNetwork, "NetworkRuleConfig": boundNetwork,
	"ResolverConfig": boundNetwork, "RoutingRuleConfig": boundNetwork, "StaticHostConfig": boundNetwork,
	"VLANConfig": boundNetwork, "VRFConfig": boundNetwork, "VethConfig": boundNetwork, "WireguardConfig": boundNetwork,

	"KernelModuleConfig": boundKernel, "PCIDriverRebindConfig": boundKernel, "SysctlConfig": boundKernel,
	"SysfsConfig": boundKernel, "UdevRulesConfig": boundKernel, "WatchdogTimerConfig": boundKernel,

	"DiscoveryIdentityConfig": boundPeer, "DiscoveryServiceConfig": boundPeer, "EventSinkConfig": boundPeer,
	"HTTPProbeConfig": boundPeer, "KmsgLogConfig": boundPeer, "KubeSpanConfig": boundPeer,
	"KubeSpanEndpointsConfig": boundPeer, "SideroLinkConfig": boundPeer, "TCPProbeConfig": boundPeer,
	"TimeSyncConfig": boundPeer,
}

// boundFields are the fields of the main document, with slashes between names, and of documents that are portable
// otherwise, after their kind.
var boundFields = map[string]string{
	"machine/disks": boundDisk, "machine/install": boundDisk, "machine/kubelet/extraMounts": boundDisk,
	"machine/systemDiskEncryption": boundDisk, "KubeletConfig/extraMounts": boundDisk,

	"cluster/apiServer/certSANs": boundNetwork, "cluster/controlPlane/endpoint": boundNetwork,
	"cluster/etcd/advertisedSubnets": boundNetwork, "cluster/etcd/listenSubnets": boundNetwork,
	"cluster/etcd/subnet": boundNetwork, "machine/certSANs": boundNetwork, "machine/kubelet/nodeIP": boundNetwork,
	"machine/network": boundNetwork,

	"machine/kernel": boundKernel, "machine/sysctls": boundKernel, "machine/sysfs": boundKernel,
	"machine/udev": boundKernel,

	"cluster/discovery": boundPeer, "cluster/externalCloudProvider": boundPeer, "machine/logging": boundPeer,
	"machine/time": boundPeer,
}

// WithoutHardware are patches without the documents and fields that are bound to machines: their disks, links,
// addresses, kernel and site. So a copy of a cluster, such as one in containers, can have the rest of its
// configuration. A patch of which nothing is left is left out. Errors are FieldErrors.
func WithoutHardware(patches []string) (portable []string, bound []BoundPart, err error) {
	portable = []string{}

	var found problems

	for i, text := range patches {
		if _, err := parsePatch(at("patches", i), text); err != nil {
			found = append(found, err)

			continue
		}

		left, parts, err := withoutBound(text)
		if err != nil {
			found = append(found, err)

			continue
		}

		if len(parts) == 0 && left != "" {
			left = text // as it was written
		}

		for _, part := range parts {
			part.Patch = i
			bound = append(bound, part)
		}

		if left != "" {
			portable = append(portable, left)
		}
	}

	return portable, bound, found.err()
}

// withoutBound is a patch without its bound parts.
func withoutBound(patch string) (left string, bound []BoundPart, err error) {
	chunks, err := split(patch)
	if err != nil {
		return "", nil, fmt.Errorf("read patch: %w", errNotData)
	}

	var texts []string

	for _, c := range chunks {
		if c.node == nil {
			continue
		}

		name := identify(c.node)
		if reason := boundKinds[name.kind]; reason != "" {
			bound = append(bound, BoundPart{Path: strings.TrimSpace(name.kind + " " + name.name), Reason: reason})

			continue
		}

		text, parts, err := chunkWithoutBound(c, name.kind)
		if err != nil {
			return "", nil, err
		}

		bound = append(bound, parts...)

		if text != "" {
			texts = append(texts, text)
		}
	}

	return strings.Join(texts, "---\n"), bound, nil
}

// chunkWithoutBound is a document without its bound fields, and as it was written if it has none.
func chunkWithoutBound(c chunk, kind string) (text string, bound []BoundPart, err error) {
	root := writtenOut(c.node)

	if root.Kind == yaml.SequenceNode {
		bound = dropOperations(root)
	} else {
		bound = dropFields(root, kind)
	}

	switch {
	case len(bound) == 0:
		return withoutSeparator(c.text), nil, nil
	case len(root.Content) == 0:
		return "", bound, nil
	}

	encoded, err := encodeNode(root)

	return string(encoded), bound, err
}

// namesTo are the names on the way to a bound field of documents of a kind, empty for the main one.
func namesTo(field, kind string) (path []string, ok bool) {
	path = strings.Split(field, "/")

	switch named := path[0] != "machine" && path[0] != "cluster"; {
	case named && path[0] == kind:
		return path[1:], true
	default:
		return path, !named && kind == ""
	}
}

// dropFields removes bound fields from a document.
func dropFields(root *yaml.Node, kind string) (bound []BoundPart) {
	for field, reason := range boundFields {
		if path, ok := namesTo(field, kind); ok && dropAt(root, path) {
			bound = append(bound, BoundPart{Path: strings.ReplaceAll(field, "/", "."), Reason: reason})
		}
	}

	slices.SortFunc(bound, func(a, b BoundPart) int { return strings.Compare(a.Path, b.Path) })

	return bound
}

// dropAt removes a field below a node, and the maps that are empty without it.
func dropAt(node *yaml.Node, path []string) (dropped bool) {
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value != path[0] {
			continue
		}

		value := node.Content[i+1]
		if len(path) > 1 && !dropAt(value, path[1:]) {
			return false
		}

		if len(path) == 1 || len(value.Content) == 0 {
			node.Content = slices.Delete(node.Content, i, i+2)
		}

		return true
	}

	return false
}

// dropOperations removes the JSON 6902 operations on bound fields.
func dropOperations(root *yaml.Node) (bound []BoundPart) {
	root.Content = slices.DeleteFunc(root.Content, func(operation *yaml.Node) bool {
		at := strings.Split(strings.Trim(scalarAt(operation, "path"), "/"), "/")

		for field, reason := range boundFields {
			path, ok := namesTo(field, "")
			if ok && len(at) >= len(path) && slices.Equal(at[:len(path)], path) {
				bound = append(bound, BoundPart{Path: strings.Join(at, "."), Reason: reason})

				return true
			}
		}

		return false
	})

	return bound
}
