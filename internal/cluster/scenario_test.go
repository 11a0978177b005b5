package cluster_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// update rewrites the answers in the scenario files; review the diff before you keep it.
var update = flag.Bool("update", false, "rewrite the expected answers of the scenarios")

// A scenario file has what is wanted, what was observed and the expected answer of the planner, one thing in each
// line:
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
//	version v1.13.0 via=v1.12.4     talos v1.11.6 s1
//	canary a 30m                    nodes w-1(soaks) w-2(soaks=10m)
//	budget a 20%                    view cp-1 leader=cp-1 alarm=NOSPACE
//	policy try                      peer cp-7 member stage=running ready
//	w-3 worker 10.0.0.7 pool=a      nodes w-3(NotReady,cordoned) w-4(foreign)
//	restore key recorded=1h         cp-2 member stage=running restored=1h
//	pods                            etcd cp-1@10.9.0.1 cp-2
//	w-4 worker w-4.x replace=image  cp-1 member stage=running ready address=10.9.0.2
//	w-5 worker 10.0.0.5 least=v1.14 w-5 maintenance version=v1.13.0
//	cp-0 controlplane cp-0.x joined cp-0 unreachable volumes-lost
//	w-6 worker 10.0.0.4 locked      only w-8 member stage=running ready digest=old
//	only w-8 10.0.0.3
//	                                founder cp-9
//	needs-consent                   window closed (or refuses)
//	shared                          elsewhere quiet=1m (or moves, undecided, oldest=v1.35.4)
//
// version and talos are the wanted and running versions of all machines without their own; views is the leader that
// all others report; a foreign cordon is not talosop's. After pods, all machines are pods at their own addresses
// unless set otherwise.
//
// -- spec.json --, -- policy.json -- and -- snapshot.json -- are the values of the planner themselves, as an exploration
// prints them (TestPlan_exploresEveryState); -- preflight -- is the confirmation of a step that was decided before. A
// note may follow the name of a section.
//
// -- decision --, -- teardown -- and -- removal -- have the lines of the answer, -- forecast -- the steps of the
// model run and what is left after them, -- phase -- the phase.
func TestPlan_scenarios(t *testing.T) {
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
		decided []step.Step
	)

	for i, f := range archive.Files {
		var got string

		switch name, _, _ := strings.Cut(f.Name, " "); name {
		case "spec":
			want = parseSpec(t, string(f.Data), &policy)

			continue
		case "snapshot":
			have = parseSnapshot(t, want, string(f.Data))

			continue
		case "spec.json":
			want = parseJSON[cluster.Spec](t, f.Data)

			continue
		case "policy.json":
			policy = parseJSON[cluster.Policy](t, f.Data)

			continue
		case "snapshot.json":
			have = parseJSON[cluster.Snapshot](t, f.Data)

			continue
		case "decision":
			d := cluster.Plan(want, have, policy)
			decided = append(d.Steps, decided...)
			got = render(d)
		case "preflight":
			got = preflight(t, want, have, policy, decided, string(f.Data))
		case "teardown":
			got = render(cluster.PlanTeardown(want, have, policy))
		case "removal":
			got = render(cluster.PlanRemoval(want, have, policy))
		case "forecast":
			got = renderForecast(cluster.Forecast(want, have, policy))
		case "forecast-teardown":
			got = renderForecast(cluster.ForecastTeardown(want, have, policy))
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

	b.WriteString(renderKept(d))

	if d.Done() {
		b.WriteString("done\n")
	}

	return b.String()
}

// renderForecast lists the steps, and what is left after them.
func renderForecast(steps []step.Step, last cluster.Decision) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintln(&b, s)
	}

	if last.Done() {
		b.WriteString(renderKept(last))
	} else {
		b.WriteString(render(last))
	}

	return b.String()
}

func renderKept(d cluster.Decision) string {
	var b strings.Builder
	for _, kept := range d.Kept {
		fmt.Fprintln(&b, kept)
	}

	for _, left := range d.Behind {
		fmt.Fprintf(&b, "behind %s: %s\n", left.Step, left.Reason)
	}

	return b.String()
}

// TestScenarioFiles_endWithNewline keeps the files diffable.
func TestScenarioFiles_endWithNewline(t *testing.T) {
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
