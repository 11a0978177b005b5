package machineconfig

import (
	"strings"
	"testing"
)

func versionsOf(t *testing.T, texts ...string) []TalosVersion {
	t.Helper()

	var versions []TalosVersion

	for _, text := range texts {
		v, ok := ReadTalosVersion(text)
		if !ok {
			t.Fatalf("%q is no version", text)
		}

		versions = append(versions, v)
	}

	return versions
}

func textsOf(versions []TalosVersion) string {
	texts := make([]string, len(versions))
	for i, v := range versions {
		texts[i] = v.String()
	}

	return strings.Join(texts, " ")
}

// No minor version is skipped, whatever lies between, and every step is one that the installer takes.
func TestPath_passesEveryMinor(t *testing.T) {
	for _, test := range []struct {
		from, to string
		chosen   []string
		want     string
	}{
		{from: "v1.13.0", to: "v1.13.0"},
		{from: "v1.13.0", to: "v1.13.6", want: "v1.13.6"},
		{from: "v1.12.4", to: "v1.13.6", want: "v1.13.6"},
		{from: "v1.11.0", to: "v1.13.6", want: "v1.12.12 v1.13.6"},
		{from: "v1.9.5", to: "v1.13.6", want: "v1.10.9 v1.11.6 v1.12.12 v1.13.6"},
		{from: "v1.11.0", to: "v1.13.6", chosen: []string{"v1.12.4", "v1.10.1"}, want: "v1.12.4 v1.13.6"},
		{from: "v1.12.0", to: "v1.15.2", want: "v1.13.9 v1.14.1 v1.15.2"},
		{from: "v1.13.2", to: "v1.13.0", want: "v1.13.0"},
		{from: "v1.13.2", to: "v1.11.3", want: "v1.12.12 v1.11.3"},
	} {
		from, to := versionsOf(t, test.from)[0], versionsOf(t, test.to)[0]

		path := Path(from, to, Releases(to, versionsOf(t, test.chosen...)))
		if got := textsOf(path); got != test.want {
			t.Errorf("from %s to %s passes %q, want %q", test.from, test.to, got, test.want)
		}

		for _, next := range path {
			if err := CheckUpgrade(from, next); err != nil {
				t.Errorf("from %s to %s: the step from %s to %s: %v", test.from, test.to, from, next, err)
			}

			from = next
		}
	}
}

func TestUpgrade_refusedByTheInstaller(t *testing.T) {
	for _, test := range []struct{ from, to, want string }{
		{"v1.10.9", "v1.13.0", "too old to upgrade to Talos 1.13.0"},
		{"v1.13.0", "v1.11.6", "too new to downgrade to Talos 1.11.6"},
		{"v1.13.0", "v1.12.6", ""},
		{"v1.13.0", "v1.14.2", ""},
		{"v1.11.6", "v1.14.1", "too old to upgrade to Talos 1.14.1"},
		{"v1.14.1", "v1.13.9", ""},
		{"v1.14.1", "v1.12.12", "too new to downgrade to Talos 1.12.12"},
	} {
		v := versionsOf(t, test.from, test.to)

		err := CheckUpgrade(v[0], v[1])
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("from %s to %s: %v, want %q", test.from, test.to, err, test.want)
		}
	}
}

func TestDowngrade_thatEtcdDoesNotSurvive(t *testing.T) {
	for _, test := range []struct {
		from, to string
		want     bool
	}{
		{"v1.13.0", "v1.12.0", false}, {"v1.12.0", "v1.11.0", false}, {"v1.11.0", "v1.10.9", true},
		{"v1.14.0", "v1.13.6", true}, {"v1.13.6", "v1.13.0", false},
	} {
		v := versionsOf(t, test.from, test.to)
		if got := LosesEtcd(v[0], v[1]); got != test.want {
			t.Errorf("from %s to %s: %v", test.from, test.to, got)
		}
	}
}
