package talosupgrade

import (
	"errors"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

func versionsOf(t *testing.T, texts ...string) []machineconfig.TalosVersion {
	t.Helper()

	var versions []machineconfig.TalosVersion

	for _, text := range texts {
		v, ok := machineconfig.ReadTalosVersion(text)
		if !ok {
			t.Fatalf("%q is no version", text)
		}

		versions = append(versions, v)
	}

	return versions
}

func textsOf(versions []machineconfig.TalosVersion) string {
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
			if err := Check(from, next); err != nil {
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

		err := Check(v[0], v[1])
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

func TestSteps_asTheyAreGiven(t *testing.T) {
	for _, test := range []struct {
		from, to string
		chosen   []string
		want     string
	}{
		{from: "v1.13.0", to: "1.13.0"},
		{from: "1.11.3", to: "v1.14.1", want: "v1.12.12 v1.13.9 v1.14.1"},
		{from: "v1.11.3", to: "v1.14.1", chosen: []string{"1.13.2"}, want: "v1.12.12 v1.13.2 v1.14.1"},
		{from: "v1.13.0-beta.1", to: "v1.13.0", want: "v1.13.0"},
	} {
		got, err := Steps(test.from, test.to, test.chosen)
		if err != nil || strings.Join(got, " ") != test.want || got == nil {
			t.Errorf("from %s to %s through %v: %q, %v, want %q", test.from, test.to, test.chosen, got, err, test.want)
		}
	}
}

func TestSteps_refuses(t *testing.T) {
	for _, test := range []struct {
		arguments   []string
		field, want string
	}{
		{[]string{"1.13", "v1.14.1"}, "from", `found "1.13"; allowed: a version`},
		{[]string{"v1.13.0", "latest"}, "to", `found "latest"; allowed: a version`},
		{[]string{"v1.9.0", "v1.14.1"}, "from", `found "v1.9.0"; allowed: v1.10.0 to v1.14.x`},
		{[]string{"v1.13.0", "v1.12.9"}, "to", "found v1.12.9, which is older than v1.13.0"},
		{[]string{"v1.11.0", "v1.14.1", "v1.12"}, "via[0]", `found "v1.12"; allowed: a version`},
		{[]string{"v1.11.0", "v1.14.1", "v1.12.0", "v1.14.0"}, "via[1]", "one release of each minor version between v1.11.0 and v1.14.1"},
		{[]string{"v1.11.0", "v1.14.1", "v1.12.0", "v1.12.1"}, "via[1]", "found v1.12.1; allowed: one release of each"},
	} {
		_, err := Steps(test.arguments[0], test.arguments[1], test.arguments[2:])

		var wrong *machineconfig.FieldError
		if !errors.As(err, &wrong) || wrong.Field != test.field || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v gives %v, want %s: %s", test.arguments, err, test.field, test.want)
		}
	}
}
