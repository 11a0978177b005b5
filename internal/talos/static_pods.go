package talos

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// observeStaticPods fills in the pods that Talos wants on a control plane, by which only
// changes are followed.
func (m *Machine) observeStaticPods(ctx context.Context, s *session, out *step.MachineState) (err error) {
	if m.fleet.options.TrustNodeNames || out.Role != step.ControlPlane {
		return nil
	}

	out.StaticPods, err = bounded(ctx, m, s.staticPods)

	return err
}

// staticPods reads the names of the static pods and the stamps of their configurations.
func (s *session) staticPods(ctx context.Context) (map[string]string, error) {
	items, err := list[*k8s.StaticPod](ctx, s)
	if err != nil {
		return nil, fmt.Errorf("list static pods: %w", err)
	}

	pods := map[string]string{}

	for pod := range items.All() {
		manifest, err := manifestOf(pod)
		if err != nil {
			return nil, err
		}

		// Pods that the user adds to machine.pods have no such annotations, and no
		// configuration of the control plane.
		if _, ours := manifest.Metadata.Annotations[constants.AnnotationStaticPodConfigVersion]; ours {
			pods[manifest.Metadata.Name] = kubenames.StaticPodStamp(manifest.Metadata.Annotations)
		}
	}

	return pods, nil
}

// podManifest is the part of a pod that is read here.
type podManifest struct {
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
}

func manifestOf(pod *k8s.StaticPod) (manifest podManifest, err error) {
	encoded, err := json.Marshal(pod.TypedSpec().Pod)
	if err == nil {
		err = json.Unmarshal(encoded, &manifest)
	}

	if err != nil {
		return manifest, fmt.Errorf("read static pod %s: %w", pod.Metadata().ID(), err)
	}

	return manifest, nil
}
