package machineconfig

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
)

// ErrUnknownForm says that a question about a configuration cannot be answered, because its main document has
// fields of a newer Talos than this build knows.
var ErrUnknownForm = errors.New("the main document has fields this build does not know")

// Fields that Talos applies to a running machine. All others need a reboot, those of a later machinery library
// included, since Talos compares what is left after taking these out (Talos 1.13,
// machined/pkg/runtime/v1alpha1, Runtime.CanApplyImmediate). Documents with a kind never need one.
var (
	immediateTop     = []string{"debug", "cluster"}
	immediateMachine = []string{
		"ca", "acceptedCAs", "time", "certSANs", "install", "network", "sysfs", "sysctls", "logging", "controlPlane",
		"kubelet", "kernel", "registries", "pods", "seccompProfiles", "nodeAnnotations", "nodeLabels", "nodeTaints",
	}
	immediateFeatures = []string{"kubernetesTalosAPIAccess", "kubePrism", "hostDNS", "imageCache",
		"nodeAddressSortAlgorithm"}
)

// NeedsReboot says whether Talos 1.13 would reboot a running machine to apply a configuration in place of
// the one it has (mode AUTO), and which fields make it so, as paths of the main document. It compares as
// Talos does, where an empty section is not the same as none. Talos 1.14 never reboots by itself.
func NeedsReboot(before, after []byte) (bool, []string, error) {
	old, err := mainConfig(before)
	if err != nil {
		return false, nil, fmt.Errorf("compare configurations: the old one: %w", err)
	}

	updated, err := mainConfig(after)
	if err != nil {
		return false, nil, fmt.Errorf("compare configurations: the new one: %w", err)
	}

	fields := differing("", *old, *updated, slices.Concat(immediateTop, []string{"machine"}))

	switch {
	case old.MachineConfig == nil && updated.MachineConfig == nil:
	case old.MachineConfig == nil || updated.MachineConfig == nil:
		fields = append(fields, "machine")
	default:
		fields = append(fields, differing("machine.", *old.MachineConfig, *updated.MachineConfig,
			slices.Concat(immediateMachine, []string{"features"}))...)
		fields = append(fields, differingFeatures(old.MachineConfig.MachineFeatures,
			updated.MachineConfig.MachineFeatures)...)
	}

	return len(fields) > 0, fields, nil
}

// RebootField is the field, as NeedsReboot names it, that makes Talos 1.13 reboot when the value at a place differs;
// empty when it is applied to a running machine.
func (p Place) RebootField() string {
	if p.Document != mainDocument || len(p.Path) == 0 {
		return ""
	}

	field := p.Path[:min(len(p.Path), 1)]
	immediate := immediateTop

	if p.Path[0] == "machine" {
		field, immediate = p.Path[:min(len(p.Path), 2)], immediateMachine
	}

	if p.Path.startsWith("machine", "features") {
		field, immediate = p.Path[:min(len(p.Path), 3)], immediateFeatures
	}

	if last, ok := field[len(field)-1].(string); ok && slices.Contains(immediate, last) {
		return ""
	}

	return field.String()
}

func differingFeatures(old, updated *v1alpha1.FeaturesConfig) []string {
	switch {
	case old == nil && updated == nil:
		return nil
	case old == nil || updated == nil:
		return []string{"machine.features"}
	default:
		return differing("machine.features.", *old, *updated, immediateFeatures)
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

func mainConfig(cfg []byte) (*v1alpha1.Config, error) {
	documents, err := load(cfg)
	if err != nil {
		return nil, err
	}

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
