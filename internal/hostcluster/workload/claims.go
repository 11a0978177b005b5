package workload

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Paths that Talos writes to besides (Talos 1.13, constants.StateMountPoint, EphemeralMountPoint and Overlays):
// /system/state has the machine's configuration, /var images, logs and etcd's data. /opt is an overlay on metal and no
// volume here: it has the CNI's programs, which a volume of Kubernetes would hide (internal/integration/k8s/tink.go).
const (
	statePath = "/system/state"
	varPath   = "/var"
)

var (
	// scratchPaths are empty at every start of a pod, as they are at every boot. What is mounted below them comes later.
	scratchPaths = []string{"/run", "/system", "/tmp"}
	// dataPaths survive their pod, but for ephemeral storage.
	dataPaths = []string{statePath, varPath, "/etc/cni", "/etc/kubernetes", "/usr/libexec/kubernetes"}
)

// volumeName of a path: state, var, etc-cni.
func volumeName(at string) string {
	if at == statePath {
		return path.Base(at)
	}

	return strings.ReplaceAll(strings.TrimPrefix(at, "/"), "/", "-")
}

// claimName of a machine's volume: var-dev-cp-0.
func (s Spec) claimName(m Machine, at string) string { return volumeName(at) + "-" + s.HostName(m) }

// Claims of a machine; none for ephemeral storage, whose sizes do not matter: a pod that is over the limit of an
// emptyDir is evicted, with all that the machine has.
func (s Spec) Claims(m Machine) []*corev1.PersistentVolumeClaim {
	if m.Pod.Storage.Ephemeral {
		return nil
	}

	claims := make([]*corev1.PersistentVolumeClaim, 0, len(dataPaths))

	for _, at := range dataPaths {
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name: s.claimName(m, at), Namespace: s.Namespace, Labels: s.machineLabels(m), Annotations: merged(s.Annotations),
			},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: m.Pod.Storage.size(at)}},
			},
		}

		if class := m.Pod.Storage.Class; class != "" {
			claim.Spec.StorageClassName = &class
		}

		claims = append(claims, claim)
	}

	return claims
}

func (s Storage) size(at string) resource.Quantity {
	switch at {
	case statePath:
		return s.State
	case varPath:
		return s.Var
	default:
		return s.Other
	}
}
