package system

import (
	"slices"
	"strconv"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"github.com/siderolabs/talos/pkg/machinery/config/types/security"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// Read is the reverse of Put. What settings cannot say, such as a cipher, is left out. isolated is whether the contract
// isolates workloads by itself.
func Read(known []config.Document, main *v1alpha1.Config, isolated bool) Settings {
	s := Settings{Volumes: map[string]Volume{}}

	for _, document := range known {
		if found, ok := document.(*block.VolumeConfigV1Alpha1); ok && slices.Contains(names, found.MetaName) {
			if v := readVolume(found); v.provisioned() || len(v.EncryptionKeys) > 0 {
				s.Volumes[found.MetaName] = v
			}
		}
	}

	if fields := main.MachineConfig.MachineSystemDiskEncryption; fields != nil {
		s.readFields(constants.StatePartitionLabel, fields.StatePartition)
		s.readFields(constants.EphemeralPartitionLabel, fields.EphemeralPartition)
	}

	if len(s.Volumes) == 0 {
		s.Volumes = nil
	}

	if profile, ok := places.Document[*runtime.SecurityProfileConfigV1Alpha1](known); ok {
		if is := profile.WorkloadIsolation(); is != isolated {
			s.WorkloadIsolation = &is
		}
	}

	if rules, ok := places.Document[*security.ImageVerificationConfigV1Alpha1](known); ok {
		s.ImageVerification = readRules(rules)
	}

	return s
}

func readVolume(document *block.VolumeConfigV1Alpha1) Volume {
	where := document.ProvisioningSpec
	v := Volume{Grow: where.ProvisioningGrow, MinSize: written(where.ProvisioningMinSize),
		MaxSize: written(where.ProvisioningMaxSize)}

	if !where.DiskSelectorSpec.Match.IsZero() {
		v.DiskSelector = where.DiskSelectorSpec.Match.String()
	}

	for _, key := range document.EncryptionSpec.EncryptionKeys {
		k := readKey(key)
		if key.KeyTPM != nil && key.KeyTPM.TPMOptions != nil {
			k.TPM.PCRs = append([]int{}, key.KeyTPM.TPMOptions.PCRs...)
		}

		v.add(key.KeySlot, k)
	}

	return v
}

// written is a size as it was written.
func written(size interface{ MarshalText() ([]byte, error) }) string {
	text, err := size.MarshalText()
	if err != nil {
		return "" // it never fails
	}

	return string(text)
}

func (v *Volume) add(slot int, key Key) {
	if v.EncryptionKeys == nil {
		v.EncryptionKeys = map[string]Key{}
	}

	v.EncryptionKeys[strconv.Itoa(slot)] = key
}

// readKey is a key of either form, but for the registers of a TPM, which only documents have.
func readKey(key config.EncryptionKey) Key {
	k := Key{NodeID: key.NodeID() != nil, LockToState: key.LockToSTATE()}

	if static := key.Static(); static != nil {
		k.Passphrase = string(static.Key())
	}

	if kms := key.KMS(); kms != nil {
		k.KMSEndpoint = kms.Endpoint()
	}

	if tpm := key.TPM(); tpm != nil {
		k.TPM = &TPM{CheckSecureBoot: tpm.CheckSecurebootOnEnroll()}
	}

	return k
}

// readFields reads the keys of a volume in the main document.
func (s Settings) readFields(name string, fields *v1alpha1.EncryptionConfig) {
	if fields == nil {
		return
	}

	v := s.Volumes[name]

	for _, key := range fields.EncryptionKeys {
		v.add(key.KeySlot, readKey(key))
	}

	s.Volumes[name] = v
}

func readRules(document *security.ImageVerificationConfigV1Alpha1) []ImageRule {
	var rules []ImageRule

	for _, r := range document.ConfigRules {
		rule := ImageRule{Image: r.RuleImagePattern, Skip: r.Skip(), Deny: r.Deny()}

		if keyless := r.RuleKeylessVerifier; keyless != nil {
			rule.Issuer, rule.Subject = keyless.KeylessIssuer, keyless.KeylessSubject
			rule.SubjectRegex = keyless.KeylessSubjectRegex
		}

		if key := r.RulePublicKeyVerifier; key != nil {
			rule.PublicKey = key.ConfigCertificate
		}

		rules = append(rules, rule)
	}

	return rules
}
