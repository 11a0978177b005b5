package talos_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Installers of the releases after the simulated ones, and one that is too new.
const (
	newer    = "ghcr.io/siderolabs/installer:v1.13.1"
	newer112 = "ghcr.io/siderolabs/installer:v1.12.7"
	tooNew   = "ghcr.io/siderolabs/installer:v1.17.0"
	noImage  = "ghcr.io/siderolabs/installer:v1.13.99"
	noBinary = "docker.io/library/nginx:1.2.3"
)

// newKubelet is the image of a kubelet that no simulated machine runs.
const newKubelet = "ghcr.io/siderolabs/kubelet:v1.36.9"

// upgradable is a single control plane that is ready.
func upgradable(
	t *testing.T, version string, change func(*talos.Options),
) (*sim.Simulator, *sim.Machine, *talos.Machine) {
	t.Helper()

	simulator := site(t, sim.Options{TalosVersion: version})
	o := newOwner(t, simulator)
	m, api, _ := waiting(t, simulator, o, o.fleet(t, change))

	must(t, api.Bootstrap(t.Context()))
	observed(t, api, "became ready", settled)
	must(t, simulator.SetImage(noImage, images.Image{Missing: true}))
	simulator.ForgetCalls()

	return simulator, m, api
}

// changes are the calls in their order that may have changed something.
func changes(simulator *sim.Simulator) []string {
	var methods []string

	for _, call := range simulator.Calls() {
		if call.Mutates() {
			methods = append(methods, call.Method)
		}
	}

	return methods
}

func TestUpgrade_byTalosVersion(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		version, image, want string
		changes              []string
	}{
		"1.13": {version: "v1.13.0", image: newer, want: "v1.13.1", changes: []string{"Pull", "Upgrade", "Reboot"}},
		"1.12": {version: "v1.12.6", image: newer112, want: "v1.12.7", changes: []string{"Upgrade"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulator, m, api := upgradable(t, test.version, nil)
			boot := m.BootID()

			must(t, api.Upgrade(t.Context(), test.image, m.UUID(), confirmed))

			if got := changes(simulator); !slices.Equal(got, test.changes) {
				t.Errorf("calls %v, want %v", got, test.changes)
			}

			observed(t, api, "came back with the new version", func(s step.MachineState) bool {
				return settled(s) && s.TalosVersion == test.want && s.BootID != boot
			})
		})
	}
}

// A machine whose last upgrade has not proved itself is not upgraded again: a failure would go back to the release
// before, and the installer may write over the one that runs.
func TestUpgrade_waitsUntilTheLastOneIsProved(t *testing.T) {
	t.Parallel()

	simulator, m, api := upgradable(t, "v1.13.0", shortly)
	m.SetMeta(metakey.PreviousEntry, "A")

	err := api.Upgrade(t.Context(), newer, m.UUID(), confirmed)
	if !errors.Is(err, talos.ErrInProgress) || !strings.Contains(err.Error(), `keeps boot entry "A" for a rollback`) {
		t.Errorf("error %v, want ErrInProgress and the entry", err)
	}

	if got := changes(simulator); len(got) > 0 {
		t.Errorf("calls %v, want none", got)
	}

	m.DeleteMeta(metakey.PreviousEntry)
	must(t, api.Upgrade(t.Context(), newer, m.UUID(), confirmed))

	if got := changes(simulator); !slices.Equal(got, []string{"Pull", "Upgrade", "Reboot"}) {
		t.Errorf("calls %v, want an upgrade", got)
	}
}

// A run that ends anywhere in an upgrade is made good by the same call.
func TestUpgrade_again(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		version string
		fault   fault.Fault
		first   error
		changes []string
	}{
		"pull cut": {version: "v1.13.0", fault: fault.Fault{Method: "Pull", Cut: true}, first: talos.ErrUnreachable,
			changes: []string{"Pull", "Pull", "Upgrade", "Reboot"}},
		"pull lost": {version: "v1.13.0", fault: fault.Fault{Method: "Pull", DropResponse: true},
			first: talos.ErrUnreachable, changes: []string{"Pull", "Pull", "Upgrade", "Reboot"}},
		"installation cut": {version: "v1.13.0", fault: fault.Fault{Method: "Upgrade", Cut: true},
			first: talos.ErrUnreachable, changes: []string{"Pull", "Upgrade", "Pull", "Upgrade", "Reboot"}},
		"installed, no reboot": {version: "v1.13.0", fault: fault.Fault{Method: "Reboot", Code: codes.Unavailable},
			first: talos.ErrUnreachable, changes: []string{"Pull", "Upgrade", "Reboot", "Pull", "Upgrade", "Reboot"}},
		"reboot lost": {version: "v1.13.0", fault: fault.Fault{Method: "Reboot", DropResponse: true},
			changes: []string{"Pull", "Upgrade", "Reboot"}},
		"another one runs": {
			version: "v1.13.0", fault: fault.Fault{Method: "Upgrade", Code: codes.FailedPrecondition,
				Message: "another installation/upgrade is already in progress"},
			first: talos.ErrInProgress, changes: []string{"Pull", "Upgrade", "Pull", "Upgrade", "Reboot"},
		},
		"1.12, cut": {version: "v1.12.6", fault: fault.Fault{Method: "Upgrade", Cut: true}, first: talos.ErrInProgress,
			changes: []string{"Upgrade", "Upgrade"}},
		"1.12, lost": {version: "v1.12.6", fault: fault.Fault{Method: "Upgrade", DropResponse: true},
			changes: []string{"Upgrade"}},
		"1.12, lock": {
			version: "v1.12.6", fault: fault.Fault{Method: "Upgrade", Code: codes.Unknown,
				Message: "failed to acquire upgrade mutex: locked"},
			first: talos.ErrInProgress, changes: []string{"Upgrade", "Upgrade"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulator, m, api := upgradable(t, test.version, nil)
			image, want := newer, "v1.13.1"

			if test.version == "v1.12.6" {
				image, want = newer112, "v1.12.7"
			}

			m.SetFault(test.fault)

			first := newOwner(t, simulator).fleet(t, shortlyUnless(test.first == nil)).Machine(wanted(m))
			if err := first.Upgrade(t.Context(), image, m.UUID(), confirmed); !errors.Is(err, test.first) ||
				wait.IsPermanent(err) {
				t.Fatalf("first attempt: %v, want %v", err, test.first)
			}

			if test.first != nil {
				must(t, api.Upgrade(t.Context(), image, m.UUID(), confirmed))
			}

			observed(t, api, "came back with the new version",
				func(s step.MachineState) bool { return settled(s) && s.TalosVersion == want })

			if got := changes(simulator); !slices.Equal(got, test.changes) {
				t.Errorf("calls %v, want %v", got, test.changes)
			}
		})
	}
}

func TestUpgrade_thatTalosRefuses(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		version, image string
		fault          fault.Fault
		class          error
		text           string
	}{
		"too new":      {version: "v1.13.0", image: tooNew, class: talos.ErrRejected, text: "pre-flight checks failed"},
		"no image":     {version: "v1.13.0", image: noImage, class: talos.ErrGone, text: noImage},
		"no installer": {version: "v1.13.0", image: noBinary, class: talos.ErrRejected, text: "/bin/installer"},
		"no role for it": {version: "v1.13.0", image: newer, fault: fault.Fault{Code: codes.PermissionDenied},
			class: talos.ErrNotAuthorized},
		"not installed": {
			version: "v1.13.0", image: newer,
			fault: fault.Fault{Code: codes.FailedPrecondition, Message: "machine is not installed"},
			class: talos.ErrUnsupported, text: "not installed",
		},
		"1.12, no image":     {version: "v1.12.6", image: noImage, class: talos.ErrGone, text: noImage},
		"1.12, no installer": {version: "v1.12.6", image: noBinary, class: talos.ErrRejected, text: "/bin/installer"},
		"1.12, not installed": {
			version: "v1.12.6", image: newer112,
			fault: fault.Fault{Code: codes.FailedPrecondition, Message: "Talos is not installed"},
			class: talos.ErrUnsupported, text: "not installed",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, m, api := upgradable(t, test.version, nil)
			boots := m.Boots()

			if test.fault.Code != codes.OK {
				test.fault.Method = "Upgrade"
				m.SetFault(test.fault)
			}

			err := api.Upgrade(t.Context(), test.image, m.UUID(), confirmed)
			if !errors.Is(err, test.class) || !wait.IsPermanent(err) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("err = %v, want %v with %q", err, test.class, test.text)
			}

			if state := api.Observe(t.Context()); m.Boots() != boots || !settled(state) || state.TalosVersion != test.version {
				t.Errorf("%d boots, %+v", m.Boots()-boots, state)
			}
		})
	}
}

// An installer is given the configuration of its machine and may quote it. Where that
// cannot be read, so that nothing can be hidden, nothing is shown.
func TestUpgrade_showsNoOutputUnseen(t *testing.T) {
	t.Parallel()

	simulator, m, api := upgradable(t, "v1.13.0", nil)

	var installed atomic.Bool

	simulator.SetOnCall(func(c fault.Call) error {
		if c.Service == "cosi.resource.State" && installed.Load() {
			return status.Error(codes.PermissionDenied, "not now")
		}

		installed.CompareAndSwap(false, c.Method == "Upgrade")

		return nil
	})

	err := api.Upgrade(t.Context(), tooNew, m.UUID(), confirmed)
	if !errors.Is(err, talos.ErrRejected) || !wait.IsPermanent(err) || !strings.Contains(err.Error(), "exit code 1") ||
		strings.Contains(err.Error(), "pre-flight") || !strings.Contains(err.Error(), "not now") {
		t.Errorf("err = %v", err)
	}
}

func TestUpgrade_withoutARegistry(t *testing.T) {
	t.Parallel()

	for version, image := range map[string]string{"v1.13.0": newer, "v1.12.6": newer112} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			simulator, m, api := upgradable(t, version, nil)
			must(t, simulator.SetImage(image, images.Image{Unavailable: true}))

			err := api.Upgrade(t.Context(), image, m.UUID(), confirmed)
			if err == nil || wait.IsPermanent(err) || !strings.Contains(err.Error(), "503") {
				t.Errorf("err = %v", err)
			}
		})
	}
}

// Before Talos 1.13 the machine itself refuses what etcd would not survive.
func TestUpgrade_ofOneOfTwo(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{TalosVersion: "v1.12.6"})
	machines, apis := controlPlanes(t, simulator, 2)

	err := apis[0].Upgrade(t.Context(), newer112, machines[0].UUID(), confirmed)
	if !errors.Is(err, talos.ErrQuorum) || wait.IsPermanent(err) {
		t.Errorf("err = %v", err)
	}
}

func TestPullImage_once(t *testing.T) {
	t.Parallel()

	simulator, m, api := upgradable(t, "v1.13.0", nil)

	for range 2 {
		must(t, api.PullImage(t.Context(), newer))
	}

	if got := m.PulledImages(); !slices.Equal(got, []string{newer}) {
		t.Errorf("images %v", got)
	}

	err := api.PullImage(t.Context(), noImage)
	if !errors.Is(err, talos.ErrGone) || !wait.IsPermanent(err) || !strings.Contains(err.Error(), noImage) {
		t.Errorf("no such image: %v", err)
	}

	must(t, simulator.SetImage(tooNew, images.Image{Unavailable: true}))

	if err := api.PullImage(t.Context(), tooNew); err == nil || wait.IsPermanent(err) {
		t.Errorf("a registry that fails: %v", err)
	}

	m.SetFault(fault.Fault{Method: "Pull", DropResponse: true})

	if err := api.PullImage(t.Context(), newer); !errors.Is(err, talos.ErrUnreachable) || wait.IsPermanent(err) {
		t.Errorf("a lost answer: %v", err)
	}
}

func TestPullImage_thatTakesTooLong(t *testing.T) {
	t.Parallel()

	_, m, api := upgradable(t, "v1.13.0", func(o *talos.Options) { o.Timeouts.Pull = 100 * time.Millisecond })
	m.SetFault(fault.Fault{Method: "Pull", Latency: time.Hour})

	if err := api.PullImage(t.Context(), newer); !errors.Is(err, talos.ErrUnreachable) || wait.IsPermanent(err) {
		t.Errorf("err = %v", err)
	}
}

// An early pull does not help an older Talos.
func TestPullImage_before113(t *testing.T) {
	t.Parallel()

	simulator, _, api := upgradable(t, "v1.12.6", nil)

	must(t, api.PullImage(t.Context(), newer112))

	if got := changes(simulator); len(got) != 0 {
		t.Errorf("calls %v", got)
	}
}

func TestPullComponent_byTalosVersion(t *testing.T) {
	t.Parallel()

	for version, method := range map[string]string{"v1.13.0": "Pull", "v1.12.6": "ImagePull"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			simulator, m, api := upgradable(t, version, nil)

			for range 2 {
				must(t, api.PullComponent(t.Context(), kubenames.Kubelet, newKubelet))
			}

			if got := m.PulledImages(); !slices.Equal(got, []string{newKubelet}) {
				t.Errorf("images %v", got)
			}

			if got := changes(simulator); !slices.Equal(got, []string{method, method}) {
				t.Errorf("calls %v", got)
			}

			err := api.PullComponent(t.Context(), kubenames.KubeAPIServer, noImage)
			if !errors.Is(err, talos.ErrGone) || !wait.IsPermanent(err) || !strings.Contains(err.Error(), noImage) {
				t.Errorf("no such image: %v", err)
			}

			m.SetFault(fault.Fault{Method: method, DropResponse: true})

			if err := api.PullComponent(t.Context(), kubenames.Kubelet, newKubelet); !errors.Is(err, talos.ErrUnreachable) ||
				wait.IsPermanent(err) {
				t.Errorf("a lost answer: %v", err)
			}
		})
	}
}

// confirmed lets an upgrade continue.
func confirmed(context.Context) error { return nil }

// TestUpgrade_isCalledOff: what speaks against it after the installer ran keeps the machine
// up, and the same upgrade succeeds later.
func TestUpgrade_isCalledOff(t *testing.T) {
	t.Parallel()

	_, m, api := upgradable(t, "v1.13.0", nil)
	boots := m.Boots()
	refusal := errors.New("another control plane went away")

	err := api.Upgrade(t.Context(), newer, m.UUID(), func(context.Context) error { return refusal })
	if !errors.Is(err, refusal) || m.Boots() != boots || m.Stage() != sim.StageRunning {
		t.Fatalf("error %v after %d boots in stage %s, want the refusal and no reboot", err, m.Boots()-boots, m.Stage())
	}

	must(t, api.Upgrade(t.Context(), newer, m.UUID(), confirmed))
}

// Talos 1.14 asks a registry once and says so at once when it does not answer, where older ones try again themselves.
func TestPullImage_registryThatFailsForAWhile(t *testing.T) {
	t.Parallel()

	for version, works := range map[string]bool{"v1.13.0": false, "v1.14.1": true} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			simulator, m, api := upgradable(t, version, nil)
			must(t, simulator.SetImage(newer, images.Image{}))
			m.SetFault(fault.Fault{Method: "Pull", Count: 2, Code: codes.Unknown, Message: "503 Service Unavailable"})

			err := api.PullImage(t.Context(), newer)
			if works != (err == nil) || wait.IsPermanent(err) {
				t.Errorf("err = %v", err)
			}

			if n, want := len(simulator.CallsTo("Pull")), map[bool]int{false: 1, true: 3}[works]; n != want {
				t.Errorf("the registry was asked %d times, want %d", n, want)
			}

			// What it does not have is not asked for again.
			m.ClearFaults()
			simulator.ForgetCalls()

			if err := api.PullImage(t.Context(), noImage); !errors.Is(err, talos.ErrGone) {
				t.Errorf("an image that is not there: %v", err)
			}

			if n := len(simulator.CallsTo("Pull")); n != 1 {
				t.Errorf("asked %d times for what is not there", n)
			}
		})
	}
}
