package machines_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// reviewed is a cluster in the texts of plans, which each change below modifies.
type reviewed struct {
	patches, batch, extra string
	workers               []*sim.Machine
	planes                []*sim.Machine
	keys                  func(string) string
}

// reviewedChange is a common change, in the order in which a cluster goes through them.
type reviewedChange struct {
	name string
	// change of the configuration, and changes of the machines outside Terraform before it.
	change func(s *sitetest.Site, c *reviewed)
	byHand func(t *testing.T, s *sitetest.Site, w *clitest.Workspace)
	// most lines of the plan besides the changed argument, where there is a limit.
	most int
	// screen is true for a plan of which all fits a screen.
	screen bool
	// judged by the policy of the examples.
	judged bool
	// often selects a separate plan and apply on every change of the provider. The others are then applied together
	// with the next one.
	often bool
}

func yamlPatch(text string) string { return fmt.Sprintf("config_patches = [yamlencode(%s)]\n", text) }

func reviewedChanges() []reviewedChange {
	replace := func(field func(c *reviewed) *string, before, after string) func(*sitetest.Site, *reviewed) {
		return func(_ *sitetest.Site, c *reviewed) { *field(c) = strings.ReplaceAll(*field(c), before, after) }
	}
	extra := func(c *reviewed) *string { return &c.extra }
	set := func(field func(c *reviewed) *string, text string) func(*sitetest.Site, *reviewed) {
		return func(_ *sitetest.Site, c *reviewed) { *field(c) += text }
	}
	batch := func(c *reviewed) *string { return &c.batch }

	return []reviewedChange{
		{name: "create", often: true, change: func(*sitetest.Site, *reviewed) {}},
		{name: "nothing", change: func(*sitetest.Site, *reviewed) {}},
		{name: "label-of-a-pool", judged: true,
			change: set(batch, yamlPatch(`{ machine = { nodeLabels = { rack = "b2" } } }`))},
		{name: "label-changed", change: replace(batch, `"b2"`, `"b3"`)},
		{name: "label-of-one-worker", most: 15, change: func(_ *sitetest.Site, c *reviewed) {
			c.keys = func(hcl string) string {
				return regexp.MustCompile(`w-1 = \{ address = ("[^"]*") \}`).ReplaceAllString(hcl,
					`w-1 = { address = $1, config_patches = ["machine: {nodeLabels: {shelf: c1}}"] }`)
			}
		}},
		{name: "setting-changed-by-hand", often: true, change: func(*sitetest.Site, *reviewed) {},
			byHand: func(t *testing.T, s *sitetest.Site, w *clitest.Workspace) {
				t.Helper()
				byHand(t, s, sitetest.BundleIn(t, w), s.Workers[0], func(config string) string {
					return config + "---\napiVersion: v1alpha1\nkind: WatchdogTimerConfig\ndevice: /dev/watchdog0\ntimeout: 2m0s\n"
				})
			}},
		{name: "setting-of-all-machines", judged: true, change: set(extra, `  cluster_config_patches = [yamlencode({ machine = { sysctls = { "net.core.somaxconn" = "1024" } } })]
`)},
		{name: "file-takes-a-reboot", often: true, judged: true, change: replace(batch, `nodeLabels = { rack = "b3" }`,
			`files = [{ path = "/var/a", op = "create", permissions = 420, content = "a" }]`)},
		{name: "timeouts", change: set(extra, "  timeouts = { update = \"11m\" }\n")},
		{name: "max-unavailable", change: set(batch, "max_unavailable = \"2\"\n")},
		{name: "drain-switched-off", change: set(extra, "  drain = { enabled = false }\n")},
		{name: "worker-added", often: true, judged: true,
			change: func(s *sitetest.Site, c *reviewed) { c.workers = s.Workers }},
		{name: "worker-renamed", change: func(_ *sitetest.Site, c *reviewed) {
			c.keys = func(hcl string) string { return strings.Replace(hcl, "w-3 =", "w-9 =", 1) }
		}},
		{name: "worker-removed", often: true, judged: true, change: func(s *sitetest.Site, c *reviewed) {
			c.workers,
				c.keys = s.Workers[:2], nil
		}},
		{name: "worker-wiped-elsewhere", often: true, change: func(*sitetest.Site, *reviewed) {},
			byHand: func(t *testing.T, s *sitetest.Site, _ *clitest.Workspace) {
				t.Helper()
				s.Workers[1].Wipe()
				s.Workers[1].PowerOn()

				if err := s.Workers[1].AwaitStage(t.Context(), sim.StageMaintenance); err != nil {
					t.Fatal(err)
				}
			}},
		{name: "meta-value", change: func(_ *sitetest.Site, c *reviewed) {
			c.keys = func(hcl string) string {
				return regexp.MustCompile(`w-1 = \{ address = ("[^"]*") \}`).ReplaceAllString(hcl,
					`w-1 = { address = $1, meta = { user_1 = "rack-1" } }`)
			}
		}},
		{name: "talos-patch", often: true, screen: true, change: replace(extra, "v1.13.0", "v1.13.2")},
		{name: "schematic", change: set(batch,
			"schematic = \"ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515\"\n")},
		{name: "kubernetes-patch", often: true, screen: true, change: replace(extra, "v1.36.2", "v1.36.3")},
		{name: "control-plane-removed", often: true, judged: true, change: func(s *sitetest.Site,
			c *reviewed) {
			c.planes = s.ControlPlane[:2]
		}},
		{name: "control-plane-added", change: func(s *sitetest.Site, c *reviewed) { c.planes = s.ControlPlane }},
		{name: "pool-added", change: set(func(c *reviewed) *string { return &c.patches }, "other")},
	}
}

// hcl is the configuration.
func (c reviewed) hcl(s *sitetest.Site) string {
	keys := c.keys
	if keys == nil {
		keys = func(hcl string) string { return hcl }
	}

	pools := sitetest.PoolHCL("batch", c.workers, c.batch)
	if c.patches != "" {
		pools += sitetest.PoolHCL("other", s.Workers[3:], "")
	}

	return sitetest.SecretsHCL + keys(fmt.Sprintf(`
resource "talosop_cluster" "this" {
  name                = "test"
  endpoint            = %q
  secrets             = talosop_secrets.this.bundle
  deletion_protection = false
%s  control_plane = {
    install  = { disk = "/dev/sda" }
    machines = {
%s    }
  }
  workers = {
%s  }
}
`, s.URL, c.extra, sitetest.MachinesHCL(c.planes), pools))
}

// The text of the plans for common changes, as a person reads it, is recorded. Each is applied as planned, after
// which the plan is empty.
func TestAccPlanText(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 4)
		config := reviewed{
			workers: s.Workers[:2], planes: s.ControlPlane,
			extra: "  mode                = \"metal\"\n  talos_version       = \"v1.13.0\"\n  kubernetes_version  = \"v1.36.2\"\n",
		}

		w := clitest.NewWorkspace(t, cli)
		w.Write("providers.tf", sitetest.ProviderHCL+"provider \"talosop\" { factory_url = \"none\" }\n")

		changes, between := reviewedChanges(), false
		for i, change := range changes {
			if !change.often && !testenv.Everything() {
				change.change(s, &config)

				between = true

				continue
			}

			if between {
				w.Write("main.tf", config.hcl(s))
				w.MustRun("apply", "-auto-approve")

				between = false
			}

			change.change(s, &config)
			w.Write("main.tf", config.hcl(s))

			if i == 0 {
				w.Init()
			}

			if change.byHand != nil {
				change.byHand(t, s, w)
			}

			text := readable(s, w.MustRun("plan", "-out=plan").Stdout)
			if change.judged {
				text += policyResult(t, w)
			}

			recorded(t, filepath.Join("testdata", "plantexts", change.name+".txt"), text)

			if lines := besideWorkers(text); change.most > 0 && lines > change.most {
				t.Errorf("the plan of %s has %d lines:\n%s", change.name, lines, text)
			}

			if change.screen {
				expectLines(t, change.name, text, mostOnAScreen)
			}

			w.MustRun("apply", "plan")

			// Unfinished work would also be in the next plan.
			if change.name != "control-plane-removed" && !testenv.Everything() {
				continue
			}

			if empty, output := w.PlanIsEmpty(); !empty {
				t.Fatalf("after %s the plan is not empty:\n%s", change.name, output)
			}
		}

		if between {
			w.Write("main.tf", config.hcl(s))
			w.MustRun("apply", "-auto-approve")
		}

		text := readable(s, w.MustRun("plan", "-destroy", "-out=plan").Stdout)
		recorded(t, filepath.Join("testdata", "plantexts", "destroy.txt"), text+policyResult(t, w))
		w.MustRun("apply", "plan")
	})
}

// mostOnAScreen is how many lines of a plan a screen shows.
const mostOnAScreen = 45

func expectLines(t *testing.T, name, text string, most int) {
	t.Helper()

	if lines := strings.Count(text, "\n") - strings.Count(text, "Warning: "); lines > most {
		t.Errorf("the plan of %s has %d lines, more than %d:\n%s", name, lines, most, text)
	}
}

// The text of upgrades of a cluster whose machines belong to several resources is recorded, and its length is limited.
func TestAccPlanText_ofSeveralResources(t *testing.T) {
	t.Parallel()

	for name, layout := range map[string]struct {
		hcl               func(s *sitetest.Site) string
		talos, kubernetes int
	}{
		"quickstart": {
			hcl: func(s *sitetest.Site) string {
				return sitetest.ProviderHCL + sitetest.SecretsHCL + s.ControlPlaneHCL("") + s.WorkersHCL("")
			},
			talos: 53, kubernetes: 61,
		},
		"machines": {
			hcl:   func(s *sitetest.Site) string { return sitetest.ProviderHCL + sitetest.OneByOneHCL(s, s.Machines()) },
			talos: 92, kubernetes: 122,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
				s := sitetest.New(t, 3, 2)
				config := layout.hcl(s)
				w := sitetest.Applied(t, cli, config)

				for _, change := range []struct {
					name, from, to string
					most           int
				}{
					{name + "-talos", "v1.13.0", "v1.13.2", layout.talos},
					{name + "-kubernetes", "v1.36.2", "v1.36.3", layout.kubernetes},
				} {
					config = strings.ReplaceAll(config, change.from, change.to)
					w.Write("main.tf", config)

					text := readable(s, w.MustRun("plan", "-out=plan").Stdout)
					recorded(t, filepath.Join("testdata", "plantexts", change.name+".txt"), text)
					expectLines(t, change.name, text, change.most)
					w.MustRun("apply", "plan")
				}

				sitetest.ExpectNoChanges(t, w, "after the upgrades")
			})
		})
	}
}

// besideWorkers is the number of lines of a plan for a resource, without those of its pools.
func besideWorkers(text string) int {
	lines, inPools := 0, false

	for line := range strings.Lines(text) {
		inPools = inPools || strings.HasPrefix(line, "      ~ workers ")

		if !inPools && strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "  # ") {
			lines++
		}

		inPools = inPools && line != "        }\n"
	}

	return lines
}

// policyResult is the result of the examples' policy for the plan of a workspace.
func policyResult(t *testing.T, w *clitest.Workspace) string {
	t.Helper()

	const policy = "../../../examples/guides/plan-policy/talosop.rego"

	w.Write("plan.json", w.MustRun("show", "-json", "plan").Stdout)

	//nolint:gosec // the program and its arguments are the test's own
	output, err := exec.CommandContext(t.Context(), clitest.Asset(t, "opa"), "eval", "--format=raw", "--data", policy,
		"--input", filepath.Join(w.Dir, "plan.json"), `concat("\n", sort(data.main.deny))`).Output()
	if err != nil {
		t.Fatalf("the policy cannot be asked: %v", err)
	}

	if text := strings.TrimSpace(string(output)); text != "" {
		return "The policy denies:\n" + text + "\n"
	}

	return "The policy passes.\n"
}

// recorded compares a text with a golden file, or writes it.
func recorded(t *testing.T, file, text string) {
	t.Helper()

	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // readable by all users
			t.Fatal(err)
		}

		return
	}

	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s: -recorded +printed:\n%s", file, diff)
	}
}

// readable is the plan output of a CLI without what differs between runs: from the first resource to the numbers of
// changes, and the warnings.
func readable(s *sitetest.Site, output string) string {
	for _, m := range s.Machines() {
		output = strings.ReplaceAll(output, m.Address().String()+`"`, `address of `+m.Name()+`"`)
		output = strings.ReplaceAll(output, m.UUID(), "uuid of "+m.Name())
	}

	output = strings.ReplaceAll(output, s.URL, "https://endpoint")

	for pattern, name := range map[string]string{
		`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`: "(uuid)",
		`"[0-9a-f]{64}"`: `"(digest)"`, `"sha256:[0-9a-f]{64}"`: `"(digest)"`,
		`"[A-Z2-7]{26}"`: `"(id)"`, `"[A-Za-z0-9+/_-]{43}="`: `"(id)"`, `"\d{4}-\d\d-\d\dT[0-9:]+Z"`: `"(time)"`,
	} {
		output = regexp.MustCompile(pattern).ReplaceAllString(output, name)
	}

	if strings.Contains(output, "No changes.") {
		return warningsIn(output) + "No changes.\n"
	}

	var lines []string

	begun := false

	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, " \n")
		begun = begun || strings.HasPrefix(line, "  # ")

		if begun && line != "" {
			lines = append(lines, line)
		}

		if strings.HasPrefix(line, "Plan: ") {
			break
		}
	}

	return warningsIn(output) + strings.Join(lines, "\n") + "\n"
}

// warningsIn are the titles of warnings, each once, sorted: CLIs plan resources in parallel.
func warningsIn(output string) string {
	var titles []string

	for _, found := range regexp.MustCompile(`(?m)^.*(Warning: .*)$`).FindAllStringSubmatch(output, -1) {
		titles = append(titles, found[1]+"\n")
	}

	slices.Sort(titles)

	return strings.Join(slices.Compact(titles), "")
}
