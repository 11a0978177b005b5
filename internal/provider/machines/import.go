package machines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// An import has only an id to go by, and the plan that follows compares what it
// wrote to the configuration. So the id says where the secrets and the machines
// are, and everything else is read from the machines: what can be proved of the
// configuration is written to state, and what is Talos's default is left out, as a
// user would leave it out. What cannot be told (patches, registries) is missing;
// the first plan then stores it, and touches a machine only when its configuration
// really differs.

// ImportRequest is an import id: a JSON object.
type ImportRequest struct {
	clusterimport.Source

	// Machines are the addresses of the machines to import, by name. Not for clusters.
	Machines map[string]string `json:"machines"`
	// ControlPlane are the addresses of the control planes, by name. Not for control
	// planes.
	ControlPlane map[string]string `json:"control_plane,omitempty"`
	// Workers are the addresses of the workers by pool and name. Clusters only.
	Workers map[string]map[string]string `json:"workers,omitempty"`
	// Name of the pool. Workers only.
	Name string `json:"name,omitempty"`
	// Mode and Host are there to be refused: nothing has to be read from machines in containers, whose names say where
	// they are.
	Mode string          `json:"mode,omitempty"`
	Host json.RawMessage `json:"host,omitempty"`
}

// importKind is what an import id is for.
type importKind string

const (
	importOfControlPlane importKind = `{"secrets": "secrets.yaml", "machines": {"cp-1": "10.0.0.11"}}`
	importOfCluster      importKind = `{"secrets": "secrets.yaml", "control_plane": {"cp-1": "10.0.0.11"}, "workers": {"batch": {"w-1": "10.0.0.21"}}}`
	importOfWorkers      importKind = `{"secrets": "secrets.yaml", "control_plane": {"cp-1": "10.0.0.11"}, "machines": {"worker-1": "10.0.0.21"}}`
	// ImportOfMachine is the import of one machine.
	ImportOfMachine importKind = `{"secrets": "secrets.yaml", "control_plane": {"cp-1": "10.0.0.11"}, "machines": {"w-1": "10.0.0.21"}}`
)

func readImport(
	id string, kind importKind, m *providerdata.ProviderData,
) (ImportRequest, clusterimport.SecretsFile, diag.Diagnostics) {
	request, err := ParseImport(id, kind)

	switch {
	case errors.Is(err, errContainersNotImported):
		return request, clusterimport.SecretsFile{},
			clusterimport.ImportFailed("read the import id", err,
				"Write the configuration of the cluster with its secrets, its name and its host, and apply it.")
	case err != nil:
		return request, clusterimport.SecretsFile{},
			clusterimport.ImportFailed("read the import id", err, "Give a JSON object such as "+string(kind)+".")
	}

	file, err := request.Read(m)
	if err != nil {
		return request, file, clusterimport.ImportFailed("read the secrets of the cluster", err, clusterimport.SourceHelp)
	}

	return request, file, nil
}

var errContainersNotImported = errors.New("machines in containers are not imported: a create with the secrets, the " +
	"name and the host of their cluster takes them over, as it does after an apply that was killed")

// ParseImport reads an import id; errors say what it should look like.
func ParseImport(id string, kind importKind) (ImportRequest, error) {
	var request ImportRequest

	if err := clusterimport.DecodeImport(id, &request); err != nil {
		return request, err
	}

	switch {
	case request.Mode == clusterhandle.ContainerMode || request.Host != nil:
		return request, errContainersNotImported
	case request.Check() != nil:
		return request, request.Check()
	case kind == importOfCluster:
		return request, request.checkCluster()
	case len(request.Machines) == 0:
		return request, errors.New("machines is missing")
	case len(request.Workers) > 0:
		return request, errors.New("workers is for talosop_cluster")
	case kind == ImportOfMachine && (len(request.Machines) > 1 || request.Name != ""):
		return request, errors.New("machines lists the one machine to import under its name, and there is no other name")
	case kind != importOfControlPlane && len(request.ControlPlane) == 0:
		return request, errors.New("control_plane is missing")
	case kind == importOfControlPlane && len(request.ControlPlane) > 0:
		return request, errors.New("control_plane is for workers; the control planes to import are machines")
	case kind == importOfControlPlane && request.Name != "":
		return request, errors.New("name is for workers; that of the cluster is read from its machines")
	}

	return request, nil
}

// checkCluster checks the id of a whole cluster.
func (r ImportRequest) checkCluster() error {
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

// adopt observes what is imported, and says how far it has come.
func adopt(
	ctx context.Context, m *providerdata.ProviderData, model *CommonModel,
	read func(context.Context) (writtenSet, diag.Diagnostics), file clusterimport.SecretsFile,
) diag.Diagnostics {
	p, diags := read(ctx)
	p.Secrets = file.Text

	if diags.HasError() {
		return diags
	}

	r := &tf.Reader{}
	recorded := machineset.PriorState{Record: machineset.Record{
		HostnameUnset: hostnamesUnset(tf.Objects[observedModel](ctx, r, model.Observed))}}
	exam := newExamination(p.Set, recorded.Record)

	want, have, err := observe(ctx, m, p.Set, recorded, exam)
	if err != nil {
		return append(diags, tf.Diagnostics(openFailed(p.Set, "import", err))...)
	}

	phase := cluster.PhaseOf(want, have)
	if phase != cluster.Ready {
		// It had an etcd once, whatever it lacks now: it must not be bootstrapped.
		phase = cluster.Degraded
	}

	model.withOwner()
	model.Phase = tf.TextOrNull(string(phase))
	model.Observed = withDrift(observed(want, have, model.Observed), machineset.DriftOf(p.Set, want, have, exam.Places))
	model.forgetPlan()
	model.manifests = manifestsSeen(want, have, tf.TextOrNull(machineset.ManifestsRunning(want, have)))
	model.restored.At = restoredAt(have)

	return diags
}
