package provider

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// What an apply does on the host cluster of machines in containers, from configuration and state alone: what machines
// share is made and changed before the first step, what one machine needs belongs to its own steps.

// refuseUnreachable refuses a plan that nothing says the host cluster of, neither the provider nor the resource.
func (m *machinery) refuseUnreachable(p pool) diag.Diagnostics {
	if p.host == nil || p.host.missing {
		return nil
	}

	if way := m.host.under(p.host.connection); way.unknown || way.given() {
		return nil
	}

	return diag.Diagnostics{invalid(path.Root("host"), "host", "nothing says how the host cluster is reached", "allowed is one of kubeconfig_path, kubeconfig and in_cluster",
		"set it in the host of the provider, or in that of the resource")}
}

// hostCreation lists what a create makes on the host that machines share.
func (p pool) hostCreation() []string {
	if p.host == nil {
		return nil
	}

	var lines []string

	if p.host.createNamespace {
		lines = append(lines, p.namespaceLine())
	}

	if e := p.host.endpoint; e != nil {
		lines = append(lines, fmt.Sprintf("create Service %s of type %s on the host cluster", p.settings.Name, e.Type))
	}

	return lines
}

func (p pool) namespaceLine() string {
	return fmt.Sprintf("create namespace %s on the host cluster, unless it is there", p.host.namespace)
}

// hostChanges lists what an update changes on the host beside pods: what differs from state, and what a refresh saw to be
// other than talosop left it.
func (p pool) hostChanges(prior pool, recorded recordedPool) []string {
	if p.host == nil || prior.host == nil {
		return nil
	}

	lines := p.repairs(recorded)
	now, before := p.host, prior.host

	if now.createNamespace && !before.createNamespace {
		lines = append(lines, p.namespaceLine())
	}

	if now.endpoint != nil && before.endpoint != nil {
		lines = append(lines, p.endpointChanges(*now.endpoint, *before.endpoint)...)
	}

	if machineService(now.access) != machineService(before.access) {
		lines = append(lines, fmt.Sprintf("change the Services of the machines on the host cluster: access %s -> %s", before.access, now.access))
	}

	return append(lines, p.growth(prior, recorded)...)
}

// repairs lists what a refresh saw. What a pod is replaced for is a step.
func (p pool) repairs(recorded recordedPool) []string {
	var lines []string

	for _, name := range p.names() {
		replaced := recorded.replace[name] != "" && recorded.pods[name] == ""

		for _, line := range recordedHostDrift(recorded.drift[name], replaced).repairs {
			lines = append(lines, fmt.Sprintf("put right on the host cluster, for %s: %s", name, line))
		}
	}

	return lines
}

func (p pool) endpointChanges(now, before workload.EndpointService) []string {
	var what []string

	if now.Type != before.Type {
		what = append(what, fmt.Sprintf("type %s -> %s", before.Type, now.Type))
	}

	if !maps.Equal(now.Annotations, before.Annotations) {
		what = append(what, "annotations")
	}

	if now.LoadBalancerClass != before.LoadBalancerClass {
		what = append(what, "load_balancer_class")
	}

	if len(what) == 0 {
		return nil
	}

	return []string{fmt.Sprintf("change Service %s on the host cluster: %s", p.settings.Name, strings.Join(what, ", "))}
}

// machineService is what a way in needs of the Services of machines.
func machineService(access workload.Access) workload.Access {
	if access == workload.Pod {
		return workload.PortForward
	}

	return access
}

// volume is one of the sizes of storage.
type volume struct {
	name        string
	now, before resource.Quantity
}

func volumesOf(now, before workload.Storage) []volume {
	return []volume{{"state", now.State, before.State}, {"var", now.Var, before.Var}, {"other", now.Other, before.Other}}
}

// growth lists the volumes of machines that grow, machines of the same growth together.
func (p pool) growth(prior pool, recorded recordedPool) []string {
	var order []string

	machines := map[string][]string{}

	for _, name := range p.keptMachines(prior, recorded) {
		now, before := p.machines[name].pod.Storage, prior.machines[name].pod.Storage
		if now.Ephemeral {
			continue
		}

		for _, v := range volumesOf(now, before) {
			if v.now.Cmp(v.before) > 0 {
				what := fmt.Sprintf("%s %s -> %s", v.name, v.before.String(), v.now.String())
				if machines[what] == nil {
					order = append(order, what)
				}

				machines[what] = append(machines[what], name)
			}
		}
	}

	var lines []string
	for _, what := range order {
		lines = append(lines, fmt.Sprintf("grow volumes of %s: %s", describe(machines[what]), what))
	}

	return lines
}

// keptMachines lists machines that are in both pools and that state knows.
func (p pool) keptMachines(prior pool, recorded recordedPool) []string {
	return slices.DeleteFunc(p.names(), func(name string) bool {
		_, before := prior.machines[name]
		_, known := recorded.machines[name]

		return !before || !known
	})
}

// refuseHostChanges refuses what cannot be done to the volumes of machines that are there.
func refuseHostChanges(p, prior pool, recorded recordedPool) diag.Diagnostics {
	if p.host == nil || prior.host == nil || p.unknown || prior.unknown {
		return nil
	}

	var diags diag.Diagnostics

	for _, g := range p.groups {
		kept := slices.DeleteFunc(p.keptMachines(prior, recorded), func(name string) bool { return p.machines[name].group != g })
		if len(kept) == 0 {
			continue
		}

		now, before := p.machines[kept[0]].pod.Storage, prior.machines[kept[0]].pod.Storage
		diags.Append(refuseStorage(g.storagePath(), kept, now, before)...)
	}

	return diags
}

// storagePath is where the storage of a group is said.
func (g *group) storagePath() path.Path {
	if g.Pod.IsNull() {
		return path.Root("host").AtName("pod").AtName("storage")
	}

	return g.at.AtName("pod").AtName("storage")
}

func refuseStorage(at path.Path, machines []string, now, before workload.Storage) diag.Diagnostics {
	var diags diag.Diagnostics

	const pools = "To have it otherwise, make another pool of workers with it, or replace the resource"

	refuse := func(name, found, reason, remedy string) {
		diags.Append(refused(at.AtName(name), "Unsupported change of storage", fmt.Sprintf("%s %s %s", machinesNamed(machines), verb(machines, "has", "have"), found), reason, remedy, pools))
	}

	switch {
	case now.Ephemeral != before.Ephemeral && before.Ephemeral:
		refuse("ephemeral", "the data in pods, and volumes are wanted", "They would be empty", "Set ephemeral to true")
	case now.Ephemeral != before.Ephemeral:
		refuse("ephemeral", "the data in volumes, and wanted is to have it in pods", "The data would be lost", "Set ephemeral to false")
	case now.Ephemeral:
		return nil
	}

	if now.Class != before.Class {
		remedy := "Set class to " + quote(before.Class)
		if before.Class == "" {
			remedy = "Leave class out: which class they have is not known, and it stays the same one without it"
		}

		refuse("class", fmt.Sprintf("volumes of %s, and wanted is %s", classText(before.Class), classText(now.Class)), "A volume stays in its class", remedy)
	}

	for _, v := range volumesOf(now, before) {
		if v.now.Cmp(v.before) < 0 {
			refuse(v.name, fmt.Sprintf("volumes of %s, and wanted are %s", v.before.String(), v.now.String()), "Volumes cannot shrink", fmt.Sprintf("Set %s to %s", v.name, v.before.String()))
		}
	}

	return diags
}

// classText names the class of volumes. That of a host cluster by default is not known by its name.
func classText(class string) string {
	if class == "" {
		return "the default class of the host cluster"
	}

	return "class " + quote(class)
}

// foreseePods notes for every machine that runs what its pod has to be replaced for. What the pod is made of is what was recorded;
// the run itself asks the host cluster.
func (r *recordedPool) foreseePods(p, prior pool) diag.Diagnostics {
	if p.host == nil {
		return nil
	}

	bundle, err := pki.Parse([]byte(p.secrets))
	if err != nil {
		return diag.Diagnostics{invalidSecrets(p.secretsPath(), err)}
	}

	r.replace = map[string]string{}
	spec := p.hostSpec(recordedPool{}, bundle.Mark())

	for _, name := range p.names() {
		if r.machines[name].Access != cluster.Member {
			continue
		}

		digest, err := workload.PodDigest(spec, name)
		if err != nil {
			return diag.Diagnostics{unable("plan", p.object, report{Cause: []string{err.Error()}})}
		}

		// A refresh that found a pod to be of something else says of what, and records no digest.
		switch reason := recordedHostDrift(r.drift[name], true).replace; {
		case r.pods[name] == digest:
		case r.pods[name] != "":
			r.replace[name] = p.podChanges(prior, name)
		case reason != "":
			r.replace[name] = reason
		}
	}

	return nil
}

// podChanges names what differs between two pods of a machine, as attributes are called.
func (p pool) podChanges(prior pool, name string) string {
	now, before := p.machines[name], prior.machines[name]

	var changed []string

	if prior.host != nil && before.group != nil {
		for _, of := range []struct {
			name        string
			now, before any
		}{
			{"image", imageName(now.image), imageName(before.image)},
			{"image_pull_secrets", p.host.pullSecrets, prior.host.pullSecrets},
			{"resources", resourcesOf(now.pod), resourcesOf(before.pod)},
			{"node_selector", now.pod.NodeSelector, before.pod.NodeSelector},
			{"tolerations", now.pod.Tolerations, before.pod.Tolerations},
			{"priority_class", now.pod.PriorityClass, before.pod.PriorityClass},
			{"annotations", [2]map[string]string{p.host.annotations, now.pod.Annotations}, [2]map[string]string{prior.host.annotations, before.pod.Annotations}},
			{"labels", p.host.labels, prior.host.labels},
		} {
			if !reflect.DeepEqual(of.now, of.before) {
				changed = append(changed, of.name)
			}
		}
	}

	if len(changed) == 0 {
		return "it was made of something else than is wanted"
	}

	return "changes " + strings.Join(changed, ", ")
}

// resourcesOf are those of a pod in their canonical spelling.
func resourcesOf(pod workload.PodSpec) [2]map[string]string {
	var out [2]map[string]string

	for i, list := range []corev1.ResourceList{pod.Resources.Requests, pod.Resources.Limits} {
		out[i] = map[string]string{}
		for name, q := range list {
			out[i][string(name)] = q.String()
		}
	}

	return out
}

// imageName is an image without its tag.
func imageName(image string) string {
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		return image[:i]
	}

	return image
}
