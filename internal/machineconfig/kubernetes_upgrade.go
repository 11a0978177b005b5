package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/siderolabs/go-kubernetes/kubernetes/upgrade"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// Reasons for which a version of Kubernetes cannot follow another; the FieldErrors of CheckKubernetesUpgrade and
// CheckImagesFollow wrap one of them each.
var (
	// ErrMinorDowngrade means that the version is of an older minor, to which Kubernetes cannot be downgraded.
	ErrMinorDowngrade = errors.New("older minor version of Kubernetes")
	// ErrPatchDowngrade says that the version is an older release of the same minor, which has to be allowed.
	ErrPatchDowngrade = errors.New("older release of Kubernetes")
	// ErrKubernetesNotKnown means that this build does not know the path to the version, even if Talos supports
	// it.
	ErrKubernetesNotKnown = errors.New("this provider version does not support the Kubernetes upgrade")
	// ErrKubernetesUnsupported means that Talos does not support the version, or one on the path to it.
	ErrKubernetesUnsupported = errors.New("this Talos version does not support the Kubernetes version")
	// ErrImagesDoNotFollow says that the images of the versions in between are not known.
	ErrImagesDoNotFollow = errors.New("image without the Kubernetes version in its tag")
)

// minKubernetesMinor is the oldest minor version that a Talos of this build supports (machinery 1.14,
// compatibility/talos110).
const minKubernetesMinor = 28

// latestKubernetesPatches are the newest releases of each minor version of Kubernetes when this build was made, as
// the Go module proxy listed k8s.io/kubernetes in November 2026. An upgrade across several minors passes them. It
// lists none of 1.28, because no upgrade passes it: it is the oldest version at the start of an upgrade.
var latestKubernetesPatches = map[uint64]uint64{29: 6, 30: 14, 31: 14, 32: 13, 33: 13, 34: 4, 35: 4, 36: 3, 37: 2}

// KubernetesReleases are the releases that a cluster passes on its way to a version that is more than one minor
// version away, lowest first. There is one for every older minor version that Talos and this build know. Chosen
// releases take precedence over the newest patch that this build knows. Of a minor version without a known patch,
// the path has the first release, of which only its existence is certain.
func KubernetesReleases(to KubernetesVersion, chosen []KubernetesVersion) []KubernetesVersion {
	var releases []KubernetesVersion

	for minor := uint64(minKubernetesMinor); minor < to.Minor && hopKnown(ofMinor(minor), ofMinor(minor)); minor++ {
		release := KubernetesVersion{semver.Version{Major: 1, Minor: minor, Patch: latestKubernetesPatches[minor]}}

		if i := slices.IndexFunc(chosen, func(v KubernetesVersion) bool { return v.Major == 1 && v.Minor == minor }); i >= 0 {
			release = chosen[i]
		}

		releases = append(releases, release)
	}

	return releases
}

// KubernetesPath lists the versions that a cluster passes from one version to another, the last one included.
// Kubernetes is upgraded from one minor version to the next, so there is a release of each minor in between, and
// then to. The list is empty when the cluster is there already. CheckKubernetesUpgrade checks whether the path is
// possible.
func KubernetesPath(from, to KubernetesVersion, releases []KubernetesVersion) []KubernetesVersion {
	if from.EQ(to.Version) {
		return nil
	}

	var path []KubernetesVersion

	for _, r := range releases {
		if r.Minor > from.Minor && r.Minor < to.Minor {
			path = append(path, r)
		}
	}

	return append(path, to)
}

// CheckKubernetesUpgrade returns why a cluster cannot get from one version of Kubernetes to another through
// releases, see KubernetesReleases. The reason may be a downgrade (ErrMinorDowngrade, ErrPatchDowngrade).
// Otherwise the provider does not know a step on the path (ErrKubernetesNotKnown), Talos does not support a
// version on it (ErrKubernetesUnsupported), or both, as separate FieldErrors. from is the version of the component
// that is furthest behind, so that an unfinished upgrade can be undone. talos is the version that the machines run
// during the upgrade of Kubernetes; a version that is not Known is not checked.
func CheckKubernetesUpgrade(from, to KubernetesVersion, releases []KubernetesVersion, talos TalosVersion) error {
	if to.LT(from.Version) {
		return downgraded(from, to)
	}

	path := KubernetesPath(from, to, releases)

	return errors.Join(checkKnown(from, to, path), checkSupported(to, path, talos))
}

func downgraded(from, to KubernetesVersion) error {
	if to.Major != from.Major || to.Minor != from.Minor {
		return &FieldError{
			Field: "kubernetes_version", Found: quoted(to.String()), Err: ErrMinorDowngrade,
			Allowed: fmt.Sprintf("%s (running) or newer", from),
			Fix: fmt.Sprintf("Kubernetes cannot be downgraded from v%d.%d to v%d.%d, because the older version may not "+
				"support the stored objects. To use it, restore an etcd backup of that version into a new cluster",
				from.Major, from.Minor,
				to.Major, to.Minor),
		}
	}

	return &FieldError{
		Field: "kubernetes_version", Found: quoted(to.String()), Err: ErrPatchDowngrade,
		Allowed: fmt.Sprintf("%s (running) or newer", from),
		Fix:     fmt.Sprintf("set allow_downgrade = true to downgrade to an older release of v%d.%d", to.Major, to.Minor),
	}
}

// checkKnown asks go-kubernetes, which has a list of the steps that its checks were written for.
func checkKnown(from, to KubernetesVersion, path []KubernetesVersion) error {
	at := from

	for _, next := range path {
		if !hopKnown(at, next) {
			newest := newestKnownMinor()

			fix := fmt.Sprintf("set kubernetes_version to v1.%d.x at most, or use a newer release of this provider", newest)
			if at.Major == 1 && at.Minor <= newest && to.Major == 1 && to.Minor <= newest {
				fix = fmt.Sprintf("this provider version does not support the upgrade from %s to %s: first upgrade to "+
					"v1.%d.x by other means", at, next, minKubernetesMinor)
			}

			return &FieldError{
				Field: "kubernetes_version", Found: quoted(to.String()), Err: ErrKubernetesNotKnown,
				Allowed: fmt.Sprintf("v1.%d to v1.%d with this provider version, regardless of Talos",
					minKubernetesMinor, newest), Fix: fix,
			}
		}

		at = next
	}

	return nil
}

func hopKnown(from, to KubernetesVersion) bool {
	path, err := upgrade.NewPath(from.String(), to.String())

	return err == nil && path.IsSupported()
}

func ofMinor(minor uint64) KubernetesVersion {
	return KubernetesVersion{semver.Version{Major: 1, Minor: minor}}
}

// newestKnownMinor finds the last minor version by asking: the library has a predicate, but no list.
func newestKnownMinor() uint64 {
	minor := uint64(minKubernetesMinor)
	for hopKnown(ofMinor(minor), ofMinor(minor+1)) {
		minor++
	}

	return minor
}

// checkSupported follows the path with the machines' Talos, up to the first version that it does not support.
func checkSupported(to KubernetesVersion, path []KubernetesVersion, talos TalosVersion) error {
	for _, next := range path {
		var unsupported *FieldError

		err := CheckKubernetesSupported(talos, next)
		if err == nil {
			continue
		}

		if !errors.As(err, &unsupported) {
			return err
		}

		found := quoted(to.String())
		if !next.EQ(to.Version) {
			found += fmt.Sprintf(", with %s as an intermediate version", next)
		}

		return &FieldError{
			Field: "kubernetes_version", Found: found, Allowed: unsupported.Allowed + ", regardless of the provider",
			Fix: whichTalos(next), Err: ErrKubernetesUnsupported,
		}
	}

	return nil
}

// whichTalos says which talos_version would support a version of Kubernetes.
func whichTalos(kubernetes KubernetesVersion) string {
	minors := talosFor(kubernetes)
	if len(minors) == 0 {
		return fmt.Sprintf("none of the Talos versions of this provider version (%s) supports Kubernetes %s",
			talosRange(), kubernetes)
	}

	return fmt.Sprintf("Kubernetes %s needs a talos_version of %s", kubernetes, inWords(minors))
}

// talosFor lists the minor versions of Talos that this build knows and that support a version of Kubernetes, such as
// "v1.12", oldest first.
func talosFor(kubernetes KubernetesVersion) []string {
	var minors []string

	for minor := minTalosMinor; minor <= maxTalosMinor; minor++ {
		tag := fmt.Sprintf("v1.%d", minor)

		target, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: tag + ".0"})
		if err == nil && supported(target, kubernetes.Version) {
			minors = append(minors, tag)
		}
	}

	return minors
}

// inWords joins names with commas and a final "or".
func inWords(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}

	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// CheckImagesFollow returns which images of a machine, those of the version to, keep it from passing other
// versions on the path. An image that is pinned by a digest, or whose tag is not that version, has no known name
// at another version (see cluster.ImageAt). It requires nothing for a path of one step. Errors are FieldErrors
// that wrap ErrImagesDoNotFollow, one for every component; their Field is kubernetes_version, as images are set by
// patches.
func CheckImagesFollow(images map[string]string, to KubernetesVersion, path []KubernetesVersion) error {
	if len(path) < 2 {
		return nil
	}

	var mistakes problems

	for _, component := range slices.Sorted(maps.Keys(images)) {
		image := images[component]
		if kubenames.ImageAt(image, to.String(), path[0].String()) != image {
			continue
		}

		mistakes = append(mistakes, &FieldError{
			Field: "kubernetes_version", Found: fmt.Sprintf("%s with the image %s for %s", quoted(to.String()), quoted(image),
				component),
			Allowed: fmt.Sprintf("an image whose tag begins with %s, without a digest, because %s is an intermediate version",
				to, inOrder(path[:len(path)-1])),
			Fix: fmt.Sprintf("upgrade one minor version at a time: first set kubernetes_version to v%d.%d.x, and the image "+
				"to that version",
				path[0].Major, path[0].Minor),
			Err: ErrImagesDoNotFollow,
		})
	}

	return mistakes.err()
}

func inOrder(versions []KubernetesVersion) string {
	texts := make([]string, len(versions))
	for i, v := range versions {
		texts[i] = v.String()
	}

	return strings.Join(texts, " and ")
}
