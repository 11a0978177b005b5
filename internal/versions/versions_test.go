package versions_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

func TestMinorsBetween_versionsOfAllKinds(t *testing.T) {
	t.Parallel()

	for between, want := range map[[2]string]int{
		{"v1.12.6", "v1.13.0"}: 1, {"v1.14.1", "1.12.0"}: -2, {"v1.13.0", "v1.13.9"}: 0, {"v1.9.0", "v1.10.0-alpha.1"}: 1,
		{"", "v1.13.0"}: 0, {"main", "v1.13.0"}: 0,
		{"1.2.3.4", "v1.13.0"}: 0, {"-", "v1.13.0"}: 0,
	} {
		if got := versions.MinorsBetween(between[0], between[1]); got != want {
			t.Errorf("from %q to %q: %d, want %d", between[0], between[1], got, want)
		}
	}

	if got := versions.MinorsBetween("v1.36.0", "v2.0.0"); got < 1000 {
		t.Errorf("%d minor versions to another major version, want more than any upgrade takes", got)
	}

	if got := versions.MinorsBetween("v2", "v3"); got < 1000 {
		t.Errorf("%d minor versions to another major version without a minor one", got)
	}

	if got := versions.MinorsBetween("v2.0.0", "v1.36.0"); got > -1000 {
		t.Errorf("%d minor versions back to another major version", got)
	}
}

func TestOlder_versionsOfAllKinds(t *testing.T) {
	t.Parallel()

	for pair, want := range map[[2]string]bool{
		{"v1.13.0", "v1.13.1"}: true, {"v1.13.0-beta.0", "v1.13.0"}: true, {"v1.9.9", "v1.10.0"}: true,
		{"v1.13.1", "v1.13.0"}: false, {"v1.13.0", "1.13.0"}: false, {"", "v1.13.0"}: false, {"v1.13.0", "main"}: false,
		{"v", "v1.13.0"}: false, {".", "v1.13.0"}: false, {"v.2", "v1.13.0"}: false, {"v1.", "v1.13.0"}: false,
		{"v1.13", "v1.13.1"}: true,
	} {
		if got := versions.Older(pair[0], pair[1]); got != want {
			t.Errorf("%q before %q: %t, want %t", pair[0], pair[1], got, want)
		}
	}
}

func TestOldest_emptyIsNone(t *testing.T) {
	t.Parallel()

	for pair, want := range map[[2]string]string{
		{"", ""}: "", {"", "v1.36.0"}: "v1.36.0", {"v1.36.0", ""}: "v1.36.0",
		{"v1.35.9", "v1.36.0"}: "v1.35.9", {"v1.36.0", "v1.35.9"}: "v1.35.9",
	} {
		if got := versions.Oldest(pair[0], pair[1]); got != want {
			t.Errorf("of %q and %q: %q, want %q", pair[0], pair[1], got, want)
		}
	}
}
