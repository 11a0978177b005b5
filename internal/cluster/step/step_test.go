package step_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
	"github.com/talosop/terraform-provider-talosop/internal/operation"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// The effect of each kind of step on a machine in service, whether it disrupts, and whether it goes machine by
// machine.
func TestStep_whatEachKindDoes(t *testing.T) {
	t.Parallel()

	drain := step.Evacuation{Node: "n", Drain: true}
	cordon := step.Evacuation{Node: "n"}

	for name, test := range map[string]struct {
		step               step.Step
		impact             step.Impact
		disrupts, oneByOne bool
	}{
		"first configuration":               {step: step.ApplyConfig{Access: step.Maintenance, Role: step.ControlPlane}},
		"configuration of a control plane":  {step: step.ApplyConfig{Access: step.Member, Role: step.ControlPlane}, oneByOne: true},
		"configuration of a worker":         {step: step.ApplyConfig{Access: step.Member, Role: step.Worker}},
		"configuration with a reboot":       {step: step.ApplyConfig{Access: step.Member, Role: step.Worker, Reboot: "a", Evacuation: drain}, impact: step.Impact{Drains: true, Reboots: true}, disrupts: true},
		"bootstrap":                         {step: step.Bootstrap{}},
		"restore":                           {step: step.Restore{}},
		"META":                              {step: step.WriteMeta{Keys: "0x0c"}},
		"network in META":                   {step: step.WriteMeta{Keys: metakey.Text(metakey.Network)}, oneByOne: true},
		"upgrade":                           {step: step.Upgrade{From: "a", To: "b", Evacuation: drain}, impact: step.Impact{Drains: true, Reboots: true, Upgrades: true}, disrupts: true},
		"another schematic":                 {step: step.Upgrade{From: "a", To: "a"}, impact: step.Impact{Reboots: true, Upgrades: true}, disrupts: true},
		"upgrade of a pod":                  {step: step.Upgrade{From: "a", To: "b", Container: true}, impact: step.Impact{Upgrades: true, ReplacesPod: true}, disrupts: true},
		"another pod":                       {step: step.Upgrade{From: "a", To: "a", Container: true}, impact: step.Impact{ReplacesPod: true}, disrupts: true},
		"another pod without volumes":       {step: step.Upgrade{Container: true, Loses: true}, impact: step.Impact{Wipes: true, ReplacesPod: true}, disrupts: true},
		"downgrade of etcd":                 {step: step.DowngradeEtcd{}, oneByOne: true},
		"no downgrade of etcd":              {step: step.CancelEtcdDowngrade{}, oneByOne: true},
		"uncordon":                          {step: step.Uncordon{}},
		"ownership":                         {step: step.TakeOwnership{}},
		"note":                              {step: step.NoteStaged{}},
		"soak":                              {step: step.Soak{}, oneByOne: true},
		"leave etcd":                        {step: step.LeaveEtcd{Evacuation: drain}, impact: step.Impact{Drains: true}, disrupts: true},
		"member":                            {step: step.RemoveMember{}, disrupts: true},
		"reset":                             {step: step.Reset{Role: step.Worker, Evacuation: drain}, impact: step.Impact{Drains: true, Wipes: true}, disrupts: true},
		"reset of a machine without a node": {step: step.Reset{Role: step.Worker}, impact: step.Impact{Wipes: true}},
		"shutdown":                          {step: step.Reset{Role: step.Worker, How: wipe.Reset{ShutDown: true}, Evacuation: drain}, impact: step.Impact{Drains: true}, disrupts: true},
		"reset beside others":               {step: step.Reset{Shared: true}, impact: step.Impact{Wipes: true}, disrupts: true},
		"reset of the last worker":          {step: step.Reset{Role: step.Worker, Last: true}, impact: step.Impact{Wipes: true}},
		"reset of the last control plane":   {step: step.Reset{Role: step.ControlPlane, Last: true}, impact: step.Impact{Wipes: true, EndsCluster: true}},
		"volumes":                           {step: step.ReplaceVolumes{}, impact: step.Impact{Wipes: true, ReplacesPod: true}, disrupts: true},
		"kubelet":                           {step: step.RestartKubelet{}},
		"asked-for reboot":                  {step: step.Operate{Operation: operation.Operation{Kind: operation.Reboot}, Evacuation: drain}, impact: step.Impact{Drains: true, Reboots: true}, disrupts: true, oneByOne: true},
		"asked-for wipe":                    {step: step.Operate{Operation: operation.Operation{Kind: operation.Reset}}, impact: step.Impact{Reboots: true, Wipes: true}, disrupts: true, oneByOne: true},
		"asked-for defragmentation":         {step: step.Operate{Operation: operation.Operation{Kind: operation.Defragment}}, oneByOne: true},
		"node":                              {step: step.DeleteNode{}},
		"images":                            {step: step.PullImages{}},
		"component of a worker":             {step: step.UpgradeComponent{Role: step.Worker}, impact: step.Impact{UpgradesKubernetes: true}},
		"component of a control plane":      {step: step.UpgradeComponent{Role: step.ControlPlane}, impact: step.Impact{UpgradesKubernetes: true}, oneByOne: true},
		"component of a cordoned node":      {step: step.UpgradeComponent{Role: step.Worker, Evacuation: cordon}, impact: step.Impact{UpgradesKubernetes: true}, disrupts: true},
		"component of a drained node":       {step: step.UpgradeComponent{Role: step.Worker, Evacuation: drain}, impact: step.Impact{Drains: true, UpgradesKubernetes: true}, disrupts: true},
		"manifests":                         {step: step.SyncManifests{}, oneByOne: true},
	} {
		if got := test.step.Impact(); got != test.impact {
			t.Errorf("%s: impact %+v, want %+v", name, got, test.impact)
		}

		if got := test.step.Disrupts(); got != test.disrupts {
			t.Errorf("%s: disrupts %t", name, got)
		}

		if got := test.step.OneByOne(); got != test.oneByOne {
			t.Errorf("%s: one by one %t", name, got)
		}
	}
}

// Whose state each kind of step outdates, on a control plane and on a worker.
func TestStep_whatEachKindOutdates(t *testing.T) {
	t.Parallel()

	for want, steps := range map[[2]step.Reach][]step.Step{
		{step.ItsMachine, step.ItsMachine}: {step.ApplyConfig{Access: step.Maintenance}, step.PullImages{}, step.WriteMeta{}},
		{step.AndKubernetes, step.AndKubernetes}: {step.TakeOwnership{}, step.NoteStaged{}, step.Uncordon{},
			step.DeleteNode{}, step.Soak{}},
		{step.AndControlPlanes, step.AndKubernetes}: {step.ApplyConfig{Access: step.Member}, step.Bootstrap{},
			step.Restore{}, step.Upgrade{}, step.DowngradeEtcd{}, step.CancelEtcdDowngrade{}, step.LeaveEtcd{},
			step.RemoveMember{}, step.Reset{}, step.ReplaceVolumes{}, step.RestartKubelet{}, step.Operate{},
			step.UpgradeComponent{}, step.SyncManifests{}},
	} {
		for _, s := range steps {
			if got := [2]step.Reach{s.Outdates(step.ControlPlane), s.Outdates(step.Worker)}; got != want {
				t.Errorf("%T outdates %v, want %v", s, got, want)
			}
		}
	}
}

// The purpose distinguishes reboots, and only steps that reboot have one. Steps about etcd as a whole report it.
func TestStep_purposes(t *testing.T) {
	t.Parallel()

	for want, s := range map[string]step.Step{
		"cp-1 configuration d": step.ApplyConfig{Machine: "cp-1", Digest: "d", Reboot: "a"},
		"cp-1 upgrade v2 s":    step.Upgrade{Machine: "cp-1", To: "v2", Schematic: "s"},
		"cp-1 reboot":          step.Operate{Machine: "cp-1", Operation: operation.Operation{Kind: operation.Reboot}},
	} {
		if got := s.Purpose(); got != want || s.ChangesEtcd() {
			t.Errorf("the purpose of %s is %q, of etcd %t", s, got, s.ChangesEtcd())
		}
	}

	for _, s := range []step.Step{step.ApplyConfig{Machine: "cp-1", Digest: "d"}, step.Reset{Machine: "cp-1"}} {
		if got := s.Purpose(); got != "" || s.ChangesEtcd() {
			t.Errorf("the purpose of %s is %q, of etcd %t", s, got, s.ChangesEtcd())
		}
	}

	for _, s := range []step.Step{step.DowngradeEtcd{}, step.CancelEtcdDowngrade{},
		step.Operate{Operation: operation.Operation{Kind: operation.Defragment}}} {
		if !s.ChangesEtcd() {
			t.Errorf("%T does not concern etcd", s)
		}
	}
}

// Components that change together are one step, and each of them is one of its own in plans and totals.
func TestUpgradeComponent_ofSeveral(t *testing.T) {
	t.Parallel()

	scheduler := step.UpgradeComponent{Machine: "cp-1", Role: step.ControlPlane, Component: kubenames.KubeScheduler,
		From: "s:v1.35.4", Image: "s:v1.36.3", Evacuation: step.Evacuation{Node: "cp-1", Drain: true}}
	kubelet := step.ComponentChange{Component: kubenames.Kubelet, From: "k:v1.35.4", Image: "k:v1.36.3"}
	proxy := step.ComponentChange{Component: kubenames.KubeProxy, From: "p:v1.35.4", Image: "p:v1.36.3"}

	both := scheduler.And(proxy).And(kubelet)
	if want := "upgrade kube-scheduler, kube-proxy on cp-1: v1.35.4 -> v1.36.3; " +
		"upgrade kubelet on cp-1: v1.35.4 -> v1.36.3 (drain)"; both.String() != want {
		t.Errorf("%q, want %q", both, want)
	}

	if each := both.Each(); len(each) != 3 || each[0].Node != "" || each[2].Node != "cp-1" || each[2].Image != "k:v1.36.3" {
		t.Errorf("the steps of each are %+v", each)
	}

	if _, changes := both.Of(kubenames.KubeAPIServer); changes {
		t.Error("an API server changes that is not named")
	}

	if part, changes := both.Of(kubenames.KubeProxy); !changes || part.From != "p:v1.35.4" {
		t.Errorf("kube-proxy changes by %+v", part)
	}

	if alone := scheduler.Each(); len(alone) != 1 || alone[0] != scheduler {
		t.Errorf("one component alone is %+v", alone)
	}
}

// A plan shows whether a drain waits for volumes. A reset that Talos drains itself does not.
func TestStep_showsTheWaitForVolumes(t *testing.T) {
	t.Parallel()

	drain, waits := step.Evacuation{Node: "n", Drain: true}, step.Evacuation{Node: "n", Drain: true, Volumes: true}
	reboot := operation.Operation{Kind: operation.Reboot}
	kubelet := step.UpgradeComponent{Machine: "w", Component: "kubelet", From: "k:v1.35.2", Image: "k:v1.36.0"}

	for want, s := range map[string]step.Step{
		"upgrade Talos on w: a -> b (drain, reboot)":                   step.Upgrade{Machine: "w", From: "a", To: "b", Evacuation: drain},
		"upgrade Talos on w: a -> b (drain, wait for volumes, reboot)": step.Upgrade{Machine: "w", From: "a", To: "b", Evacuation: waits},
		"replace pod of w (drain, wait for volumes): memory":           step.Upgrade{Machine: "w", Container: true, Replace: "memory", Evacuation: waits},
		"reboot w (drain)":                             step.Operate{Machine: "w", Operation: reboot, Evacuation: drain},
		"reboot w (drain, wait for volumes)":           step.Operate{Machine: "w", Operation: reboot, Evacuation: waits},
		"upgrade kubelet on w: v1.35.2 -> v1.36.0":     kubelet,
		"remove control plane w from etcd (drains it)": step.LeaveEtcd{Machine: "w", Evacuation: drain},
		"remove control plane w from etcd (drains it, waits for volumes)": step.LeaveEtcd{
			Machine: "w", Evacuation: waits},
		"reset worker w (drains it, waits for volumes, wipes its state, reboots to maintenance mode)": step.Reset{
			Machine: "w", Role: step.Worker, Evacuation: waits},
		"reset worker w (drains it, wipes its state, reboots to maintenance mode)": step.Reset{
			Machine: "w", Role: step.Worker, Graceful: true},
		"delete pod and volumes of worker w (drains it, waits for volumes)": step.Reset{
			Machine: "w", Role: step.Worker, Container: true, Evacuation: waits},
	} {
		if got := s.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
