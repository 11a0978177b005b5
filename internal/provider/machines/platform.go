package machines

import (
	"context"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
)

// platform is what a run does, beside Talos, to what its machines run on: what they need is there before the first of
// them is looked at, and nothing is left of a cluster that ended.
type platform interface {
	// spec is what there is to be of the machines; zero on metal.
	spec() workload.Spec
	// orphans are the machines of the set that are there and that no state knows of.
	orphans(ctx context.Context, recorded machineset.PriorState) []cluster.Machine
	// ensure makes and repairs what the machines need, once that is known to be possible. made is whether there is
	// anything of them, so that the outcome has to be remembered.
	ensure(ctx context.Context, recorded machineset.PriorState) (made bool, err error)
	// answers is nil when it does: else nothing can be removed, and no machine that is silent is known to be gone.
	answers(ctx context.Context, record machineset.Record) error
	// clear removes what the machines of a cluster shared, when its control planes are gone. Workers of other resources
	// may stay, as left says.
	clear(ctx context.Context) (left *workload.WorkersLeftError, err error)
	// report is what a refresh finds out, by what was seen since a time; zero where there is no answer. The error is that
	// it is another host cluster than the recorded one.
	report(ctx context.Context, recorded machineset.PriorState, since time.Time) (hostReport, error)
	// end puts into a run what it left there.
	end(done *run)
}

// metal is there without talosop, and takes nothing beside Talos.
type metal struct{}

func (metal) spec() workload.Spec                                              { return workload.Spec{} }
func (metal) orphans(context.Context, machineset.PriorState) []cluster.Machine { return nil }
func (metal) ensure(context.Context, machineset.PriorState) (bool, error)      { return false, nil }
func (metal) answers(context.Context, machineset.Record) error                 { return nil }
func (metal) clear(context.Context) (*workload.WorkersLeftError, error)        { return nil, nil }
func (metal) report(context.Context, machineset.PriorState, time.Time) (hostReport, error) {
	return hostReport{}, nil
}
func (metal) end(*run) {}
