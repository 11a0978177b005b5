package provider_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// repaired is the stack that repairs workers, applied on simulated machines.
type repaired struct {
	*sitetest.Site
	*clitest.Workspace

	api *kubernetes.Client
	// node is the name of the node of the first worker.
	node string
}

func newRepaired(t *testing.T, cli clitest.CLI) *repaired {
	t.Helper()

	s, on := metal(t, sim.Options{}, 3, 2)
	w := clitest.NewWorkspace(t, cli).Example("../../examples", "stacks/repair")
	on.variables["workers"] = sitetest.Addresses(s.Workers)
	setVariables(t, w, on.variables)
	w.Setenv("CLI", cli.Path)
	w.Setenv("PATH", filepath.Dir(clitest.Asset(t, "opa"))+":"+os.Getenv("PATH"))
	w.Setenv("METRICS", filepath.Join(w.Dir, "repair.prom"))

	w.Init()
	w.MustRun("apply", "-auto-approve")

	bundle, _ := w.Attribute("talosop_secrets.this", "bundle").(string)
	s.ForgetCalls()

	return &repaired{s, w, s.Kubernetes(t, bundle), s.Workers[0].Hostname()}
}

// run runs the script, and checks how it exits and some of what it says.
func (r *repaired) run(t *testing.T, exit int, says ...string) {
	t.Helper()

	script := exec.CommandContext(t.Context(), "sh", "repair.sh")
	script.Dir, script.Env = r.Dir, r.Environ()

	began := time.Now()
	out, err := script.CombinedOutput()
	t.Logf("the script took %s", time.Since(began).Round(time.Second))

	if script.ProcessState == nil {
		t.Fatal(err)
	}

	for _, text := range says {
		if !strings.Contains(string(out), text) {
			t.Errorf("the script does not say %q", text)
		}
	}

	metric := fmt.Sprintf("talosop_repair_exit_code %d\n", exit)
	metrics := r.Read("repair.prom")
	if got := script.ProcessState.ExitCode(); got != exit || !strings.HasPrefix(metrics, metric) || t.Failed() {
		t.Fatalf("exit %d, want %d, with the metrics\n%s\n%s", got, exit, metrics, out)
	}
}

// breaks damages EPHEMERAL of the first worker, and waits until its node is not Ready.
func (r *repaired) breaks(t *testing.T) {
	t.Helper()

	r.Workers[0].BreakEphemeral()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	tftest.Must(t, wait.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		node, err := r.api.Node(ctx, r.node, "")
		if err == nil && readyIn(node).Status == corev1.ConditionTrue {
			err = errors.New("the node is Ready")
		}

		return err
	}))
}

// hoursPass makes the Ready condition of its node older.
func (r *repaired) hoursPass(t *testing.T, hours int) {
	t.Helper()

	node, err := r.api.Node(t.Context(), r.node, "")
	tftest.Must(t, err)

	condition := readyIn(node)
	condition.LastTransitionTime = metav1.NewTime(condition.LastTransitionTime.Add(-time.Duration(hours) * time.Hour))

	_, err = r.api.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	tftest.Must(t, err)
}

func readyIn(node *corev1.Node) *corev1.NodeCondition {
	for i, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return &node.Status.Conditions[i]
		}
	}

	return &corev1.NodeCondition{}
}

// A worker that is not Ready for an hour is reset by the script, and nothing else is ever applied.
func TestAccExamples_repair(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		r := newRepaired(t, cli)
		r.run(t, 0, "Nothing to repair.")
		r.breaks(t)
		r.run(t, 0, r.node+" is not Ready since", ": not long enough", "Nothing to repair.")
		r.hoursPass(t, 2)

		r.Setenv("TF_VAR_versions", `{"talos":"v1.14.1","kubernetes":"v1.37.2"}`)
		r.run(t, 3, "the plan also changes talosop_cluster.this (update)")
		r.Setenv("TF_VAR_versions", `{"talos":"v1.14.1","kubernetes":"v1.37.0"}`)
		r.ExpectNothingSent(t)

		r.run(t, 0, r.node+" is not Ready since", ": it is reset")

		if resets := r.CallsTo("Reset"); len(resets) != 1 || resets[0].Machine != "w-1" {
			t.Errorf("resets are %v", resets)
		}

		r.AwaitReady(t)
		r.ForgetCalls()
		r.run(t, 0, "the record of a repair is removed: talosop_machine_reset.repair[\""+r.node+"\"]")
		r.run(t, 0, "Nothing to repair.")
		sitetest.ExpectNoChanges(t, r.Workspace, "after the repair")

		// It fails again, and no run resets it again.
		r.breaks(t)
		r.hoursPass(t, 2)
		r.run(t, 3, r.node+" failed again after its reset at", "Stopped")
		r.ExpectNothingSent(t)
	})
}

// A run that is killed after it wiped a machine used its budget: no later run resets the machine again, also when it
// never returned.
func TestAccExamples_repairKilled(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccExamples_repair", "TestRepairPolicy_appliesRepairsAlone", "TestWipe_isRecordedFirst")
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		r := newRepaired(t, cli)
		r.breaks(t)
		r.hoursPass(t, 2)
		r.Workers[0].HangNextReboot()

		apply := r.Start("apply", "-auto-approve", "-var", "repair=true")
		tftest.Must(t, wait.Until(t.Context(), 20*time.Millisecond, func(context.Context) error {
			if len(r.CallsTo("Reset")) == 0 {
				return errors.New("nothing is wiped yet")
			}

			return nil
		}))
		apply.KillCLI()
		apply.Wait()
		tftest.Must(t, apply.AwaitProviderEnd(t.Context()))

		r.run(t, 3, r.node+" failed again after its reset at", "Stopped")

		if resets := r.CallsTo("Reset"); len(resets) != 1 {
			t.Errorf("resets are %v", resets)
		}

		// A person turns it off and on.
		r.Workers[0].PowerOff()
		r.Workers[0].PowerOn()
		r.AwaitReady(t)
		r.run(t, 0, "Nothing to repair.")
	})
}
