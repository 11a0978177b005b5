package cluster_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// The lines about Kubernetes in a scenario file (see TestPlan_scenarios):
//
//	-- spec --                                    -- snapshot --
//	kubernetes v1.36.3 via=v1.35.4                runs v1.34.2 cp-1 cp-2 w-1
//	kubernetes v1.36.3 manifests=v1.35.4          runs cp-1 kube-apiserver=v1.36.3 kubelet=v1.34.2
//	kubernetes v1.36.3 changed=Flannel,CoreDNS    policy keep-manifests
//	cp-1 controlplane 10.0.0.1 images=my.reg/k8s  runs cp-1 kube-apiserver=v1.36.3(broken)
//	cp-2 controlplane 10.0.0.2 no-proxy           cp-1 member stage=running ready pulled=v1.35.4
//	w-1 worker 10.0.0.3 kubelet=my.reg/k@sha256:a w-1 member stage=running in-upgrade
//	policy drain-for-kubelet                      manifests v1.35.4
//
// Machines that follow a kubernetes line want its images from registry.k8s.io. runs is what the configuration of
// machines has and Kubernetes shows, so it follows them and their nodes. A value with a slash is a whole image, and
// (broken) is a pod that is not ready, also in the condition of its machine.

func parseKubernetes(t *testing.T, spec *cluster.Spec, f []string) {
	t.Helper()

	spec.Kubernetes.Version = f[0]

	for _, setting := range f[1:] {
		switch key, value, _ := strings.Cut(setting, "="); key {
		case "via":
			spec.Kubernetes.Via = strings.Split(value, ",")
		case "manifests":
			spec.Kubernetes.Manifests = value
		case "changed":
			spec.Kubernetes.Changed = strings.Split(value, ",")
		default:
			t.Fatalf("unknown setting %q", setting)
		}
	}
}

// imagesOf are those of a machine at a version.
func imagesOf(role step.Role, version string) kubenames.Images {
	images := kubenames.Images{}

	for _, c := range inOrder {
		if role == step.ControlPlane || c == kubenames.Kubelet {
			images[c] = "registry.k8s.io/" + string(c) + ":" + version
		}
	}

	return images
}

// parseRuns reads what machines run: a version on many, or components of one.
func parseRuns(t *testing.T, want cluster.Spec, have *cluster.Snapshot, f []string) {
	t.Helper()

	if strings.HasPrefix(f[0], "v") {
		for _, name := range f[1:] {
			for c, image := range imagesOf(roleIn(want, *have, name), f[0]) {
				runs(want, have, name, c, image, true)
			}
		}

		return
	}

	for _, setting := range f[1:] {
		component, value, _ := strings.Cut(setting, "=")
		value, broken := strings.CutSuffix(value, "(broken)")

		if !strings.Contains(value, "/") {
			value = "registry.k8s.io/" + component + ":" + value
		}

		runs(want, have, f[0], kubenames.Component(component), value, !broken)
	}
}

func roleIn(want cluster.Spec, have cluster.Snapshot, name string) step.Role {
	if m, ok := want.Find(name); ok {
		return m.Role
	}

	for _, n := range have.Kubernetes.Nodes {
		if n.Name == name && n.ControlPlane {
			return step.ControlPlane
		}
	}

	return step.Worker
}

// runs gives a machine of the snapshot an image in its configuration, and its node shows it.
func runs(want cluster.Spec, have *cluster.Snapshot, name string, c kubenames.Component, image string, ready bool) {
	_, known := want.Find(name)

	if s := have.Machines[name]; known {
		if want.Kubernetes.Version != "" {
			s.Images = withImage(s.Images, c, image)
		}

		if !ready {
			s.Ready, s.Unmet = false, append(s.Unmet, "staticPods: "+string(c)+" not ready")
		}

		have.Machines[name] = s
	}

	for i := range have.Kubernetes.Nodes {
		n := &have.Kubernetes.Nodes[i]

		switch {
		case n.Name != name:
		case c == kubenames.Kubelet:
			n.KubeletVersion, _ = kubenames.ImageVersion(image)
		case c.StaticPod():
			if n.StaticPods == nil {
				n.StaticPods = map[string]kubestate.StaticPod{}
			}

			n.StaticPods[string(c)] = kubestate.StaticPod{Image: image, Ready: ready}
		}
	}
}
