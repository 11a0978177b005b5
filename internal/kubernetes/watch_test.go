package kubernetes_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Nodes tell when they come, when they change and when they go.
func TestWatchNodes_tellsOfChanges(t *testing.T) {
	t.Parallel()
	onClusters(t, testWatchNodes)
}

func testWatchNodes(t *testing.T, l *living) {
	t.Helper()

	const name = "watched"

	client, changes := l.client(t), make(chan struct{}, 100)
	go client.WatchNodes(t.Context(), func() { changes <- struct{}{} })

	l.node(t, name, nil)
	<-changes

	quiet(changes)

	_, err := l.api.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"spec": {"unschedulable": true}}`), metav1.PatchOptions{})
	check(t, err)
	<-changes

	quiet(changes)
	check(t, l.api.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}))
	<-changes
}

// Pods of the control plane tell, too, where they are observed.
func TestWatchNodes_tellsOfControlPlanePods(t *testing.T) {
	t.Parallel()
	onClusters(t, testWatchPods)
}

func testWatchPods(t *testing.T, l *living) {
	t.Helper()

	const node, name = "watched", "kube-apiserver-watched"

	l.options.StaticPods = true
	pods := l.api.CoreV1().Pods(metav1.NamespaceSystem)

	l.node(t, node, nil)

	_, err := pods.Create(t.Context(), &corev1.Pod{
		// A mirror pod needs no service account.
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": "control-plane"},
			Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "a"}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "kube-apiserver",
			Image: "registry.k8s.io/kube-apiserver:v1.36.3"}}},
	}, metav1.CreateOptions{})
	check(t, err)

	client, changes := l.client(t), make(chan struct{}, 100)
	go client.WatchNodes(t.Context(), func() { changes <- struct{}{} })

	<-changes

	for stamp := range 3 {
		quiet(changes)

		_, err := pods.Patch(t.Context(), name, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata": {"annotations": {"talos.dev/config-version": "%d"}}}`, stamp), metav1.PatchOptions{})
		check(t, err)
		<-changes
	}
}

// quiet drains the reports so far.
func quiet(changes <-chan struct{}) {
	for {
		select {
		case <-changes:
		default:
			return
		}
	}
}
