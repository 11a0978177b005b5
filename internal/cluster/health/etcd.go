package health

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

// Etcd is what a snapshot with views shows about etcd.
type Etcd struct {
	// Members are ordered by name; none when no control plane lists them.
	Members []Member
	// Alarms such as "NOSPACE on cp-1", sorted.
	Alarms []string
	// Quorum is how many voting members must work; zero when the members are not listed.
	Quorum int
	// Reachable is true when a member reported the health of etcd, even if it lists no members because there is no
	// leader.
	Reachable bool
	// Cause says why the members are not listed. It is as stable as a reason.
	Cause string
	// Conditions are those about etcd.
	Conditions []Condition
	// Silent names the control planes without an answer or a member list, and the network error.
	Silent []string
}

// Member is one member of etcd.
type Member struct {
	etcdstate.Member

	// Leader is true for a member that others, or itself, follow.
	Leader bool
	// Errors say why the member is not healthy. It has none when it votes, answers on its own machine, follows a leader
	// and reports no error.
	Errors []string
}

// Healthy is true when all conditions about etcd are.
func (h Etcd) Healthy() bool { return allTrue(h.Conditions) }

// OfEtcd evaluates etcd in a snapshot that has views.
func OfEtcd(want cluster.Spec, have cluster.Snapshot) Etcd {
	planes := planesOf(want, have)
	h := Etcd{Reachable: have.Etcd.Known || len(have.Etcd.Views) > 0}

	if have.Etcd.Known {
		h.Quorum = etcdstate.Majority(voters(have.Etcd.Members))
		h.Members = membersOf(planes, have.Etcd)
	} else {
		h.Cause = unlisted(planes, have.Etcd)
	}

	h.Alarms = alarms(have.Etcd)
	h.Conditions = []Condition{
		etcdQuorum(h, have.Etcd), etcdMembersHealthy(h, planes, have.Etcd), etcdAgreement(have.Etcd),
		etcdNoAlarms(h, have.Etcd),
	}
	h.Silent = silentPlanes(planes, have.Etcd)

	return h
}

func voters(members []etcdstate.Member) int {
	n := 0

	for _, m := range members {
		if !m.Learner {
			n++
		}
	}

	return n
}

func membersOf(planes []plane, etcd etcdstate.State) []Member {
	var out []Member

	for _, member := range etcd.Members {
		m := Member{Member: member}

		for _, view := range etcd.Views {
			m.Leader = m.Leader || view.Leader == member.ID
		}

		m.Errors = memberErrors(member, planes, etcd)
		out = append(out, m)
	}

	slices.SortFunc(out, func(a, b Member) int {
		return strings.Compare(a.Name+"\x00"+a.ID, b.Name+"\x00"+b.ID)
	})

	return out
}

// memberErrors says why a member is not healthy. A learner need not answer: etcd refuses most calls to one (etcd 3.6,
// "rpc not supported for learner").
func memberErrors(member etcdstate.Member, planes []plane, etcd etcdstate.State) []string {
	if member.Learner {
		return []string{"is a learner and does not vote yet"}
	}

	view, answers := etcd.Views[member.ID]
	if !answers {
		i := slices.IndexFunc(planes, func(p plane) bool { return p.member == member.ID })
		if i >= 0 {
			if reason, _ := planes[i].absence(); reason != "" {
				return []string{"its machine " + reason}
			}
		}

		return []string{"does not report its status"}
	}

	return viewErrors(view)
}

// viewErrors lists the errors that a member reports about itself. etcd adds the alarms of all members to the errors
// of each, as "memberID:161 alarm:NOSPACE " (etcd 3.6, Status and AlarmMember.String). Only the member that raised an
// alarm counts.
func viewErrors(view etcdstate.View) []string {
	var out []string
	if view.Leader == "" {
		out = append(out, "has no leader")
	}

	repeated := map[string]bool{}

	for _, alarm := range view.Alarms {
		kind, id, _ := strings.Cut(alarm, " on ")
		if id == view.Member {
			out = append(out, "raised the alarm "+kind)
		}

		if number, err := strconv.ParseUint(id, 16, 64); err == nil {
			repeated[fmt.Sprintf("memberID:%d alarm:%s", number, kind)] = true
		}
	}

	for _, e := range view.Errors {
		if e = strings.TrimSpace(e); !repeated[e] {
			out = append(out, e)
		}
	}

	return out
}

// unlisted says why the members are not listed.
func unlisted(planes []plane, etcd etcdstate.State) string {
	var reasons []string

	for _, p := range planes {
		if reason, _ := p.absence(); reason != "" {
			reasons = append(reasons, p.title+" "+reason)
		}
	}

	for _, id := range slices.Sorted(maps.Keys(etcd.Views)) {
		if etcd.Views[id].Leader == "" {
			reasons = append(reasons, "member "+id+" has no leader")
		}
	}

	switch {
	case len(planes) == 0:
		return "no known control plane"
	case len(reasons) == 0:
		return "no control plane returns the etcd member list"
	default:
		return listed(reasons)
	}
}

func silentPlanes(planes []plane, etcd etcdstate.State) []string {
	var out []string

	for _, p := range planes {
		reason, known := p.absence()

		cause := p.state.Cause
		if !known {
			cause = cmp.Or(cause, notInTime)
		}

		switch {
		case reason == "":
		case cause == "":
			out = append(out, p.title+" "+reason)
		default:
			out = append(out, p.title+" "+reason+": "+cause)
		}
	}

	if !etcd.Known && etcd.Cause != "" {
		out = append(out, "etcd: "+etcd.Cause)
	}

	return out
}

// etcdQuorum is True when the members were listed, because that read needs the quorum (etcd 3.6, clientv3 MemberList
// is linearizable).
func etcdQuorum(h Etcd, etcd etcdstate.State) Condition {
	led := slices.ContainsFunc(slices.Collect(maps.Values(etcd.Views)),
		func(v etcdstate.View) bool { return v.Leader != "" })

	var bad, unsure []string

	switch {
	case etcd.Known:
	case len(etcd.Views) > 0 && !led:
		bad = []string{h.Cause}
	default:
		unsure = []string{h.Cause}
	}

	return judged(EtcdQuorum, bad, unsure,
		fmt.Sprintf("voting members: %d, quorum: %d, following a leader: %d", voters(etcd.Members), h.Quorum,
			following(etcd)))
}

// following counts the voting members that report a leader.
func following(etcd etcdstate.State) int {
	n := 0

	for _, m := range etcd.Members {
		if !m.Learner && etcd.Views[m.ID].Leader != "" {
			n++
		}
	}

	return n
}

func etcdMembersHealthy(h Etcd, planes []plane, etcd etcdstate.State) Condition {
	var bad, unsure []string

	for _, m := range h.Members {
		if len(m.Errors) > 0 {
			bad = append(bad, m.NameOrID()+" "+strings.Join(m.Errors, " and "))
		}
	}

	if !etcd.Known {
		unsure = []string{h.Cause}

		for _, id := range slices.Sorted(maps.Keys(etcd.Views)) {
			if errs := viewErrors(etcd.Views[id]); len(errs) > 0 {
				bad, unsure = append(bad, id+" "+strings.Join(errs, " and ")), nil
			}
		}
	}

	for _, p := range planes {
		if etcd.Known && p.member == "" && p.state.Access == step.Member && p.state.Role == step.ControlPlane {
			bad = append(bad, p.title+" has no member")
		}
	}

	return judged(EtcdMembersHealthy, bad, unsure, fmt.Sprintf("healthy members: %d", len(h.Members)))
}

// etcdAgreement compares the leader and the members that the members report. Members without a leader list no
// members.
func etcdAgreement(etcd etcdstate.State) Condition {
	ids := slices.Sorted(maps.Keys(etcd.Views))

	i := slices.IndexFunc(ids, func(id string) bool { return etcd.Views[id].Leader != "" })
	if i < 0 {
		return judged(EtcdAgreement, nil, []string{"no member follows a leader"}, "")
	}

	var bad []string

	first := etcd.Views[ids[i]]
	follows := fmt.Sprintf("%s follows %s", etcd.Named(ids[i]), etcd.Named(first.Leader))

	for _, id := range ids {
		switch view := etcd.Views[id]; {
		case view.Leader == "":
			bad = append(bad, fmt.Sprintf("%s, but %s has no leader", follows, etcd.Named(id)))
		case view.Leader != first.Leader:
			bad = append(bad, fmt.Sprintf("%s, but %s follows %s", follows, etcd.Named(id), etcd.Named(view.Leader)))
		case !slices.Equal(view.Members, first.Members):
			bad = append(bad, fmt.Sprintf("%s and %s report different members", etcd.Named(ids[i]), etcd.Named(id)))
		}
	}

	return judged(EtcdAgreement, bad, nil, fmt.Sprintf("members in agreement: %d", len(etcd.Views)))
}

func etcdNoAlarms(h Etcd, etcd etcdstate.State) Condition {
	var unsure []string
	if following(etcd) == 0 {
		unsure = []string{"no member follows a leader"}
	}

	return judged(EtcdNoAlarms, h.Alarms, unsure, "no active alarms")
}

// alarms are those that any member reports, with names instead of IDs.
func alarms(etcd etcdstate.State) []string {
	var out []string

	for _, view := range etcd.Views {
		for _, alarm := range view.Alarms {
			for _, m := range etcd.Members {
				alarm = strings.ReplaceAll(alarm, m.ID, m.NameOrID())
			}

			out = append(out, alarm)
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}
