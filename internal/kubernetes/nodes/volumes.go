package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// The controller manager detaches a volume after its last pod on the node ended: it deletes the VolumeAttachment, waits
// until the CSI driver is done, and then takes the volume from the status of the node (Kubernetes 1.36,
// pkg/controller/volume/attachdetach). A machine that reboots before that leaves its replicas of a volume outdated, or
// blocks the volume for the six minutes until it is detached by force.

// detached is nil once no volume is attached to the node, except those of pods that the drain leaves there. It reports
// the first time that volumes are left. A missing right is permanent: it does not come with time.
func (d *draining) detached(ctx context.Context) error {
	if d.policy.IgnoreVolumes {
		return nil
	}

	left, err := d.attachedVolumes(ctx)

	switch {
	case apierrors.IsForbidden(err):
		return wait.Permanent(err)
	case err != nil:
		return err
	case len(left) == 0:
		return nil
	}

	text := describeVolumes(left)
	if !d.reported {
		d.report(fmt.Sprintf("drain node %s: waiting, %s", d.node, text))
	}

	d.reported = true

	return errors.New(text)
}

// volumesLeft decides about volumes that are left after the time of the drain.
func (d *draining) volumesLeft(ctx context.Context) error {
	if d.policy.IgnoreVolumes {
		return nil
	}

	left, err := d.attachedVolumes(ctx)
	if err != nil || len(left) == 0 {
		return err
	}

	text := describeVolumes(left)

	switch d.policy.OnTimeout {
	case cluster.DrainForce, cluster.DrainSkip:
		d.goOn(text)

		return nil
	default:
		return wait.Permanent(fmt.Errorf("timed out after %s: %s", d.policy.Timeout, text))
	}
}

// attachedVolumes describes the volumes that are attached to the node, without those of pods that stay there.
func (d *draining) attachedVolumes(ctx context.Context) ([]string, error) {
	if err := d.observeAttachments(ctx); err != nil {
		return nil, err
	}

	inStatus, err := d.volumesInStatus(ctx)
	if err != nil || len(d.attachments)+len(inStatus) == 0 {
		return nil, err
	}

	stay, err := d.stayingVolumes(ctx)
	if err != nil {
		return nil, err
	}

	var left []string

	named := map[corev1.UniqueVolumeName]bool{}

	for i := range d.attachments {
		volume, err := d.volume(ctx, ptr.Deref(d.attachments[i].Spec.Source.PersistentVolumeName, ""))
		if err != nil {
			return nil, err
		}

		named[nameInStatus(volume)] = true

		if !stay[volume.Name] {
			left = append(left, describeVolume(&d.attachments[i], volume))
		}
	}

	for name := range stay {
		volume, err := d.volume(ctx, name)
		if err != nil {
			return nil, err
		}

		named[nameInStatus(volume)] = true
	}

	for _, v := range inStatus {
		if !named[v.Name] {
			left = append(left, string(v.Name))
		}
	}

	slices.Sort(left)

	return left, nil
}

// observeAttachments reads the VolumeAttachments of the node. The API server selects them by no field but their names,
// and a large cluster has thousands. So those that were found are read one by one, and all again once these are gone.
func (d *draining) observeAttachments(ctx context.Context) error {
	var left []storagev1.VolumeAttachment

	for i := range d.attachments {
		a, err := d.api.StorageV1().VolumeAttachments().Get(ctx, d.attachments[i].Name, metav1.GetOptions{})

		switch {
		case err == nil:
			left = append(left, *a)
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("get VolumeAttachment %s: %w", d.attachments[i].Name, api.WithoutURL(err))
		}
	}

	if d.attachments = left; len(left) > 0 {
		return nil
	}

	list, err := d.api.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list VolumeAttachments: %w", api.WithoutURL(err))
	}

	d.attachments = slices.DeleteFunc(list.Items,
		func(a storagev1.VolumeAttachment) bool { return a.Spec.NodeName != d.node })

	return nil
}

// volumesInStatus are the volumes that the status of the node has as attached; none of a node that is gone.
func (d *draining) volumesInStatus(ctx context.Context) ([]corev1.AttachedVolume, error) {
	node, err := d.api.CoreV1().Nodes().Get(ctx, d.node, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("get its attached volumes: %w", api.WithoutURL(err))
	}

	return node.Status.VolumesAttached, nil
}

// stayingVolumes are the names of the volumes of pods that the drain leaves on the node, such as those of a DaemonSet.
// Pods that it does not leave there are being deleted by now.
func (d *draining) stayingVolumes(ctx context.Context) (map[string]bool, error) {
	pods, err := d.api.CoreV1().Pods(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + d.node})
	if err != nil {
		return nil, fmt.Errorf("list the pods that stay: %w", api.WithoutURL(err))
	}

	stay := map[string]bool{}

	for i := range pods.Items {
		pod := &pods.Items[i]
		if !pod.DeletionTimestamp.IsZero() {
			continue
		}

		for _, name := range claimsOf(pod) {
			claim, err := d.api.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})

			switch {
			case err == nil && claim.Spec.VolumeName != "":
				stay[claim.Spec.VolumeName] = true
			case err != nil && !apierrors.IsNotFound(err):
				return nil, fmt.Errorf("get PersistentVolumeClaim %s/%s: %w", pod.Namespace, name, api.WithoutURL(err))
			}
		}
	}

	return stay, nil
}

// claimsOf are the names of the claims of a pod. The claim of an ephemeral volume is named after pod and volume
// (Kubernetes 1.36, component-helpers, storage/ephemeral).
func claimsOf(pod *corev1.Pod) []string {
	var names []string

	for _, v := range pod.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, pod.Name+"-"+v.Name)
		}
	}

	return names
}

// volume is a PersistentVolume. One without a name, of an attachment that has none, is empty, and one that is gone has
// nothing but its name.
func (d *draining) volume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	if known := d.volumes[name]; known != nil || name == "" {
		return cmp.Or(known, &corev1.PersistentVolume{}), nil
	}

	volume, err := d.api.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("get PersistentVolume %s: %w", name, api.WithoutURL(err))
	}

	volume.Name = name
	d.volumes[name] = volume

	return volume, nil
}

// nameInStatus is the name of a volume of a CSI driver in the status of nodes (Kubernetes 1.36,
// pkg/volume/util.GetUniqueVolumeName); empty for any other.
func nameInStatus(volume *corev1.PersistentVolume) corev1.UniqueVolumeName {
	csi := volume.Spec.CSI
	if csi == nil {
		return ""
	}

	return corev1.UniqueVolumeName("kubernetes.io/csi/" + csi.Driver + "^" + csi.VolumeHandle)
}

func describeVolumes(left []string) string {
	if len(left) == 1 {
		return "1 volume is still attached: " + left[0]
	}

	return fmt.Sprintf("%d volumes are still attached: %s", len(left), strings.Join(left, ", "))
}

// describeVolume names a volume, its claim, what detaches it and the last error of that.
func describeVolume(a *storagev1.VolumeAttachment, volume *corev1.PersistentVolume) string {
	var details []string
	if claim := volume.Spec.ClaimRef; claim != nil {
		details = append(details, "claim "+claim.Namespace+"/"+claim.Name)
	}

	details = append(details, "attacher "+a.Spec.Attacher)

	if e := a.Status.DetachError; e != nil && e.Message != "" {
		details = append(details, api.OneLine(errors.New(e.Message)))
	}

	return fmt.Sprintf("%s (%s)", cmp.Or(volume.Name, a.Name), strings.Join(details, ", "))
}
