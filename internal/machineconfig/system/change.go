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
	resources "github.com/siderolabs/talos/pkg/machinery/resources/block"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// Change is a change of a volume that a disk with data does not take.
type Change struct {
	// Document is that of the volume, such as "VolumeConfig/ETCD", Volume its name where it is one of the system.
	Document, Volume string
	// What would change, and Why it cannot.
	What, Why string
}

// kept are the properties of a volume that cannot change later.
type kept struct {
	system    bool
	partition bool
	encrypted bool
	keys      []config.EncryptionKey
	// made is what a volume of a user is made as, such as a partition; empty for all others.
	made string
}

// Changes lists the changes from one configuration to another that machines with existing volumes refuse, or would
// not boot with:
//
//   - A volume of the system stays a directory or a partition ("the backing … cannot be changed after creation",
//     Talos 1.14, VolumeConfig.RuntimeValidate).
//   - A user's volume with another volumeType is another volume under its name: the data of the former one stays
//     where it is, and a disk with data is not formatted (Talos 1.14,
//     block/internal/volumes/volumeconfig/user_volumes.go, format.go).
//   - A volume is not encrypted in place, nor decrypted ("block dev type mismatch", "volume is encrypted, but no
//     encryption config provided", Talos 1.14, block/internal/volumes, encrypt.go and format.go).
//   - With other keys it is opened by one that is in the configuration and on the disk, and the others follow
//     (Talos 1.14, internal/pkg/encryption, Open and syncKeys): one has to stay, in its slot.
func Changes(before, after coreconfig.Provider) []Change {
	var changes []Change

	old, updated := volumesOf(before), volumesOf(after)
	all := maps.Clone(old)
	maps.Copy(all, updated)

	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, is := old[name], updated[name]
		_, had := old[name]
		_, has := updated[name]

		// Other volumes come and go with their documents, and those of the system are there without.
		if !all[name].system && !(had && has) {
			continue
		}

		if change := was.to(is); change.What != "" {
			change.Document, change.Volume = name, ""

			if all[name].system {
				_, change.Volume, _ = strings.Cut(name, "/")
			}

			changes = append(changes, change)
		}
	}

	return changes
}

func (v kept) to(is kept) Change {
	switch {
	case v.partition != is.partition:
		return Change{What: fmt.Sprintf("%s would become %s", backing(v.partition), backing(is.partition)),
			Why: "Talos sets this when it creates the volume, and cannot change it"}
	case v.made != is.made:
		return Change{What: fmt.Sprintf("its volumeType would change from %s to %s", v.made, is.made),
			Why: "Talos then creates another volume of that name, and pods can no longer reach the data of the former volume"}
	case v.encrypted != is.encrypted:
		return Change{What: fmt.Sprintf("%s volume would become %s one", cipher(v.encrypted), cipher(is.encrypted)),
			Why: "Talos encrypts a volume only when it creates it: with existing data the machine would not boot"}
	case v.encrypted && !slices.ContainsFunc(v.keys, func(k config.EncryptionKey) bool {
		return slices.ContainsFunc(is.keys, func(other config.EncryptionKey) bool { return sameKey(k, other) })
	}):
		return Change{What: "all of its encryption keys would change",
			Why: "one of the current keys must open the volume to add and remove others: without it the machine would " +
				"not boot"}
	default:
		return Change{}
	}
}

func backing(partition bool) string {
	if partition {
		return "a separate partition"
	}

	return "a directory of EPHEMERAL"
}

func cipher(encrypted bool) string {
	if encrypted {
		return "an encrypted"
	}

	return "a plain"
}

// sameKey reports whether a key opens what another one encrypted. The disk records how a TPM sealed it.
func sameKey(a, b config.EncryptionKey) bool {
	is, other := readKey(a), readKey(b)

	return a.Slot() == b.Slot() && is.LockToState == other.LockToState && is.NodeID == other.NodeID &&
		(is.TPM == nil) == (other.TPM == nil) && is.Passphrase == other.Passphrase && is.KMSEndpoint == other.KMSEndpoint
}

// volumesOf are the volumes of a configuration by the names of their documents. Those of the system are there without a
// document, too.
func volumesOf(provider coreconfig.Provider) map[string]kept {
	volumes := map[string]kept{}

	for _, name := range names {
		document, _ := provider.Volumes().ByName(name)
		v := kept{system: true, partition: !own(name) || block.ProvisioningRequested(document.Provisioning())}
		encryption := document.Encryption()

		if fields := systemDiskEncryption(provider); encryption == nil && !own(name) && fields != nil {
			encryption = fields.Get(name)
		}

		// Talos takes no notice of the encryption of a directory.
		if v.partition {
			v.encrypt(encryption)
		}

		volumes[block.VolumeConfigKind+"/"+name] = v
	}

	for _, document := range provider.Documents() {
		named, ok := document.(config.NamedDocument)
		encrypts, encryptable := document.(interface {
			Encryption() config.EncryptionConfig
		})

		if ok && encryptable && document.Kind() != block.VolumeConfigKind {
			var v kept
			v.encrypt(encrypts.Encryption())

			if user, ok := document.(config.UserVolumeConfig); ok {
				v.made = user.Type().ValueOr(resources.VolumeTypePartition).String()
			}

			volumes[document.Kind()+"/"+named.Name()] = v
		}
	}

	return volumes
}

func systemDiskEncryption(provider coreconfig.Provider) config.SystemDiskEncryption {
	if provider.Machine() == nil {
		return nil
	}

	return provider.Machine().SystemDiskEncryption()
}

func (v *kept) encrypt(with config.EncryptionConfig) {
	if with != nil {
		v.encrypted, v.keys = true, with.Keys()
	}
}

// BootPart is the part of a document that a running machine of Talos 1.14 does not follow until it boots: volumes of
// the system are made and mounted then, and whether workloads are isolated is a separate service (sandboxd). ok is
// false for all other documents.
func BootPart(kind, name string, content any) (part any, ok bool) {
	switch {
	case ofVolume(kind, name):
		return content, true
	case kind == isolated.Kind:
		// Off is the same as no document (Talos 1.14, system/services/sandboxd.go).
		if fields, _ := content.(map[string]any); fields[isolated.Path[0]] == true {
			return true, true
		}

		return nil, true
	default:
		return nil, false
	}
}

// isolated is where a document says whether workloads are isolated.
var isolated = places.WorkloadIsolation.Document

// BootPlace reports whether a difference at a path of a document takes a boot.
func BootPlace(kind, name string, path []any) bool {
	return ofVolume(kind, name) || kind == isolated.Kind && (len(path) == 0 || path[0] == isolated.Path[0])
}

// ofVolume reports whether a document is that of a volume of the system.
func ofVolume(kind, name string) bool {
	return kind == block.VolumeConfigKind && slices.Contains(names, name)
}

// Name is what identifies a document.
type Name struct{ Kind, Name string }

// Duplicate is the first volume that documents of two kinds define, which are mounted below the same name (Talos
// 1.14, user, existing and external volumes in /var/mnt). Talos merges two documents of one kind and name. Empty
// when there is none.
func Duplicate(documents []Name) string {
	seen := map[Name]string{}

	for _, document := range documents {
		place := document

		switch {
		case slices.Contains(mounted, document.Kind):
			place.Kind = constants.UserVolumeMountPoint
		case !slices.Contains(volumeKinds, document.Kind):
			continue
		}

		if other, taken := seen[place]; taken && other != document.Kind {
			return fmt.Sprintf("%s %s and a %s of the same name", document.Kind, document.Name, other)
		}

		seen[place] = document.Kind
	}

	return ""
}

var (
	mounted     = []string{block.UserVolumeConfigKind, block.ExistingVolumeConfigKind, block.ExternalVolumeConfigKind}
	volumeKinds = []string{block.VolumeConfigKind, block.RawVolumeConfigKind, block.SwapVolumeConfigKind}
)
