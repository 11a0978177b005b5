// Package corpus has small patches of machine configurations, with the effect of each in Talos and the decision
// expected of talosop. It also has the verdicts of the machinery library of each release. Tests compare talosop's
// decisions with both.
package corpus

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// The inputs of an archive are about one subject. Each begins with comments: sentences about Talos, with the source in
// brackets, and these settings:
//
//	# roles: worker                          the machines that get the patch; both by default
//	# alone: why                             why no machine can have it beside others
//	# refused v1.11 v1.12: invalid           the contracts for which talosop refuses it, and the reason
//	# refused v1.14: invalid at install.disk the same, where it is not the patch that is named
//	# otherwise v1.14: why                   why talosop does not decide as machinery of this release does
//
//go:embed inputs/*.txtar
var inputs embed.FS

//go:embed verdicts.json
var verdicts []byte

// Contracts are the contracts that inputs are about.
func Contracts() []string { return []string{"v1.11", "v1.12", "v1.13", "v1.14"} }

// Input is one patch.
type Input struct {
	// Name is the subject and the name.
	Name string
	// Does is the effect of the patch in Talos.
	Does  string
	Roles []machineconfig.Role
	Patch string
	// Alone is why no machine can have the patch beside others.
	Alone string
	// Refused are the errors that talosop reports, by contract. It accepts the patch for the others.
	Refused map[string]Mistake
	// Otherwise says by contract why talosop does not decide as machinery of this release.
	Otherwise map[string]string
}

// PatchFor is the patch with the Talos version of machines with a contract, where it has TALOS_VERSION.
func (i Input) PatchFor(contract string) string {
	return strings.ReplaceAll(i.Patch, "TALOS_VERSION", TalosVersion(contract))
}

// Mistake is the expected report of a refused patch.
type Mistake struct {
	// Reason is not-yaml, not-patch, multi-document, unknown-field, or invalid.
	Reason string
	// Field is an attribute, "patch" for the patch itself.
	Field string
}

var errHeader = errors.New("not a setting of an input")

// Load reads all inputs.
func Load() ([]Input, error) {
	files, err := inputs.ReadDir("inputs")
	if err != nil {
		return nil, err
	}

	var all []Input

	for _, file := range files {
		content, err := inputs.ReadFile(path.Join("inputs", file.Name()))
		if err != nil {
			return nil, err
		}

		for _, one := range txtar.Parse(content).Files {
			input, err := parse(strings.TrimSuffix(file.Name(), ".txtar")+"/"+one.Name, string(one.Data))
			if err != nil {
				return nil, fmt.Errorf("input %s: %w", one.Name, err)
			}

			all = append(all, input)
		}
	}

	return all, nil
}

func parse(name, text string) (Input, error) {
	input := Input{Name: name, Roles: []machineconfig.Role{machineconfig.ControlPlane, machineconfig.Worker},
		Refused: map[string]Mistake{}, Otherwise: map[string]string{}}

	for strings.HasPrefix(text, "# ") {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest

		if err := input.set(strings.TrimPrefix(line, "# ")); err != nil {
			return Input{}, fmt.Errorf("%w: %s", err, line)
		}
	}

	input.Patch = text

	return input, nil
}

func (i *Input) set(line string) error {
	head, value, _ := strings.Cut(line, ": ")
	words := strings.Fields(head)

	switch words[0] {
	case "roles":
		i.Roles = nil
		for _, role := range strings.Fields(value) {
			i.Roles = append(i.Roles, machineconfig.Role(role))
		}
	case "alone":
		i.Alone = value
	case "refused":
		reason, field, elsewhere := strings.Cut(value, " at ")
		if !elsewhere {
			field = "patch"
		}

		return forContracts(i.Refused, words[1:], Mistake{reason, field})
	case "otherwise":
		return forContracts(i.Otherwise, words[1:], value)
	default:
		i.Does = strings.TrimSpace(i.Does + " " + line)
	}

	return nil
}

func forContracts[V any](values map[string]V, contracts []string, value V) error {
	for _, contract := range contracts {
		if !slices.Contains(Contracts(), contract) {
			return errHeader
		}

		values[contract] = value
	}

	return nil
}

// Verdict is the result of machinery of one release for a patch, merged into a generated configuration of its
// contract.
type Verdict struct {
	// Stage is where it refuses: LoadStage, ApplyStage or ValidateStage. Empty when it takes the configuration.
	Stage, Reason string `json:",omitempty"`
	// Changes are those of the patched configuration.
	Changes []string `json:",omitempty"`
	// Sent is why the release refuses what talosop sends; empty when it does not, or talosop sends nothing.
	Sent string `json:",omitempty"`
}

// The stages at which machinery refuses a patch.
const (
	LoadStage     = "load"
	ApplyStage    = "apply"
	ValidateStage = "validate"
)

// Verdicts are those of the releases, by Key.
func Verdicts() (map[string]Verdict, error) {
	var all map[string]Verdict

	return all, json.Unmarshal(verdicts, &all)
}

// Key is the key of a verdict.
func Key(i Input, contract string, role machineconfig.Role) string {
	return fmt.Sprintf("%s %s %s", i.Name, contract, role)
}

// Settings are those of the machine that gets a patch, without it.
func Settings(contract string, role machineconfig.Role) (machineconfig.Cluster, machineconfig.Machine) {
	cluster := machineconfig.Cluster{Name: "corpus", Endpoint: "https://10.0.0.10:6443", Contract: contract,
		KubernetesVersion: KubernetesVersion}

	return cluster, machineconfig.Machine{Role: role, Install: machineconfig.Install{Disk: "/dev/sda"},
		TalosVersion: TalosVersion(contract)}
}

// KubernetesVersion is one that Talos of all contracts supports.
const KubernetesVersion = "v1.34.1"

// TalosVersion is a release with a contract.
func TalosVersion(contract string) string { return contract + ".0" }
