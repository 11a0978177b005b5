package sim_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// TestEtcdDowngrade_asRealEtcd: the model answers the calls of a downgrade as etcd does, and its data follows them.
func TestEtcdDowngrade_asRealEtcd(t *testing.T) {
	t.Parallel()

	folder := filepath.Dir(asset(t, "etcd"))

	answers := map[string][]string{}
	for name, opts := range map[string]sim.Options{"model": {}, "etcd": {Assets: folder, OnlyEtcd: true}} {
		t.Run(name, func(t *testing.T) { answers[name] = downgradesAndBack(t, opts) })
	}

	for i, answer := range answers["etcd"] {
		t.Log(answer)

		if i < len(answers["model"]) && answers["model"][i] != answer {
			t.Errorf("the model says %q", answers["model"][i])
		}
	}

	if len(answers["etcd"]) != len(answers["model"]) {
		t.Errorf("%d answers of etcd, %d of the model", len(answers["etcd"]), len(answers["model"]))
	}
}

// downgradesAndBack is what the only member of an etcd 3.6 says to one call after the other.
func downgradesAndBack(t *testing.T, opts sim.Options) (answers []string) {
	t.Helper()

	cluster, cps := upgradeSite(t, 1, opts)
	talos := cluster.secure(cps[0])

	note := func(call string, of []*machine.EtcdClusterDowngrade, err error) {
		answer := fmt.Sprint(client.StatusCode(err))
		if err != nil {
			answer += " " + err.Error()
		}

		for _, one := range of {
			answer += " cluster " + one.GetClusterVersion()
		}

		answers = append(answers, call+": "+answer)
	}
	validate := func(version string) {
		resp, err := talos.EtcdDowngradeValidate(t.Context(), &machine.EtcdDowngradeValidateRequest{Version: version})
		note("validate "+version, ofEach(resp.GetMessages(), (*machine.EtcdDowngradeValidate).GetClusterDowngrade), err)
	}
	enable := func(version string) {
		resp, err := talos.EtcdDowngradeEnable(t.Context(), &machine.EtcdDowngradeEnableRequest{Version: version})
		note("enable "+version, ofEach(resp.GetMessages(), (*machine.EtcdDowngradeEnable).GetClusterDowngrade), err)
	}
	cancel := func() {
		resp, err := talos.EtcdDowngradeCancel(t.Context())
		note("cancel", ofEach(resp.GetMessages(), (*machine.EtcdDowngradeCancel).GetClusterDowngrade), err)
	}
	awaitData := func(version string) {
		eventually(t, "data of version "+version, func(context.Context) error {
			if st := etcdStatus(t, talos); !strings.HasPrefix(st.GetStorageVersion(), version) ||
				!strings.HasPrefix(st.GetProtocolVersion(), "3.6.") {
				return fmt.Errorf("version %s with data of %s", st.GetProtocolVersion(), st.GetStorageVersion())
			}

			return nil
		})

		answers = append(answers, "data of "+version)
	}

	awaitData("3.6.")

	for _, version := range []string{"3.4", "3.6", "3.7", "3.5"} {
		validate(version)
	}

	cancel()
	enable("3.7")
	enable("3.5")
	validate("3.5")
	enable("3.5")
	awaitData("3.5.")
	validate("3.5")
	cancel()
	awaitData("3.6.")
	cancel()
	validate("3.5")

	return answers
}

func ofEach[M any](messages []*M, of func(*M) *machine.EtcdClusterDowngrade) []*machine.EtcdClusterDowngrade {
	var all []*machine.EtcdClusterDowngrade
	for _, message := range messages {
		all = append(all, of(message))
	}

	return all
}
