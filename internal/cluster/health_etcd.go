package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// EtcdHealth is what a snapshot with views shows of etcd.
type EtcdHealth struct {
	// Members ordered by name; none when nobody lists them.
	Members []MemberHealth
	// Alarms such as "NOSPACE on cp-1", sorted.
	Alarms []string
	// Quorum is how many voting members have to work; zero when nobody lists the members.
	Quorum int
	// Reachable is true when any member said how etcd is, even if it lists no members
	// because there is no leader.
	Reachable bool
	// Cause says why nobody lists the members. It is as stable as a reason.
	Cause string
	// Conditions are those about etcd.
	Conditions []Condition
	// Silent tells which control planes did not answer as such, and why, in the words of
	// the network; and who lists no members.
	Silent []string
}

// MemberHealth is one member of etcd.
type MemberHealth struct {
	EtcdMember

	// Leader is true for a member that others, or itself, follow.
	Leader bool
	// Errors say why the member does not count as healthy; none when it does: it votes,
	// answers on its own machine, follows a leader and reports nothing wrong.
	Errors []string
}

// Healthy is true when etcd can be called healthy as a whole.
func (h EtcdHealth) Healthy() bool { return allTrue(h.Conditions) }

// EtcdHealthOf judges etcd in a snapshot that has views.
func EtcdHealthOf(want Spec, have Snapshot) EtcdHealth {
	planes := planesOf(want, have)
	h := EtcdHealth{Reachable: have.Etcd.Known || len(have.Etcd.Views) > 0}

	if have.Etcd.Known {
		h.Quorum = needed(voters(have.Etcd.Members))
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

// Host is where the machine of the member is, by the first address that it is announced
// with.
func (m EtcdMember) Host() string {
	for _, peer := range m.PeerURLs {
		if parsed, err := url.Parse(peer); err == nil && parsed.Hostname() != "" {
			return parsed.Hostname()
		}
	}

	return ""
}

func voters(members []EtcdMember) int {
	n := 0

	for _, m := range members {
		if !m.Learner {
			n++
		}
	}

	return n
}

func membersOf(planes []plane, etcd EtcdState) []MemberHealth {
	var out []MemberHealth

	for _, member := range etcd.Members {
		m := MemberHealth{EtcdMember: member}

		for _, view := range etcd.Views {
			m.Leader = m.Leader || view.Leader == member.ID
		}

		m.Errors = memberErrors(member, planes, etcd)
		out = append(out, m)
	}

	slices.SortFunc(out, func(a, b MemberHealth) int {
		return strings.Compare(a.Name+"\x00"+a.ID, b.Name+"\x00"+b.ID)
	})

	return out
}

// memberErrors says what keeps a member from being healthy. A learner is not held to what
// it answers: etcd refuses most calls to one (etcd 3.6, "rpc not supported for learner").
func memberErrors(member EtcdMember, planes []plane, etcd EtcdState) []string {
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

		return []string{"does not say how it is"}
	}

	return viewErrors(view)
}

// viewErrors says what a member knows to be wrong with it. etcd adds the alarms of all
// members to the errors of each, in the words "memberID:161 alarm:NOSPACE " (etcd 3.6,
// Status and AlarmMember.String); only the one that raised an alarm is to blame for it.
func viewErrors(view EtcdView) []string {
	var out []string
	if view.Leader == "" {
		out = append(out, "knows no leader")
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

// unlisted says why nobody lists the members.
func unlisted(planes []plane, etcd EtcdState) string {
	var reasons []string

	for _, p := range planes {
		if reason, _ := p.absence(); reason != "" {
			reasons = append(reasons, p.title+" "+reason)
		}
	}

	for _, id := range slices.Sorted(maps.Keys(etcd.Views)) {
		if etcd.Views[id].Leader == "" {
			reasons = append(reasons, "member "+id+" knows no leader")
		}
	}

	switch {
	case len(planes) == 0:
		return "no control plane is known"
	case len(reasons) == 0:
		return "no control plane lists the members of etcd"
	default:
		return listed(reasons)
	}
}

func silentPlanes(planes []plane, etcd EtcdState) []string {
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

// etcdQuorum is True when the members were listed: such an answer is a read that needs the
// quorum (etcd 3.6, clientv3 MemberList is linearizable).
func etcdQuorum(h EtcdHealth, etcd EtcdState) Condition {
	led := slices.ContainsFunc(slices.Collect(maps.Values(etcd.Views)), func(v EtcdView) bool { return v.Leader != "" })

	var bad, unsure []string

	switch {
	case etcd.Known:
	case len(etcd.Views) > 0 && !led:
		bad = []string{h.Cause}
	default:
		unsure = []string{h.Cause}
	}

	return judged(EtcdQuorum, bad, unsure,
		fmt.Sprintf("voting members: %d, needed: %d, seen to follow a leader: %d", voters(etcd.Members), h.Quorum,
			following(etcd)))
}

// following counts the voting members that follow a leader by their own words.
func following(etcd EtcdState) int {
	n := 0

	for _, m := range etcd.Members {
		if !m.Learner && etcd.Views[m.ID].Leader != "" {
			n++
		}
	}

	return n
}

func etcdMembersHealthy(h EtcdHealth, planes []plane, etcd EtcdState) Condition {
	var bad, unsure []string

	for _, m := range h.Members {
		if len(m.Errors) > 0 {
			bad = append(bad, orID(m.EtcdMember)+" "+strings.Join(m.Errors, " and "))
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
		if etcd.Known && p.member == "" && p.state.Access == Member && p.state.Role == ControlPlane {
			bad = append(bad, p.title+" has no member")
		}
	}

	return judged(EtcdMembersHealthy, bad, unsure, fmt.Sprintf("healthy members: %d", len(h.Members)))
}

// etcdAgreement compares the leader that members follow and the members that they know.
// Those that know no leader list no members.
func etcdAgreement(etcd EtcdState) Condition {
	ids := slices.Sorted(maps.Keys(etcd.Views))

	i := slices.IndexFunc(ids, func(id string) bool { return etcd.Views[id].Leader != "" })
	if i < 0 {
		return judged(EtcdAgreement, nil, []string{"no member was seen to follow a leader"}, "")
	}

	var bad []string

	first := etcd.Views[ids[i]]
	follows := fmt.Sprintf("%s follows %s", etcd.named(ids[i]), etcd.named(first.Leader))

	for _, id := range ids {
		switch view := etcd.Views[id]; {
		case view.Leader == "":
			bad = append(bad, fmt.Sprintf("%s and %s knows no leader", follows, etcd.named(id)))
		case view.Leader != first.Leader:
			bad = append(bad, fmt.Sprintf("%s and %s follows %s", follows, etcd.named(id), etcd.named(view.Leader)))
		case !slices.Equal(view.Members, first.Members):
			bad = append(bad, fmt.Sprintf("%s and %s know different members", etcd.named(ids[i]), etcd.named(id)))
		}
	}

	return judged(EtcdAgreement, bad, nil, fmt.Sprintf("members that agree: %d", len(etcd.Views)))
}

func etcdNoAlarms(h EtcdHealth, etcd EtcdState) Condition {
	var unsure []string
	if following(etcd) == 0 {
		unsure = []string{"no member was seen to follow a leader"}
	}

	return judged(EtcdNoAlarms, h.Alarms, unsure, "no alarm is raised")
}

// alarms are those that any member reports, with names in the place of IDs.
func alarms(etcd EtcdState) []string {
	var out []string

	for _, view := range etcd.Views {
		for _, alarm := range view.Alarms {
			for _, m := range etcd.Members {
				alarm = strings.ReplaceAll(alarm, m.ID, orID(m))
			}

			out = append(out, alarm)
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}

// named is the name of a member, or its ID.
func (s EtcdState) named(id string) string {
	if m, ok := s.member(id); ok {
		return orID(m)
	}

	return id
}
