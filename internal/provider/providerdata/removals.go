package providerdata

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cosi-project/runtime/pkg/state"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/upgrade"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// removalsTimeout is how long a plan waits for a cluster to report what an upgrade of Kubernetes would remove.
const removalsTimeout = 5 * time.Second

// UpgradeObstacles are what blocks or delays an upgrade of Kubernetes in a cluster.
type UpgradeObstacles struct {
	upgrade.Obstacles

	// Behind are the nodes of other resources whose kubelets are too old for the wanted version.
	Behind []kubestate.Node
}

// WarnOfRemovals asks a cluster for APIs in use that an upgrade of Kubernetes removes, for nodes that would be left
// behind, and for objects that block or break the upgrade. A source that does not answer in time is reported, and
// stops nothing.
func (m *ProviderData) WarnOfRemovals(ctx context.Context, p machineset.Set, u machineset.UpgradeOf) finding.List {
	if m.Removals == nil || len(u.Minors()) == 0 || len(u.Machines) == 0 {
		return nil
	}

	ctx, cancel := context.WithTimeout(tf.MaskSecrets(ctx, p.Secrets), removalsTimeout)
	defer cancel()

	found, err := m.Removals(ctx, m, p, u)

	var diags finding.List

	if err != nil {
		diags.Append(upgradeChecksIncomplete.With(
			finding.Args{"cluster": nameOf(p), "causes": strings.Split(err.Error(), "\n")}))
	}

	// What concerns the whole cluster is reported once, with its control planes.
	if !p.OwnsControlPlane() {
		found.Resources, found.Requests, found.Problems, found.Behind = nil, nil, nil, nil
	}

	var behind []string
	for _, node := range found.Behind {
		behind = append(behind, fmt.Sprintf("%s (kubelet %s)", node.Name, node.KubeletVersion))
	}

	if len(behind) > 0 {
		diags.Append(kubeletsTooOld.With(
			finding.Args{"cluster": nameOf(p), "version": u.Path.To, "nodes": finding.Shortened(behind)}))
	}

	if removed := found.Lines(); len(removed) > 0 {
		diags.Append(upgradeRemovesUsed.With(finding.Args{"cluster": nameOf(p), "from": u.Path.Lowest, "to": u.Path.To,
			"removed": finding.Shortened(removed)}))
	}

	if lines := found.ProblemLines(); len(lines) > 0 {
		diags.Append(upgradeObstructed.With(
			finding.Args{"cluster": nameOf(p), "to": u.Path.To, "problems": finding.Shortened(lines)}))
	}

	return diags
}

// askForRemovals asks the machines and the Kubernetes API.
func askForRemovals(
	ctx context.Context, m *ProviderData, p machineset.Set, u machineset.UpgradeOf,
) (UpgradeObstacles, error) {
	bundle, err := pki.Parse([]byte(p.Secrets))
	if err != nil {
		return UpgradeObstacles{}, err
	}

	c, err := m.ClientsOf(ctx, pki.Checking, p, machineset.PriorState{}, bundle, api.Options{})
	if err != nil {
		return UpgradeObstacles{}, err
	}

	defer c.Close()

	removed, err := c.UpgradeChecks(ctx, u.Machines, u.Minors())
	found := UpgradeObstacles{Obstacles: removed}

	if !p.OwnsControlPlane() {
		return found, err
	}

	seen := c.API.Observe(ctx)
	if !seen.Reachable {
		return found, errors.Join(err, errors.New("the kubelets of other resources: "+seen.Cause))
	}

	found.Behind = cluster.LeftBehind(u.Machines, seen.Nodes, u.Path.To.String())

	return found, err
}

// UpgradeChecks finds what an upgrade through minor versions of Kubernetes would run into. Without minor versions, it
// finds what blocks or breaks any change. It reads no Secrets.
func (c clients) UpgradeChecks(
	ctx context.Context, machines []cluster.Machine, minors [][2]string,
) (upgrade.Obstacles, error) {
	var controlPlanes, workers []string

	for _, machine := range machines {
		if machine.Role == step.ControlPlane {
			controlPlanes = append(controlPlanes, machine.Name)
		} else {
			workers = append(workers, machine.Name)
		}
	}

	opened := &openedResources{fleet: c.Machines, Machines: machines}
	defer opened.Close()

	return c.API.UpgradeChecks(ctx, minors, controlPlanes, workers, opened.of)
}

// FailingComponents finds the components of Kubernetes that do not work on control planes. Machines that do not answer
// are in the error.
func (c clients) FailingComponents(ctx context.Context, planes []cluster.Machine) ([]upgrade.Problem, error) {
	var (
		running panics.Group
		mu      sync.Mutex
		found   []upgrade.Problem
		errs    []error
	)

	for _, m := range planes {
		running.Go(func() error {
			problems, err := c.API.FailingComponents(ctx, m.Name, c.Machines.Machine(m))

			mu.Lock()
			defer mu.Unlock()

			found, errs = append(found, problems...), append(errs, err)

			return nil
		})
	}

	_ = running.Wait() // each machine has its own error

	return found, errors.Join(errs...)
}

// openedResources are the resources of machines during the requests.
type openedResources struct {
	fleet    *talos.Fleet
	Machines []cluster.Machine

	Mu       sync.Mutex
	Releases []func()
}

func (o *openedResources) of(ctx context.Context, name string) (state.State, error) {
	for _, machine := range o.Machines {
		if machine.Name != name {
			continue
		}

		resources, release, err := o.fleet.Machine(machine).Resources(ctx)
		if err != nil {
			return nil, err
		}

		o.Mu.Lock()
		defer o.Mu.Unlock()

		o.Releases = append(o.Releases, release)

		return resources, nil
	}

	return nil, fmt.Errorf("there is no machine %s", name)
}

func (o *openedResources) Close() {
	o.Mu.Lock()
	defer o.Mu.Unlock()

	for _, release := range o.Releases {
		release()
	}
}
