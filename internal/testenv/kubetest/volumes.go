package kubetest

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// selectedNode tells a provisioner where the pod of a claim is going to run (Kubernetes 1.36, component-helpers,
// storage/volume/helpers.go AnnSelectedNode).
const selectedNode = "volume.kubernetes.io/selected-node"

// waits reports whether a claim gets its volume only when its pod has a node.
func (k *kubelets) waits(claim *corev1.PersistentVolumeClaim) bool {
	class := k.classOf(claim)

	return class != nil && class.VolumeBindingMode != nil &&
		*class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// classOf is the class of a claim, nil when it has none.
func (k *kubelets) classOf(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	class, err := k.classes.Get(deref(claim.Spec.StorageClassName))
	if err != nil {
		return nil
	}

	return class
}

// provision makes a volume for each claim that waits for one, to which the controllers bind it, and removes those
// that are released.
func (k *kubelets) provision(ctx context.Context) {
	claims, err := k.claims.List(labels.Everything())
	if err != nil {
		k.log("list claims: %v", err)
	}

	for _, claim := range claims {
		if _, hangs := claim.Annotations[HangAnnotation]; hangs || claim.Status.Phase == corev1.ClaimBound ||
			!claim.DeletionTimestamp.IsZero() {
			continue
		}

		if k.waits(claim) && claim.Annotations[selectedNode] == "" || deref(claim.Spec.StorageClassName) != "" &&
			k.classOf(claim) == nil {
			continue
		}

		_, err := k.api.CoreV1().PersistentVolumes().Create(ctx, k.volumeFor(claim), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
			k.log("provision for %s/%s: %v", claim.Namespace, claim.Name, err)
		}
	}

	k.reclaim(ctx)
}

// volumeFor is a volume of a node where the class of the claim waits for one, and of the whole cluster otherwise.
func (k *kubelets) volumeFor(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			StorageClassName:              deref(claim.Spec.StorageClassName),
			VolumeMode:                    claim.Spec.VolumeMode,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/var/local/" + name}},
		},
	}

	if class := k.classOf(claim); class != nil {
		// The controllers leave what another provisioner made to it.
		volume.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": class.Provisioner}
		volume.Spec.PersistentVolumeReclaimPolicy = *class.ReclaimPolicy
	}

	if node := claim.Annotations[selectedNode]; node != "" {
		volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
			Local: &corev1.LocalVolumeSource{Path: "/var/local/" + name}}
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{
			Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}}
	}

	return volume
}

// reclaim removes volumes whose claims are gone, as provisioners of the classes that say so do.
func (k *kubelets) reclaim(ctx context.Context) {
	volumes, err := k.volumes.List(labels.Everything())
	if err != nil {
		k.log("list volumes: %v", err)
	}

	for _, v := range volumes {
		if v.Status.Phase != corev1.VolumeReleased ||
			v.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
			continue
		}

		err := k.api.CoreV1().PersistentVolumes().Delete(ctx, v.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			k.log("remove volume %s: %v", v.Name, err)
		}
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}

	return *s
}
