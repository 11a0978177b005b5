package machines

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
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
	// Secrets is the path of a file of `talosctl gen secrets`, or of the configuration
	// of a control-plane machine.
	Secrets string `json:"secrets"`
	// Machines are the addresses of the machines to import, by name. Not for clusters.
	Machines map[string]string `json:"machines"`
	// ControlPlane are the addresses of the control planes, by name. Not for control
	// planes.
	ControlPlane map[string]string `json:"control_plane,omitempty"`
	// Workers are the addresses of the workers by pool and name. Clusters only.
	Workers map[string]map[string]string `json:"workers,omitempty"`
	// Name of the pool. Workers only.
	Name string `json:"name,omitempty"`
	// Mode and Host are there to be refused: nothing has to be read from machines in containers, whose names say where they are.
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

// SecretsFile is a bundle as it is stored in state.
type SecretsFile struct {
	Bundle *pki.Bundle
	Text   string
}

func readImport(id string, kind importKind) (ImportRequest, SecretsFile, diag.Diagnostics) {
	request, err := ParseImport(id, kind)

	switch {
	case errors.Is(err, errContainersNotImported):
		return request, SecretsFile{}, importFailed("read the import id", err, "Write the configuration of the cluster with its secrets, its name and its host, and apply it.")
	case err != nil:
		return request, SecretsFile{}, importFailed("read the import id", err, "Give a JSON object such as "+string(kind)+".")
	}

	bundle, err := ReadBundleFile(request.Secrets)
	if err != nil {
		return request, SecretsFile{}, importFailed("read the secrets of the cluster", err,
			"secrets is the path of a file written by `talosctl gen secrets`, or of the configuration of a control-plane machine.")
	}

	text, err := bundle.YAML()
	if err != nil {
		return request, SecretsFile{}, importFailed("read the secrets of the cluster", err, "")
	}

	return request, SecretsFile{Bundle: bundle, Text: string(text)}, nil
}

// DecodeImport reads an import id, a JSON object of known fields alone.
func DecodeImport(id string, request any) error {
	decoder := json.NewDecoder(strings.NewReader(id))
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(request); err != nil {
		return fmt.Errorf("the import id is not the JSON object that is expected: %w", err)
	}

	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the import id has text behind the JSON object")
	}

	return nil
}

var errContainersNotImported = errors.New("machines in containers are not imported: a create with the secrets, the name and the host of their cluster takes them " +
	"over, as it does after an apply that was killed")

// ParseImport reads an import id; errors say what it should look like.
func ParseImport(id string, kind importKind) (ImportRequest, error) {
	var request ImportRequest

	if err := DecodeImport(id, &request); err != nil {
		return request, err
	}

	switch {
	case request.Mode == clusterhandle.ContainerMode || request.Host != nil:
		return request, errContainersNotImported
	case request.Secrets == "":
		return request, errors.New("secrets is missing")
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

func importFailed(attempted string, err error, next string) diag.Diagnostics {
	return diag.Diagnostics{tf.Unable("import", "machines", finding.Report{
		Attempted: attempted, Cause: strings.Split(err.Error(), "\n"), Now: []string{"nothing was imported, and no machine was changed"}, Next: next,
	})}
}

// recognised is a machine that proved to belong to the cluster.
type recognised struct {
	Address string
	state   cluster.MachineState
	config  []byte
}

// Recognise asks machines who they are, and reads the configuration of each.
func (m *ProviderData) Recognise(
	ctx context.Context, addresses map[string]string, file SecretsFile, role cluster.Role,
) (map[string]recognised, diag.Diagnostics) {
	p := MachineSet{Machines: map[string]SetMachine{}}
	for name, address := range addresses {
		p.Machines[name] = SetMachine{Address: address}
	}

	fleet, err := m.FleetOf(p, file.Bundle)
	if err != nil {
		return nil, importFailed("ask the machines", err, "")
	}

	defer fleet.Close()

	answers := askAll(ctx, fleet, addresses, role)
	found := map[string]recognised{}

	var problems []error

	for _, name := range sortedNames(answers) {
		if a := answers[name]; a.err != nil {
			problems = append(problems, fmt.Errorf("%s (%s): %w", name, addresses[name], a.err))
		} else {
			found[name] = a.recognised
		}
	}

	problems = append(problems, listedTwice(found)...)

	if len(problems) > 0 {
		return nil, importFailed("ask the machines", errors.Join(problems...),
			"All machines of an import have to answer as members of the cluster of the secrets. Nothing else can be proved about them.")
	}

	return found, nil
}

// listedTwice names the machines that have another name already. Where there is no
// hardware there are no UUIDs (containers), and nothing can be told.
func listedTwice(found map[string]recognised) []error {
	var problems []error

	seen := map[string]string{}

	for _, name := range sortedNames(found) {
		uuid := strings.ToLower(found[name].state.UUID)
		if uuid == "" {
			continue
		}

		if other, twice := seen[uuid]; twice {
			problems = append(problems, fmt.Errorf("%s (%s): it is the same machine as %s: both answer with UUID %s", name, found[name].Address, other, uuid))
		}

		seen[uuid] = name
	}

	return problems
}

// answer is what came of asking one machine.
type answer struct {
	recognised

	err error
}

// askAll asks all machines side by side, so that all of them are reported.
func askAll(ctx context.Context, fleet *talos.Fleet, addresses map[string]string, role cluster.Role) map[string]answer {
	var (
		asking  sync.WaitGroup
		mu      sync.Mutex
		answers = map[string]answer{}
		slots   = make(chan struct{}, machinesAtOnce)
	)

	for name, address := range addresses {
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()

			machine := fleet.Machine(cluster.Machine{Name: name, Role: role, Address: address})
			a := answer{recognised: recognised{Address: address, state: machine.Observe(ctx)}}

			if a.err = belongs(a.state, role); a.err == nil {
				a.config, a.err = machine.Configuration(ctx)
			}

			mu.Lock()
			defer mu.Unlock()

			answers[name] = a
		})
	}

	asking.Wait()

	return answers
}

// machinesAtOnce bounds how many machines an import asks at the same time.
const machinesAtOnce = 32

// belongs says why a machine cannot be imported.
func belongs(s cluster.MachineState, role cluster.Role) error {
	switch {
	case s.Access == cluster.Maintenance:
		return errors.New("it waits in maintenance mode and belongs to no cluster; list it in the configuration, and apply")
	case s.Access != cluster.Member:
		return errors.New(cmp.Or(s.Cause, "it does not answer"))
	case s.Role != role:
		return fmt.Errorf("it is a %s, not a %s", s.Role, role)
	default:
		return nil
	}
}

// SettingsOfAll reads the settings of the cluster from the first machine, and
// those of every machine from itself.
func SettingsOfAll(found map[string]recognised, file SecretsFile) (machineconfig.Cluster, map[string]machineconfig.Machine, error) {
	var settings machineconfig.Cluster

	machines := map[string]machineconfig.Machine{}

	for i, name := range sortedNames(found) {
		c, m, err := machineconfig.SettingsOf(found[name].config, file.Bundle)
		if err != nil {
			return settings, nil, fmt.Errorf("%s: %w", name, err)
		}

		if i == 0 {
			settings = c
		}

		machines[name] = m
	}

	return settings, machines, nil
}

// adopt observes what is imported, and says how far it has come.
func (m *ProviderData) adopt(ctx context.Context, model *CommonModel, read func(context.Context) (MachineSet, diag.Diagnostics)) diag.Diagnostics {
	p, diags := read(ctx)
	if diags.HasError() {
		return diags
	}

	var recorded PriorState

	exam := newExamination(p, recorded)

	want, have, err := m.observe(ctx, p, recorded, exam)
	if err != nil {
		return append(diags, tf.Diagnostics(openFailed(p, "import", err))...)
	}

	phase := cluster.PhaseOf(want, have)
	if phase != cluster.Ready {
		// It had an etcd once, whatever it lacks now: it must not be bootstrapped.
		phase = cluster.Degraded
	}

	model.Phase = tf.TextOrNull(string(phase))
	model.Observed = withDrift(observed(want, have, model.Observed), driftOf(want, have, exam.places))
	model.Operations = tf.TextList(nil)
	model.manifests = manifestsSeen(want, have, manifestsRunning(want, have))
	model.restored.At = restoredAt(have)

	return diags
}

// ReadBundleFile reads the secrets of a cluster from a file of `talosctl gen
// secrets` or from the configuration of a control-plane machine.
func ReadBundleFile(name string) (*pki.Bundle, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}

	bundle, asBundle := pki.Parse(content)
	if asBundle == nil {
		return bundle, nil
	}

	bundle, asConfig := pki.FromMachineConfig(content)
	if asConfig == nil {
		return bundle, nil
	}

	return nil, errors.Join(
		fmt.Errorf("read %s as a file of `talosctl gen secrets`: %w", name, asBundle),
		fmt.Errorf("read %s as the configuration of a control-plane machine: %w", name, asConfig),
	)
}
