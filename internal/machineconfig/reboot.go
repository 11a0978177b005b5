package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/system"
	"github.com/talosop/terraform-provider-talosop/internal/talosversion"
)

// ErrUnknownForm says that a question about a configuration cannot be answered, because its main document has
// fields of a newer Talos than this build knows.
var ErrUnknownForm = errors.New("the main document has unknown fields")

// rebootRules say which fields of the main document a running machine takes as they are. All others need a reboot,
// those of a later machinery library included.
type rebootRules struct {
	top, machine, features []string
	// decidedHere is set where Talos itself does not say what waits for a reboot.
	decidedHere bool
}

var (
	// Up to Talos 1.13 the machine says so, by comparing what is left after taking these out
	// (machined/pkg/runtime/v1alpha1, Runtime.CanApplyImmediate). Documents with a kind never need a reboot.
	askedOfTalos = rebootRules{
		top: []string{"debug", "cluster"},
		machine: []string{
			"ca", "acceptedCAs", "time", "certSANs", "install", "network", "sysfs", "sysctls", "logging", "controlPlane",
			"kubelet", "kernel", "registries", "pods", "seccompProfiles", "nodeAnnotations", "nodeLabels", "nodeTaints",
		},
		features: []string{"kubernetesTalosAPIAccess", "kubePrism", "hostDNS", "imageCache", "nodeAddressSortAlgorithm"},
	}

	// Talos 1.14 takes everything and says nothing: what its controllers do not follow waits for a boot (read in Talos
	// 1.14.1: the sequencer's tasks, the controllers of volumes, files and services). Environment, udev rules and the
	// base of runtime specifications are followed by now.
	decidedHere = rebootRules{
		top:         askedOfTalos.top,
		machine:     slices.Concat(askedOfTalos.machine, []string{"env", "udev", "baseRuntimeSpecOverrides"}),
		features:    askedOfTalos.features,
		decidedHere: true,
	}
)

func rulesOf(talos string) rebootRules {
	if talosversion.Of(talos).NeverReboots {
		return decidedHere
	}

	return askedOfTalos
}

// etcdSection is what makes a machine run etcd. Its service is made at a boot, or not at all (Talos 1.14, tasks of the
// sequencer, startAllServices).
const etcdSection = "cluster.etcd"

// NeedsReboot reports whether a running machine of a Talos version has to reboot for a configuration in place of
// its present one. It also returns the responsible fields, as paths of the main document or names of others. An
// empty version is that of a machine whose version is unknown: Talos itself then reports what needs a reboot. It
// compares as Talos does, where an empty section is not the same as none.
func NeedsReboot(before, after []byte, talos string) (bool, []string, error) {
	rules := rulesOf(talos)

	old, err := load(before)
	if err != nil {
		return false, nil, fmt.Errorf("compare configurations: old configuration: %w", err)
	}

	updated, err := load(after)
	if err != nil {
		return false, nil, fmt.Errorf("compare configurations: new configuration: %w", err)
	}

	fields, err := rules.differing(old, updated)
	if rules.decidedHere && errors.Is(err, ErrUnknownForm) {
		// A missing reboot would not be reported.
		fields, err = []string{mainDocument}, nil
	}

	if err != nil {
		return false, nil, fmt.Errorf("compare configurations: %w", err)
	}

	if rules.decidedHere {
		fields = append(fields, differingDocuments(old, updated)...)
	}

	return len(fields) > 0, fields, nil
}

// differing compares the main documents.
func (r rebootRules) differing(before, after []document) ([]string, error) {
	old, err := mainConfig(before)
	if err != nil {
		return nil, fmt.Errorf("old configuration: %w", err)
	}

	updated, err := mainConfig(after)
	if err != nil {
		return nil, fmt.Errorf("new configuration: %w", err)
	}

	fields := differing("", *old, *updated, slices.Concat(r.top, []string{"machine"}))

	switch {
	case old.MachineConfig == nil && updated.MachineConfig == nil:
	case old.MachineConfig == nil || updated.MachineConfig == nil:
		fields = append(fields, "machine")
	default:
		fields = append(fields, differing("machine.", *old.MachineConfig, *updated.MachineConfig,
			slices.Concat(r.machine, []string{"features"}))...)
		fields = append(fields, differingFeatures(old.MachineConfig.MachineFeatures,
			updated.MachineConfig.MachineFeatures, r.features)...)
	}

	if r.decidedHere && hasEtcdSection(old) != hasEtcdSection(updated) {
		fields = append(fields, etcdSection)
	}

	return fields, nil
}

func hasEtcdSection(main *v1alpha1.Config) bool {
	return main.ClusterConfig != nil && main.ClusterConfig.EtcdConfig != nil
}

// differingDocuments lists the documents that a boot alone brings about: volumes of the system, and whether workloads
// are isolated, which is a separate service (Talos 1.14, sandboxd).
func differingDocuments(before, after []document) []string {
	var fields []string

	old, updated := bootDocuments(before), bootDocuments(after)

	for _, name := range slices.Sorted(maps.Keys(old)) {
		if !reflect.DeepEqual(old[name], updated[name]) {
			fields = append(fields, name)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(updated)) {
		if _, both := old[name]; !both && updated[name] != nil {
			fields = append(fields, name)
		}
	}

	return fields
}

// bootDocuments are the parts of documents that only a boot brings about, by the name of the document.
func bootDocuments(documents []document) map[string]any {
	found := map[string]any{}

	for _, d := range documents {
		if part, ok := system.BootPart(d.id.kind, d.id.name, d.content); ok {
			found[d.id.String()] = part
		}
	}

	return found
}

// RebootField is the field, as NeedsReboot names it, that makes a machine of a Talos version reboot when the value at a
// place differs; empty when it is applied to a running machine.
func RebootField(p fieldpath.Place, talos string) string {
	rules := rulesOf(talos)

	if p.Document != mainDocument {
		return rebootDocument(p, rules)
	}

	if len(p.Path) == 0 {
		return ""
	}

	field := p.Path[:min(len(p.Path), 1)]
	immediate := rules.top

	if p.Path[0] == "machine" {
		field, immediate = p.Path[:min(len(p.Path), 2)], rules.machine
	}

	if p.Path.StartsWith("machine", "features") {
		field, immediate = p.Path[:min(len(p.Path), 3)], rules.features
	}

	if last, ok := field[len(field)-1].(string); ok && slices.Contains(immediate, last) {
		return ""
	}

	return field.String()
}

func rebootDocument(p fieldpath.Place, rules rebootRules) string {
	kind, name, _ := strings.Cut(p.Document, "/")
	if !rules.decidedHere || !system.BootPlace(kind, name, p.Path) {
		return ""
	}

	return p.Document
}

// InContainers leaves out of the fields of NeedsReboot what Talos does not read in a container: volumes of the system
// are folders there, and workloads are never isolated (Talos 1.14, volumeconfig/system_volumes.go, sandboxd.Enabled).
func InContainers(fields []string) []string {
	return slices.DeleteFunc(slices.Clone(fields), func(field string) bool {
		kind, name, _ := strings.Cut(field, "/")

		return system.BootPlace(kind, name, nil)
	})
}

func differingFeatures(old, updated *v1alpha1.FeaturesConfig, immediate []string) []string {
	switch {
	case old == nil && updated == nil:
		return nil
	case old == nil || updated == nil:
		return []string{"machine.features"}
	default:
		return differing("machine.features.", *old, *updated, immediate)
	}
}

// differing lists the fields of two structs that are not equal, by their YAML names, leaving some out.
func differing(prefix string, old, updated any, except []string) []string {
	var fields []string

	oldValue, newValue := reflect.ValueOf(old), reflect.ValueOf(updated)

	for i := range oldValue.NumField() {
		name, _, _ := strings.Cut(oldValue.Type().Field(i).Tag.Get("yaml"), ",")
		if slices.Contains(except, name) {
			continue
		}

		if !reflect.DeepEqual(oldValue.Field(i).Interface(), newValue.Field(i).Interface()) {
			fields = append(fields, prefix+name)
		}
	}

	return fields
}

func mainConfig(documents []document) (*v1alpha1.Config, error) {
	for _, document := range documents {
		if document.id.kind != "" {
			continue
		}

		if document.provider == nil {
			return nil, ErrUnknownForm
		}

		return document.provider.RawV1Alpha1(), nil
	}

	return nil, fmt.Errorf("%w: no main document", ErrNoDocuments)
}
