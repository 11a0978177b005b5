package machineconfig

import (
	"fmt"
	"slices"
	"strings"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
)

// A patch appends to lists (machinery 1.14, config/merge). Talos passes the configurations of Kubernetes'
// components on unchanged, and a component does not start with a duplicate in one of the lists below. Lists of
// Talos itself are not among them. Its own validation reads those, and kubelet's validSubnets, for example, may
// name a network twice (siderolabs/net, FilterIPs).

// uniqueList is a list that a component refuses where something is in it twice.
type uniqueList struct {
	// path leads to it; "*" is each element of a list.
	path string
	// key is the field that distinguishes its elements; empty where these are texts.
	key string
}

var (
	// k8s.io/pod-security-admission 0.36, admission/api/validation.
	podSecurityLists = []uniqueList{{path: "exemptions.namespaces"}, {path: "exemptions.usernames"},
		{path: "exemptions.runtimeClasses"}}
	// k8s.io/apiserver 0.36, pkg/apis/apiserver/validation.
	authenticationLists = []uniqueList{{path: "jwt", key: "issuer.url"}, {path: "jwt", key: "issuer.discoveryURL"},
		{path: "jwt.*.issuer.audiences"}}
	authorizationLists = []uniqueList{{path: "authorizers", key: "name"}, {path: "authorizers", key: "once"},
		{path: "authorizers.*.webhook.matchConditions", key: "expression"}}
	// k8s.io/kubernetes 1.36, pkg/kubelet/apis/config/validation and pkg/credentialprovider/plugin.
	// One NUMA node may have several entries in reservedMemory, of different resources.
	kubeletLists    = []uniqueList{{path: "enforceNodeAllocatable"}}
	credentialLists = []uniqueList{{path: "providers", key: "name"},
		{path: "providers.*.tokenAttributes.requiredServiceAccountAnnotationKeys"},
		{path: "providers.*.tokenAttributes.optionalServiceAccountAnnotationKeys"}}
	// k8s.io/kubernetes 1.36, pkg/scheduler/apis/config/validation.
	schedulerLists = []uniqueList{{path: "profiles", key: "schedulerName"}, {path: "profiles.*.pluginConfig", key: "name"},
		{path: "extenders.*.managedResources", key: "name"}}
)

// duplicate says what a component of Kubernetes finds twice in a list of a finished configuration; empty where it finds
// nothing twice.
func duplicate(p coreconfig.Provider) string {
	main := p.RawV1Alpha1()
	if main == nil || main.MachineConfig == nil {
		return ""
	}

	if kubelet := p.K8sKubeletConfig(); kubelet != nil {
		if found := duplicateIn("kubelet", "its configuration", kubelet.ExtraConfig(), kubeletLists); found != "" {
			return found
		}
	}

	if provider := p.K8sCredentialProviderConfig(); provider != nil {
		if found := duplicateIn("kubelet", "credential providers", provider.Configuration(), credentialLists); found != "" {
			return found
		}
	}

	if !main.Machine().Type().IsControlPlane() {
		return ""
	}

	return duplicateOfControlPlane(p)
}

func duplicateOfControlPlane(p coreconfig.Provider) string {
	for _, plugin := range p.K8sAdmissionControlPluginConfigs() {
		if plugin.Name() == "PodSecurity" {
			if found := duplicateIn("kube-apiserver", plugin.Name(), plugin.Configuration(), podSecurityLists); found != "" {
				return found
			}
		}
	}

	if own := p.K8sAuthenticationConfig(); own != nil {
		if found := duplicateIn("kube-apiserver", "authentication", own.Configuration(), authenticationLists); found != "" {
			return found
		}
	}

	if found := duplicateIn("kube-apiserver", "authorization", authorizers(p), authorizationLists); found != "" {
		return found
	}

	if scheduler := p.K8sSchedulerConfig(); scheduler != nil {
		return duplicateIn("kube-scheduler", "its configuration", scheduler.Config(), schedulerLists)
	}

	return ""
}

// authorizers are the authorizers as kube-apiserver reads them. Only those of type Webhook may be there several times.
func authorizers(p coreconfig.Provider) map[string]any {
	var list []any

	for _, authorizer := range p.K8sAuthorizerConfigs() {
		element := map[string]any{"name": authorizer.Name(), "webhook": authorizer.Webhook()}
		if authorizer.Type() != "Webhook" {
			element["once"] = authorizer.Type()
		}

		list = append(list, element)
	}

	return map[string]any{"authorizers": list}
}

func duplicateIn(component, part string, configuration map[string]any, lists []uniqueList) string {
	for _, list := range lists {
		if found := twice(configuration, strings.Split(list.path, "."), list.key); found != "" {
			return fmt.Sprintf("%s has %s twice in %s of %s, which makes %s fail to start", component, found,
				strings.ReplaceAll(list.path, ".*", "[]"), part, component)
		}
	}

	return ""
}

// twice is the duplicate in a list at a path.
func twice(value any, path []string, key string) string {
	if len(path) == 0 {
		return twiceIn(value, key)
	}

	if path[0] != "*" {
		fields, _ := value.(map[string]any)

		return twice(fields[path[0]], path[1:], key)
	}

	elements, _ := value.([]any)
	for _, element := range elements {
		if found := twice(element, path[1:], key); found != "" {
			return found
		}
	}

	return ""
}

func twiceIn(list any, key string) string {
	var seen []string

	elements, _ := list.([]any)
	for _, element := range elements {
		if key != "" {
			fields, _ := element.(map[string]any)
			element = valueIn(fields, strings.Split(key, "."))
		}

		if element == nil {
			continue
		}

		text := fmt.Sprint(element)
		if slices.Contains(seen, text) {
			return quoted(text)
		}

		seen = append(seen, text)
	}

	return ""
}

// inLists reports what a component finds twice in a list, at the patch that adds it.
func (g *Generator) inLists(d *documents, m Machine) error {
	found := duplicate(d.known)
	if found == "" {
		return nil
	}

	blamed := g.blame(m, found)
	blamed.Fix = "a patch appends to lists: leave out existing entries. To replace a list, delete its parent with " +
		"$patch: delete in an earlier patch, and set the whole list in this one"

	return blamed
}
