package talos_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

const (
	kubeletBefore = "ghcr.io/siderolabs/kubelet:v1.34.1"
	kubeletSlim   = "registry.example.org/kubelet:v1.34.1-slim"
	noKubelet     = "ghcr.io/siderolabs/kubelet:v1.34.1-nowhere"
)

// started is when the machine's kubelet started, by its own clock.
func started(t *testing.T, api *talos.Machine) time.Time {
	t.Helper()

	resources, release, err := api.Resources(t.Context())
	must(t, err)

	defer release()

	service, err := safe.StateGet[*v1alpha1.Service](t.Context(), resources, v1alpha1.NewService("kubelet").Metadata())
	must(t, err)

	return service.Metadata().Created()
}

// TestAwaitKubelet_ofTheSameVersion: the node looks the same before and after, so only the
// machine itself can tell.
func TestAwaitKubelet_ofTheSameVersion(t *testing.T) {
	t.Parallel()

	for _, version := range []string{"v1.13.0", "v1.12.6"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			simulator := site(t, sim.Options{TalosVersion: version})
			o := newOwner(t, simulator)
			m, api, config := waiting(t, simulator, o, o.fleet(t, nil))

			must(t, api.Bootstrap(t.Context()))
			observed(t, api, "became ready", settled)
			must(t, api.AwaitKubelet(t.Context(), kubeletBefore))

			before := started(t, api)
			must(t, api.ApplyConfig(t.Context(), replaced(t, config, kubeletBefore, kubeletSlim), step.Member, m.UUID()))
			must(t, api.AwaitKubelet(t.Context(), kubeletSlim))

			if after := started(t, api); !after.After(before) {
				t.Errorf("the kubelet runs since %s, as before", after)
			}

			// Another run finds the image set.
			must(t, o.fleet(t, nil).Machine(wanted(m)).AwaitKubelet(t.Context(), kubeletSlim))

			// So it does after a reboot.
			must(t, api.Reboot(t.Context(), m.UUID()))
			must(t, api.AwaitKubelet(t.Context(), kubeletSlim))
		})
	}
}

// TestAwaitKubelet_thatDoesNotStart: the error contains Talos's message.
func TestAwaitKubelet_thatDoesNotStart(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, api, config := waiting(t, simulator, o, o.fleet(t, func(o *talos.Options) { o.Timeouts.Kubelet = time.Second }))

	must(t, api.Bootstrap(t.Context()))
	observed(t, api, "became ready", settled)
	must(t, simulator.SetImage(noKubelet, images.Image{Missing: true}))
	must(t, api.ApplyConfig(t.Context(), replaced(t, config, kubeletBefore, noKubelet), step.Member, m.UUID()))

	// It takes a while to fail.
	must(t, retried(t, func(ctx context.Context) error {
		err := api.AwaitKubelet(ctx, noKubelet)
		if !errors.Is(err, talos.ErrInProgress) || wait.IsPermanent(err) {
			t.Fatalf("error %v, want one that may be repeated", err)
		}

		for _, part := range []string{m.Address().String(), noKubelet, "the service is not running",
			"the kubelet service is Failed: failed to run pre stage"} {
			if !strings.Contains(err.Error(), part) {
				return fmt.Errorf("want %q in: %w", part, err)
			}
		}

		return nil
	}))

	ctx, cancel := context.WithCancelCause(t.Context())
	interrupt := errors.New("interrupt")
	cancel(interrupt)

	if err := api.AwaitKubelet(ctx, noKubelet); !errors.Is(err, interrupt) {
		t.Errorf("error %v, want the cause of the interrupt", err)
	}
}
