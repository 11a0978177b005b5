// Package talosupgrade says which versions Talos is upgraded through, and what its installers refuse. Pure.
package talosupgrade

import (
	"errors"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/talosversion"
)

// Releases are the releases that machines pass on their way to a version that is more than one minor version away,
// lowest first. There is one for every minor version in between. Chosen releases take precedence over the newest
// patch that this build knows, because patch releases repair problems of an upgrade path. Of a minor version that
// this build does not know, the path has the first release, of which only its existence is certain.
func Releases(to machineconfig.TalosVersion, chosen []machineconfig.TalosVersion) []machineconfig.TalosVersion {
	var releases []machineconfig.TalosVersion

	for minor := talosversion.Oldest().Minor; minor <= max(to.Minor, talosversion.Newest().Minor); minor++ {
		if minor == to.Minor {
			continue
		}

		release := machineconfig.TalosVersion{Version: semver.Version{Major: 1, Minor: minor, Patch: latestPatch(minor)}}

		if i := slices.IndexFunc(chosen, func(v machineconfig.TalosVersion) bool { return v.Minor == minor }); i >= 0 {
			release = chosen[i]
		}

		releases = append(releases, release)
	}

	return releases
}

func latestPatch(minor uint64) uint64 {
	if known := talosversion.OfMinor(minor); known.Minor == minor {
		return known.Patch
	}

	return 0
}

// Path lists the versions that a machine passes from one version to another, the last one included. Talos is
// upgraded from one minor version to the next, so there is a release of each minor in between, and then to. The
// list is empty when the machine is there already.
func Path(from, to machineconfig.TalosVersion, releases []machineconfig.TalosVersion) []machineconfig.TalosVersion {
	if from.EQ(to.Version) {
		return nil
	}

	var path []machineconfig.TalosVersion

	for _, r := range releases {
		if between(r.Minor, from.Minor, to.Minor) {
			path = append(path, r)
		}
	}

	if to.Minor < from.Minor {
		slices.Reverse(path)
	}

	return append(path, to)
}

func between(minor, from, to uint64) bool {
	return minor > min(from, to) && minor < max(from, to)
}

// Check returns why the installer of one version of Talos refuses to replace another, older or newer: the
// compatibility table of Talos (machinery 1.14), which the installer asks before it writes anything. Nothing is said
// about a target that is not Known.
func Check(from, to machineconfig.TalosVersion) error {
	if !to.Known() {
		return nil
	}

	host, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: from.String()})
	if err != nil {
		return fmt.Errorf("read Talos version %s: %w", from, err)
	}

	target, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: to.String()})
	if err != nil {
		return fmt.Errorf("read Talos version %s: %w", to, err)
	}

	return target.UpgradeableFrom(host)
}

// LosesEtcd reports whether a control plane that downgrades Talos would have data of etcd that the older etcd does
// not read: data of another minor version. A separate call before that downgrades etcd (EtcdDowngradeEnable).
func LosesEtcd(from, to machineconfig.TalosVersion) bool {
	return talosversion.OfMinor(to.Minor).EtcdMinor < talosversion.OfMinor(from.Minor).EtcdMinor
}

// Steps lists the versions that machines are upgraded through to get from one version to another, the last one
// included; empty when they are there. Releases that are chosen go before those that this build knows. Errors are
// *machineconfig.FieldError of "from", "to" or "via[n]".
func Steps(from, to string, chosen []string) ([]string, error) {
	begin, err := read("from", from)
	if err != nil {
		return nil, err
	}

	end, err := read("to", to)
	if err != nil {
		return nil, err
	}

	via, err := passed(begin, end, chosen)
	if err != nil {
		return nil, err
	}

	if end.LT(begin.Version) {
		return nil, &machineconfig.FieldError{
			Field: "to", Found: fmt.Sprintf("%s, which is older than %s", end, begin), Allowed: "the same or a newer version",
			Fix: "an older Talos version may not support the configuration and data of a newer one",
		}
	}

	steps := []string{}

	for _, next := range Path(begin, end, Releases(end, via)) {
		if err := Check(begin, next); err != nil {
			return nil, &machineconfig.FieldError{
				Field: "to", Found: fmt.Sprintf("%s, which is reached through %s", end, next),
				Allowed: "versions that an installer accepts from " + begin.String() + " on", Fix: err.Error(),
			}
		}

		steps = append(steps, next.String())
		begin = next
	}

	return steps, nil
}

// read reads a version that machines run or shall run.
func read(field, text string) (machineconfig.TalosVersion, error) {
	version, err := machineconfig.ParseTalosVersion(text)

	var wrong *machineconfig.FieldError
	if errors.As(err, &wrong) {
		wrong.Field = field
	}

	return version, err
}

// passed reads the chosen releases, each of which has to be of another minor version in between.
func passed(from, to machineconfig.TalosVersion, chosen []string) ([]machineconfig.TalosVersion, error) {
	var via []machineconfig.TalosVersion

	for i, text := range chosen {
		field := fmt.Sprintf("via[%d]", i)

		version, err := read(field, text)
		if err != nil {
			return nil, err
		}

		same := func(v machineconfig.TalosVersion) bool { return v.Minor == version.Minor }
		if !between(version.Minor, from.Minor, to.Minor) || slices.ContainsFunc(via, same) {
			return nil, &machineconfig.FieldError{
				Field: field, Found: version.String(),
				Allowed: fmt.Sprintf("one release of each minor version between %s and %s", from, to),
				Fix:     "remove releases that are not on the path",
			}
		}

		via = append(via, version)
	}

	return via, nil
}
