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
