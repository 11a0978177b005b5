package clusterimport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

// An import has only an ID or an identity as input, and the plan that follows compares its result with the
// configuration. So the ID locates the secrets and the machines, and everything else is read from the machines. The
// import writes to state what the configuration proves. It omits Talos defaults, as a user would, and writes what
// the machines have beyond that as patches.

// Request is an import ID: a JSON object.
type Request struct {
	Source

	// Machines are the addresses of the machines to import, by name. Not for clusters.
	Machines map[string]string `json:"machines"`
	// ControlPlane are the addresses of the control planes, by name. Not for control
	// planes.
	ControlPlane map[string]string `json:"control_plane,omitempty"`
	// Workers are the addresses of the workers by pool and name. Clusters only.
	Workers map[string]map[string]string `json:"workers,omitempty"`
	// Name of the pool. Workers only.
	Name string `json:"name,omitempty"`
	// Access is how workers are reached, as in `access` of a machine; empty is directly.
	Access string `json:"access,omitempty"`
	// Mode and Host exist to be refused: machines in containers are found by their names, so nothing has to be read
	// from them.
	Mode string          `json:"mode,omitempty"`
	Host json.RawMessage `json:"host,omitempty"`
}

// Kind is what an import ID is for: an example of it.
type Kind string

// The kinds.
const (
	OfControlPlane Kind = `{"secrets": "secrets.yaml", "machines": {"cp-1": "10.0.0.11"}}`
	OfCluster      Kind = `{"secrets": "secrets.yaml", "control_plane": {"cp-1": "10.0.0.11"}, "workers": {"batch": {"w-1": "10.0.0.21"}}}`
	OfWorkers      Kind = `{"secrets": "secrets.yaml", "control_plane": {"cp-1": "10.0.0.11"}, "machines": {"worker-1": "10.0.0.21"}}`
	OfMachine      Kind = `{"secrets": "secrets.yaml", "control_plane": {"cp-1": "10.0.0.11"}, "machines": {"w-1": "10.0.0.21"}}`
)

// ReadRequest reads the request of an import, and the secrets of the cluster.
func ReadRequest(
	ctx context.Context, req resource.ImportStateRequest, kind Kind, m *providerdata.ProviderData,
) (Request, SecretsFile, diag.Diagnostics) {
	request, err := ParseImport(req.ID, kind)
	if req.ID == "" && req.Identity != nil {
		request, err = fromIdentity(ctx, req.Identity, kind)
	}

	switch {
	case errors.Is(err, errContainersNotImported):
		return request, SecretsFile{}, ImportFailed("read the import id", err,
			"Write the configuration of the cluster with its secrets, its name and its host, and apply it.")
	case err != nil:
		return request, SecretsFile{}, ImportFailed("read the import id", err,
			"Give a JSON object such as "+string(kind)+".")
	}

	file, err := request.Read(m)
	if err != nil {
		return request, file, ImportFailed("read the secrets of the cluster", err, SourceHelp)
	}

	return request, file, nil
}

// check reports what of a request does not fit its kind.
func (r Request) check(kind Kind) error {
	switch {
	case r.Mode == clusterhandle.ContainerMode || r.Host != nil:
		return errContainersNotImported
	case r.Check() != nil:
		return r.Check()
	case !slices.Contains([]string{"", machineset.AccessDirect, machineset.AccessThroughControlPlane}, r.Access):
		return fmt.Errorf("access is %q; allowed are %s and %s", r.Access, machineset.AccessDirect,
			machineset.AccessThroughControlPlane)
	case kind == OfCluster:
		return r.checkCluster()
	case len(r.Machines) == 0:
		return errors.New("machines is missing")
	case r.Access != "" && (kind == OfControlPlane || kind == OfMachine && r.RoleOfMachine() == step.ControlPlane):
		return errors.New("access is for workers; control planes are reached directly")
	case len(r.Workers) > 0:
		return errors.New("workers is for talosop_cluster")
	case kind == OfMachine && (len(r.Machines) > 1 || r.Name != ""):
		return errors.New("machines lists the one machine to import under its name, and there is no other name")
	case kind != OfControlPlane && len(r.ControlPlane) == 0:
		return errors.New("control_plane is missing")
	case kind == OfControlPlane && len(r.ControlPlane) > 0:
		return errors.New("control_plane is for workers; the control planes to import are machines")
	case kind == OfControlPlane && r.Name != "":
		return errors.New("name is for workers; that of the cluster is read from its machines")
	}

	return nil
}

// through reports whether workers are reached through control planes.
func (r Request) through() bool { return r.Access == machineset.AccessThroughControlPlane }

// checkCluster checks the ID of a whole cluster.
func (r Request) checkCluster() error {
	if len(r.ControlPlane) == 0 {
		return errors.New("control_plane is missing")
	}

	if len(r.Machines) > 0 || r.Name != "" {
		return errors.New("machines and name are for other resources; a cluster has control_plane and workers")
	}

	for name, machines := range r.Workers {
		if len(machines) == 0 {
			return fmt.Errorf("the pool %s of workers has no machines", name)
		}
	}

	return nil
}

// RoleOfMachine is the required role of the single machine of an import: that of a control plane when it is also
// listed as one.
func (r Request) RoleOfMachine() step.Role {
	for _, machine := range r.Machines {
		for _, plane := range r.ControlPlane {
			if machineset.SameAddress(machine, plane) {
				return step.ControlPlane
			}
		}
	}

	return step.Worker
}
