package cluster_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// update rewrites the answers in the scenario files; read the diff before keeping it.
var update = flag.Bool("update", false, "rewrite the expected answers of the scenarios")

// A scenario file says what is wanted, what was observed and what the planner
// has to answer, in one line a thing:
//
//	-- spec --                      -- snapshot --
//	bootstrapped                    etcd cp-1 cp-2(learner)
//	no-cni                          nodes cp-1 w-1(NotReady)
//	joins                           kubernetes-down
//	beside cp-9 10.0.0.7            cp-9 unreachable
//	removed w-9 worker 10.0.0.6     w-9 member stage=running ready
//	cp-1 controlplane 10.0.0.1      cp-1 member stage=running ready etcd=Running
//	w-1 worker 10.0.0.9             w-1 maintenance
//	w-2 worker 10.0.0.8 meta=0x0c:a w-2 member stage=booting meta=0x0c:b
//
// -- decision --, -- teardown -- and -- removal -- hold the lines of the answer, -- forecast --
// the steps of the model run, -- phase -- the phase.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}

	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}

			runScenario(t, archive)

			if *update {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func runScenario(t *testing.T, archive *txtar.Archive) {
	t.Helper()

	var (
		want    cluster.Spec
		have    cluster.Snapshot
		checked int
		policy  = cluster.DefaultPolicy()
	)

	for i, f := range archive.Files {
		var got string

		switch f.Name {
		case "spec":
			want = parseSpec(t, string(f.Data))

			continue
		case "snapshot":
			have = parseSnapshot(t, want, string(f.Data))

			continue
		case "decision":
			got = render(cluster.Plan(want, have, policy))
		case "teardown":
			got = render(cluster.PlanTeardown(want, have, policy))
		case "removal":
			got = render(cluster.PlanRemoval(want, have, policy))
		case "forecast":
			got = renderSteps(cluster.Forecast(want, have, policy))
		case "forecast-teardown":
			got = renderSteps(cluster.ForecastTeardown(want, have, policy))
		case "phase":
			got = string(cluster.PhaseOf(want, have)) + "\n"
		default:
			t.Fatalf("unknown section %q", f.Name)
		}

		checked++

		if *update {
			archive.Files[i].Data = []byte(got)

			continue
		}

		if diff := cmp.Diff(string(f.Data), got); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", f.Name, diff)
		}
	}

	if checked == 0 {
		t.Fatal("the scenario expects nothing")
	}
}

func render(d cluster.Decision) string {
	var b strings.Builder
	for _, r := range d.Refusals {
		fmt.Fprintf(&b, "refuse %s\n", r)
	}

	for _, s := range d.Steps {
		fmt.Fprintf(&b, "step %s\n", s)
	}

	for _, h := range d.Holds {
		fmt.Fprintf(&b, "hold %s\n", h)
	}

	if d.Done() {
		b.WriteString("done\n")
	}

	return b.String()
}

func renderSteps(steps []cluster.Step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintln(&b, s)
	}

	return b.String()
}

func lines(text string) [][]string {
	var out [][]string

	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(fields[0], "#") {
			out = append(out, fields)
		}
	}

	return out
}

func parseSpec(t *testing.T, text string) cluster.Spec {
	spec := cluster.Spec{Name: "prod", Endpoint: "https://10.0.0.100:6443", NodesBecomeReady: true}

	for _, f := range lines(text) {
		switch {
		case f[0] == "bootstrapped":
			spec.Bootstrapped = true
		case f[0] == "joins":
			spec.Joins = true
		case f[0] == "beside":
			spec.Beside = append(spec.Beside, cluster.Machine{Name: f[1], Role: cluster.ControlPlane, Address: f[2]})
		case f[0] == "removed":
			spec.Removed = append(spec.Removed, cluster.Machine{Name: f[1], Role: cluster.Role(f[2]), Address: f[3], NodeName: f[1]})
		case f[0] == "no-cni":
			spec.NodesBecomeReady = false
		case len(f) >= 3:
			m := cluster.Machine{Name: f[0], Role: cluster.Role(f[1]), Address: f[2], ConfigDigest: "new", TalosVersion: "v1.13.0", InstallTarget: "/dev/sda"}
			for _, kv := range f[3:] {
				switch key, value, _ := strings.Cut(kv, "="); key {
				case "uuid":
					m.UUID = value
				case "meta":
					m.Meta = parseMeta(t, value)
				default:
					t.Fatalf("unknown setting %q", kv)
				}
			}

			spec.Machines = append(spec.Machines, m)
		default:
			t.Fatalf("bad spec line %q", f)
		}
	}

	return spec
}

func parseSnapshot(t *testing.T, want cluster.Spec, text string) cluster.Snapshot {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	have := cluster.Snapshot{Time: now, Machines: map[string]cluster.MachineState{}, Kubernetes: cluster.KubernetesState{Reachable: true}}

	for _, f := range lines(text) {
		switch f[0] {
		case "etcd":
			have.Etcd.Known = true

			for _, name := range f[1:] {
				name, learner := strings.CutSuffix(name, "(learner)")
				have.Etcd.Members = append(have.Etcd.Members, cluster.EtcdMember{ID: name, Name: name, Learner: learner, PeerURLs: []string{"https://" + addressOf(want, name) + ":2380"}})
			}
		case "nodes":
			for _, name := range f[1:] {
				name, notReady := strings.CutSuffix(name, "(NotReady)")
				have.Kubernetes.Nodes = append(have.Kubernetes.Nodes, cluster.Node{Name: name, Addresses: []string{addressOf(want, name)}, Ready: !notReady})
			}
		case "kubernetes-down":
			have.Kubernetes = cluster.KubernetesState{Cause: "connection refused"}

			if len(f) > 1 {
				have.Kubernetes.Since = now.Add(-age(t, f[1]))
			}
		default:
			have.Machines[f[0]] = parseState(t, now, f[1:])
		}
	}

	return have
}

func addressOf(want cluster.Spec, name string) string {
	for _, m := range slices.Concat(want.Machines, want.Removed, want.Beside) {
		if m.Name == name {
			return m.Address
		}
	}

	return "192.0.2.1"
}

func parseState(t *testing.T, now time.Time, fields []string) cluster.MachineState {
	s := cluster.MachineState{Access: cluster.Access(fields[0]), Since: now}
	if s.Access == cluster.Member {
		s.ConfigDigest = "new"
	}

	for _, f := range fields[1:] {
		key, value, _ := strings.Cut(f, "=")

		switch key {
		case "stage":
			s.Stage = cluster.Stage(value)
		case "ready":
			s.Ready = true
		case "unmet":
			s.Unmet = strings.Split(value, ",")
		case "etcd":
			s.EtcdService = cluster.ServiceState(value)
		case "requested":
			s.BootstrapRequested = true
		case "fresh":
			s.Fresh = true
		case "sent":
			s.BootstrapSent = true
		case "busy":
			s.Busy = "in progress"
		case "resetting":
			s.Resetting = true
		case "digest":
			s.ConfigDigest = value
		case "uuid":
			s.UUID = value
		case "meta":
			s.Meta = parseMeta(t, value)
		case "role":
			s.Role = cluster.Role(value)
		case "cause":
			s.Cause = strings.ReplaceAll(value, "_", " ")
		case "since":
			s.Since = now.Add(-age(t, value))
		default:
			t.Fatalf("unknown field %q", f)
		}
	}

	return s
}

func age(t *testing.T, text string) time.Duration {
	t.Helper()

	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}

	return d
}

// parseMeta reads values such as 0x0c:rack-1,0x0d:row-2.
func parseMeta(t *testing.T, text string) map[uint8]string {
	values := map[uint8]string{}

	for entry := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(entry, ":")

		key, err := strconv.ParseUint(name, 0, 8)
		if err != nil {
			t.Fatal(err)
		}

		values[uint8(key)] = value
	}

	return values
}

// TestScenarioFilesEndWithNewline keeps the files diffable.
func TestScenarioFilesEndWithNewline(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		if !strings.HasSuffix(string(data), "\n") {
			t.Errorf("%s does not end with a newline", file)
		}
	}
}
