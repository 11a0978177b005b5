package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// pause is between two requests for the nodes while the API is unreachable.
const pause = time.Second

// nodesOf are the nodes of the cluster. It waits for an API that does not answer until the context ends.
func nodesOf(ctx context.Context, api *kubernetes.Client) (nodes kubestate.State, err error) {
	err = wait.Until(ctx, pause, func(ctx context.Context) error {
		if nodes = api.Observe(ctx); !nodes.Reachable {
			return errors.New("which machines the cluster has is not known: the Kubernetes API does not answer" +
				cluster.Because(nodes.Cause))
		}

		return nil
	})

	return nodes, err
}

// workersOf are the machines of the nodes that are no control planes, by node name.
func (a asked) workersOf(p machineset.Set, nodes kubestate.State) []cluster.Machine {
	var workers []cluster.Machine

	for _, node := range nodes.Nodes {
		if node.ControlPlane || node.Address() == "" || node.TalosVersion == "" {
			continue
		}

		workers = append(workers, cluster.Machine{Name: node.Name, Role: step.Worker,
			Wanted:     cluster.Wanted{Address: p.AddressOfNode(node), Through: a.through()},
			Remembered: cluster.Remembered{NodeName: node.Name}})
	}

	return workers
}

// isNodeOf reports whether a node is that of a machine.
func isNodeOf(p machineset.Set, m cluster.Machine, node kubestate.Node) bool {
	return slices.Contains(node.Addresses, m.Address) || p.AddressOfNode(node) == m.Address
}

// UnknownMachineError is about a machine that the cluster does not have.
type UnknownMachineError struct {
	Name  string
	Known []string
}

func (e *UnknownMachineError) Error() string {
	return fmt.Sprintf("the cluster has no machine %q: it has %s", e.Name, strings.Join(e.Known, ", "))
}

// chosen are the machines that the configuration names, by their names in the spec; all when it names none.
func (a asked) chosen(p machineset.Set, want cluster.Spec, nodes kubestate.State) ([]string, error) {
	names := map[string]string{}

	var all []string

	for _, m := range want.Machines {
		all = append(all, m.Name)
		names[m.Name], names[m.Address] = m.Name, m.Name

		for _, node := range nodes.Nodes {
			if isNodeOf(p, m, node) {
				names[node.Name], names[node.Address()] = m.Name, m.Name
			}
		}
	}

	if len(a.named()) == 0 {
		return all, nil
	}

	var chosen []string

	for _, name := range a.named() {
		machine, ok := names[name]
		if !ok {
			return nil, &UnknownMachineError{name, all}
		}

		if !slices.Contains(chosen, machine) {
			chosen = append(chosen, machine)
		}
	}

	return chosen, nil
}
