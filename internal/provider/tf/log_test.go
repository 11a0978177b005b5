package tf_test

import (
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-log/tflog"
	"github.com/hashicorp/terraform-plugin-log/tfsdklog"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Steps on several machines log concurrently, under the context of one operation, whose secrets are masked.
func TestLog_fromSeveralGoroutines(t *testing.T) {
	t.Setenv("TALOSOP_TEST_LOG", "OFF") // lines are masked before their level is checked

	ctx := tfsdklog.NewRootProviderLogger(t.Context(), tfsdklog.WithLevelFromEnv("TALOSOP_TEST_LOG"))
	ctx = tf.MaskSecrets(tflog.SetField(ctx, "resource", "talosop_cluster"), "token: a-secret-of-the-cluster")

	var all sync.WaitGroup

	for range 16 {
		all.Go(func() {
			for range 500 {
				tf.LogDebug(ctx, "draining", map[string]any{"machine": "cp-1"})
				tf.LogInfo(ctx, "step started", map[string]any{"step": "upgrade Talos on cp-1"})
				tf.LogRollout(ctx, "started", map[string]any{"step": "upgrade Talos on cp-1"})
				tf.LogWarn(ctx, "step failed", map[string]any{"step": "upgrade Talos on cp-1"})
			}
		})
	}

	all.Wait()
}
