package kubernetes_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

func TestDrain_waitsForVolumesOnClusters(t *testing.T) {
	t.Parallel()
	onClusters(t, func(t *testing.T, l *living) {
		t.Helper()

		tests := map[string]func(*testing.T, *living){
			"until they are detached":         testDrainUntilDetached,
			"when time runs out":              testDrainVolumesOutOfTime,
			"not for those of pods that stay": testDrainVolumesThatStay,
			"not if it ignores them":          testDrainIgnoresVolumes,
		}
		for name, test := range tests {
			t.Run(name, func(t *testing.T) { test(t, l) })
		}
	})
}

const csiDriver = "driver.longhorn.io"

// volume makes a volume with a claim of its name, attached to a node.
func (l *living) volume(t *testing.T, node, name string) {
	t.Helper()

	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}

	_, err := l.api.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes,
			ClaimRef: &corev1.ObjectReference{Namespace: "default", Name: name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: csiDriver, VolumeHandle: "handle-" + name}},
		},
	}, metav1.CreateOptions{})
	check(t, err)

	_, err = l.api.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + name, AccessModes: modes,
			Resources: corev1.VolumeResourceRequirements{Requests: size}},
	}, metav1.CreateOptions{})
	check(t, err)

	_, err = l.api.StorageV1().VolumeAttachments().Create(t.Context(), &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-" + name},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: csiDriver, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv-" + name)}},
	}, metav1.CreateOptions{})
	check(t, err)
}

// inStatus sets the volumes that the status of a node has as attached.
func (l *living) inStatus(t *testing.T, node string, names ...string) {
	t.Helper()

	now, err := l.api.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	check(t, err)

	now.Status.VolumesAttached = nil
	for _, name := range names {
		now.Status.VolumesAttached = append(now.Status.VolumesAttached, corev1.AttachedVolume{
			Name: corev1.UniqueVolumeName("kubernetes.io/csi/" + csiDriver + "^handle-" + name), DevicePath: "/dev/sdb"})
	}

	_, err = l.api.CoreV1().Nodes().UpdateStatus(t.Context(), now, metav1.UpdateOptions{})
	check(t, err)
}

// detach removes the attachment of a volume.
func (l *living) detach(t *testing.T, name string) {
	t.Helper()
	check(t, l.api.StorageV1().VolumeAttachments().Delete(t.Context(), "csi-"+name, metav1.DeleteOptions{}))
}

// using gives a pod a volume.
func using(claim string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	}
}

// The wait ends after both the attachment and the entry in the status of the node are gone.
func testDrainUntilDetached(t *testing.T, l *living) {
	t.Helper()
	l.node(t, "detaches", nil)
	l.node(t, "elsewhere", nil)
	l.volume(t, "detaches", "db")
	l.volume(t, "elsewhere", "other")
	l.inStatus(t, "detaches", "db")
	l.pod(t, "detaches", "db-0", using("db"))

	reports, done := make(chan string, 10), make(chan error, 1)
	client := l.client(t)

	go func() {
		done <- client.Drain(t.Context(), "detaches", patient, func(text string) { reports <- text })
	}()

	const want = "drain node detaches: waiting, 1 volume is still attached: pv-db (claim default/db, attacher " +
		"driver.longhorn.io)"

	select {
	case got := <-reports:
		if got != want {
			t.Errorf("reported %q, want %q", got, want)
		}
	case err := <-done:
		t.Fatalf("the drain ended with error %v while a volume is attached", err)
	}

	if got := l.pods(t, "detaches"); got != "" {
		t.Errorf("the drain waits for volumes while the pods %q run", got)
	}

	l.detach(t, "db")
	l.inStatus(t, "detaches")
	check(t, <-done)

	if len(reports) > 0 {
		t.Errorf("reported again: %q", <-reports)
	}
}

func testDrainVolumesOutOfTime(t *testing.T, l *living) {
	t.Helper()

	tests := map[cluster.DrainTimeout]string{
		cluster.DrainFail:  "drain node NODE: timed out after 1s: ",
		cluster.DrainSkip:  "drain node NODE: continuing although ",
		cluster.DrainForce: "drain node NODE: continuing although ",
	}
	for then, want := range tests {
		t.Run(string(then), func(t *testing.T) {
			node := "volumes-" + string(then)

			l.node(t, node, nil)
			l.volume(t, node, node)
			l.inStatus(t, node, "unknown-"+node)

			want = strings.ReplaceAll(want, "NODE", node) + "2 volumes are still attached: kubernetes.io/csi/" + csiDriver +
				"^handle-unknown-" + node + ", pv-" + node + " (claim default/" + node + ", attacher " + csiDriver + ")"

			reported, tell := heard()
			err := l.client(t).Drain(t.Context(), node, cluster.DrainPolicy{Timeout: time.Second, OnTimeout: then}, tell)

			got := strings.Join(*reported, "\n")
			if then == cluster.DrainFail {
				if err == nil || !wait.IsPermanent(err) {
					t.Fatalf("error %v, want a permanent one", err)
				}

				got, err = err.Error(), nil
			}

			check(t, err)

			if !strings.HasSuffix(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

// The pod of a DaemonSet, one with an ephemeral volume and a static pod keep theirs.
func testDrainVolumesThatStay(t *testing.T, l *living) {
	t.Helper()
	l.node(t, "stays", nil)

	owner := l.daemonSet(t, "storage")
	owned := func(change func(*corev1.Pod)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			change(p)
			p.OwnerReferences = []metav1.OwnerReference{owner}
		}
	}

	for _, name := range []string{"shared", "cache-1-scratch", "late"} {
		l.volume(t, "stays", name)
	}

	l.inStatus(t, "stays", "shared", "late")
	l.pod(t, "stays", "claims", owned(using("shared")))
	l.pod(t, "stays", "cache-1", owned(func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}}}}}
	}))
	l.pod(t, "stays", "evicted", using("late"))

	err := l.client(t).Drain(t.Context(), "stays", hasty(cluster.DrainFail), unheard)
	if err == nil || !strings.Contains(err.Error(), ": 1 volume is still attached: pv-late (") {
		t.Errorf("error %v, want the volume of the evicted pod alone", err)
	}

	l.detach(t, "late")
	l.inStatus(t, "stays", "shared")
	check(t, l.client(t).Drain(t.Context(), "stays", patient, unheard))
}

func testDrainIgnoresVolumes(t *testing.T, l *living) {
	t.Helper()
	l.node(t, "ignores", nil)
	l.volume(t, "ignores", "ignored")

	reported, tell := heard()
	check(t, l.client(t).Drain(t.Context(), "ignores", cluster.DrainPolicy{IgnoreVolumes: true, Timeout: time.Minute}, tell))

	if len(*reported) > 0 {
		t.Errorf("reported %q", *reported)
	}
}

// attachmentServer serves a node without pods, and answers requests for VolumeAttachments with a handler.
func attachmentServer(attachments http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/volumeattachments"):
			attachments(w, r)
		case strings.Contains(r.URL.Path, "/nodes/"):
			answer(w, http.StatusOK, corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}})
		default:
			answer(w, http.StatusOK, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}})
		}
	}
}

// Whether volumes are left is not known without the right to see them, so the drain ends whatever the policy says of
// volumes that are left.
func TestDrain_mayNotSeeVolumes(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	server := ca.apiServer(t, attachmentServer(refusal(http.StatusForbidden, metav1.StatusReasonForbidden)))

	for _, then := range []cluster.DrainTimeout{cluster.DrainFail, cluster.DrainForce, cluster.DrainSkip} {
		err := ca.client(t, server.URL).Drain(t.Context(), "worker-1",
			cluster.DrainPolicy{Timeout: time.Hour, OnTimeout: then}, unheard)
		if !wait.IsPermanent(err) || !strings.Contains(err.Error(), "list VolumeAttachments: ") {
			t.Errorf("%s: error %v, want a permanent one", then, err)
		}
	}
}

// An API that fails says nothing about volumes, so nothing is final, and a wait ends with its context.
func TestDrain_cannotSeeVolumes(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	server := ca.apiServer(t, attachmentServer(refusal(http.StatusInternalServerError,
		metav1.StatusReasonInternalError)))

	for _, then := range []cluster.DrainTimeout{cluster.DrainFail, cluster.DrainForce, cluster.DrainSkip} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, errors.New("interrupted"))

		err := ca.client(t, server.URL).Drain(ctx, "worker-1", cluster.DrainPolicy{Timeout: time.Second, OnTimeout: then}, unheard)
		if err == nil || wait.IsPermanent(err) {
			t.Errorf("%s: error %v, want one that may be repeated", then, err)
		}

		cancel()
	}
}

// A large cluster has thousands of attachments: a wait lists them once, and again after those of the node are gone.
func TestDrain_listsAttachmentsTwice(t *testing.T) {
	t.Parallel()

	const reads = 5

	var lists, gets atomic.Int32

	attachment := storagev1.VolumeAttachment{
		TypeMeta:   metav1.TypeMeta{Kind: "VolumeAttachment", APIVersion: "storage.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "csi-1"},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: "worker-1", Attacher: csiDriver},
	}
	empty := attachmentServer(func(w http.ResponseWriter, _ *http.Request) {
		list := storagev1.VolumeAttachmentList{
			TypeMeta: metav1.TypeMeta{Kind: "VolumeAttachmentList", APIVersion: "storage.k8s.io/v1"}}
		if lists.Add(1) == 1 {
			list.Items = []storagev1.VolumeAttachment{attachment}
		}

		answer(w, http.StatusOK, list)
	})

	ca := newAuthority(t)
	server := ca.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasSuffix(r.URL.Path, "/volumeattachments/csi-1"):
			empty(w, r)
		case gets.Add(1) < reads:
			answer(w, http.StatusOK, attachment)
		default:
			refusal(http.StatusNotFound, metav1.StatusReasonNotFound)(w, r)
		}
	})

	check(t, ca.client(t, server.URL).Drain(t.Context(), "worker-1", patient, unheard))

	if lists.Load() != 2 || gets.Load() != reads {
		t.Errorf("%d lists and %d reads of one, want 2 and %d", lists.Load(), gets.Load(), reads)
	}
}
