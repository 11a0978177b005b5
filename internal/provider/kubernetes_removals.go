package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/hashicorp/terraform-plugin-framework/diag"

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

// impediments are what an upgrade of Kubernetes meets in a cluster.
type impediments struct {
	kubernetes.Obstacles

	// behind are the nodes of other resources whose kubelets are too old for the wanted version.
	behind []cluster.Node
}

// forewarnRemovals asks a cluster for what an upgrade of Kubernetes removes and it uses, and
// for nodes that would be left behind. What does not answer in time is told, and stops nothing.
func (m *machinery) forewarnRemovals(ctx context.Context, p pool, u upgradeOf) diag.Diagnostics {
	if m.removals == nil || len(u.minors()) == 0 || len(u.machines) == 0 {
		return nil
	}

	ctx, cancel := context.WithTimeout(maskSecrets(ctx, p.secrets), removalsPatience)
	defer cancel()

	found, err := m.removals(ctx, m, p, u)

	var diags diag.Diagnostics

	if err != nil {
		diags.Append(announced("Not everything was asked for what the upgrade removes", "What an upgrade of Kubernetes removes and the cluster uses is told as far "+
			"as the cluster answers the plan within seconds. The apply goes on all the same.\n  - "+strings.Join(strings.Split(err.Error(), "\n"), "\n  - ")))
	}

	// What concerns the whole cluster is told once, beside its control planes.
	if !p.ownsControlPlane() {
		found.Resources, found.Requests, found.behind = nil, nil, nil
	}

	diags.Append(forewarnBehind(u, found.behind)...)

	lines := found.Lines()
	if len(lines) == 0 {
		return diags
	}

	if more := len(lines) - mostSteps; more > 0 {
		lines = append(lines[:mostSteps], fmt.Sprintf("%d more", more))
	}

	return append(diags, announced("The upgrade of Kubernetes removes what is in use",
		fmt.Sprintf("On the way from %s to %s these are removed. The apply goes on all the same: change them before it, or make sure that nothing needs them any more."+
			"\n  - %s", u.path.lowest, u.path.to, strings.Join(lines, "\n  - "))))
}

// forewarnBehind names nodes of other resources that have to be upgraded before an upgrade
// comes to its end.
func forewarnBehind(u upgradeOf, nodes []cluster.Node) diag.Diagnostics {
	var lines []string

	for i, node := range nodes {
		if i == mostSteps {
			lines = append(lines, fmt.Sprintf("%d more", len(nodes)-i))

			break
		}

		lines = append(lines, fmt.Sprintf("the upgrade waits for node %s, which runs kubelet %s: upgrade it first", node.Name, node.KubeletVersion))
	}

	if len(lines) == 0 {
		return nil
	}

	return diag.Diagnostics{announced("Kubelets of other resources are too old for the wanted Kubernetes",
		fmt.Sprintf("kube-apiserver %s supports no kubelet that is more than three minor versions older. Where their resource waits for this one, go to a version in "+
			"between first.\n  - %s", u.path.to, strings.Join(lines, "\n  - ")))}
}

// askForRemovals asks the machines and the API of Kubernetes.
func askForRemovals(ctx context.Context, m *machinery, p pool, u upgradeOf) (impediments, error) {
	bundle, err := pki.Parse([]byte(p.secrets))
	if err != nil {
		return impediments{}, err
	}

	c, err := m.clientsOf(ctx, p, recordedPool{}, bundle, kubernetes.Options{})
	if err != nil {
		return impediments{}, err
	}

	defer c.close()

	var controlPlanes, workers []string

	for _, machine := range u.machines {
		if machine.Role == cluster.ControlPlane {
			controlPlanes = append(controlPlanes, machine.Name)
		} else {
			workers = append(workers, machine.Name)
		}
	}

	opened := &openedResources{fleet: c.machines, machines: u.machines}
	defer opened.close()

	removed, err := c.api.UpgradeChecks(ctx, u.minors(), controlPlanes, workers, opened.of)
	found := impediments{Obstacles: removed}

	if !p.ownsControlPlane() {
		return found, err
	}

	seen := c.api.Observe(ctx)
	if !seen.Reachable {
		return found, errors.Join(err, errors.New("the kubelets of other resources: "+seen.Cause))
	}

	found.behind = cluster.LeftBehind(u.machines, seen.Nodes, u.path.to.String())

	return found, err
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
