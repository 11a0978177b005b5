package clusterimport_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// management is a Kubernetes cluster with the objects of other clusters, and the kubectl of its administrator.
type management struct {
	foreignTool

	kubeconfig string
}

// manages starts a management cluster.
func manages(t *testing.T, w *clitest.Workspace) management {
	t.Helper()

	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		kubectl = clitest.Asset(t, "kubectl")
	}

	return management{foreignTool{t, kubectl, w.Dir}, kubetest.NewCluster(t).Kubeconfig()}
}

func (m management) try(ctx context.Context, args ...string) (string, error) {
	return m.foreignTool.try(ctx, append([]string{"--kubeconfig", m.kubeconfig}, args...)...)
}

func (m management) run(args ...string) string {
	m.t.Helper()

	ctx, cancel := context.WithTimeout(m.t.Context(), 2*time.Minute)
	defer cancel()

	out, err := m.try(ctx, args...)
	tftest.Must(m.t, err)

	return out
}

// defines applies definitions of custom resources, and waits until the API serves them.
func (m management) defines(file string) {
	m.t.Helper()

	m.run("apply", "--server-side", "-f", file)
	m.run("wait", "--for=condition=established", "crd", "--all", "--timeout=60s")
}

// runs runs a program with controllers until the test ends.
func (m management) runs(name string, args ...string) {
	m.t.Helper()

	ctx, cancel := context.WithCancel(m.t.Context())
	cmd := exec.CommandContext(ctx, optional(m.t, name), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+m.kubeconfig, "HOME="+m.t.TempDir())

	var output strings.Builder

	cmd.Stderr, cmd.Stdout = &output, &output
	tftest.Must(m.t, cmd.Start())

	m.t.Cleanup(func() {
		cancel()

		if err := cmd.Wait(); err != nil && m.t.Failed() {
			m.t.Logf("%s: %v\n%s", name, err, output.String())
		}
	})
}

// await waits until the states that a JSONPath prints, one word each, are as many as wanted and all one of those given.
func (m management) await(want int, state, kinds, path string) {
	m.t.Helper()

	ctx, cancel := context.WithTimeout(m.t.Context(), 4*time.Minute)
	defer cancel()

	tftest.Must(m.t, wait.Until(ctx, time.Second, func(ctx context.Context) error {
		states, err := m.try(ctx, "get", kinds, "-o", "jsonpath={range .items[*]}{"+path+"} {end}")
		if err == nil && (len(strings.Fields(states)) != want || strings.Count(states, state) != want) {
			err = errors.New(states)
		}

		return err
	}))
}

// importsSecret imports the cluster of a Secret with a bundle, in secrets.yaml, up to an empty plan.
func importsSecret(t *testing.T, s *sitetest.Site, w *clitest.Workspace, key string) {
	t.Helper()

	bundle, err := clusterimport.ReadBundleFile(filepath.Join(w.Dir, "secrets.yaml"))
	tftest.Must(t, err)

	text, err := bundle.YAML()
	tftest.Must(t, err)
	joined(t, s, string(text))
	s.ForgetCalls()

	w.Write("main.tf", strings.Replace(fromProvider, `secrets = file("${path.module}/secrets.yaml")`,
		`secrets = base64decode(yamldecode(file("${path.module}/secrets.yaml")).data.`+key+`)`, 1)+importsCluster(t, s))
	w.Init()

	if made := generated(t, w, 1); strings.Count(made, "net.core.somaxconn") != 1 {
		t.Errorf("the generated configuration is:\n%s", made)
	}

	untouched(t, s)
}
