package clusterimport_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// A cluster of talm, with values for all machines and a patch in the file of each, is imported with the secrets and
// the addresses of its project.
func TestAccImport_ofTalm(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccImport_ofTalosctl")
	t.Parallel()

	clitest.Each(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 2)
		w := clitest.NewWorkspace(t, cli)
		project := talmProject(t, s, w)

		for _, m := range s.Machines() {
			role := "controlplane"
			if slices.Contains(s.Workers, m) {
				role = "worker"
			}

			address := m.Address().String()
			node := project.run("template", "--insecure", "-t", "templates/"+role+".yaml", "--endpoints", address,
				"--nodes", address)
			node = talmHostname.ReplaceAllString(node, "auto: \"off\"\nhostname: "+m.Name())
			w.Write("talm/nodes/"+m.Name()+".yaml",
				talmMachine.ReplaceAllString(node, "machine:\n${1}nodeAnnotations: {from: "+m.Name()+"}\n${1}"))
			project.run("apply", "--insecure", "-f", "nodes/"+m.Name()+".yaml")
		}

		project.eventually("bootstrap", "-f", "nodes/cp-1.yaml")

		bundle := w.Read("talm/secrets.yaml")
		joined(t, s, bundle)
		s.ForgetCalls()

		w.Write("secrets.yaml", bundle)
		w.Write("main.tf", fromProvider+importsCluster(t, s))
		w.Init()

		text := generated(t, w, 1)
		for _, want := range []string{"net.core.somaxconn", "10.42.0.0/16", "home.local", "br_netfilter", `from = "w-2"`} {
			if strings.Count(text, want) != 1 {
				t.Errorf("the generated configuration has %s %d times:\n%s", want, strings.Count(text, want), text)
			}
		}

		untouched(t, s)
	})
}

// What a user edits in the file of a node.
var (
	talmHostname = regexp.MustCompile(`(?m)^hostname: .*$`)
	talmMachine  = regexp.MustCompile(`(?m)^machine:\n( +)`)
)

// talmProject makes a project of talm with values.
func talmProject(t *testing.T, s *sitetest.Site, w *clitest.Workspace) foreignTool {
	t.Helper()

	folder := filepath.Join(w.Dir, "talm")
	tftest.Must(t, os.MkdirAll(filepath.Join(folder, "nodes"), 0o700))

	talm := foreignTool{t, optional(t, "talm"), folder}
	talm.run("init", "--preset", "generic", "--name", "prod", "--talos-version", "v1.13", "--cluster-endpoint", s.URL,
		"--endpoints", s.ControlPlane[0].Address().String())

	chart := strings.Replace(w.Read("talm/Chart.yaml"), `kubernetesVersion: ""`, `kubernetesVersion: "v1.36.2"`, 1)
	chart = strings.Replace(chart, `talosVersion: ""`, `talosVersion: "v1.13"`, 1)
	w.Write("talm/Chart.yaml", strings.Replace(chart, "valueFiles: []", "valueFiles: [prod.yaml]", 1))
	w.Write("talm/prod.yaml", `podSubnets: [10.42.0.0/16]
advertisedSubnets: [127.0.0.0/8]
certSANs: [home.local]
extraSysctls: {net.core.somaxconn: "1024"}
extraKernelModules: [{name: br_netfilter}]
`)

	return talm
}
