package etcdbackup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	clusterhealth "github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/lock"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Source is a member of etcd that can provide a snapshot.
type Source struct {
	Name, Address, TalosVersion string
	Leader                      bool
	// Full is true when the database of the member has reached its quota.
	Full bool
}

// sources are the healthy members, followers first: a snapshot costs its member a read of the whole database. Full
// members come last: they can be read, and there should be a backup before anyone repairs them. The problems are
// those of all members that are not healthy.
func (t *Taking) sources(ctx context.Context, p machineset.Set) ([]Source, []error) {
	want := providerdata.ControlPlanesOf(p)
	have := (&lifecycle.Runner{Fleet: providerdata.Fleet{Fleet: t.machine}}).Examine(ctx, want)

	return SourcesIn(want, have)
}

// SourcesIn lists the members that can provide a snapshot, the best first, and the problems of the others.
func SourcesIn(want cluster.Spec, have cluster.Snapshot) ([]Source, []error) {
	health := clusterhealth.OfEtcd(want, have)
	if len(health.Members) == 0 {
		return nil, []error{errors.New("the members of etcd are unknown: " + health.Cause)}
	}

	var (
		sources  []Source
		problems []error
	)

	for _, member := range health.Members {
		if len(member.Errors) > 0 {
			problems = append(problems, fmt.Errorf("%s: it is not healthy: %s", member.Name, strings.Join(member.Errors, "; ")))

			if !onlyFull(member, have.Etcd) {
				continue
			}
		}

		g := Source{
			Name: member.Name, Address: member.Host(), Leader: member.Leader, TalosVersion: have.Peers[member.ID].TalosVersion,
			Full: len(member.Errors) > 0,
		}

		for _, m := range want.Machines {
			if s, seen := have.Machines[m.Name]; seen && s.MemberID == member.ID {
				g.Address, g.TalosVersion = m.Address, s.TalosVersion
			}
		}

		sources = append(sources, g)
	}

	rank := func(g Source) int {
		switch {
		case g.Full:
			return 2
		case g.Leader:
			return 1
		default:
			return 0
		}
	}

	slices.SortStableFunc(sources, func(a, b Source) int { return cmp.Compare(rank(a), rank(b)) })

	return sources, problems
}

// onlyFull reports whether the only problem of a member is a full database. etcd then refuses writes and answers
// reads; with CORRUPT it refuses reads, too (etcd 3.6, server/etcdserver/apply, applierV3Capped and
// applierV3Corrupt).
func onlyFull(member clusterhealth.Member, etcd etcdstate.State) bool {
	return len(member.Errors) == 1 && slices.Contains(etcd.Views[member.ID].Alarms, "NOSPACE on "+member.ID)
}

// BackupLease is the right to store backups of a cluster, and to remove incomplete uploads. It is independent of the
// right to disrupt machines: snapshots are also taken during a rollout.
const BackupLease = "talosop-backup"

// backupTurns order the runs of this process, by the marks of their clusters. They are global because a process
// serves several resources, and several configurations of the provider.
var backupTurns = struct {
	sync.Mutex
	By map[string]chan struct{}
}{By: map[string]chan struct{}{}}

// turnOf has room for the run whose turn it is.
func turnOf(mark string) chan struct{} {
	backupTurns.Lock()
	defer backupTurns.Unlock()

	if backupTurns.By[mark] == nil {
		backupTurns.By[mark] = make(chan struct{}, 1)
	}

	return backupTurns.By[mark]
}

var errNoAPI = errors.New("the Kubernetes API does not answer")

// silenceTimer is how long a Kubernetes API has not answered. It ends a wait, even one that began with an answer:
// the lease holder may be gone with the API.
type silenceTimer struct {
	Timeout time.Duration
	end     *time.Timer
	broken  bool
}

// newSilenceTimer starts now, and calls end after the timeout; without a timeout it does so before any request.
func newSilenceTimer(m *providerdata.ProviderData, end func()) *silenceTimer {
	if m.KubernetesTimeout <= 0 {
		end()
	}

	return &silenceTimer{Timeout: m.KubernetesTimeout, end: time.AfterFunc(m.KubernetesTimeout, end)}
}

// asked records whether the API answered.
func (s *silenceTimer) asked(err error) {
	switch {
	case err == nil:
		s.end.Stop()
		s.broken = true
	case s.broken:
		s.end.Reset(s.Timeout)
		s.broken = false
	}
}

// TakeTurn waits until no other run of this process stores backups of the cluster, and no other run at all as far as
// the Kubernetes API answers. alone reports whether the run is the only one.
func TakeTurn(ctx context.Context, m *providerdata.ProviderData, t *Taking) (alone bool, leave func(), err error) {
	free := turnOf(t.Archive.Mark)

	select {
	case free <- struct{}{}:
	case <-ctx.Done():
		return false, nil, fmt.Errorf("wait for another backup of the cluster in this process: %w", context.Cause(ctx))
	}

	waiting, cancel := context.WithCancelCause(ctx)
	silence := newSilenceTimer(m, func() { cancel(errNoAPI) })

	lock := t.API.Lock(lock.Options{
		Cluster: t.Bundle.Mark(), Lease: BackupLease, Name: "backup of " + t.Archive.Cluster,
		Asked: silence.asked,
	})

	// A run that loses the lease continues: in the worst case its upload is removed and fails.
	_, release, err := lock.Acquire(waiting, func(holder string) {
		silence.asked(nil)
		tf.LogInfo(ctx, "another run stores a backup of the cluster", map[string]any{"holder": holder})
	})

	silence.end.Stop()
	cancel(nil)

	switch {
	case err == nil:
		return true, func() { release(); <-free }, nil
	case ctx.Err() != nil:
		<-free

		return false, nil, err
	default:
		tf.LogWarn(ctx, "taking a backup without a lock", map[string]any{"reason": err.Error()})

		return false, func() { <-free }, nil
	}
}
