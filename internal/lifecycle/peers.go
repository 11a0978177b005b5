package lifecycle

import (
	"maps"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// Peers is what the runs of a process on one cluster know about each other.
type Peers interface {
	// Enter adds a run with what is known about it before it observes its machines.
	Enter(s cluster.Standing) Peer
}

// Peer is one of these runs. It is safe for concurrent use.
type Peer interface {
	// Tell replaces what the others know about the run.
	Tell(s cluster.Standing)
	// Others is what all other runs do, combined.
	Others() cluster.Standing
	// Leave removes the run. It may be called more than once.
	Leave()
}

// standing is the entry of one run in Peers.
type standing struct {
	peer      Peer // nil where the run does not know others
	announced cluster.Standing
	// starts is true when the run may start an API server with an older version than the current one.
	starts bool
	// before is what the others did when the last observation began. quiet is since when they have moved nothing.
	before cluster.Standing
	quiet  time.Time
	// apiServers are the API server versions that the machines of the run last had or got, because a booting machine
	// shows none.
	apiServers map[string]string
}

// enter makes a run known to the others. Until its first decision it may do anything.
func enter(peers Peers) *standing {
	s := &standing{
		announced: cluster.Standing{Undecided: true, Moves: true}, starts: true, apiServers: map[string]string{},
	}
	if peers != nil {
		s.peer = peers.Enter(s.announced)
	}

	return s
}

// look begins an observation of the cluster. A run that may start an API server announces it first, so that decisions
// of others from a later observation account for it.
func (s *standing) look() {
	if s.peer == nil {
		return
	}

	if s.starts && !s.announced.Undecided {
		s.announced.Undecided = true
		s.peer.Tell(s.announced)
	}

	s.before = s.peer.Others()
}

// elsewhere is what the others did during an observation.
func (s *standing) elsewhere() cluster.Elsewhere {
	if s.peer == nil {
		return cluster.Elsewhere{}
	}

	others := s.before.And(s.peer.Others())

	switch {
	case others.Moves:
		s.quiet = time.Time{}
	case s.quiet.IsZero():
		s.quiet = time.Now()
	}

	return cluster.Elsewhere{Standing: others, QuietSince: s.quiet}
}

// decided announces a decision to the others before its first step.
func (s *standing) decided(want cluster.Spec, have cluster.Snapshot, d cluster.Decision) {
	if s.peer == nil {
		return
	}

	s.starts = cluster.StartsAPIServers(want, have)
	maps.Copy(s.apiServers, cluster.APIServers(want, have, d))
	s.announced = cluster.StandingOf(want, have, d, s.apiServers)
	s.peer.Tell(s.announced)
}

func (s *standing) leave() {
	if s.peer != nil {
		s.peer.Leave()
	}
}
