package etcdstate_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

func TestMember_namesAndHosts(t *testing.T) {
	t.Parallel()

	peers := func(urls ...string) etcdstate.Member { return etcdstate.Member{ID: "a", PeerURLs: urls} }

	for want, member := range map[string]etcdstate.Member{
		"10.0.0.1": peers("https://10.0.0.1:2380", "https://10.0.0.2:2380"),
		"10.0.0.2": peers("https://", "%", "https://10.0.0.2:2380"),
		"fd00::1":  peers("https://[fd00::1]:2380"),
		"":         peers("https://", ":"),
	} {
		if got := member.Host(); got != want {
			t.Errorf("host of %v: %q", member.PeerURLs, got)
		}
	}

	s := etcdstate.State{Members: []etcdstate.Member{{Name: "no-id"}, {ID: "a", Name: "cp-1"}, {ID: "b"}}}

	for id, want := range map[string]string{"a": "cp-1", "b": "b", "c": "c", "": ""} {
		if got := s.Named(id); got != want {
			t.Errorf("name of %q: %q, want %q", id, got, want)
		}

		if m, found := s.Member(id); found != (id == "a" || id == "b") || found && m.ID != id {
			t.Errorf("member %q: %v, %t", id, m, found)
		}
	}
}

// agreed is a healthy etcd of three members that follow a.
func agreed() etcdstate.State {
	all := []string{"a", "b", "c"}
	s := etcdstate.State{Known: true, Views: map[string]etcdstate.View{}}

	for _, id := range all {
		s.Members = append(s.Members, etcdstate.Member{ID: id, Name: "cp-" + id})
		s.Views[id] = etcdstate.View{Member: id, Leader: "a", Members: all, Versions: etcdstate.Versions{Server: "3.6", Data: "3.6"}}
	}

	return s
}

func TestDiscord_namesWhatIsWrong(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		change func(*etcdstate.View)
		want   string
	}{
		"nothing": {func(*etcdstate.View) {}, ""},
		"alarm":   {func(v *etcdstate.View) { v.Alarms = []string{"NOSPACE on b", "CORRUPT on b"} }, "etcd has an alarm: NOSPACE on b, CORRUPT on b"},
		"error":   {func(v *etcdstate.View) { v.Errors = []string{"one", "two"} }, "etcd member b reports: one, two"},
		"leader":  {func(v *etcdstate.View) { v.Leader = "" }, "etcd member b has no leader"},
		"others":  {func(v *etcdstate.View) { v.Leader = "c" }, "etcd members a and b follow different leaders"},
		"members": {func(v *etcdstate.View) { v.Members = []string{"a", "b"} }, "etcd members a and b report different members"},
	} {
		s := agreed()
		v := s.Views["b"]
		test.change(&v)
		s.Views["b"] = v

		if got := s.Discord(""); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}

		if got := s.Discord("b"); got != "" {
			t.Errorf("%s, of the member that goes out of service: %q", name, got)
		}
	}
}

func TestDiscord_membersThatDoNotAnswer(t *testing.T) {
	t.Parallel()

	s := agreed()
	delete(s.Views, "b")

	if got := s.Discord("a"); got != "etcd member b of cp-b does not report its status" {
		t.Errorf("a silent member: %q", got)
	}

	if got := s.Discord("b"); got != "" {
		t.Errorf("the member that goes out of service: %q", got)
	}

	s.Views = nil

	if got := s.Discord("") + s.DiscordWithout("a"); got != "" {
		t.Errorf("no member was asked: %q", got)
	}
}

func TestDiscordWithout_ignoresAlarmsOfTheMember(t *testing.T) {
	t.Parallel()

	s := agreed()

	for id, v := range s.Views {
		v.Alarms = []string{"NOSPACE on b"}
		s.Views[id] = v
	}

	for leaving, want := range map[string]string{"b": "", "a": "etcd has an alarm: NOSPACE on b"} {
		if got := s.DiscordWithout(leaving); got != want {
			t.Errorf("without %s: %q, want %q", leaving, got, want)
		}
	}

	if got := s.Views["a"].Alarms; len(got) != 1 {
		t.Errorf("the views lost alarms: %q", got)
	}
}

// The changes of a forecast do not reach the views that it began with.
func TestState_versionsOfAForecast(t *testing.T) {
	t.Parallel()

	s := agreed()
	before := maps.Clone(s.Views)
	first := s.Views

	s.Run("a", "3.7")
	s.Run("x", "3.7")

	if s.Views["a"].Versions.Server != "3.7" || s.Views["b"].Versions.Server != "3.6" || len(s.Views) != 3 {
		t.Errorf("after an upgrade of one: %v", s.Views)
	}

	upgraded := s.Views
	s.GoBack("3.5")

	if v := upgraded["b"].Versions; v.Data != "3.6" || v.GoesBack {
		t.Errorf("the former view changed to %v", v)
	}

	for id, view := range s.Views {
		if view.Versions.Data != "3.5" || !view.Versions.GoesBack {
			t.Errorf("downgrading: %s has %v", id, view.Versions)
		}
	}

	if s.GoesBack != "3.5" {
		t.Errorf("downgrading to %q", s.GoesBack)
	}

	s.EndDowngrade()

	for id, view := range s.Views {
		if view.Versions.Data != "3.6" || view.Versions.GoesBack {
			t.Errorf("after the downgrade: %s has %v", id, view.Versions)
		}
	}

	if s.GoesBack != "" {
		t.Errorf("still downgrading to %q", s.GoesBack)
	}

	for id, view := range first {
		if view.Versions != before[id].Versions || !slices.Equal(view.Members, before[id].Members) {
			t.Errorf("the former view of %s changed to %v", id, view)
		}
	}
}
