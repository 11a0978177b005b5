package cluster_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

func TestAwaitsRestore_untilEtcdBegins(t *testing.T) {
	t.Parallel()

	const restores = "restore prod/a.db\n"

	for name, test := range map[string]struct {
		spec, snapshot string
		awaits         bool
	}{
		"nothing to restore":             {"", "cp-1 maintenance", false},
		"before the first machine boots": {restores, "cp-1 maintenance", true},
		"a machine that runs waits":      {restores, "cp-1 member stage=booting etcd=Preparing", true},
		"another resource bootstraps":    {restores + "joins\n", "cp-1 maintenance", false},
		"etcd has members":               {restores, "etcd cp-1\ncp-1 member stage=running", false},
		"etcd was requested":             {restores, "cp-1 member stage=booting etcd=Preparing requested", false},
		"etcd runs":                      {restores, "cp-1 member stage=running etcd=Running", false},
		"etcd runs on another one":       {restores, "cp-1 maintenance\ncp-9 member stage=running etcd=Running", false},
		"the call was sent":              {restores, "cp-1 member stage=booting etcd=Preparing sent", false},
		"restored, and not recorded":     {restores, "cp-1 member stage=booting restored=1h", false},
		"restored another time":          {"restore prod/a.db recorded=2h\n", "cp-1 member stage=booting restored=1h", false},
		"restored before, and wiped":     {"restore prod/a.db recorded=1h\n", "cp-1 member stage=booting restored=1h", true},
		"recorded, and wiped":            {"restore prod/a.db recorded=1h\n", "cp-1 maintenance", true},
	} {
		policy := cluster.DefaultPolicy()
		want := parseSpec(t, test.spec+"cp-1 controlplane 10.0.0.1\nbeside cp-9 10.0.0.9\n", &policy)

		if got := cluster.AwaitsRestore(want, parseSnapshot(t, want, "kubernetes-down\n"+test.snapshot+"\n")); got != test.awaits {
			t.Errorf("%s: %t, want %t", name, got, test.awaits)
		}
	}
}
