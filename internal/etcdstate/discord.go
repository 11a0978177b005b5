package etcdstate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Discord says what is wrong with etcd according to its members: alarms, no leader, or members that disagree. It is
// empty when nothing is wrong, or when no member was asked.
//
// but is the member on the machine that goes out of service. It is ignored, because the trouble may be its own.
func (s State) Discord(but string) string {
	var leader, members, first string

	for _, member := range s.Members {
		if _, answers := s.Views[member.ID]; s.Views != nil && !answers && member.ID != but {
			return fmt.Sprintf("etcd member %s of %s does not report its status", member.ID, member.NameOrID())
		}
	}

	for _, id := range slices.Sorted(maps.Keys(s.Views)) {
		if id == but {
			continue
		}

		v := s.Views[id]
		list := strings.Join(v.Members, ",")

		switch {
		case len(v.Alarms) > 0:
			return "etcd has an alarm: " + strings.Join(v.Alarms, ", ")
		case len(v.Errors) > 0:
			return fmt.Sprintf("etcd member %s reports: %s", id, strings.Join(v.Errors, ", "))
		case v.Leader == "":
			return fmt.Sprintf("etcd member %s has no leader", id)
		case first == "":
			leader, members, first = v.Leader, list, id
		case v.Leader != leader:
			return fmt.Sprintf("etcd members %s and %s follow different leaders", first, id)
		case list != members:
			return fmt.Sprintf("etcd members %s and %s report different members", first, id)
		}
	}

	return ""
}

// DiscordWithout is Discord for a member that leaves. It ignores the member's own alarms.
func (s State) DiscordWithout(leaving string) string {
	views := map[string]View{}

	for id, view := range s.Views {
		view.Alarms = slices.DeleteFunc(slices.Clone(view.Alarms),
			func(alarm string) bool { return strings.HasSuffix(alarm, " on "+leaving) })
		views[id] = view
	}

	if s.Views != nil {
		s.Views = views
	}

	return s.Discord(leaving)
}
