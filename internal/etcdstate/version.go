package etcdstate

import (
	"fmt"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/talosversion"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// An etcd goes back to an older minor version in three parts (etcd 3.6 and 3.7, server/etcdserver/version): it is told
// to, while all members run one version and their data is for it; within seconds all databases are for the version
// before, which members of both versions read; then members are replaced one by one, and the last one ends it. An older
// etcd that meets newer data panics. Without being told, an etcd whose members all run a newer version than its data is
// for brings the data to theirs within seconds.

// Versions are those of one member, as minor versions such as 3.7.
type Versions struct {
	// Server is what it runs, and Data what its database is for.
	Server, Data string
	// GoesBack is true while etcd has been told to go back.
	GoesBack bool
}

// Together is the versions of all members of an etcd, as far as they say them.
type Together struct {
	// Oldest and Newest are of what members run, Data is the newest that any database is for.
	Oldest, Newest, Data string
	// GoesBack is true while etcd has been told to go back.
	GoesBack bool
	// Silent is true when a member does not say what it runs.
	Silent bool
}

// AllOf puts the versions of all members together.
func AllOf(members []Versions) Together {
	var t Together

	for _, m := range members {
		if m.Server == "" {
			t.Silent = true

			continue
		}

		data := m.Data
		if data == "" {
			data = m.Server // etcd 3.5 does not say
		}

		if t.Oldest == "" || versions.Older(m.Server, t.Oldest) {
			t.Oldest = m.Server
		}

		t.Newest, t.Data = newer(t.Newest, m.Server), newer(t.Data, data)
		t.GoesBack = t.GoesBack || m.GoesBack
	}

	return t
}

func newer(a, b string) string {
	if a == "" || versions.Older(a, b) {
		return b
	}

	return a
}

// Target is the version that an etcd goes back to which has been told to: the one before that of its newest members.
func (t Together) Target() string { return Before(t.Newest) }

// Before is the minor version before another one; empty where that is none.
func Before(version string) string {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil || minor == 0 {
		return ""
	}

	return fmt.Sprintf("%d.%d", major, minor-1)
}

// CanGoBack reports whether etcd can be taken back from one version to another: to the one before, from 3.7 on. Of one
// that goes back to 3.5 Talos does not tell whether it was told to (Talos 1.14, v1alpha1_server.go, validateDowngrade).
func CanGoBack(from, to string) bool { return Before(from) == to && !versions.Older(to, "3.6") }

// Takes says why a member cannot go on with an older version of etcd yet; empty when it can. tell is true when etcd has
// to be told to go back first, and nothing is in the way of that.
func (t Together) Takes(version string) (why string, tell bool) {
	switch {
	case t.Data == "" || t.Silent:
		return "not every member says which version of etcd it runs", false
	case !versions.Older(version, t.Data) && versions.Older(version, t.Oldest) && !t.GoesBack:
		return fmt.Sprintf("all members run etcd %s, which is about to bring data of %s to its own version", t.Oldest,
			t.Data), false
	case !versions.Older(version, t.Data):
		return "", false
	case t.GoesBack:
		return fmt.Sprintf("the data of etcd is for %s still, and goes back to %s", t.Data, t.Target()), false
	case t.Oldest != t.Newest || t.Oldest != t.Data || !CanGoBack(t.Newest, version):
		return fmt.Sprintf("the data of etcd is for %s, and goes back one version at a time while all members run that one",
			t.Data), false
	default:
		return fmt.Sprintf("the data of etcd is for %s", t.Data), true
	}
}

// MinorOf is the minor version of a version such as 3.7.1 or v3.7.1; empty for what is no version.
func MinorOf(version string) string {
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &major, &minor); err != nil {
		return ""
	}

	return fmt.Sprintf("%d.%d", major, minor)
}

// OfTalos is the minor version of etcd that control planes run with a Talos unless their configuration names an image
// of another one; empty for what is no version.
func OfTalos(version string) string {
	if MinorOf(version) == "" {
		return ""
	}

	return fmt.Sprintf("3.%d", talosversion.Of(version).EtcdMinor)
}
