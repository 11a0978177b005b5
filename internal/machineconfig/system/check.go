package system

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// Problem is one error in settings, with the fields of machineconfig.FieldError, without a secret.
type Problem struct{ Field, Found, Allowed, Fix string }

type problems []Problem

func (p *problems) add(field, found, allowed, fix string) {
	*p = append(*p, Problem{Field: field, Found: found, Allowed: allowed, Fix: fix})
}

// volumeAt, keyAt and ruleAt are the attributes of single things.
func volumeAt(name string) string { return fmt.Sprintf("system_volumes[%q]", name) }

func keyAt(volume, slot string) string {
	return fmt.Sprintf("%s.encryption_keys[%q]", volumeAt(volume), slot)
}

func ruleAt(i int) string { return fmt.Sprintf("image_verification[%d]", i) }

// Check reports all errors in the settings of a machine that is a control plane, or not. Settings that are missing
// because they are not known yet are none when partial is set.
func (s Settings) Check(controlPlane, partial bool) []Problem {
	var found problems

	for _, name := range slices.Sorted(maps.Keys(s.Volumes)) {
		s.Volumes[name].check(&found, name, controlPlane, partial)
	}

	for i, rule := range s.ImageVerification {
		rule.check(&found, ruleAt(i), partial)
	}

	return found
}

// CheckContainer reports settings that have no effect in a container: it has no disks, and isolates nothing.
func (s Settings) CheckContainer() []Problem {
	var found problems

	if len(s.Volumes) > 0 {
		found.add("system_volumes", "volumes", "none for a container",
			"remove them; a container uses the volumes of its pod")
	}

	if s.WorkloadIsolation != nil && *s.WorkloadIsolation {
		found.add("workload_isolation", "true", "false, or none for a container", "remove it; Talos isolates nothing there")
	}

	return found
}

func (v Volume) check(found *problems, name string, controlPlane, partial bool) {
	at := volumeAt(name)

	switch {
	case !slices.Contains(names, name):
		found.add(at, strconv.Quote(name), strings.Join(names, ", "), "choose one of them; configure other volumes with "+
			"documents in patches, such as UserVolumeConfig")

		return
	case name == constants.StatePartitionLabel && v.provisioned():
		found.add(at, "a size or a disk for STATE", "encryption_keys only",
			"remove it; STATE is on the system disk, and its size is fixed")
	case name == constants.EtcdDataVolumeID && !controlPlane:
		found.add(at, "an etcd volume on a worker", "it on control planes", "remove it here")
	case own(name) && !v.provisioned() && !partial:
		found.add(at, "neither a size nor a disk", "min_size, max_size, grow or disk_selector",
			"set one of them: without it the volume is a directory of EPHEMERAL, with the encryption of EPHEMERAL")
	}

	v.checkSizes(found, at)

	if v.DiskSelector != "" {
		if _, err := v.disk(); err != nil {
			found.add(at+".disk_selector", "an invalid expression ("+firstLine(err)+")",
				`a boolean CEL expression about a disk, such as disk.transport == "nvme" && !system_disk`, "correct it")
		}
	}

	for _, slot := range v.slots() {
		v.EncryptionKeys[slot].check(found, name, slot, partial)
	}

	if v.EncryptionKeys != nil && len(v.EncryptionKeys) == 0 {
		found.add(at+".encryption_keys", "no key", "one or more", "add a key, or remove the attribute")
	}
}

const sizeShape = "a size, such as 10GiB or 500MB"

func (v Volume) checkSizes(found *problems, at string) {
	var smallest block.ByteSize

	minError := smallest.UnmarshalText([]byte(v.MinSize))
	if minError != nil || smallest.IsNegative() || v.MinSize != "" && smallest.IsZero() {
		found.add(at+".min_size", strconv.Quote(v.MinSize), sizeShape, "")

		return
	}

	var largest block.Size
	if err := largest.UnmarshalText([]byte(v.MaxSize)); err != nil || v.MaxSize != "" && largest.IsZero() {
		found.add(at+".max_size", strconv.Quote(v.MaxSize), sizeShape+", a percentage of the disk such as 80%, or the "+
			"space to leave free such as -10GiB", "")

		return
	}

	if v.MinSize != "" && v.MaxSize != "" && !largest.IsRelative() && !largest.IsNegative() &&
		smallest.Value() > largest.Value() {
		found.add(at+".max_size", v.MaxSize+", which is less than min_size, "+v.MinSize, "as much or more",
			"swap them, or remove one")
	}
}

func (k Key) check(found *problems, volume, slot string, partial bool) {
	at := keyAt(volume, slot)

	if number(slot) < 0 {
		found.add(at, strconv.Quote(slot), "a LUKS2 slot number from 0 to 31", "choose one")
	}

	kinds := k.kinds()
	if len(kinds) > 1 {
		found.add(at, strings.Join(kinds, " and ")+" in one key", "one of node_id, passphrase, kms_endpoint and tpm",
			"use a separate slot for each")
	}

	if len(kinds) == 0 && !partial {
		found.add(at, "a key without a type", "one of node_id, passphrase, kms_endpoint and tpm", "choose one")
	}

	if k.LockToState && volume == constants.StatePartitionLabel {
		found.add(at+".lock_to_state", "true", "false for STATE", "remove it; it applies only to other volumes")
	}

	if parsed, err := url.Parse(k.KMSEndpoint); k.KMSEndpoint != "" && (err != nil || parsed.Host == "" ||
		parsed.Scheme != "https" && parsed.Scheme != "grpc") {
		found.add(at+".kms_endpoint", "an invalid KMS URL", "such as https://kms.example.com:4443",
			"write scheme and host")
	}

	if k.TPM == nil {
		return
	}

	for _, pcr := range k.TPM.PCRs {
		if pcr < 0 || pcr > 23 {
			found.add(at+".tpm.pcrs", strconv.Itoa(pcr), "registers from 0 to 23", "choose one of them")
		}
	}
}

// kinds are the attributes that say what kind of key it is.
func (k Key) kinds() []string {
	var kinds []string

	for _, kind := range []struct {
		name string
		is   bool
	}{
		{"node_id", k.NodeID}, {"passphrase", k.Passphrase != ""}, {"kms_endpoint", k.KMSEndpoint != ""},
		{"tpm", k.TPM != nil},
	} {
		if kind.is {
			kinds = append(kinds, kind.name)
		}
	}

	return kinds
}

func (r ImageRule) check(found *problems, at string, partial bool) {
	signed := r.Issuer != "" || r.Subject != "" || r.SubjectRegex != ""

	sources := 0
	for _, given := range []bool{r.Skip, r.Deny, signed, r.PublicKey != ""} {
		if given {
			sources++
		}
	}

	switch {
	case sources > 1:
		found.add(at, "more than one of skip, deny, issuer with subject, and public_key", "one of them",
			"use separate rules for the others")
	case partial:
	case r.Image == "":
		found.add(at+".image", "no pattern", "such as registry.k8s.io/*", "set it")
	case sources == 0:
		found.add(at, "no requirement for "+r.Image, "one of skip, deny, issuer with subject, and public_key",
			"choose one of them")
	case signed && (r.Issuer == "" || r.Subject == "" && r.SubjectRegex == ""):
		found.add(at, "an issuer without a subject, or a subject without an issuer", "both", "set issuer, and subject or "+
			"subject_regex")
	}

	if _, err := regexp.Compile(r.SubjectRegex); err != nil {
		found.add(at+".subject_regex", strconv.Quote(r.SubjectRegex)+" ("+firstLine(err)+")",
			"a regular expression of Go", "")
	}
}

// firstLine is the beginning of the message of a parser, which continues with a drawing of the place.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")

	return strings.TrimSpace(line)
}
