package machineconfig

import (
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cri"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
)

// Parts of configurations whose values carry secrets without Talos treating them as such (machinery 1.13 and 1.14,
// RedactSecrets leaves them in clear text).
var (
	// secretDocuments are by kind; an empty path is all of the document.
	secretDocuments = map[string]fieldpath.Path{
		k8s.KubeExternalManifestConfig: {"headers"}, k8s.KubeInlineManifestConfig: {"manifest"},
		k8s.KubeCredentialProviderConfig: {"configuration"}, k8s.KubeStaticPodConfig: {"pod"},
		runtime.EtcFileConfigKind: {"contents"}, cri.CRICustomizationConfigKind: {"content"},
	}
	secretTrees = []fieldpath.Path{
		{"cluster", "extraManifestHeaders"}, {"machine", "kubelet", "credentialProviderConfig"}, {"environment"},
		{"variables"},
	}
	secretListFields = []struct {
		list  fieldpath.Path
		field string
	}{
		{fieldpath.Path{"machine", "files"}, "content"}, {fieldpath.Path{"cluster", "inlineManifests"}, "contents"},
		{fieldpath.Path{"configFiles"}, "content"},
	}
	secretWords = []string{"password", "passphrase", "secret", "token"}
)

// oftenSecret says whether the value at a path of a document often is a secret.
func oftenSecret(kind string, path fieldpath.Path) bool {
	if len(path) == 0 {
		return false
	}

	if tree, ok := secretDocuments[kind]; ok && path.StartsWith(tree...) {
		return true
	}

	for _, tree := range secretTrees {
		if path.StartsWith(tree...) {
			return true
		}
	}

	for _, secret := range secretListFields {
		if path.StartsWith(secret.list...) && len(path) == len(secret.list)+2 && path[len(path)-1] == secret.field {
			return true
		}
	}

	last, named := path[len(path)-1].(string)
	if !named && len(path) > 1 {
		last, _ = path[len(path)-2].(string) // of an element the list
	}

	return slices.Contains(path, any("env")) || namesSecret(last)
}

// namesSecret says whether a name is one that secrets often have.
func namesSecret(name string) bool {
	name = strings.ToLower(name)

	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}

// plainSettings are parts of documents, by kind, whose values are settings that people put in reviews. The main
// document is v1alpha1; an empty path is all of a document.
var plainSettings = map[string][]fieldpath.Path{
	"v1alpha1": {
		{"machine", "sysctls"}, {"machine", "sysfs"}, {"machine", "nodeLabels"}, {"machine", "nodeTaints"},
		{"machine", "time"}, {"machine", "features"}, {"machine", "network", "hostname"},
		{"machine", "install", "disk"}, {"machine", "install", "image"}, {"machine", "kubelet", "image"},
	},
	network.HostnameKind: {{}}, runtime.SysctlConfigKind: {{}}, runtime.SysfsConfigKind: {{}},
	runtime.SecurityProfileConfigKind: {{}}, block.FilesystemTrimConfigKind: {{}}, k8s.KubePrismConfig: {{}},
	k8s.KubeNodeConfig: {{"labels"}, {"taints"}}, k8s.KubeletConfig: {{"image"}},
	runtime.UnattendedInstallConfigKind: {{}},
}

// isPlainSetting says whether the value at a path of a document is one that people put in reviews.
func isPlainSetting(kind string, path fieldpath.Path) bool {
	return slices.ContainsFunc(plainSettings[kind], func(tree fieldpath.Path) bool { return path.StartsWith(tree...) })
}
