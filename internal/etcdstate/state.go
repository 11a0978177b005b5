// Package etcdstate is etcd as its members describe it, and the rules that hold of it wherever it runs: which members
// it can spare, whether members agree, and which versions of etcd its data is for. Pure.
package etcdstate

import (
	"cmp"
	"maps"
	"net/url"
)

// Member is one entry of the member list.
type Member struct {
	// ID in the hexadecimal form that Talos prints.
	ID       string
	Name     string
	Learner  bool
	PeerURLs []string
}

// NameOrID is the name of a member, or its ID while it has none.
func (m Member) NameOrID() string { return cmp.Or(m.Name, m.ID) }

// Host is where the machine of the member is, by the first address that it is announced
// with.
func (m Member) Host() string {
	for _, peer := range m.PeerURLs {
		if parsed, err := url.Parse(peer); err == nil && parsed.Hostname() != "" {
			return parsed.Hostname()
		}
	}

	return ""
}

// State is the member list, if any control plane answered it.
type State struct {
	// Known is true when a control plane answered the member list.
	Known   bool
	Cause   string
	Members []Member
	// Views is what each control plane that answered says of etcd, by the ID of its
	// member. Nil where nobody was asked, as in a read.
	Views map[string]View
	// GoesBack is the minor version that the data is being taken back to, such as 3.6, where nobody was asked for Views:
	// as a read saw it, or in the model of a plan. Empty while it is not.
	GoesBack string
}

// View is etcd as one of its members sees it.
type View struct {
	// Member is the ID of the member that was asked.
	Member string
	// Leader is the ID of the member that leads; empty when there is none.
	Leader string
	// Members are the IDs of all members, sorted.
	Members []string
	// Alarms such as "NOSPACE on 2ac1b0d0b83cb2a4".
	Alarms []string
	// Errors that the member reports of itself.
	Errors []string
	// Versions of the member; zero where it does not say.
	Versions Versions
}

// Member finds a member by its ID; an empty one is nobody's.
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

// GoBack lets the data of all members go back to a version.
func (s *State) GoBack(to string) {
	s.GoesBack = to
	s.eachVersions(func(v *Versions) { v.Data, v.GoesBack = to, true })
}

// EndDowngrade lets members go on with the data that the oldest of them has.
func (s *State) EndDowngrade() {
	var all []Versions
	for _, view := range s.Views {
		all = append(all, view.Versions)
	}

	s.GoesBack = ""
	s.eachVersions(func(v *Versions) { v.Data, v.GoesBack = AllOf(all).Oldest, false })
}

// Run lets a member run another version.
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
