package kubernetes_test

import (
	"testing"

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

	client, told := l.client(t), make(chan struct{}, 100)
	go client.WatchNodes(t.Context(), func() { told <- struct{}{} })

	l.node(t, name, nil)
	<-told

	quiet(told)

	_, err := l.api.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"spec": {"unschedulable": true}}`), metav1.PatchOptions{})
	check(t, err)
	<-told

	quiet(told)
	check(t, l.api.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}))
	<-told
}

// quiet drains the reports so far.
func quiet(told <-chan struct{}) {
	for {
		select {
		case <-told:
		default:
			return
		}
	}
}
