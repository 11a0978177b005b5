package talos_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// TestManifests_followTheConfiguration: an image that was applied is either in the manifests,
// or they say that it is not yet.
func TestManifests_followTheConfiguration(t *testing.T) {
	t.Parallel()

	const before, after = "registry.k8s.io/kube-proxy:v1.34.1", "registry.k8s.io/kube-proxy:v1.34.2"

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, api, config := waiting(t, simulator, o, o.fleet(t, nil))
	ctx, cancel := context.WithTimeout(t.Context(), longTimeout)
	t.Cleanup(cancel)

	rendered := func(image string) {
		must(t, wait.Until(ctx, 5*time.Millisecond, func(ctx context.Context) error {
			objects, err := api.Manifests(ctx, image, nil)
			if err == nil && len(objects) == 0 {
				err = errors.New("no objects")
			}

			if err != nil && !errors.Is(err, talos.ErrInProgress) {
				err = wait.Permanent(err)
			}

			return err
		}))
	}

	rendered(before)

	if _, err := api.Manifests(ctx, after, nil); !errors.Is(err, talos.ErrInProgress) || wait.IsPermanent(err) {
		t.Errorf("before it is applied: %v", err)
	}

	must(t, api.ApplyConfig(ctx, replaced(t, config, before, after), step.Member, m.UUID()))
	rendered(after)

	if _, err := api.Manifests(ctx, before, nil); !errors.Is(err, talos.ErrInProgress) {
		t.Errorf("after another one is applied: %v", err)
	}

	_, worker := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeWorker)
	err := wait.Until(ctx, 5*time.Millisecond, func(ctx context.Context) error {
		// It installs itself and reboots first.
		_, err := worker.Manifests(ctx, "", nil)
		if err != nil && !errors.Is(err, talos.ErrUnreachable) && !errors.Is(err, talos.ErrMaintenance) {
			err = wait.Permanent(err)
		}

		return err
	})
	if !errors.Is(err, talos.ErrInProgress) {
		t.Errorf("of a worker: %v", err)
	}
}

// TestResources_takeNoWrites: Talos denies them, which a COSI client takes for a conflict.
func TestResources_takeNoWrites(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	_, api, _ := waiting(t, simulator, o, o.fleet(t, nil))

	resources, release, err := api.Resources(t.Context())
	must(t, err)
	t.Cleanup(release)

	if err := resources.Create(t.Context(),
		k8s.NewKubeletSpec(k8s.NamespaceName, "another")); !state.IsOwnerConflictError(err) {
		t.Errorf("a write: %v", err)
	}
}
