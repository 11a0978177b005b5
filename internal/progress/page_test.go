package progress_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/progress"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// pageOf is the page beside a progress file.
func pageOf(t *testing.T, file string) string {
	t.Helper()

	html, err := os.ReadFile(file + ".html")
	if err != nil {
		t.Fatal(err)
	}

	return string(html)
}

// awaitPage waits until the page contains a text: it is written by a timer.
func awaitPage(t *testing.T, file, text string) string {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()

	err := wait.Until(ctx, 10*time.Millisecond, func(context.Context) error {
		html, err := os.ReadFile(file + ".html")
		if err == nil && !strings.Contains(string(html), text) {
			err = fmt.Errorf("the page is\n%s", html)
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return pageOf(t, file)
}

func says(t *testing.T, page string, texts ...string) {
	t.Helper()

	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("%q is not in\n%s", text, page[strings.Index(page, "<main>"):])
		}
	}
}

// observed is a create whose first control plane works, and whose second machine waits. Both are next.
func observed() (cluster.Spec, cluster.Snapshot, func(int) []step.Step) {
	want := cluster.Spec{Name: "prod", Endpoint: "https://10.0.0.10:6443", Machines: []cluster.Machine{
		cluster.MachineAt("cp-1", step.ControlPlane, "10.0.0.11"), cluster.MachineAt("w-1", step.Worker, "10.0.0.21")}}
	want.Machines[1].Pool = "batch"

	return want, cluster.Snapshot{Time: time.Now(), Machines: map[string]step.MachineState{
			"cp-1": {Access: step.Member, Role: step.ControlPlane, Stage: step.StageRunning, Ready: true, NodeName: "cp-1"},
			"w-1":  {Access: step.Maintenance},
		}, Kubernetes: kubestate.State{Reachable: true, Nodes: []kubestate.Node{{Name: "cp-1", Ready: true, ControlPlane: true,
			Addresses: []string{"10.0.0.11"}}}}}, func(int) []step.Step {
			return []step.Step{bootstrap, step.ApplyConfig{Machine: "w-1", Access: step.Maintenance}, step.Uncordon{Machine: "w-1"}}
		}
}

// The page shows the machines of the run, running and finished steps, and what waits. At the end it says so.
func TestPage_followsARun(t *testing.T) {
	t.Parallel()

	file := filepath.Join(t.TempDir(), "progress.jsonl")
	run := follow(t, progress.NewFollower(file, "", nil))

	run.Tell(lifecycle.Event{State: lifecycle.StepStarted, Machine: "cp-1", Step: bootstrap})
	run.Tell(lifecycle.Event{State: lifecycle.Note, Machine: "cp-1", Reason: "a note of the step"})
	run.Tell(lifecycle.Event{State: lifecycle.Waiting, Machine: "w-1", Reason: "waits for the control plane"})
	run.Observed(observed())

	page := awaitPage(t, file, "waits for the control plane")
	says(t, page, `http-equiv="refresh" content="2"`, "The apply to cluster prod is running", "Running now",
		"bootstrap etcd on cp-1", "a note of the step", "apply configuration to w-1", "Pool batch", "in maintenance mode", ">w-1<", "10.0.0.21")

	// A step that runs does not wait, and a step without a line in plans is not shown.
	if strings.Count(page, "bootstrap etcd on cp-1") != 1 || strings.Contains(page, "uncordon") {
		t.Errorf("the page is\n%s", page)
	}

	run.Tell(lifecycle.Event{State: lifecycle.StepFinished, Machine: "cp-1", Step: bootstrap, Elapsed: 62 * time.Second})
	run.Observed(observed())
	run.End(t.Context(), nil)

	page = pageOf(t, file)
	says(t, page, "The apply to cluster prod has finished", "1m2s", `http-equiv="refresh" content="30"`)

	for _, over := range []string{"Running now", ">Waiting<", "waits for the control plane", "apply configuration to w-1"} {
		if strings.Contains(page, over) {
			t.Errorf("%q is still in the page", over)
		}
	}
}

// Each run of a process is in the page: it is over once all of them are, and says which one failed.
func TestPage_ofSeveralRuns(t *testing.T) {
	t.Parallel()

	file := filepath.Join(t.TempDir(), "progress.jsonl")
	f := progress.NewFollower(file, "", nil)
	first, second := f.Follow("prod", "control plane", "control plane", nil),
		f.Follow("prod", "worker pool", "worker pool batch", nil)
	elsewhere, idle := f.Follow("staging", "cluster", "cluster staging", nil),
		f.Follow("idle", "cluster", "cluster idle", nil)

	for _, run := range []*progress.Follow{first, second, elsewhere} {
		run.Observed(observed())
	}

	first.End(t.Context(), nil)
	idle.End(t.Context(), nil)
	says(t, pageOf(t, file), "The apply to cluster prod is running", "The apply to cluster staging is running")

	second.End(t.Context(), errors.New("a secret text"))
	elsewhere.End(t.Context(), nil)

	page := pageOf(t, file)
	says(t, page, "The apply to cluster prod failed", "worker pool batch", "The apply to cluster staging has finished")

	if strings.Contains(page, "a secret text") || strings.Contains(page, "idle") {
		t.Error("the page has the error of a run, or a run that did nothing")
	}
}

// Workers are drawn with the nodes that the run of another resource saw last.
func TestPage_showsTheNewestNodes(t *testing.T) {
	t.Parallel()

	file := filepath.Join(t.TempDir(), "progress.jsonl")
	f := progress.NewFollower(file, "", nil)
	planes, workers := follow(t, f), follow(t, f)

	want, have, next := observed()
	machines := want.Machines
	want.Machines = machines[:1]
	planes.Observed(want, have, next)
	planes.End(t.Context(), nil)

	want.Machines = machines[1:]
	have.Time = have.Time.Add(time.Minute)
	have.Machines = map[string]step.MachineState{"w-1": {Access: step.Member, Stage: step.StageRunning, NodeName: "w-1"}}
	have.Kubernetes.Nodes = append(have.Kubernetes.Nodes, kubestate.Node{Name: "w-1", Ready: true, KubeletVersion: "v1.37.0"})
	workers.Observed(want, have, next)
	workers.End(t.Context(), nil)

	page := pageOf(t, file)
	says(t, page, "Pool batch", "v1.37.0 on 1")

	if strings.Contains(page, "no Kubernetes node yet") || strings.Contains(page, "in maintenance mode") {
		t.Errorf("w-1 is not drawn as its node:\n%s", page[strings.Index(page, "<main>"):])
	}
}

// Steps of the kind that the file has from earlier applies, or that finished before, show how long they usually take.
func TestFollow_saysWhatStepsUsuallyTake(t *testing.T) {
	t.Parallel()

	file := filepath.Join(t.TempDir(), "progress.jsonl")
	upgrade := func(machine string) step.Step {
		return step.Upgrade{Machine: machine, From: "v1.13.0", To: "v1.14.1"}
	}

	for i, machine := range []string{"cp-1", "cp-2", "cp-3"} {
		run := follow(t, progress.NewFollower(file, "", nil)) // another process
		run.Tell(lifecycle.Event{State: lifecycle.StepStarted, Machine: machine, Step: upgrade(machine)})
		run.Tell(lifecycle.Event{State: lifecycle.StepFinished, Machine: machine, Step: upgrade(machine),
			Elapsed: time.Duration(i+1) * time.Minute})
		run.End(t.Context(), nil)
	}

	run := follow(t, progress.NewFollower(file, "", nil))
	run.Tell(lifecycle.Event{State: lifecycle.StepStarted, Machine: "w-1", Step: upgrade("w-1")})
	run.End(t.Context(), nil)

	people := lines(t, file+".txt")
	if got := people[len(people)-1]; !strings.HasSuffix(got, ": started, usually takes 2m0s") {
		t.Errorf("the line is %q", got)
	}

	if strings.Contains(people[0], "usually") {
		t.Errorf("the first line is %q", people[0])
	}

	says(t, pageOf(t, file), "usually 2m0s")
}

// A page of a thousand machines with a thousand waits is made in a moment.
func BenchmarkPage_largeCluster(b *testing.B) {
	want, have, next := observed()

	for i := range 1000 {
		m := cluster.MachineAt(fmt.Sprintf("w-%d", i), step.Worker, fmt.Sprintf("10.1.%d.%d", i/250, i%250))
		want.Machines = append(want.Machines, m)
		have.Kubernetes.Nodes = append(have.Kubernetes.Nodes, kubestate.Node{Name: m.Name, Addresses: []string{m.Address}})
	}

	file := filepath.Join(b.TempDir(), "progress.jsonl")

	for b.Loop() {
		run := progress.NewFollower(file, "", nil).Follow("prod", "cluster", "cluster prod", func(err error) { b.Fatal(err) })
		run.Observed(want, have, next)
		run.End(b.Context(), nil)
	}
}
