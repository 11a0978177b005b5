package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// Volume is a volume of Kubernetes that a pod uses.
type Volume struct {
	// Name of the pod and its claim in the namespace default.
	Name string
	// Linger is how long the volume stays attached after its pod left the node; negative for ever.
	Linger time.Duration
}

// Attacher is the CSI driver of volumes.
const Attacher = "csi.example.org"

// Persistent is the name of its PersistentVolume.
func (v Volume) Persistent() string { return "pvc-" + v.Name }

// unique is its name in the status of nodes.
func (v Volume) unique() corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName("kubernetes.io/csi/" + Attacher + "^" + v.Name)
}

// attachment is the name of its VolumeAttachment.
func (v Volume) attachment() string { return "csi-" + v.Name }

// AttachVolume makes a volume, its claim and a pod on a node that uses it, and attaches it, as the provisioner, the
// scheduler and the controllers do.
func (k *Client) AttachVolume(ctx context.Context, node string, v Volume) error {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}

	_, accountErr := k.Typed.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(accountErr) {
		accountErr = nil
	}

	_, volumeErr := k.Typed.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: v.Persistent()},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes,
			ClaimRef: &corev1.ObjectReference{Namespace: metav1.NamespaceDefault, Name: v.Name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: Attacher, VolumeHandle: v.Name}},
		},
	}, metav1.CreateOptions{})

	_, claimErr := k.Typed.CoreV1().PersistentVolumeClaims(metav1.NamespaceDefault).Create(ctx,
		&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: v.Name},
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: v.Persistent(), AccessModes: modes,
				Resources: corev1.VolumeResourceRequirements{Requests: size}},
		}, metav1.CreateOptions{})

	_, podErr := k.Typed.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, podWith(v, node), metav1.CreateOptions{})

	persistent := v.Persistent()
	_, attachErr := k.Typed.StorageV1().VolumeAttachments().Create(ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: v.attachment()},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: Attacher, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &persistent}},
	}, metav1.CreateOptions{})

	err := errors.Join(accountErr, volumeErr, claimErr, podErr, attachErr, k.inStatus(ctx, node, v, true))
	if err != nil {
		return fmt.Errorf("attach volume %s to node %s: %w", v.Name, node, err)
	}

	return nil
}

func podWith(v Volume, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: v.Name},
		Spec: corev1.PodSpec{
			NodeName:   node,
			Containers: []corev1.Container{{Name: "main", Image: "example.org/database"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.Name}}}},
		},
	}
}

// UsesVolume reports whether the pod of a volume is on a node.
func (k *Client) UsesVolume(ctx context.Context, node string, v Volume) (bool, error) {
	pod, err := k.Typed.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, v.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}

	return err == nil && pod.Spec.NodeName == node, err
}

// DetachVolume removes the attachment, and then the entry in the status of the node.
func (k *Client) DetachVolume(ctx context.Context, node string, v Volume) error {
	err := k.Typed.StorageV1().VolumeAttachments().Delete(ctx, v.attachment(), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("detach volume %s from node %s: %w", v.Name, node, err)
	}

	return k.inStatus(ctx, node, v, false)
}

// inStatus adds a volume to the status of a node, or removes it.
func (k *Client) inStatus(ctx context.Context, name string, v Volume, attached bool) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := k.GetNode(ctx, name)
		if apierrors.IsNotFound(err) && !attached {
			return nil
		}

		if err != nil {
			return err
		}

		node.Status.VolumesAttached = slices.DeleteFunc(node.Status.VolumesAttached,
			func(a corev1.AttachedVolume) bool { return a.Name == v.unique() })
		if attached {
			node.Status.VolumesAttached = append(node.Status.VolumesAttached,
				corev1.AttachedVolume{Name: v.unique(), DevicePath: "/dev/" + v.Name})
		}

		_, err = k.Typed.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})

		return err
	})
}
