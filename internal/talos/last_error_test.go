package talos_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

func TestLastError(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m := running(t, simulator, o)
	api := o.fleet(t, nil).Machine(wanted(m))

	m.WriteLog("kubelet", `E1129 16:48:25.508228   31179 run.go:72] "command failed" err="unknown flag: --first"`)
	m.WriteLog("kubelet", `E1129 16:48:26.508228   31179 run.go:72] "command failed" err="unknown flag: \"--last\""`)
	m.WriteLog("kubelet", `E1129 16:48:27.508228   31179 run.go:72] "another error" err="other"`)

	for component, want := range map[kubenames.Component]string{
		kubenames.Kubelet: `unknown flag: "--last"`, kubenames.KubeScheduler: "",
	} {
		if got, err := api.LastError(t.Context(), component); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", component, got, err, want)
		}
	}
}
