package kubenames

import "strings"

// StaticPodStamp identifies the configuration of a static pod by the versions in Talos's annotations, which the
// kubelet copies to the mirror pod (Talos 1.13, constants.AnnotationStaticPod*). Talos's own upgrade of Kubernetes
// waits for the first of them.
func StaticPodStamp(annotations map[string]string) string {
	return strings.Join([]string{
		annotations["talos.dev/config-version"],
		annotations["talos.dev/config-file-version"],
		annotations["talos.dev/secrets-version"],
	}, "/")
}
