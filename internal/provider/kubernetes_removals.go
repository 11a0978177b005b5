package provider

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// removalsPatience is how long a plan waits for a cluster to say what an upgrade of
// Kubernetes would take from it.
const removalsPatience = 5 * time.Second

// upgradeOf is an upgrade of Kubernetes that a plan foresees.
type upgradeOf struct {
	path kubernetesPath
	// machines are those of the resource that run.
	machines []cluster.Machine
}

// minors are the steps of one minor version that an upgrade takes.
func (u upgradeOf) minors() [][2]string {
	var steps [][2]string

	from := u.path.lowest

	for _, hop := range u.path.hops() {
		if hop.Minor != from.Minor {
			steps = append(steps, [2]string{from.String(), hop.String()})
		}

		from = hop
	}

	return steps
}

// forewarnRemovals asks a cluster for what an upgrade of Kubernetes removes and it uses. It
// says nothing about what does not answer in time.
func (m *machinery) forewarnRemovals(ctx context.Context, p pool, u upgradeOf) diag.Diagnostics {
	if m.removals == nil || len(u.minors()) == 0 || len(u.machines) == 0 {
		return nil
	}

	ctx, cancel := context.WithTimeout(maskSecrets(ctx, p.secrets), removalsPatience)
	defer cancel()

	found, err := m.removals(ctx, m, p, u)
	if err != nil {
		tflog.Info(ctx, "not everything was asked for what an upgrade of Kubernetes removes", map[string]any{"cause": err.Error()})
	}

	// What concerns the whole cluster is told once, beside its control planes.
	if !p.ownsControlPlane() {
		found.Resources, found.Requests = nil, nil
	}

	lines := found.Lines()
	if len(lines) == 0 {
		return nil
	}

	if more := len(lines) - mostSteps; more > 0 {
		lines = append(lines[:mostSteps], fmt.Sprintf("%d more", more))
	}

	return diag.Diagnostics{announced("The upgrade of Kubernetes removes what is in use",
		fmt.Sprintf("On the way from %s to %s these are removed. The apply goes on all the same: change them before it, or make sure that nothing needs them any more."+
			"\n  - %s", u.path.lowest, u.path.to, strings.Join(lines, "\n  - ")))}
}

// askForRemovals asks the machines and the API of Kubernetes.
func askForRemovals(ctx context.Context, m *machinery, p pool, u upgradeOf) (kubernetes.Obstacles, error) {
	bundle, err := pki.Parse([]byte(p.secrets))
	if err != nil {
		return kubernetes.Obstacles{}, err
	}

	fleet, err := m.fleetOf(p, bundle)
	if err != nil {
		return kubernetes.Obstacles{}, err
	}

	defer fleet.Close()

	api, err := kubernetesOf(p, bundle, kubernetes.Options{})
	if err != nil {
		return kubernetes.Obstacles{}, err
	}

	defer api.Close()

	var controlPlanes, workers []string

	for _, machine := range u.machines {
		if machine.Role == cluster.ControlPlane {
			controlPlanes = append(controlPlanes, machine.Name)
		} else {
			workers = append(workers, machine.Name)
		}
	}

	opened := &openedResources{fleet: fleet, machines: u.machines}
	defer opened.close()

	return api.UpgradeChecks(ctx, u.minors(), controlPlanes, workers, opened.of)
}

// openedResources are the resources of machines while they are asked.
type openedResources struct {
	fleet    *talos.Fleet
	machines []cluster.Machine

	mu       sync.Mutex
	releases []func()
}

func (o *openedResources) of(ctx context.Context, name string) (state.State, error) {
	for _, machine := range o.machines {
		if machine.Name != name {
			continue
		}

		resources, release, err := o.fleet.Machine(machine).Resources(ctx)
		if err != nil {
			return nil, err
		}

		o.mu.Lock()
		defer o.mu.Unlock()

		o.releases = append(o.releases, release)

		return resources, nil
	}

	return nil, fmt.Errorf("there is no machine %s", name)
}

func (o *openedResources) close() {
	o.mu.Lock()
	defer o.mu.Unlock()

	for _, release := range o.releases {
		release()
	}
}
