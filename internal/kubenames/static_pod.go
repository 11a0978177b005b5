package kubenames

import "strings"

// StaticPodStamp names the configuration of a static pod by the versions that Talos
// annotates it with, which the kubelet passes on to the mirror pod (Talos 1.13,
// constants.AnnotationStaticPod*). Talos's own upgrade of Kubernetes waits for the first
// of them.
func StaticPodStamp(annotations map[string]string) string {
	return strings.Join([]string{
		annotations["talos.dev/config-version"],
		annotations["talos.dev/config-file-version"],
		annotations["talos.dev/secrets-version"],
	}, "/")
}
