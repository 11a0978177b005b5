package system

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fields"
)

// The minor versions from which Talos has something (the same machinery, config/types/block).
const (
	keysInDocuments = 11 // and keys that are locked to STATE
	pcrsOfKeys      = 12 // and sizes that are a part of the disk
	negativeSizes   = 13
	verifiedImages  = 13
	ownVolumes      = 14
	isolation       = 14
)

// NewerThan names the first document that machines of Talos 1.<minor> do not know, with the minor version that does;
// empty when they know all of them.
func NewerThan(documents []config.Document, minor uint64) (name string, least uint64) {
	for _, document := range documents {
		name, least = document.Kind(), fields.Since(document.Kind())

		if volume, ok := document.(*block.VolumeConfigV1Alpha1); ok {
			name, least = name+" "+volume.MetaName, volumeSince(volume)
		}

		if least > minor {
			return name, least
		}
	}

	return "", 0
}

func volumeSince(document *block.VolumeConfigV1Alpha1) uint64 {
	switch {
	case own(document.MetaName):
		return ownVolumes
	case document.MetaName == constants.StatePartitionLabel:
		return keysInDocuments
	default:
		return 0
	}
}

// CheckTalos reports what machines of Talos 1.<minor> do not know.
func (s Settings) CheckTalos(minor uint64) []Problem {
	var found problems

	needs := func(at, what string, least uint64) {
		if minor < least {
			found.add(at, fmt.Sprintf("%s with talos_version v1.%d", what, minor),
				fmt.Sprintf("it with Talos v1.%d and newer", least), "raise talos_version, or remove it")
		}
	}

	for _, name := range slices.Sorted(maps.Keys(s.Volumes)) {
		v, at := s.Volumes[name], volumeAt(name)
		if own(name) {
			needs(at, "a separate volume for "+name, ownVolumes)
		}

		if strings.Contains(v.MaxSize, "%") {
			needs(at+".max_size", "a percentage of the disk", pcrsOfKeys)
		}

		if strings.HasPrefix(v.MaxSize, "-") {
			needs(at+".max_size", "a negative size", negativeSizes)
		}

		for _, slot := range v.slots() {
			if v.EncryptionKeys[slot].LockToState {
				needs(keyAt(name, slot)+".lock_to_state", "a key locked to STATE", keysInDocuments)
			}

			if tpm := v.EncryptionKeys[slot].TPM; tpm != nil && tpm.PCRs != nil {
				needs(keyAt(name, slot)+".tpm.pcrs", "PCRs of a key", pcrsOfKeys)
			}
		}
	}

	if len(s.ImageVerification) > 0 {
		needs("image_verification", "rules for images", verifiedImages)
	}

	if s.WorkloadIsolation != nil && *s.WorkloadIsolation {
		needs("workload_isolation", "true", isolation)
	}

	return found
}

// CheckContract reports settings that configurations of a contract do not support.
func (s Settings) CheckContract(contract *coreconfig.VersionContract) []Problem {
	var found problems

	if contract.VolumeConfigEncryptionSupported() {
		return nil
	}

	for _, name := range slices.Sorted(maps.Keys(s.Volumes)) {
		for _, slot := range s.Volumes[name].slots() {
			if k := s.Volumes[name].EncryptionKeys[slot]; !own(name) && (k.LockToState || k.TPM != nil && k.TPM.PCRs != nil) {
				found.add(keyAt(name, slot), "lock_to_state or tpm.pcrs with version_contract "+contract.String(),
					"neither: disk encryption of that contract does not support it", "remove it")
			}
		}
	}

	return found
}

// LeastTalos is the minor version of Talos 1 from which machines take the settings while they wait for their first
// configuration; 0 when all do.
func (s Settings) LeastTalos() uint64 {
	for _, least := range []uint64{ownVolumes, verifiedImages, pcrsOfKeys, keysInDocuments} {
		if len(s.CheckTalos(least-1)) > 0 {
			return least
		}
	}

	return 0
}
