package sim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
)

// A volume stays attached after its pod left, for as long as it lingers.
func TestVolumes_lingerAfterTheirPods(t *testing.T) {
	m, _, client := oneNode(t)
	ctx := within(t, time.Minute)
	attachments := client.StorageV1().VolumeAttachments()

	const linger = 200 * time.Millisecond

	check(t, m.AttachVolume(ctx, kube.Volume{Name: "db", Linger: linger}))
	check(t, m.AttachVolume(ctx, kube.Volume{Name: "stuck", Linger: -1}))

	attached := func() int {
		node, err := client.CoreV1().Nodes().Get(ctx, m.Hostname(), metav1.GetOptions{})
		check(t, err)

		return len(node.Status.VolumesAttached)
	}
	if got := attached(); got != 2 {
		t.Errorf("%d volumes in the status of the node, want 2", got)
	}

	left := time.Now()

	for _, name := range []string{"db", "stuck"} {
		check(t, client.CoreV1().Pods("default").Delete(ctx, name, metav1.DeleteOptions{}))
	}

	eventually(t, "the volume", func(ctx context.Context) error {
		if _, err := attachments.Get(ctx, "csi-db", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return errors.New("it is still attached")
		}

		return nil
	})

	if took := time.Since(left); took < linger {
		t.Errorf("it was detached after %s, want at least %s", took, linger)
	}

	eventually(t, "the status", func(context.Context) error {
		if attached() != 1 {
			return errors.New("it still has the volume")
		}

		return nil
	})
	check(t, second(attachments.Get(ctx, "csi-stuck", metav1.GetOptions{})))
}
