package machines_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// inlineManifests is the argument that gives a cluster custom ConfigMaps, each with one value.
func inlineManifests(values map[string]string, extra string) string {
	var patch strings.Builder

	patch.WriteString("cluster:\n  inlineManifests:\n")

	for _, name := range []string{"first", "second"} {
		if value, ok := values[name]; ok {
			fmt.Fprintf(&patch, "    - name: %s\n      contents: |\n        apiVersion: v1\n        kind: ConfigMap\n"+
				"        metadata: {name: %s, namespace: kube-system}\n        data: {value: %q}\n", name, name, value)
		}
	}

	return fmt.Sprintf("cluster_config_patches = [<<-EOT\n%sEOT\n]\n%s\n", patch.String(), extra)
}

// When the sources of bootstrap manifests change, the cluster follows in the same apply: objects change and are
// removed, and the plan names them. After an interrupted apply the next one continues.
func TestAccManifests_followTheirSources(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 0)
		w := clitest.NewWorkspace(t, cli)
		write := func(arguments string) {
			w.Write("main.tf", sitetest.ProviderHCL+sitetest.SecretsHCL+s.ControlPlaneHCL(arguments))
		}

		write(inlineManifests(map[string]string{"first": "1", "second": "1"}, ""))
		w.Init()
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after the create")

		bundle, _ := w.Attribute("talosop_secrets.this", "bundle").(string)
		maps := s.Kubernetes(t, bundle).CoreV1().ConfigMaps("kube-system")
		holds := func(name, want string) {
			t.Helper()

			live, err := maps.Get(t.Context(), name, metav1.GetOptions{})
			if got := live.Data["value"]; err != nil || got != want {
				t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
			}
		}

		holds("first", "1")
		write(inlineManifests(map[string]string{"first": "2", "second": "1"}, ""))
		sitetest.Says(t, w.MustRun("plan"), "apply configuration to cp-1 (no reboot)",
			"sync the bootstrap manifests of Kubernetes v1.36.2 from cp-1: inline manifest first (ConfigMap kube-system/first)")
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after a change of a manifest")
		holds("first", "2")
		holds("second", "1")

		write(inlineManifests(map[string]string{"first": "3"}, "prune_bootstrap_manifests = false"))
		sitetest.Says(t, w.MustRun("plan"), "(nothing is pruned): without inline manifest second (ConfigMap kube-system/second); inline manifest first")
		w.MustRun("apply", "-auto-approve")
		holds("first", "3")
		holds("second", "1")

		s.ControlPlane[2].SetFault(fault.Fault{Method: "ApplyConfiguration", Count: -1, Code: codes.Unavailable, Message: "not now"})
		write(inlineManifests(map[string]string{"first": "4"}, `timeouts = { update = "`+sitetest.Hanging+`" }`))

		if w.Run("apply", "-auto-approve").Exit == 0 {
			t.Error("an apply succeeds although cp-3 takes no configuration")
		}

		s.ControlPlane[2].ClearFaults()
		write(inlineManifests(map[string]string{"first": "4"}, ""))
		sitetest.Says(t, w.MustRun("plan"), "from cp-1: inline manifest first (ConfigMap kube-system/first)")
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after a manifest went")
		holds("first", "4")

		if _, err := maps.Get(t.Context(), "second", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("second is left: %v", err)
		}
	})
}
