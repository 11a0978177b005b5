// Package etcdstate is etcd as its members describe it: which members it can lose, whether they agree, and which
// versions can read its data. Pure.
package etcdstate

import (
	"cmp"
	"maps"
	"net/url"
)

// Member is one entry of the member list.
type Member struct {
	// ID is in the hexadecimal form that Talos prints.
	ID       string
	Name     string
	Learner  bool
	PeerURLs []string
}

// NameOrID is the name of a member, or its ID while it has none.
func (m Member) NameOrID() string { return cmp.Or(m.Name, m.ID) }

// Host is the host of the member's first advertised address.
func (m Member) Host() string {
	for _, peer := range m.PeerURLs {
		if parsed, err := url.Parse(peer); err == nil && parsed.Hostname() != "" {
			return parsed.Hostname()
		}
	}

	return ""
}

// State is the member list, if a control plane returned it.
type State struct {
	// Known is true when a control plane returned the member list.
	Known   bool
	Cause   string
	Members []Member
	// Views are the control planes' descriptions of etcd, by member ID; nil where no control plane was asked, as in a
	// read.
	Views map[string]View
	// GoesBack is the minor version to which the data is being downgraded, such as 3.6. It is set only where no Views
	// were asked for: in a read, or in the model of a plan. Empty while no downgrade runs.
	GoesBack string
}

// View is etcd as one of its members sees it.
type View struct {
	// Member is the ID of the member that answered.
	Member string
	// Leader is the ID of the leader; empty when there is none.
	Leader string
	// Members are the IDs of all members, sorted.
	Members []string
	// Alarms are texts such as "NOSPACE on 2ac1b0d0b83cb2a4".
	Alarms []string
	// Errors are those that the member reports about itself.
	Errors []string
	// Versions are those of the member; zero where it does not report them.
	Versions Versions
}

// Member finds a member by its ID. No member has an empty ID.
func (s State) Member(id string) (Member, bool) {
	for _, m := range s.Members {
		if id != "" && m.ID == id {
			return m, true
		}
	}

	return Member{}, false
}

// Named is the name of a member, or its ID.
func (s State) Named(id string) string {
	if m, ok := s.Member(id); ok {
		return m.NameOrID()
	}

	return id
}

// GoBack downgrades the data of all members to a version.
func (s *State) GoBack(to string) {
	s.GoesBack = to
	s.eachVersions(func(v *Versions) { v.Data, v.GoesBack = to, true })
}

// EndDowngrade ends the downgrade: the data gets the version of the oldest member.
func (s *State) EndDowngrade() {
	var all []Versions
	for _, view := range s.Views {
		all = append(all, view.Versions)
	}

	s.GoesBack = ""
	s.eachVersions(func(v *Versions) { v.Data, v.GoesBack = AllOf(all).Oldest, false })
}

// Run sets the version that a member runs.
func (s *State) Run(member, version string) {
	if view, asked := s.Views[member]; asked {
		view.Versions.Server = version
		s.Views = maps.Clone(s.Views)
		s.Views[member] = view
	}
}

func (s *State) eachVersions(change func(*Versions)) {
	s.Views = maps.Clone(s.Views)
	for id, view := range s.Views {
		change(&view.Versions)
		s.Views[id] = view
	}
}
