package workload

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// ContainerName of Talos in its pod.
	ContainerName = "talos"

	// graceSeconds is the time of a pod to shut down. On SIGTERM machined runs its shutdown sequence without a
	// drain (Talos 1.13, v1alpha1_controller.go ListenForEvents). It waits for the kubelet's own graceful shutdown
	// (30 s each for its finalizers and its pods, constants.KubeletShutdownGracePeriod). It stops the pods of the
	// pod network and then the others (30 s each), ends the services, etcd among them (15 s), and syncs the file
	// systems (30 s). A pod that shuts down faster is gone earlier; one that is killed too early stops etcd in the
	// middle of a write.
	graceSeconds = 240
)

// StatefulSet keeps the pod of a machine. There is one for each machine and it has one replica: it never has a second
// pod on the same volumes, and what is to be rolled is decided machine by machine. It replaces no pod by itself
// (OnDelete): that is a disruption, which the planner orders. Its claims are separate objects, because
// volumeClaimTemplates can never be changed.
func (s Spec) StatefulSet(m Machine) *appsv1.StatefulSet {
	one := int32(1)

	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: s.HostName(m), Namespace: s.Namespace, Labels: s.machineLabels(m),
			Annotations: merged(s.Annotations)},
		Spec: appsv1.StatefulSetSpec{
			Replicas:            &one,
			ServiceName:         s.HostName(m),
			Selector:            &metav1.LabelSelector{MatchLabels: s.machineSelector(m)},
			PodManagementPolicy: appsv1.ParallelPodManagement,
			UpdateStrategy:      appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: s.machineLabels(m), Annotations: merged(s.Annotations, m.Pod.Annotations)},
				Spec:       s.podSpec(m),
			},
		},
	}
}

// PodName is the pod's name from the StatefulSet controller.
func (s Spec) PodName(m Machine) string { return s.HostName(m) + podSuffix }

func (s Spec) podSpec(m Machine) corev1.PodSpec {
	no, grace := false, int64(graceSeconds)
	spec := corev1.PodSpec{
		Containers: []corev1.Container{container(m)},
		// Talos knows nothing of the host cluster and gets no way into it.
		AutomountServiceAccountToken:  &no,
		EnableServiceLinks:            &no,
		TerminationGracePeriodSeconds: &grace,
		NodeSelector:                  m.Pod.NodeSelector,
		Tolerations:                   m.Pod.Tolerations,
		PriorityClassName:             m.Pod.PriorityClass,
		TopologySpreadConstraints:     s.spread(m),
	}

	for _, name := range m.PullSecrets {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}

	for _, path := range scratchPaths {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: volumeName(path), VolumeSource: emptyDir()})
	}

	for _, path := range dataPaths {
		source := emptyDir()
		if !m.Pod.Storage.Ephemeral {
			source = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: s.claimName(m, path)}}
		}

		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: volumeName(path), VolumeSource: source})
	}

	return spec
}

// spread keeps machines of one role on different nodes where the host has them, so that a node that is lost takes no
// quorum along. It only prefers that: a host of one node has to do.
func (s Spec) spread(m Machine) []corev1.TopologySpreadConstraint {
	return []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: merged(s.identity(), map[string]string{LabelRole: string(m.Role)})},
	}}
}

// container runs Talos as its own end-to-end tests do on Kubernetes (Talos 1.13, internal/integration/k8s/tink.go
// getTinkManifests).
func container(m Machine) corev1.Container {
	yes, ready := true, talosPortName
	c := corev1.Container{
		Name:            ContainerName,
		Image:           m.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Env:             []corev1.EnvVar{{Name: "PLATFORM", Value: "container"}},
		Resources:       m.Pod.Resources,
		SecurityContext: &corev1.SecurityContext{
			Privileged:             &yes,
			ReadOnlyRootFilesystem: &yes,
			SeccompProfile:         &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined},
		},
		Ports: []corev1.ContainerPort{{Name: talosPortName, ContainerPort: talosPort, Protocol: corev1.ProtocolTCP}},
	}

	if m.Role == ControlPlane {
		ready = kubernetesPortName
		c.Ports = append(c.Ports,
			corev1.ContainerPort{Name: kubernetesPortName, ContainerPort: KubernetesPort, Protocol: corev1.ProtocolTCP},
			corev1.ContainerPort{Name: trustPortName, ContainerPort: trustPort, Protocol: corev1.ProtocolTCP},
		)
	}

	c.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(ready)}},
		PeriodSeconds: 5, TimeoutSeconds: 2, SuccessThreshold: 1, FailureThreshold: 3,
	}

	for _, path := range scratchPaths {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeName(path), MountPath: path})
	}

	for _, path := range dataPaths {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeName(path), MountPath: path})
	}

	return c
}

func emptyDir() corev1.VolumeSource {
	return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
}

// PodIPs are the addresses that a pod has.
func PodIPs(pod *corev1.Pod) []string {
	var ips []string
	for _, ip := range pod.Status.PodIPs {
		ips = append(ips, ip.IP)
	}

	return ips
}
