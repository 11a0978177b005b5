package system

import (
	"fmt"
	"maps"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"github.com/siderolabs/talos/pkg/machinery/config/types/security"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	blockres "github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// Put writes settings that Check has passed into a generated configuration: into the documents that it has, or as
// further ones. Up to contract v1.10 the keys of STATE and EPHEMERAL are in the main document (machinery 1.14,
// VolumeConfigEncryptionSupported).
func (s Settings) Put(
	known []config.Document, main *v1alpha1.Config, contract *coreconfig.VersionContract,
) ([]config.Document, error) {
	for _, name := range slices.Sorted(maps.Keys(s.Volumes)) {
		v := s.Volumes[name]

		if len(v.EncryptionKeys) > 0 && !own(name) && !contract.VolumeConfigEncryptionSupported() {
			v.putFields(main.MachineConfig, name)
			v.EncryptionKeys = nil

			if !v.provisioned() {
				continue
			}
		}

		document := find(known, func(d *block.VolumeConfigV1Alpha1) bool { return d.MetaName == name })
		if document == nil {
			document = block.NewVolumeConfigV1Alpha1()
			document.MetaName = name
			known = append(known, document)
		}

		if err := v.put(document); err != nil {
			return nil, fmt.Errorf("volume %s: %w", name, err)
		}
	}

	if s.WorkloadIsolation != nil {
		known = putIsolation(known, *s.WorkloadIsolation)
	}

	if len(s.ImageVerification) > 0 {
		known = append(known, s.verification())
	}

	return known, nil
}

// find is the first document of a type that something is true of; nil when there is none.
func find[D config.Document](known []config.Document, is func(D) bool) (none D) {
	for _, document := range known {
		if found, ok := document.(D); ok && is(found) {
			return found
		}
	}

	return none
}

func (v Volume) put(document *block.VolumeConfigV1Alpha1) error {
	where := &document.ProvisioningSpec
	where.ProvisioningGrow = v.Grow

	if err := where.ProvisioningMinSize.UnmarshalText([]byte(v.MinSize)); err != nil {
		return fmt.Errorf("smallest size: %w", err)
	}

	if err := where.ProvisioningMaxSize.UnmarshalText([]byte(v.MaxSize)); err != nil {
		return fmt.Errorf("largest size: %w", err)
	}

	if v.DiskSelector != "" {
		match, err := v.disk()
		if err != nil {
			return fmt.Errorf("find the disk: %w", err)
		}

		where.DiskSelectorSpec.Match = match
	}

	if len(v.EncryptionKeys) == 0 {
		return nil
	}

	document.EncryptionSpec.EncryptionProvider = blockres.EncryptionProviderLUKS2
	for _, slot := range v.slots() {
		document.EncryptionSpec.EncryptionKeys = append(document.EncryptionSpec.EncryptionKeys,
			v.EncryptionKeys[slot].document(slot))
	}

	return nil
}

// disk is the expression that tells which disk the volume is on.
func (v Volume) disk() (cel.Expression, error) {
	return cel.ParseBooleanExpression(v.DiskSelector, celenv.DiskLocator())
}

func (k Key) document(slot string) block.EncryptionKey {
	key := block.EncryptionKey{KeySlot: number(slot)}

	switch {
	case k.NodeID:
		key.KeyNodeID = &block.EncryptionKeyNodeID{}
	case k.Passphrase != "":
		key.KeyStatic = &block.EncryptionKeyStatic{KeyData: k.Passphrase}
	case k.KMSEndpoint != "":
		key.KeyKMS = &block.EncryptionKeyKMS{KMSEndpoint: k.KMSEndpoint}
	case k.TPM != nil:
		key.KeyTPM = &block.EncryptionKeyTPM{TPMCheckSecurebootStatusOnEnroll: trueOrNil(k.TPM.CheckSecureBoot)}
		if k.TPM.PCRs != nil {
			key.KeyTPM.TPMOptions = &block.EncryptionKeyTPMOptions{PCRs: k.TPM.PCRs}
		}
	}

	key.KeyLockToSTATE = trueOrNil(k.LockToState)

	return key
}

func trueOrNil(is bool) *bool {
	if !is {
		return nil
	}

	return &is
}

// putFields writes keys into the main document, which has no other fields for them.
func (v Volume) putFields(main *v1alpha1.MachineConfig, name string) {
	encryption := &v1alpha1.EncryptionConfig{EncryptionProvider: blockres.EncryptionProviderLUKS2.String()}

	for _, slot := range v.slots() {
		k, key := v.EncryptionKeys[slot], &v1alpha1.EncryptionKey{KeySlot: number(slot)}

		switch {
		case k.NodeID:
			key.KeyNodeID = &v1alpha1.EncryptionKeyNodeID{}
		case k.Passphrase != "":
			key.KeyStatic = &v1alpha1.EncryptionKeyStatic{KeyData: k.Passphrase}
		case k.KMSEndpoint != "":
			key.KeyKMS = &v1alpha1.EncryptionKeyKMS{KMSEndpoint: k.KMSEndpoint}
		case k.TPM != nil:
			key.KeyTPM = &v1alpha1.EncryptionKeyTPM{TPMCheckSecurebootStatusOnEnroll: trueOrNil(k.TPM.CheckSecureBoot)}
		}

		encryption.EncryptionKeys = append(encryption.EncryptionKeys, key)
	}

	if main.MachineSystemDiskEncryption == nil {
		main.MachineSystemDiskEncryption = &v1alpha1.SystemDiskEncryptionConfig{}
	}

	if name == constants.StatePartitionLabel {
		main.MachineSystemDiskEncryption.StatePartition = encryption
	} else {
		main.MachineSystemDiskEncryption.EphemeralPartition = encryption
	}
}

// putIsolation reports whether workloads are isolated. A machine that never had the document does not isolate them.
func putIsolation(known []config.Document, isolate bool) []config.Document {
	document, ok := places.Document[*runtime.SecurityProfileConfigV1Alpha1](known)

	switch {
	case ok:
		document.WorkloadIsolationEnabled = &isolate
	case isolate:
		document = runtime.NewSecurityProfileConfigV1Alpha1()
		document.WorkloadIsolationEnabled = &isolate
		known = append(known, document)
	}

	return known
}

func (s Settings) verification() config.Document {
	document := security.NewImageVerificationConfigV1Alpha1()

	for _, r := range s.ImageVerification {
		rule := security.ImageVerificationRuleV1Alpha1{RuleImagePattern: r.Image, RuleSkip: trueOrNil(r.Skip),
			RuleDeny: trueOrNil(r.Deny)}

		if r.Issuer != "" {
			rule.RuleKeylessVerifier = &security.ImageKeylessVerifierV1Alpha1{
				KeylessIssuer: r.Issuer, KeylessSubject: r.Subject, KeylessSubjectRegex: r.SubjectRegex,
			}
		}

		if r.PublicKey != "" {
			rule.RulePublicKeyVerifier = &security.ImagePublicKeyVerifierV1Alpha1{ConfigCertificate: r.PublicKey}
		}

		document.ConfigRules = append(document.ConfigRules, rule)
	}

	return document
}

// ImageCacheVolume requests the partition to which the image cache is copied. Talos makes it only when there is a
// document for it, and a patch of the same kind and name raises its defaults (system disk, 500 MiB to 1 GiB).
func ImageCacheVolume() config.Document {
	volume := block.NewVolumeConfigV1Alpha1()
	volume.MetaName = constants.ImageCachePartitionLabel
	volume.ProvisioningSpec.DiskSelectorSpec.Match = cel.MustExpression(
		cel.ParseBooleanExpression("system_disk", celenv.DiskLocator()))

	return volume
}

// Settle gives the disks of the settings back to volumes that patches changed: the library loses an expression when it
// merges a document that has none (machinery 1.14, config/merge). Documents are copied first: those of patches are used
// again.
func (s Settings) Settle(documents []config.Document) ([]config.Document, error) {
	for i, document := range documents {
		found, ok := document.(*block.VolumeConfigV1Alpha1)
		if !ok || s.Volumes[found.MetaName].DiskSelector == "" || !found.ProvisioningSpec.DiskSelectorSpec.Match.IsZero() {
			continue
		}

		match, err := s.Volumes[found.MetaName].disk()
		if err != nil {
			return nil, fmt.Errorf("volume %s: find the disk: %w", found.MetaName, err)
		}

		settled := found.DeepCopy()
		settled.ProvisioningSpec.DiskSelectorSpec.Match = match
		documents[i] = settled
	}

	return documents, nil
}
