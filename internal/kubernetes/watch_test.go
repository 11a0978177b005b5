package kubernetes_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Nodes tell of what is observed of them, and of nothing else.
func TestWatchNodes_tellsOfChanges(t *testing.T) {
	t.Parallel()
	onClusters(t, testWatchNodes)
}

func testWatchNodes(t *testing.T, l *living) {
	t.Helper()

	const name = "watched"

	client, told := l.client(t), make(chan struct{}, 100)
	go client.WatchNodes(t.Context(), func() { told <- struct{}{} })

	patch := func(content string, subresources ...string) {
		t.Helper()

		_, err := l.api.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(content),
			metav1.PatchOptions{}, subresources...)
		check(t, err)
	}

	l.node(t, name, nil)
	<-told

	quiet(told)
	patch(`{"status": {"images": [{"names": ["registry.example/image"]}]}}`, "status")
	patch(`{"spec": {"unschedulable": true}}`)
	<-told

	quiet(told)
	check(t, l.api.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}))
	<-told

}

// quiet takes what was told so far.
func quiet(told <-chan struct{}) {
	for {
		select {
		case <-told:
		default:
			return
		}
	}
}
