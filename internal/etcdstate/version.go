package etcdstate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/talosversion"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// An etcd downgrade has three parts (etcd 3.6 and 3.7, server/etcdserver/version). First it is enabled, while all
// members run one version and their data has the same version. Within seconds all databases have the previous
// version, which members of both versions read. Then members are replaced one by one, and the last one ends the
// downgrade. An older etcd that reads newer data panics. Without a downgrade, members that all run a version newer
// than the data upgrade the data within seconds.

// Versions are those of one member, as minor versions such as 3.7.
type Versions struct {
	// Server is the version of the member, and Data that of its database.
	Server, Data string
	// GoesBack is true while a downgrade is enabled.
	GoesBack bool
}

// Together is the versions of all members of an etcd, as far as they are known.
type Together struct {
	// Oldest and Newest are the versions of members. Data is the newest version of a database.
	Oldest, Newest, Data string
	// GoesBack is true while a downgrade is enabled.
	GoesBack bool
	// Silent is true when a member does not report its version.
	Silent bool
}

// AllOf combines the versions of all members.
func AllOf(members []Versions) Together {
	var t Together

	for _, m := range members {
		if m.Server == "" {
			t.Silent = true

			continue
		}

		data := m.Data
		if data == "" {
			data = m.Server // etcd 3.5 does not report it
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

// Target is the target of a downgrade: the version before that of the newest members.
func (t Together) Target() string { return Before(t.Newest) }

// Before is the previous minor version; empty if there is none.
func Before(version string) string {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil || minor == 0 {
		return ""
	}

	return fmt.Sprintf("%d.%d", major, minor-1)
}

// CanGoBack reports whether etcd can be downgraded between two versions: to the previous one, from 3.7 on. For a
// downgrade to 3.5, Talos does not report whether it is enabled (Talos 1.14, v1alpha1_server.go, validateDowngrade).
func CanGoBack(from, to string) bool { return Before(from) == to && !versions.Older(to, "3.6") }

// Takes says why a member cannot run an older version of etcd yet; empty when it can. tell is true when a downgrade
// has to be enabled first and nothing prevents that.
func (t Together) Takes(version string) (why string, tell bool) {
	switch {
	case t.Data == "" || t.Silent:
		return "not every member reports its etcd version", false
	case !versions.Older(version, t.Data) && versions.Older(version, t.Oldest) && !t.GoesBack:
		return fmt.Sprintf("all members run etcd %s, which is about to upgrade data of version %s", t.Oldest,
			t.Data), false
	case !versions.Older(version, t.Data):
		return "", false
	case t.GoesBack:
		return fmt.Sprintf("the etcd data still has version %s, and its downgrade to %s is in progress",
			t.Data, t.Target()), false
	case t.Oldest != t.Newest || t.Oldest != t.Data || !CanGoBack(t.Newest, version):
		return fmt.Sprintf("the etcd data has version %s; a downgrade needs all members on that version, and goes one "+
			"version at a time",
			t.Data), false
	default:
		return fmt.Sprintf("the etcd data has version %s", t.Data), true
	}
}

// MinorOf is the minor version of a version such as 3.7.1 or v3.7.1; empty for any other text.
func MinorOf(version string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor := rest

	if end := strings.IndexFunc(rest, notDigit); end >= 0 {
		minor = rest[:end]
	}

	if major == "" || minor == "" || strings.ContainsFunc(major, notDigit) {
		return ""
	}

	return major + "." + minor
}

func notDigit(r rune) bool { return r < '0' || r > '9' }

// OfTalos is the minor version of etcd that a Talos version runs on control planes by default; empty if version is
// not a version.
func OfTalos(version string) string {
	if MinorOf(version) == "" {
		return ""
	}

	return "3." + strconv.FormatUint(talosversion.Of(version).EtcdMinor, 10)
}
