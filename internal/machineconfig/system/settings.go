// Package system has the settings of the system of one machine, beside those of its cluster. They are the volumes
// for Talos's own data and their encryption keys, whether workloads are isolated from the system, and which images
// it runs.
//
// Each is a document of the configuration, or a field of the main one where the version contract is older. The
// package also decides what cannot be undone on a disk with data. Whether a volume is a directory or a partition,
// and whether it is encrypted, is fixed when it is made, and one of the keys has to stay. The package also knows
// what each release of Talos supports. Pure.
package system

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// Settings are the settings of one machine. The zero value is Talos's default.
type Settings struct {
	// Volumes are by their names in Talos.
	Volumes map[string]Volume
	// WorkloadIsolation runs containers apart from the rest of the system. Nil is what the contract says: from v1.14 they
	// are.
	WorkloadIsolation *bool
	// ImageVerification are rules of which the first that matches an image decides.
	ImageVerification []ImageRule
}

// Volume is one volume of the system.
type Volume struct {
	// MinSize and MaxSize are texts such as "10GiB"; MaxSize may be a percentage of the disk, or negative: what is left of
	// it.
	MinSize, MaxSize string
	Grow             *bool
	// DiskSelector is a CEL expression that is true of the disk. Empty means the system disk.
	DiskSelector string
	// EncryptionKeys encrypt the volume, by their slots of LUKS2.
	EncryptionKeys map[string]Key
}

// Key opens an encrypted volume. It has exactly one kind: NodeID, Passphrase, KMSEndpoint or TPM. It prints redacted.
type Key struct {
	NodeID      bool
	Passphrase  string
	KMSEndpoint string
	TPM         *TPM
	// LockToState makes the key useless without the STATE partition it was made beside.
	LockToState bool
}

// TPM is how a key is sealed by the TPM.
type TPM struct {
	// PCRs are the registers it is bound to; nil is what Talos does, PCR 7.
	PCRs []int
	// CheckSecureBoot refuses to make the key while Secure Boot is off.
	CheckSecureBoot bool
}

// ImageRule is what has to be true of the images that match it.
type ImageRule struct {
	// Image is a pattern of registry and repository.
	Image      string
	Skip, Deny bool
	// Issuer, with Subject or SubjectRegex, is who signed it without a key, PublicKey the key that signed it.
	Issuer, Subject, SubjectRegex, PublicKey string
}

// String hides everything.
func (k Key) String() string { return "system.Key(redacted)" }

// GoString hides everything.
func (k Key) GoString() string { return k.String() }

// Format writes the same for every verb. fmt gives a Formatter no way to report an error, and its buffer cannot fail.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// own are the volumes that are directories of EPHEMERAL, or separate partitions (Talos 1.14).
func own(name string) bool { return slices.Contains(config.PromotableSystemVolumeNames, name) }

// names are the volumes that settings may speak of.
var names = slices.Concat([]string{constants.StatePartitionLabel, constants.EphemeralPartitionLabel},
	config.PromotableSystemVolumeNames)

// slots are those of keys, in the order of their numbers.
func (v Volume) slots() []string {
	slots := make([]string, 0, len(v.EncryptionKeys))
	for slot := range v.EncryptionKeys {
		slots = append(slots, slot)
	}

	slices.SortFunc(slots, func(a, b string) int { return number(a) - number(b) })

	return slots
}

// number is the number of a slot, and -1 of an invalid one.
func number(slot string) int {
	n, err := strconv.Atoi(slot)
	if err != nil || n < 0 || n > lastSlot || strconv.Itoa(n) != slot {
		return -1
	}

	return n
}

// lastSlot is the last slot of LUKS2, which has 32.
const lastSlot = 31

// provisioned reports whether the volume sets its location or its size, which makes it a separate volume.
func (v Volume) provisioned() bool {
	return v.MinSize != "" || v.MaxSize != "" || v.Grow != nil || v.DiskSelector != ""
}
