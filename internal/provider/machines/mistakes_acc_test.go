package machines_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
)

// The troubleshooting guide shows what a CLI prints after twelve mistakes. The test below makes each of them with a
// real CLI on simulated machines, and records the output for the guide: `-update` writes it, and `make generate` puts
// it into the guide.

// mistakes are the names of the recorded outputs. A misspelled version has two: not every version has images.
var mistakes = []string{
	"wrong-address", "swapped-addresses", "not-in-maintenance-mode", "endpoint-without-server", "misspelled-version",
	"image-not-found", "misspelled-patch-field", "renamed-key", "machine-off", "wrong-disk", "destroy-protected",
	"interrupted", "concurrent-apply",
}

// mistaken is the configuration of a cluster, in which each mistake changes a part.
type mistaken struct {
	endpoint, talos, kubernetes, disk string
	planes, workers                   map[string]string
	pool, extra                       string
}

func (c mistaken) hcl() string {
	list := func(machines map[string]string) string {
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(machines)) {
			fmt.Fprintf(&b, "      %s = { address = %q }\n", name, machines[name])
		}

		return b.String()
	}

	return sitetest.ProviderHCL + fmt.Sprintf(`
resource "talosop_secrets" "prod" {}

resource "talosop_cluster" "prod" {
  mode               = "metal"
  name               = "prod"
  endpoint           = %q
  secrets            = talosop_secrets.prod.bundle
  talos_version      = %q
  kubernetes_version = %q
  control_plane = {
    install = { disk = %q }
    machines = {
%s    }
  }
  workers = {
    batch = {
      install = { disk = "/dev/sda" }
      machines = {
%s      }
%s    }
  }
%s  lifecycle {
    postcondition {
      condition     = self.phase == "Ready"
      error_message = "The cluster is ${self.phase}."
    }
  }
}
`, c.endpoint, c.talos, c.kubernetes, c.disk, list(c.planes), list(c.workers), c.pool, c.extra)
}

// mistakeRun makes mistakes on one site with one CLI.
type mistakeRun struct {
	site  *sitetest.Site
	cli   clitest.CLI
	none  string
	right mistaken
	// cluster is the workspace of the cluster in which most mistakes are made.
	cluster *clitest.Workspace
}

// The output of a CLI after each mistake is as recorded in the troubleshooting guide.
func TestAccMistakes(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 2, 3)
	none, err := s.Reserve()
	tftest.Must(t, err)

	r := &mistakeRun{site: s, cli: clitest.Newest(t), none: none.String(), right: mistaken{
		endpoint: s.URL, talos: "v1.13.0", kubernetes: "v1.36.2", disk: "/dev/sda",
		planes: sitetest.Addresses(s.ControlPlane[:1]), workers: sitetest.Addresses(s.Workers[:2]),
	}}

	r.beforeCreate(t)
	r.cluster = r.workspace(t, r.right)
	r.cluster.MustRun("apply", "-auto-approve")
	r.inPlans(t)
	r.ofMachines(t)
	r.whileApplying(t)

	files, err := filepath.Glob(filepath.Join(guideFolder, "*.txt"))
	tftest.Must(t, err)

	for _, name := range mistakes {
		if !slices.Contains(files, filepath.Join(guideFolder, name+".txt")) {
			t.Errorf("%s is not recorded", name)
		}
	}
}

// workspace is a new workspace with a configuration.
func (r *mistakeRun) workspace(t *testing.T, c mistaken) *clitest.Workspace {
	t.Helper()

	w := clitest.NewWorkspace(t, r.cli)
	w.Write("main.tf", c.hcl())
	w.Init()

	return w
}

// change is the right configuration with a change.
func (r *mistakeRun) change(change func(c *mistaken)) mistaken {
	c := r.right
	c.planes, c.workers = maps.Clone(c.planes), maps.Clone(c.workers)
	change(&c)

	return c
}

// record compares what a command printed with what is recorded.
func (r *mistakeRun) record(t *testing.T, name, text string) {
	t.Helper()

	if !slices.Contains(mistakes, name) {
		t.Errorf("%s is not in the list of mistakes", name)
	}

	recorded(t, filepath.Join(guideFolder, name+".txt"), r.readable(text))
}

// fails runs a command that has to fail, and records its diagnostics.
func (r *mistakeRun) fails(t *testing.T, name string, w *clitest.Workspace, args ...string) {
	t.Helper()

	r.record(t, name, diagnosticsIn(sitetest.Fails(t, w, args...)))
}

// beforeCreate are mistakes in the configuration of a cluster that does not exist yet.
func (r *mistakeRun) beforeCreate(t *testing.T) {
	t.Helper()

	const soon = "  appear_within = \"1s\"\n"

	r.fails(t, "wrong-address", r.workspace(t, r.change(func(c *mistaken) {
		c.workers["w-2"], c.extra = r.none, soon
	})), "apply", "-auto-approve")
	r.fails(t, "wrong-disk", r.workspace(t, r.change(func(c *mistaken) {
		c.disk, c.extra = "/dev/nvme0n1", soon
	})), "apply", "-auto-approve")
	r.site.ExpectNothingSent(t)

	away := "https://" + r.none + ":6443"
	tftest.Must(t, r.site.DropEndpoint(away))
	r.fails(t, "endpoint-without-server", r.workspace(t, r.change(func(c *mistaken) {
		c.planes, c.workers, c.endpoint = sitetest.Addresses(r.site.ControlPlane[1:]), nil, away
		c.extra = "  timeouts = { create = \"5s\" }\n"
	})), "apply", "-auto-approve")
}

// inPlans are mistakes that a plan finds.
func (r *mistakeRun) inPlans(t *testing.T) {
	t.Helper()

	r.fails(t, "not-in-maintenance-mode", r.workspace(t, r.right), "apply", "-auto-approve")

	plan := func(name string, change func(c *mistaken)) {
		r.cluster.Write("main.tf", r.change(change).hcl())
		r.fails(t, name, r.cluster, "plan")
	}
	plan("swapped-addresses", func(c *mistaken) {
		c.workers["w-1"], c.workers["w-2"] = c.workers["w-2"], c.workers["w-1"]
	})
	plan("misspelled-version", func(c *mistaken) { c.talos = "v1.133.0" })
	plan("misspelled-patch-field", func(c *mistaken) {
		c.extra = "  cluster_config_patches = [yamlencode({ machine = { sysctl = { \"vm.swappiness\" = \"1\" } } })]\n"
	})

	r.cluster.Write("main.tf", r.change(func(c *mistaken) {
		c.workers["worker-2"] = c.workers["w-2"]
		delete(c.workers, "w-2")
	}).hcl())
	r.record(t, "renamed-key", plannedIn(r.cluster.MustRun("plan")))

	r.cluster.Write("main.tf", r.right.hcl())
	r.fails(t, "destroy-protected", r.cluster, "destroy", "-auto-approve")
}

// ofMachines are mistakes that machines and registries show.
func (r *mistakeRun) ofMachines(t *testing.T) {
	t.Helper()

	for _, image := range []string{
		"registry.k8s.io/kube-apiserver", "registry.k8s.io/kube-controller-manager", "registry.k8s.io/kube-scheduler",
		"registry.k8s.io/kube-proxy", "ghcr.io/siderolabs/kubelet",
	} {
		tftest.Must(t, r.site.SetImage(image+":v1.36.22", images.Image{Missing: true}))
	}

	r.cluster.Write("main.tf", r.change(func(c *mistaken) { c.kubernetes = "v1.36.22" }).hcl())
	r.fails(t, "image-not-found", r.cluster, "apply", "-auto-approve")

	r.site.Workers[1].PowerOff()
	r.cluster.Write("main.tf", r.changedFile("5s").hcl())
	r.fails(t, "machine-off", r.cluster, "apply", "-auto-approve")
	r.site.Workers[1].PowerOn()
	tftest.Must(t, r.site.Workers[1].AwaitReady(t.Context()))
}

// changedFile is a change that reboots the workers, in an update with a timeout.
func (r *mistakeRun) changedFile(timeout string) mistaken {
	return r.change(func(c *mistaken) {
		c.extra = fmt.Sprintf("  timeouts = { update = %q }\n", timeout)
		c.pool = rebooting
	})
}

// rebooting is a patch for which Talos reboots.
const rebooting = `      config_patches = [yamlencode({
        machine = { files = [{ path = "/var/a", op = "create", permissions = 420, content = "a" }] }
      })]
`

// whileApplying are an apply of another state on the same cluster, and Ctrl-C.
func (r *mistakeRun) whileApplying(t *testing.T) {
	t.Helper()

	second := clitest.NewWorkspace(t, r.cli)
	second.Write("cluster.json", tftest.JSON(t, r.cluster.Attribute("talosop_cluster.prod", "cluster")))

	pool := func(extra string) {
		second.Write("main.tf", sitetest.ProviderHCL+strings.Replace(r.site.WorkersOf(r.site.Workers[2:], extra),
			"talosop_control_plane.this.cluster", `jsondecode(file("cluster.json"))`, 1))
	}
	pool("")
	second.Init()
	second.MustRun("apply", "-auto-approve")
	pool(rebooting + "  timeouts = { update = \"5s\" }\n")

	hung := r.site.Workers[0]
	hung.HangNextReboot()
	r.site.ForgetCalls()
	r.cluster.Write("main.tf", r.changedFile("10m").hcl())

	first := r.cluster.Start("apply", "-auto-approve")
	sitetest.AwaitReboot(t, r.site, hung)
	r.fails(t, "concurrent-apply", second, "apply", "-auto-approve")
	first.Interrupt()

	result := first.Wait()
	if result.Exit != 1 {
		t.Errorf("the interrupted apply ended with %d:\n%s", result.Exit, result.Output())
	}

	r.record(t, "interrupted", diagnosticsIn(result))
}

// readable replaces what differs between runs, and wraps paragraphs as the CLI does: at the length of the addresses of
// the guide.
func (r *mistakeRun) readable(text string) string {
	names := []string{r.none, "10.0.0.99"}

	for i, machines := range [][]*sim.Machine{r.site.ControlPlane, r.site.Workers} {
		for k, m := range machines {
			names = append(names, m.Address().String(), fmt.Sprintf("10.0.0.%d", 10*i+11+k))
		}
	}

	text = strings.NewReplacer(names...).Replace(text)
	text = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:]+Z`).ReplaceAllString(text, "2026-11-28T12:00:00Z")

	var paragraphs []string

	for paragraph := range strings.SplitSeq(text, "\n\n") {
		lines := strings.Split(paragraph, "\n")
		joined := lines[:1]

		for i, line := range lines[1:] {
			// The CLI wraps lines, except those that begin with a space.
			if line != "" && !strings.HasPrefix(line, " ") && !strings.HasPrefix(lines[i], " ") {
				joined[len(joined)-1] += " " + line
			} else {
				joined = append(joined, line)
			}
		}

		paragraphs = append(paragraphs, wrapped(strings.Join(joined, "\n"), paragraphWidth))
	}

	return strings.Join(paragraphs, "\n\n")
}

// paragraphWidth is where a CLI without a terminal wraps.
const paragraphWidth = 78

// diagnosticsIn are the warnings and errors of a command.
func diagnosticsIn(result clitest.Result) string {
	var (
		b      strings.Builder
		inside bool
	)

	for line := range strings.Lines(result.Stdout + result.Stderr) {
		switch {
		case strings.HasPrefix(line, "Warning: "), strings.HasPrefix(line, "Error: "):
			inside = true
		case strings.HasPrefix(line, "─"), strings.HasPrefix(line, "Apply complete"):
			inside = false
		}

		if inside {
			b.WriteString(strings.TrimRight(line, " \n") + "\n")
		}
	}

	return regexp.MustCompile(`\n{3,}`).ReplaceAllString(strings.TrimSpace(b.String()), "\n\n") + "\n"
}

// plannedIn are the operations of a printed plan.
func plannedIn(result clitest.Result) string {
	found := regexp.MustCompile(`(?s)\n( *[~+] operations .*?\n +\](?: -> .*?\n +\])?)`).FindStringSubmatch(result.Stdout)
	if found == nil {
		return result.Output()
	}

	return strings.TrimLeft(found[1], "\n") + "\n"
}
