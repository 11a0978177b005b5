package lifecycle_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// mistaken is a fleet with one machine that panics in a call.
type mistaken struct {
	lifecycle.Fleet

	name string
	in   string
}

func (f mistaken) Machine(m cluster.Machine) lifecycle.Machine {
	api := f.Fleet.Machine(m)
	if m.Name != f.name {
		return api
	}

	return mistakenMachine{api, f.in}
}

type mistakenMachine struct {
	lifecycle.Machine

	in string
}

func (m mistakenMachine) Observe(ctx context.Context) step.MachineState {
	if m.in == "observe" {
		panic("swordfish")
	}

	return m.Machine.Observe(ctx)
}

func (m mistakenMachine) ApplyConfig(ctx context.Context, config []byte, access step.Access, uuid string) error {
	if m.in == "step" {
		panic("swordfish")
	}

	return m.Machine.ApplyConfig(ctx, config, access, uuid)
}

type mistakenKubernetes struct{ lifecycle.Kubernetes }

func (mistakenKubernetes) Observe(context.Context) kubestate.State { panic("swordfish") }

// A panic in a goroutine of the run ends the run like any other error. The results of the other machines are
// recorded.
func TestConverge_mistakesKeepTheRecord(t *testing.T) {
	t.Parallel()

	for name, spoil := range map[string]func(*lifecycle.Runner, string){
		"step":    func(r *lifecycle.Runner, machine string) { r.Fleet = mistaken{r.Fleet, machine, "step"} },
		"observe": func(r *lifecycle.Runner, machine string) { r.Fleet = mistaken{r.Fleet, machine, "observe"} },
		"nodes":   func(r *lifecycle.Runner, _ string) { r.Kubernetes = mistakenKubernetes{r.Kubernetes} },
		"loop": func(r *lifecycle.Runner, _ string) {
			r.Events = func(lifecycle.Event) { panic("swordfish") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newSite(t, 1, 1, sim.Options{})
			s.create()
			s.add("late", 1, step.Worker)

			runner := s.runner()
			spoil(runner, s.want.Machines[2].Name)

			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()

			result, err := runner.Converge(ctx, s.want)

			var incomplete *lifecycle.IncompleteError
			if !errors.As(err, &incomplete) {
				t.Fatalf("it is %v", err)
			}

			if cp := result.Snapshot.Machines[s.want.Machines[0].Name]; cp.Access != step.Member {
				t.Errorf("the record has a control plane that is %+v", cp)
			}

			if text := err.Error(); strings.Contains(text, "swordfish") {
				t.Errorf("it shows a value: %s", text)
			}

			var mistake *panics.Error
			if ends := name == "step" || name == "loop"; ends != errors.As(err, &mistake) {
				t.Errorf("it is %v", err)
			}

			// Without the panic, the run continues.
			s.create()
		})
	}
}
