package machineset

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// What an apply does on the host cluster, from configuration and state alone. Shared objects are created and changed
// before the first step. The objects of one machine belong to its own steps.

// hostCreation lists the shared objects that a create makes on the host.
func (p Set) hostCreation() []string {
	var lines []string

	h := p.host()
	if h.CreateNamespace {
		lines = append(lines, p.namespaceLine())
	}

	if e := h.Endpoint; e != nil {
		lines = append(lines, fmt.Sprintf("create Service %s of type %s on the host cluster", p.Settings.Name, e.Type))
	}

	return lines
}

func (p Set) namespaceLine() string {
	return fmt.Sprintf("create namespace %s on the host cluster, unless it is there", p.Host.Namespace)
}

// hostChanges lists what an update changes on the host except pods: differences from state, and drift that a refresh
// observed.
func (p Set) hostChanges(prior Set, recorded PriorState) []preparation {
	if !p.remakes(prior) {
		return nil
	}

	return slices.Concat(p.repairs(recorded), generally(p.sharedChanges(prior)), p.growth(prior, recorded))
}

// sharedChanges lists what an update changes in the objects that machines share, and in the Services of all machines.
func (p Set) sharedChanges(prior Set) (lines []string) {
	now, before := p.Host, prior.Host

	if now.CreateNamespace && !before.CreateNamespace {
		lines = append(lines, p.namespaceLine())
	}

	if now.Endpoint != nil && before.Endpoint != nil {
		lines = append(lines, p.endpointChanges(*now.Endpoint, *before.Endpoint)...)
	}

	if machineService(now.Access) != machineService(before.Access) {
		lines = append(lines, fmt.Sprintf("change the Services of the machines on the host cluster: access %s -> %s",
			before.Access, now.Access))
	}

	return lines
}

// repairs lists the drift that a refresh observed, a line for each machine. The replacement of a pod is a step.
func (p Set) repairs(recorded PriorState) (lines []preparation) {
	for _, name := range p.Names() {
		kinds := []record.Kind{record.HostDiffers}
		if recorded.Replace[name] == "" {
			kinds = append(kinds, record.HostReplaces) // no step replaces the pod
		}

		var found []string
		for _, difference := range recorded.Seen[name].Drift.Of(kinds...) {
			found = append(found, difference.Found)
		}

		if len(found) > 0 {
			lines = append(lines, preparation{fmt.Sprintf("repair on the host cluster, for %s: %s", name,
				strings.Join(found, "; ")), []string{name}})
		}
	}

	return lines
}

func (p Set) endpointChanges(now, before workload.EndpointService) []string {
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

	if now.TalosAPI != before.TalosAPI {
		what = append(what, "talos_api")
	}

	if len(what) == 0 {
		return nil
	}

	return []string{"change the Services of the Kubernetes API on the host cluster: " + strings.Join(what, ", ")}
}

// machineService is what a kind of access needs of the Services of machines.
func machineService(access workload.Access) workload.Access {
	if access == workload.Pod {
		return workload.PortForward
	}

	return access
}

// volume is one of the sizes of storage.
type volume struct {
	Name        string
	now, before resource.Quantity
}

func volumesOf(now, before workload.Storage) []volume {
	return []volume{{"state", now.State, before.State}, {"var", now.Var, before.Var}, {"other", now.Other, before.Other}}
}

// growth lists the volumes that grow, with machines of the same growth together.
func (p Set) growth(prior Set, recorded PriorState) (lines []preparation) {
	var machines finding.Alike[string]

	for _, name := range p.keptMachines(prior, recorded) {
		now, before := p.Machines[name].Pod.Storage, prior.Machines[name].Pod.Storage
		if now.Ephemeral {
			continue
		}

		for _, v := range volumesOf(now, before) {
			if v.now.Cmp(v.before) > 0 {
				machines.Add(fmt.Sprintf("%s %s -> %s", v.Name, v.before.String(), v.now.String()), name)
			}
		}
	}

	for what, names := range machines.All() {
		lines = append(lines, preparation{fmt.Sprintf("grow volumes of %s: %s", finding.Describe(names), what), names})
	}

	return lines
}

// keptMachines lists the recorded machines that are in both pools.
func (p Set) keptMachines(prior Set, recorded PriorState) []string {
	return slices.DeleteFunc(p.Names(), func(name string) bool {
		_, before := prior.Machines[name]
		_, known := recorded.Machines[name]

		return !before || !known
	})
}

// refuseHostChanges refuses impossible changes to the volumes of existing machines.
func refuseHostChanges(p, prior Set, recorded PriorState) finding.List {
	if !p.remakes(prior) || (p.Unknown | prior.Unknown).Has(UnknownConfiguration) {
		return nil
	}

	var diags finding.List

	for _, g := range p.Groups {
		kept := slices.DeleteFunc(p.keptMachines(prior, recorded),
			func(name string) bool { return p.Machines[name].Group != g })
		if len(kept) == 0 {
			continue
		}

		now, before := p.Machines[kept[0]].Pod.Storage, prior.Machines[kept[0]].Pod.Storage
		diags.Append(refuseStorage(g.storagePath(), kept, now, before)...)
	}

	return diags
}

// podPath is the attribute that describes the pods of a group.
func (g *Group) podPath() finding.Path {
	if !g.OwnPod {
		return finding.Root("host").AtName("pod")
	}

	return g.At.AtName("pod")
}

// storagePath is the attribute with the storage of a group.
func (g *Group) storagePath() finding.Path { return g.podPath().AtName("storage") }

func refuseStorage(at finding.Path, machines []string, now, before workload.Storage) finding.List {
	var diags finding.List

	switch {
	case now.Ephemeral != before.Ephemeral && before.Ephemeral:
		diags.Append(storageToVolumes.At(at.AtName("ephemeral"), finding.Args{"machines": machines}))
	case now.Ephemeral != before.Ephemeral:
		diags.Append(storageToPods.At(at.AtName("ephemeral"), finding.Args{"machines": machines}))
	case now.Ephemeral:
		return nil
	}

	if now.Class != before.Class {
		diags.Append(storageClassChange.At(at.AtName("class"), finding.Args{"machines": machines, "before": before.Class,
			"now": now.Class}))
	}

	for _, v := range volumesOf(now, before) {
		if v.now.Cmp(v.before) < 0 {
			diags.Append(storageShrinks.At(at.AtName(v.Name), finding.Args{"machines": machines, "volume": v.Name,
				"before": v.before.String(), "now": v.now.String()}))
		}
	}

	return diags
}

// withReplacements is the state with the reason for every pod of a running machine that must be replaced. It compares
// the recorded specification; the run itself asks the host cluster.
func (r PriorState) withReplacements(p, prior Set) (PriorState, finding.List) {
	if !p.Platform().made {
		return r, nil
	}

	bundle, err := pki.Parse([]byte(p.Secrets))
	if err != nil {
		return r, finding.List{finding.InvalidSecrets(p.secretsPath(), err)}
	}

	r.Replace = map[string]string{}
	spec := p.HostSpec(PriorState{}, bundle.Mark())

	for _, name := range p.Names() {
		if r.Machines[name].Access != step.Member {
			continue
		}

		digest, err := workload.PodDigest(spec, name)
		if err != nil {
			return r, finding.List{podFailed.With(finding.Args{"machine": name, "problem": err.Error()})}
		}

		// A refresh that found another specification of the pod names the difference and records no digest.
		seen := r.Seen[name]

		switch reason := seen.Drift.First(record.HostReplaces).Found; {
		case seen.PodDigest == digest:
		case seen.PodDigest != "":
			r.Replace[name] = p.podChanges(prior, name)
		case reason != "":
			r.Replace[name] = reason
		}
	}

	return r, nil
}

// podChanges names the differences between two pods of a machine by their attributes.
func (p Set) podChanges(prior Set, name string) string {
	now, before := p.Machines[name], prior.Machines[name]

	var changed []string

	if p.remakes(prior) && before.Group != nil {
		for _, of := range []struct {
			Name        string
			now, before any
		}{
			{"image", imageName(now.Image), imageName(before.Image)},
			{"image_pull_secrets", p.Host.PullSecrets, prior.Host.PullSecrets},
			{"resources", resourcesOf(now.Pod), resourcesOf(before.Pod)},
			{"node_selector", now.Pod.NodeSelector, before.Pod.NodeSelector},
			{"tolerations", now.Pod.Tolerations, before.Pod.Tolerations},
			{"priority_class", now.Pod.PriorityClass, before.Pod.PriorityClass},
			{"annotations", [2]map[string]string{p.Host.Annotations, now.Pod.Annotations},
				[2]map[string]string{prior.Host.Annotations, before.Pod.Annotations}},
			{"labels", p.Host.Labels, prior.Host.Labels},
		} {
			if !reflect.DeepEqual(of.now, of.before) {
				changed = append(changed, of.Name)
			}
		}
	}

	if len(changed) == 0 {
		return "it was made of something else than is wanted"
	}

	return "changes " + strings.Join(changed, ", ")
}

// resourcesOf are the resources of a pod in their canonical spelling.
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

// makes reports whether a plan has machines that are not known to exist.
func (p Set) makes(recorded Record) bool {
	for _, name := range p.Names() {
		if state, known := recorded.Machines[name]; !known || state.Access != step.Member {
			return true
		}
	}

	return false
}
