package versions_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

func TestFilter_chooses(t *testing.T) {
	t.Parallel()

	tags := []string{"v1.14.10", "v1.14.2", "latest", "v1.13.3", "v1.15.0-alpha.1", "v1.15.0", "v1.14.2", "sha256-ab.sig",
		"v1.14.2-fat", "1.14.3", "v1.14", "v1.13.0-rc.0", "v1.14.2+build"}

	for name, test := range map[string]struct {
		filter versions.Filter
		want   []string
	}{
		"stable":           {versions.Filter{}, []string{"v1.13.3", "v1.14.2", "v1.14.10", "v1.15.0"}},
		"minor":            {versions.Filter{Minor: "v1.14"}, []string{"v1.14.2", "v1.14.10"}},
		"up to a version":  {versions.Filter{UpTo: "v1.14.2"}, []string{"v1.13.3", "v1.14.2"}},
		"up to a minor":    {versions.Filter{UpTo: "v1.14"}, []string{"v1.13.3", "v1.14.2", "v1.14.10"}},
		"newer":            {versions.Filter{Minor: "v1.14", NewerThan: "v1.14.2"}, []string{"v1.14.10"}},
		"newer of nothing": {versions.Filter{NewerThan: "v1.15.0"}, []string{}},
		"pre-releases": {versions.Filter{Prereleases: true}, []string{"v1.13.0-rc.0", "v1.13.3", "v1.14.2", "v1.14.10",
			"v1.15.0-alpha.1", "v1.15.0"}},
		"up to a minor without its next": {versions.Filter{UpTo: "v1.14", Prereleases: true, Minor: "v1.15"}, []string{}},
	} {
		if diff := cmp.Diff(test.want, test.filter.Choose(tags)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}

	if diff := cmp.Diff(map[string]string{"v1.13": "v1.13.3", "v1.14": "v1.14.10", "v1.15": "v1.15.0"},
		versions.NewestPatches(versions.Filter{}.Choose(tags))); diff != "" {
		t.Error(diff)
	}
}

func TestIsMinor_noOtherText(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]bool{"v1.14": true, "v1.14.0": false, "1.14": false, "v1.": false, "latest": false} {
		if got := versions.IsMinor(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
