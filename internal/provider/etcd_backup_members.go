package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// giver is a member of etcd that can give a snapshot.
type giver struct {
	name, address, talosVersion string
	leader                      bool
	// full is true when the database of the member has no room left.
	full bool
}

// givers are the healthy members, followers first: reading the whole database costs the one
// that gives it. Those without room come last: they can be read, and a backup is what should
// be there before anything is done about it. The problems are those of all members that are
// not healthy.
func (t *taking) givers(ctx context.Context, p pool) ([]giver, []error) {
	want := controlPlanesOf(p)
	have := (&lifecycle.Runner{Fleet: fleet{t.machine}}).Examine(ctx, want)

	return giversIn(want, have)
}

func giversIn(want cluster.Spec, have cluster.Snapshot) ([]giver, []error) {
	health := cluster.EtcdHealthOf(want, have)
	if len(health.Members) == 0 {
		return nil, []error{errors.New("nobody lists the members of etcd: " + health.Cause)}
	}

	var (
		givers   []giver
		problems []error
	)

	for _, member := range health.Members {
		if len(member.Errors) > 0 {
			problems = append(problems, fmt.Errorf("%s: it is not healthy: %s", member.Name, strings.Join(member.Errors, "; ")))

			if !onlyFull(member, have.Etcd) {
				continue
			}
		}

		g := giver{
			name: member.Name, address: member.Host(), leader: member.Leader, talosVersion: have.Peers[member.ID].TalosVersion, full: len(member.Errors) > 0,
		}

		for _, m := range want.Machines {
			if s, seen := have.Machines[m.Name]; seen && s.MemberID == member.ID {
				g.address, g.talosVersion = m.Address, s.TalosVersion
			}
		}

		givers = append(givers, g)
	}

	rank := func(g giver) int {
		switch {
		case g.full:
			return 2
		case g.leader:
			return 1
		default:
			return 0
		}
	}

	slices.SortStableFunc(givers, func(a, b giver) int { return cmp.Compare(rank(a), rank(b)) })

	return givers, problems
}

// onlyFull is whether nothing is wrong with a member but that its database has no room left.
// etcd refuses writes then and answers reads; with CORRUPT it refuses these, too (etcd 3.6,
// server/etcdserver/apply, applierV3Capped and applierV3Corrupt).
func onlyFull(member cluster.MemberHealth, etcd cluster.EtcdState) bool {
	return len(member.Errors) == 1 && slices.Contains(etcd.Views[member.ID].Alarms, "NOSPACE on "+member.ID)
}

// The right to store backups of a cluster, and to remove what was left half stored. It has
// nothing to do with that to disrupt machines: snapshots are taken during a rollout, too.
const backupLease = "talosop-backup"

// backupTurns order the runs of this process, by the marks of their clusters. They are
// global because a process serves several resources, and several configurations of the
// provider.
var backupTurns = struct {
	sync.Mutex
	by map[string]chan struct{}
}{by: map[string]chan struct{}{}}

// turnOf has room for the one whose turn it is.
func turnOf(mark string) chan struct{} {
	backupTurns.Lock()
	defer backupTurns.Unlock()

	if backupTurns.by[mark] == nil {
		backupTurns.by[mark] = make(chan struct{}, 1)
	}

	return backupTurns.by[mark]
}

var errNoAPI = errors.New("the Kubernetes API does not answer")

// hush is how long a Kubernetes API has not answered. It ends a wait, even one that began
// with an answer: whoever else holds the lease may be gone with the API.
type hush struct {
	patience time.Duration
	end      *time.Timer
	broken   bool
}

// hush begins now, and calls end when patience is over.
func (m *machinery) hush(end func()) *hush {
	return &hush{patience: m.patience, end: time.AfterFunc(m.patience, end)}
}

// asked takes down whether the API answered.
func (s *hush) asked(err error) {
	switch {
	case err == nil:
		s.end.Stop()
		s.broken = true
	case s.broken:
		s.end.Reset(s.patience)
		s.broken = false
	}
}

// turn waits until no other run of this process, and as far as the Kubernetes API answers no
// other one at all, stores backups of the cluster. alone is whether nobody else does.
func (m *machinery) turn(ctx context.Context, t *taking) (alone bool, leave func(), err error) {
	free := turnOf(t.archive.Mark)

	select {
	case free <- struct{}{}:
	case <-ctx.Done():
		return false, nil, fmt.Errorf("wait for another backup of the cluster in this process: %w", context.Cause(ctx))
	}

	waiting, cancel := context.WithCancelCause(ctx)
	hush := m.hush(func() { cancel(errNoAPI) })

	lock := t.api.Lock(kubernetes.LockOptions{
		Cluster: t.bundle.Authorities()[0].Fingerprint, Lease: backupLease, Name: "backup of " + t.archive.Cluster, Asked: hush.asked,
	})

	// Somebody who loses the lease goes on: at worst the upload is removed and fails.
	_, release, err := lock.Acquire(waiting, func(holder string) {
		hush.asked(nil)
		tflog.Info(ctx, "another run stores a backup of the cluster", map[string]any{"holder": holder})
	})

	hush.end.Stop()
	cancel(nil)

	switch {
	case err == nil:
		return true, func() { release(); <-free }, nil
	case ctx.Err() != nil:
		<-free

		return false, nil, err
	default:
		tflog.Warn(ctx, "taking a backup without a lock", map[string]any{"reason": err.Error()})

		return false, func() { <-free }, nil
	}
}
