package upgrade

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/diagnose"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/nodes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

var proxy = workload{daemonSetKind, metav1.NamespaceSystem, "kube-proxy"}

// proxySet is kube-proxy on so many nodes.
func proxySet(wanted, updated, available int32) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: proxy.namespace, Name: proxy.name, UID: "proxy", Generation: 2},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "proxy"}}},
		Status: appsv1.DaemonSetStatus{
			ObservedGeneration: 2, DesiredNumberScheduled: wanted, UpdatedNumberScheduled: updated, NumberAvailable: available,
		},
	}
}

func dnsDeployment(change func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "coredns", UID: "dns", Generation: 2},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "dns"}}},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2},
	}
	change(d)

	return d
}

func conditionOf(ok bool) corev1.ConditionStatus {
	if ok {
		return corev1.ConditionTrue
	}

	return corev1.ConditionFalse
}

func nodeThat(name string, ready bool) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: conditionOf(ready)}}},
	}
}

// proxyPod is a pod of kube-proxy of a revision.
func proxyPod(node, revision string, ready bool) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: proxy.namespace, Name: "kube-proxy-" + node,
			Labels:          map[string]string{"app": "proxy", appsv1.ControllerRevisionHashLabelKey: revision},
			OwnerReferences: []metav1.OwnerReference{{UID: "proxy", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: conditionOf(ready)},
		}},
	}
}

func revisionOf(revision int64, hash string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: proxy.namespace, Name: hash,
			Labels:          map[string]string{"app": "proxy", appsv1.ControllerRevisionHashLabelKey: hash},
			OwnerReferences: []metav1.OwnerReference{{UID: "proxy", Controller: new(true)}},
		},
		Revision: revision,
	}
}

// clientOf is a client of an API that has objects.
func clientOf(given ...runtime.Object) (*Upgrade, *fake.Clientset) {
	kube := fake.NewClientset(given...)
	c := &api.Client{Interface: kube,
		Options: api.Options{Call: 10 * time.Second, Attempt: 5 * time.Second, Await: 5 * time.Minute, Poll: time.Second}}

	o := objects.New(c)

	return New(c, nodes.New(c), o, diagnose.New(c, o)), kube
}

// inTime lets a DaemonSet change with the time since the test began.
func inTime(api *fake.Clientset, status func(since time.Duration) (*appsv1.DaemonSet, error)) {
	began := time.Now()

	api.PrependReactor("get", "daemonsets", func(clienttesting.Action) (bool, runtime.Object, error) {
		set, err := status(time.Since(began))

		return true, set, err
	})
}

// A DaemonSet that replaces one pod after the other takes longer than what one pod may take.
func TestRollout_ofManyNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, api := clientOf(nodeThat("cp-1", true))

		inTime(api, func(since time.Duration) (*appsv1.DaemonSet, error) {
			updated := min(100, int32(since/(30*time.Second)))

			return proxySet(100, updated, 99+updated/100), nil
		})

		began := time.Now()
		if err := client.rolledOut(t.Context(), []workload{proxy}); err != nil || time.Since(began) < 50*time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestRollout_withoutProgress(t *testing.T) {
	t.Parallel()

	waiting := proxyPod("cp-1", "new", false)
	waiting.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "InvalidImageName", Message: "no such image"}},
	}}
	failed := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: proxy.namespace, Name: "1"}, Type: "Warning", Reason: "Failed",
		Message:        "cannot pull",
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: waiting.Name},
	}

	tests := map[string]struct {
		status func(time.Duration) (*appsv1.DaemonSet, error)
		// until is when it progressed last.
		until time.Duration
		want  string
	}{
		"stops half way": {
			func(since time.Duration) (*appsv1.DaemonSet, error) {
				return proxySet(60, min(20, int32(since/(10*time.Second))), 59), nil
			},
			200 * time.Second, "DaemonSet kube-system/kube-proxy: not updated: 40 of 60 pods, not available: 1 of 60 pods",
		},
		"pods come and go": {
			func(since time.Duration) (*appsv1.DaemonSet, error) {
				return proxySet(3, 3, 2+int32(since/(10*time.Second)%2)-1), nil
			},
			10 * time.Second, "not available: ",
		},
		"no kubelet sees the change": {
			func(time.Duration) (*appsv1.DaemonSet, error) {
				set := proxySet(3, 3, 3)
				set.Status.ObservedGeneration = 1

				return set, nil
			},
			0, "its controller has not observed the change yet",
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, api := clientOf(nodeThat("cp-1", true), waiting, failed)
				inTime(api, test.status)

				began := time.Now()
				err := client.rolledOut(t.Context(), []workload{proxy})

				if err == nil || wait.IsPermanent(err) {
					t.Fatalf("error %v, want one that may be repeated", err)
				}

				for _, part := range []string{
					test.want, "no progress within 5m0s",
					"; pod kube-system/kube-proxy-cp-1 on node cp-1: container main is waiting: InvalidImageName (no such image)",
					"; last event about Pod kube-proxy-cp-1: Warning Failed: cannot pull",
				} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("error %v, want %q in it", err, part)
					}
				}

				if took := time.Since(began); took < test.until+client.api.Options.Await ||
					took > test.until+client.api.Options.Await+2*client.api.Options.Poll {
					t.Errorf("it took %s, want %s after the last progress", took, client.api.Options.Await)
				}
			})
		})
	}
}

// An API that is unreachable for a while is no final result, and the error has its last message.
func TestRollout_withoutAnAPI(t *testing.T) {
	t.Parallel()

	gone := errors.New("no route to host")

	for name, back := range map[string]time.Duration{"comes back": 4 * time.Minute, "stays away": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, api := clientOf(nodeThat("cp-1", true))

				inTime(api, func(since time.Duration) (*appsv1.DaemonSet, error) {
					if since < back {
						return nil, gone
					}

					return proxySet(3, 3, 3), nil
				})

				err := client.rolledOut(t.Context(), []workload{proxy})

				switch {
				case back < client.api.Options.Await && err != nil:
					t.Errorf("an API that came back: %v", err)
				case back > client.api.Options.Await &&
					(err == nil || wait.IsPermanent(err) || !strings.Contains(err.Error(), gone.Error())):
					t.Errorf("error %v, want one that may be repeated, with the reason", err)
				}
			})
		})
	}
}

func TestRollout_isInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, _ := clientOf(nodeThat("cp-1", true), proxySet(3, 1, 2))
		interrupt := errors.New("interrupt")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(interrupt) })

		if err := client.rolledOut(ctx, []workload{proxy}); !errors.Is(err, interrupt) || wait.IsPermanent(err) {
			t.Errorf("error %v, want the cause of the interrupt", err)
		}
	})
}

// What a DaemonSet misses on nodes that are not ready is not waited for; what it misses on
// another one is.
func TestRollout_besideNodesThatAreNotReady(t *testing.T) {
	t.Parallel()

	const missing = "nodes not ready, which can delay it: dead"

	up1, up2, dead := nodeThat("up-1", true), nodeThat("up-2", true), nodeThat("dead", false)
	before, after := revisionOf(1, "old"), revisionOf(2, "new")
	ending := proxyPod("up-2", "new", true)
	ending.DeletionTimestamp, ending.Finalizers = new(metav1.Now()), []string{"test"}

	tests := map[string]struct {
		objects []runtime.Object
		want    string
	}{
		"the dead node's is old": {[]runtime.Object{
			up1, up2, dead, proxySet(3, 2, 2), proxyPod("up-1", "new", true), proxyPod("up-2", "new", true),
			proxyPod("dead", "old", false),
		}, ""},
		"the dead node's is new, another one old": {[]runtime.Object{
			up1, up2, dead, proxySet(3, 2, 2), proxyPod("up-1", "new", true), proxyPod("up-2", "old", true),
			proxyPod("dead", "new", false),
		}, missing},
		"another one is not ready": {[]runtime.Object{
			up1, up2, dead, proxySet(3, 3, 2), proxyPod("up-1", "new", true), proxyPod("up-2", "new", false),
			proxyPod("dead", "new", true),
		}, missing},
		"another one ends": {[]runtime.Object{
			up1, up2, dead, proxySet(3, 2, 2), proxyPod("up-1", "new", true), ending, proxyPod("dead", "old", false),
		}, missing},
		"more are missing than nodes are dead": {[]runtime.Object{
			up1, up2, dead, proxySet(3, 2, 1), proxyPod("up-1", "new", true), proxyPod("dead", "old", false),
		}, missing},
		"all nodes live": {[]runtime.Object{
			up1, up2, proxySet(2, 2, 1), proxyPod("up-1", "new", true), proxyPod("up-2", "new", false),
		}, "not available: 1 of 2 pods"},
		"no node is ready": {[]runtime.Object{dead, proxySet(1, 0, 0), proxyPod("dead", "old", false)}, ""},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, _ := clientOf(append(test.objects, before, after)...)
				err := client.rolledOut(t.Context(), []workload{proxy})

				switch {
				case test.want == "" && err != nil:
					t.Errorf("error %v, want none", err)
				case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
					t.Errorf("error %v, want %q in it", err, test.want)
				}
			})
		})
	}
}

func TestRollout_counts(t *testing.T) {
	t.Parallel()

	whenReplaced := proxySet(3, 0, 3)
	whenReplaced.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType

	dns := workload{deploymentKind, metav1.NamespaceSystem, "coredns"}

	for name, test := range map[string]struct {
		of     workload
		object runtime.Object
		want   string
	}{
		"is not there":               {proxy, nodeThat("cp-2", true), `"kube-proxy" not found`},
		"no node suits":              {proxy, proxySet(0, 0, 0), ""},
		"replaced by another client": {proxy, whenReplaced, ""},
		"done":                       {dns, dnsDeployment(func(*appsv1.Deployment) {}), ""},
		"no replicas": {dns, dnsDeployment(func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Status = new(int32(0)), appsv1.DeploymentStatus{ObservedGeneration: 2}
		}), ""},
		"half way": {dns, dnsDeployment(func(d *appsv1.Deployment) {
			d.Status.UpdatedReplicas, d.Status.Replicas = 1, 3
		}), "not updated: 1 of 2 pods, not terminated yet: 2 old pods"},
		"one replica by default": {dns, dnsDeployment(func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Status = nil, appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1}
		}), "not available: 1 of 1 pods"},
		"given up": {dns, dnsDeployment(func(d *appsv1.Deployment) {
			d.Status.UpdatedReplicas = 0
			d.Status.Conditions = []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded",
					Message: "timed out"},
			}
		}), "not updated: 2 of 2 pods, not terminated yet: 2 old pods: ProgressDeadlineExceeded (timed out)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			client, _ := clientOf(nodeThat("cp-1", true), test.object)

			_, _, err := client.behind(t.Context(), []workload{test.of}, progress{})
			if test.want == "" && err != nil || test.want != "" && !strings.HasSuffix(fmt.Sprint(err), test.want) {
				t.Errorf("error %v, want %q at its end", err, test.want)
			}
		})
	}
}
