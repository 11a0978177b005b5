package kubetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// TestAttach_cniMakesNodesReady is the story of a cluster whose pod network is a chart: the stand-ins are attached
// before there is a cluster, nothing is scheduled before the network runs, and all is well then.
func TestAttach_cniMakesNodesReady(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccAddon_onACluster")

	Require(t)

	simulator := sim.ForTest(t, sim.Options{Assets: os.Getenv("TALOSOP_TEST_ASSETS")})
	c := Attach(t, simulator)

	m, err := bootMachine(t.Context(), simulator, Options{})
	must(t, err)
	c.Await(t)

	deploy(t, c, metav1.NamespaceDefault, template(nil))
	podThat(t, c, metav1.NamespaceDefault, unscheduled)

	if ready, _ := m.Ready(); ready {
		t.Fatal("the machine is ready without a pod network")
	}

	path := t.TempDir() + "/cni.tgz"
	must(t, os.WriteFile(path, CNI.Package("1.0.0"), 0o600))

	if _, stderr, err := Helm(t, c)("install", "cni", path, "-n", "kube-system", "--wait"); err != nil {
		t.Fatalf("install: %v\n%s", err, stderr)
	}

	must(t, m.AwaitReady(t.Context()))
	soon(t, func(ctx context.Context) error {
		d, err := c.API().AppsV1().Deployments(metav1.NamespaceDefault).Get(ctx, "web", metav1.GetOptions{})
		if err == nil && d.Status.ReadyReplicas != 2 {
			err = fmt.Errorf("%+v", d.Status)
		}

		return err
	})
}

// TestAwait_withoutACluster checks the error of a test that attaches to a site without a cluster.
func TestAwait_withoutACluster(t *testing.T) {
	Require(t)

	c := Attach(t, sim.ForTest(t, sim.Options{Assets: os.Getenv("TALOSOP_TEST_ASSETS")}))

	// It begins in the background, on a busy machine not at once.
	soon(t, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 4*pollPeriod)
		defer cancel()

		err := c.await(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errNoControlPlane) {
			return fmt.Errorf("await: %w", err)
		}

		return nil
	})
}
