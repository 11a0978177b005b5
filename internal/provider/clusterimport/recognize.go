package clusterimport

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// Recognize asks machines for their identity, and reads the configuration of each.
func Recognize(
	ctx context.Context, m *providerdata.ProviderData, addresses map[string]string, file SecretsFile, role step.Role,
) (map[string]Recognized, diag.Diagnostics) {
	return Request{}.Recognize(ctx, m, addresses, file, role)
}

// Recognize is [Recognize] for machines of an import, which may be reached through its control planes.
func (r Request) Recognize(
	ctx context.Context, m *providerdata.ProviderData, addresses map[string]string, file SecretsFile, role step.Role,
) (map[string]Recognized, diag.Diagnostics) {
	p := machineset.Set{Machines: map[string]machineset.Machine{}, Endpoints: slices.Sorted(maps.Values(r.ControlPlane))}
	for name, address := range addresses {
		p.Machines[name] = machineset.Machine{Wanted: cluster.Wanted{Address: address}}
	}

	reading := *m
	reading.Talos.TrustNodeNames = true // nothing is recorded yet: only changes need the verification that this skips

	fleet, err := reading.FleetOf(ctx, pki.Importing, p, file.Bundle)
	if err != nil {
		return nil, ImportFailed("ask the machines", err, "")
	}

	defer fleet.Close()

	var asked []cluster.Machine
	for name, address := range addresses {
		asked = append(asked, cluster.Machine{Name: name, Role: role,
			Wanted: cluster.Wanted{Address: address, Through: r.through() && role == step.Worker}})
	}

	answers := askAll(ctx, fleet, asked)
	found := map[string]Recognized{}

	var problems []error

	for _, name := range slices.Sorted(maps.Keys(answers)) {
		if a := answers[name]; a.err != nil {
			problems = append(problems, fmt.Errorf("%s (%s): %w", name, addresses[name], a.err))
		} else {
			found[name] = a.Recognized
		}
	}

	problems = append(problems, ListedTwice(found)...)

	if len(problems) > 0 {
		return nil, ImportFailed("ask the machines", errors.Join(problems...),
			"All machines of an import have to answer as members of the cluster of the secrets. Nothing else can be proved "+
				"about them.")
	}

	return found, nil
}

// SecretsFile is the secrets of the cluster of an import.
type SecretsFile struct {
	Bundle *pki.Bundle
	Text   string
	// provided reports whether the provider has them, so that state gets none.
	provided bool
}

// Stored is what state has of them.
func (f SecretsFile) Stored() types.String {
	if f.provided {
		return types.StringNull()
	}

	return types.StringValue(f.Text)
}

// Source is the part of an import ID that locates the secrets of the cluster.
type Source struct {
	// Secrets is the path of a file that ReadBundleFile reads.
	Secrets string `json:"secrets,omitempty"`
	// Cluster is the name of a cluster in the provider's configuration, in place of a file.
	Cluster string `json:"cluster,omitempty"`
}

// Given reports whether there is any source.
func (s Source) Given() bool { return s != Source{} }

// Check refuses an ID without a source, or with two.
func (s Source) Check() error {
	switch {
	case !s.Given():
		return errors.New("secrets is missing")
	case s.Secrets != "" && s.Cluster != "":
		return errors.New("allowed is one of secrets and cluster")
	default:
		return nil
	}
}

// Read reads the secrets.
func (s Source) Read(m *providerdata.ProviderData) (SecretsFile, error) {
	if s.Cluster != "" {
		return s.provided(m)
	}

	bundle, err := ReadBundleFile(s.Secrets)
	if err != nil {
		return SecretsFile{}, err
	}

	text, err := bundle.YAML()

	return SecretsFile{Bundle: bundle, Text: string(text)}, err
}

func (s Source) provided(m *providerdata.ProviderData) (SecretsFile, error) {
	secrets, found := m.SecretsOf(types.StringValue(s.Cluster), providerdata.RecordedSecrets{}, finding.Root("cluster"))

	for _, f := range found {
		return SecretsFile{}, errors.New(f.Detail)
	}

	bundle, err := pki.Parse([]byte(secrets.ValueString()))

	return SecretsFile{Bundle: bundle, Text: secrets.ValueString(), provided: true}, err
}

// SourceHelp describes the sources in an import ID.
const SourceHelp = "Set `secrets` to the path of a file that `talosctl gen secrets` wrote, of the configuration of a " +
	"control-plane machine, or of the Secret of talos-operator or Cluster API. To keep the secrets out of state, set " +
	"`cluster` to the name of one of `clusters` of the provider instead."

// DecodeImport reads an import ID, a JSON object with known fields only.
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

// ImportFailed is the diagnostic of an import that stored nothing.
func ImportFailed(attempted string, err error, next string) diag.Diagnostics {
	return diag.Diagnostics{tf.Diagnostic(importFailed.With(finding.Args{"attempted": attempted,
		"causes": strings.Split(err.Error(), "\n"), "solution": next}))}
}

// Recognized is a machine that has proved to belong to the cluster.
type Recognized struct {
	Address string
	// Through reports whether it was reached through a control plane.
	Through bool
	State   step.MachineState
	Config  []byte
}

// ListedTwice names the machines that are listed under two names. Machines without hardware have no UUIDs
// (containers), so this cannot be checked.
func ListedTwice(found map[string]Recognized) []error {
	var problems []error

	seen := map[string]string{}

	for _, name := range slices.Sorted(maps.Keys(found)) {
		uuid := strings.ToLower(found[name].State.UUID)
		if uuid == "" {
			continue
		}

		if other, twice := seen[uuid]; twice {
			problems = append(problems, fmt.Errorf("%s (%s): it is the same machine as %s: both answer with UUID %s", name,
				found[name].Address, other, uuid))
		}

		seen[uuid] = name
	}

	return problems
}

// answer is the result of asking one machine.
type answer struct {
	Recognized

	err error
}

// askAll asks all machines in parallel, so that it reports all of them.
func askAll(ctx context.Context, fleet *talos.Fleet, machines []cluster.Machine) map[string]answer {
	var (
		asking  panics.Group
		mu      sync.Mutex
		answers = map[string]answer{}
		slots   = make(chan struct{}, machinesAtOnce)
	)

	for _, m := range machines {
		asking.Go(func() error {
			slots <- struct{}{}
			defer func() { <-slots }()

			machine := fleet.Machine(m)
			a := answer{Recognized: Recognized{Address: m.Address, Through: m.Through, State: machine.Observe(ctx)}}

			if a.err = belongs(a.State, m.Role); a.err == nil {
				a.Config, a.err = machine.Configuration(ctx)
			}

			mu.Lock()
			defer mu.Unlock()

			answers[m.Name] = a

			return nil
		})
	}

	_ = asking.Wait() // each answer has its own error

	return answers
}

// machinesAtOnce limits how many machines an import asks in parallel.
const machinesAtOnce = 32

// belongs is the reason why a machine cannot be imported.
func belongs(s step.MachineState, role step.Role) error {
	switch {
	case s.Access == step.Maintenance:
		return errors.New("it waits in maintenance mode and belongs to no cluster; list it in the configuration, and apply")
	case s.Access != step.Member:
		return errors.New(cmp.Or(s.Cause, "it does not answer"))
	case s.Role != role:
		return fmt.Errorf("it is a %s, not a %s", s.Role, role)
	default:
		return nil
	}
}

// SettingsOfAll reads the settings of the cluster from the first machine, and those of each machine from itself.
func SettingsOfAll(
	found map[string]Recognized, file SecretsFile,
) (machineconfig.Cluster, map[string]machineconfig.Machine, error) {
	var common machineconfig.Cluster

	machines := map[string]machineconfig.Machine{}

	for i, name := range slices.Sorted(maps.Keys(found)) {
		c, m, err := machineconfig.SettingsOf(found[name].Config, file.Bundle, settings.Settings()...)
		if err != nil {
			return common, nil, fmt.Errorf("%s: %w", name, err)
		}

		if i == 0 {
			common = c
		}

		machines[name] = m
	}

	return common, machines, nil
}

// HandleSeen is the handle of a cluster as the resource that made its control planes
// exports it.
func HandleSeen(
	ctx context.Context, settings machineconfig.Cluster, file SecretsFile, planes map[string]Recognized,
) (types.Object, diag.Diagnostics) {
	return handleSeen(settings, file, planes).Object(ctx)
}

// AccessSeen asks control planes for the name of their cluster, and for what resources without machines store of its
// handle. Errors are about the configurations of the control planes.
func AccessSeen(
	ctx context.Context, m *providerdata.ProviderData, addresses map[string]string, file SecretsFile,
) (name string, access types.Object, diags diag.Diagnostics, err error) {
	planes, diags := Recognize(ctx, m, addresses, file, step.ControlPlane)
	if diags.HasError() {
		return "", access, diags, nil
	}

	settings, _, err := SettingsOfAll(planes, file)
	if err != nil {
		return "", access, diags, err
	}

	access, more := handleSeen(settings, file, planes).AccessModel.Object(ctx)

	return settings.Name, access, append(diags, more...), nil
}

func handleSeen(
	settings machineconfig.Cluster, file SecretsFile, planes map[string]Recognized,
) clusterhandle.HandleModel {
	handle := HandleOf(settings)

	names := slices.Sorted(maps.Keys(planes))
	handle.Secrets = file.Stored()
	handle.Phase = types.StringValue(string(cluster.Ready))
	handle.TalosVersion = tf.TextOrNull(planes[names[0]].State.TalosVersion)

	var endpoints []string
	for _, name := range names {
		if planes[name].State.Role == step.ControlPlane {
			endpoints = append(endpoints, planes[name].Address)
		}
	}

	handle.TalosEndpoints = tf.TextList(endpoints)

	return handle
}

// HandleOf describes a cluster, without the defaults of Talos.
func HandleOf(c machineconfig.Cluster) clusterhandle.HandleModel {
	h := clusterhandle.UnknownHandle()

	h.Name, h.Mode, h.Endpoint = types.StringValue(c.Name), types.StringValue(clusterhandle.MetalMode),
		types.StringValue(c.Endpoint)
	h.TalosEndpointOf = types.MapNull(types.StringType)
	h.TalosEndpoints, h.Secrets, h.Phase, h.TalosVersion = tf.TextList(nil), types.StringNull(), types.StringNull(),
		types.StringNull()
	h.KubernetesVersion, h.VersionContract = tf.TextOrNull(c.KubernetesVersion), tf.TextOrNull(c.Contract)
	h.ConfigPatches = tf.TextList(nil)
	h.Host = types.ObjectNull(tf.AttributesOf(clusterhandle.HandleType()["host"]))

	if c.CNI.Name == "" || reflect.DeepEqual(c.CNI, machineconfig.CNI{Name: machineconfig.CNIFlannel}) {
		c.CNI = machineconfig.CNI{}
	}

	settings.WriteCluster(c, &h)
	h.CertSANs = tf.TextList(c.CertSANs)
	settings.Write(nil, &h) // each machine has its own

	return h
}
