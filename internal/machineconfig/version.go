package machineconfig

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/gendata"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/system"
	"github.com/talosop/terraform-provider-talosop/internal/talosversion"
)

// The Talos versions this build knows. Older ones lack what the provider relies on and are refused; newer ones
// may have documents and calls the machinery library of this build does not know, and have to be allowed.
var (
	minTalosMinor = talosversion.Oldest().Minor
	maxTalosMinor = talosversion.Newest().Minor
)

// CurrentTalos and CurrentKubernetes are the versions in examples and documentation: the release of the machinery
// library in go.mod, and the Kubernetes that this Talos runs by default. tools/pins writes them into the files.
var (
	CurrentTalos      = strings.TrimSpace(gendata.VersionTag)
	CurrentKubernetes = "v" + constants.DefaultKubernetesVersion
)

// maxContractMinor is the newest version contract that this build writes. Machines of a newer Talos take it, too: any
// takes the contracts before its own (machinery 1.14, types/v1alpha1).
const maxContractMinor = 14

// TalosVersion is a released or pre-released version of Talos, such as v1.13.0.
type TalosVersion struct{ semver.Version }

// String writes the version with its v, as tags and images have it.
func (v TalosVersion) String() string { return "v" + v.Version.String() }

// Contract is the newest version contract that machines of this version understand and this build can write,
// such as "v1.13".
func (v TalosVersion) Contract() string {
	return fmt.Sprintf("v%d.%d", v.Major, min(v.Minor, maxContractMinor))
}

// Known reports whether this build knows what that minor version of Talos supports. A newer one is taken to be
// like the newest that is known.
func (v TalosVersion) Known() bool { return v.Minor <= maxTalosMinor }

// KubernetesVersion is a version of Kubernetes, such as v1.35.2.
type KubernetesVersion struct{ semver.Version }

// String writes the version with its v, as it is written in settings and reported by nodes.
func (v KubernetesVersion) String() string { return "v" + v.Version.String() }

// ParseTalosVersion reads the setting talos_version. The version has a leading v and is v1.10 or newer; whether it
// is one this build knows is the question of Known. Errors are *FieldError.
func ParseTalosVersion(s string) (TalosVersion, error) {
	const field = "talos_version"

	parsed, err := parseVersion(field, s, CurrentTalos)
	if err != nil {
		return TalosVersion{}, err
	}

	if parsed.Major != 1 || parsed.Minor < minTalosMinor {
		fix := "use a supported Talos version"
		if parsed.Major > 1 {
			fix = "use a supported Talos version, or a newer release of this provider"
		}

		return TalosVersion{}, &FieldError{Field: field, Found: quoted(s), Allowed: talosRange(), Fix: fix}
	}

	return TalosVersion{parsed}, nil
}

// ReadTalosVersion reads a version that a machine reported, which may be older or newer than those that can be
// configured. ok is false for what is no version.
func ReadTalosVersion(s string) (v TalosVersion, ok bool) {
	parsed, err := semver.ParseTolerant(s)

	return TalosVersion{parsed}, err == nil
}

// ParseKubernetesVersion reads the setting kubernetes_version, with or without a leading v. Whether Talos
// supports the version is the question of CheckKubernetesSupported. Errors are *FieldError.
func ParseKubernetesVersion(s string) (KubernetesVersion, error) {
	parsed, err := parseVersion("kubernetes_version", s, CurrentKubernetes)
	if err != nil {
		return KubernetesVersion{}, err
	}

	return KubernetesVersion{parsed}, nil
}

// CheckKubernetesSupported asks the compatibility table of Talos (machinery 1.14) whether machines of that
// Talos version run that version of Kubernetes. The error is a *FieldError with the range that is allowed, and
// with which of the two a running cluster has to change first. Nothing is said about a Talos that is not Known.
func CheckKubernetesSupported(talos TalosVersion, kubernetes KubernetesVersion) error {
	if !talos.Known() {
		return nil
	}

	target, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: talos.String()})
	if err != nil {
		return fmt.Errorf("read Talos version %s: %w", talos, err)
	}

	if supported(target, kubernetes.Version) {
		return nil
	}

	lowest, highest := supportedMinors(target)

	// A cluster that runs has a Talos that supports its Kubernetes, so one of the two moved too far.
	first := fmt.Sprintf("upgrade Kubernetes to at least v1.%d first, and Talos after it", lowest)
	if kubernetes.Minor > highest {
		first = "upgrade Talos first, to a version that supports this Kubernetes"
	}

	return &FieldError{
		Field:   "kubernetes_version",
		Found:   quoted(kubernetes.String()),
		Allowed: fmt.Sprintf("v1.%d to v1.%d with Talos %s", lowest, highest, talos),
		Fix: "choose a Kubernetes version in that range, or a Talos version that supports this one; in a cluster that " +
			"runs, " + first,
	}
}

func supported(target *compatibility.TalosVersion, kubernetes semver.Version) bool {
	version, err := compatibility.ParseKubernetesVersion(kubernetes.String())

	return err == nil && version.SupportedWith(target) == nil
}

// supportedMinors finds the range by asking: the library has a predicate, but no list.
func supportedMinors(target *compatibility.TalosVersion) (lowest, highest uint64) {
	for minor := uint64(1); minor < 100; minor++ {
		if supported(target, semver.Version{Major: 1, Minor: minor}) {
			if lowest == 0 {
				lowest = minor
			}

			highest = minor
		}
	}

	return lowest, highest
}

// CheckContract reports whether machines of that Talos version understand configurations of a contract: it
// must not be newer than the version. Errors are *FieldError.
func CheckContract(contract string, talos TalosVersion) error {
	parsed, err := parseContract(contract)
	if err != nil {
		return err
	}

	if uint64(parsed.Minor) <= talos.Minor {
		return nil
	}

	return &FieldError{
		Field:   "talos_version_contract",
		Found:   quoted(contract),
		Allowed: "at most " + talos.Contract() + ", because machines run Talos " + talos.String(),
		Fix:     "machines reject documents of a newer contract: lower the contract or raise talos_version",
	}
}

// DocumentsContract is the contract from which almost everything about Kubernetes has separate documents.
const DocumentsContract = "v1.14"

// lastOfFields is the contract before it, which every machine of DocumentsContract takes.
const (
	lastOfFields    = "v1.13"
	lastFieldsMinor = 13
)

// LeastTalos is the minor version from which Talos knows the documents of a contract, and what is said of the system of
// a machine; empty where all that are supported do, but for single fields.
func LeastTalos(contract string, settings system.Settings) string {
	parsed, err := parseContract(contract)
	least := settings.LeastTalos()

	switch {
	case err == nil && parsed.MultidocKubernetesConfigSupported():
		return DocumentsContract
	case least > 0:
		return fmt.Sprintf("v1.%d", least)
	default:
		return ""
	}
}

// ContractFollows reports whether a cluster that runs may be moved from one contract to another: to DocumentsContract,
// and back to the one before it.
func ContractFollows(from, to string) bool {
	older, err := parseContract(from)
	if err != nil {
		return false
	}

	return to == DocumentsContract && !older.MultidocKubernetesConfigSupported() ||
		from == DocumentsContract && to == lastOfFields
}

// parseContract reads a pinned version contract, "v1.13". A patch level is not accepted, so that there is
// one spelling for each contract and a difference is always a change.
func parseContract(s string) (*config.VersionContract, error) {
	for minor := int(minTalosMinor); minor <= maxContractMinor; minor++ {
		contract := &config.VersionContract{Major: 1, Minor: minor}
		if s == contract.String() {
			return contract, nil
		}
	}

	return nil, &FieldError{
		Field:   "talos_version_contract",
		Found:   quoted(s),
		Allowed: fmt.Sprintf("v1.%d to v1.%d, without a patch level", minTalosMinor, maxContractMinor),
		Fix:     fmt.Sprintf("write the Talos minor version the cluster was created with, such as v1.%d", maxContractMinor),
	}
}

func parseVersion(field, s, example string) (semver.Version, error) {
	parsed, err := semver.Parse(strings.TrimPrefix(s, "v"))
	if err == nil {
		return parsed, nil
	}

	return semver.Version{}, &FieldError{
		Field:   field,
		Found:   quoted(s),
		Allowed: "a version, such as " + example,
		Fix:     "write all three numbers",
	}
}

// CanonicalVersion is a version as talosop and machines write it, with a leading v, of one that a user wrote with or
// without it. Anything else stays as it is.
func CanonicalVersion(s string) string {
	if s != "" && s[0] >= '0' && s[0] <= '9' {
		return "v" + s
	}

	return s
}

func talosRange() string {
	return fmt.Sprintf("v1.%d.0 to v1.%d.x", minTalosMinor, maxTalosMinor)
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }
