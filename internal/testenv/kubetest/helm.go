package kubetest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

// helmTime bounds a run of helm.
const helmTime = 3 * time.Minute

// Helm runs the real helm on a cluster, with separate folders that are empty at first. c may be nil
// for commands that need none.
func Helm(t testing.TB, c *Cluster) func(args ...string) (stdout, stderr string, err error) {
	t.Helper()

	path, home := clitest.Asset(t, "helm"), t.TempDir()

	// Nothing of the user's settings.
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	for _, name := range []string{"CACHE", "CONFIG", "DATA"} {
		env = append(env, "HELM_"+name+"_HOME="+filepath.Join(home, name))
	}

	if c != nil {
		env = append(env, "KUBECONFIG="+c.Kubeconfig())
	}

	return func(args ...string) (string, string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), helmTime)
		defer cancel()

		var stdout, stderr bytes.Buffer

		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = env, home, &stdout, &stderr
		err := cmd.Run()

		return stdout.String(), stderr.String(), err
	}
}
