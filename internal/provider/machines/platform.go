package machines

import (
	"context"
	"net/netip"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
)

// platform is what a run does, besides Talos, to what its machines run on. Before the first observation it creates
// what they need, and it leaves nothing of a cluster that ended.
type platform interface {
	// spec is the wanted objects of the machines; zero on metal.
	spec() workload.Spec
	// orphans are the existing machines of the set that no state knows.
	orphans(ctx context.Context, recorded machineset.PriorState) []cluster.Machine
	// ensure creates and repairs what the machines need, after checking that this is possible. made reports whether
	// anything of them exists, so that the outcome has to be recorded.
	ensure(ctx context.Context, recorded machineset.PriorState) (made bool, err error)
	// answers is nil when the platform answers. Otherwise nothing can be removed, and a silent machine is not known to
	// be gone.
	answers(ctx context.Context, record machineset.Record) error
	// clear removes what the machines of a cluster shared, when its control planes are gone. Workers of other
	// resources may stay, as left says.
	clear(ctx context.Context) (left *workload.WorkersLeftError, err error)
	// report is the result of a refresh, with observations since a time; zero without an answer. The error says that
	// the host cluster differs from the recorded one.
	report(ctx context.Context, recorded machineset.PriorState, since time.Time) (hostReport, error)
	// end puts into a run what it left on the platform.
	end(done *run)
}

// metal exists without talosop, and needs nothing besides Talos.
type metal struct{}

// hostReport is what a refresh reads about machines in containers from their host cluster.
type hostReport struct {
	// host is the identity of the host cluster, as far as it can be known, and present whether it has any of the
	// machines.
	host    workload.Identity
	present bool
	// drift is how their objects differ, and pods the inputs of those without drift; both by machine.
	drift map[string]machineset.HostDrift
	pods  map[string]string
	// peers are the etcd addresses for control planes that are configured from now on.
	peers map[string]netip.Addr
	// orphans were not observed yet, and removed are the leaving machines.
	orphans, removed []cluster.Machine
}

func (metal) spec() workload.Spec                                              { return workload.Spec{} }
func (metal) orphans(context.Context, machineset.PriorState) []cluster.Machine { return nil }
func (metal) ensure(context.Context, machineset.PriorState) (bool, error)      { return false, nil }
func (metal) answers(context.Context, machineset.Record) error                 { return nil }
func (metal) clear(context.Context) (*workload.WorkersLeftError, error)        { return nil, nil }
func (metal) report(context.Context, machineset.PriorState, time.Time) (hostReport, error) {
	return hostReport{}, nil
}
func (metal) end(*run) {}
