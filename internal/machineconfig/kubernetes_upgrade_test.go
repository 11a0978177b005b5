package machineconfig

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func kubernetesOf(t *testing.T, texts ...string) []KubernetesVersion {
	t.Helper()

	var versions []KubernetesVersion

	for _, text := range texts {
		v, err := ParseKubernetesVersion(text)
		if err != nil {
			t.Fatal(err)
		}

		versions = append(versions, v)
	}

	return versions
}

// No minor version of Kubernetes is skipped, and every step is one that go-kubernetes knows.
func TestKubernetesPath_passesEveryMinor(t *testing.T) {
	for _, test := range []struct {
		from, to string
		chosen   []string
		want     string
	}{
		{from: "v1.36.3", to: "v1.36.3"},
		{from: "v1.36.1", to: "v1.36.3", want: "v1.36.3"},
		{from: "v1.36.3", to: "v1.36.1", want: "v1.36.1"},
		{from: "v1.35.0", to: "v1.36.3", want: "v1.36.3"},
		{from: "v1.34.9", to: "v1.36.3", want: "v1.35.4 v1.36.3"},
		{from: "v1.28.2", to: "v1.36.3", want: "v1.29.6 v1.30.14 v1.31.14 v1.32.13 v1.33.13 v1.34.4 v1.35.4 v1.36.3"},
		{from: "v1.33.0", to: "v1.36.0", chosen: []string{"v2.34.9", "v1.35.7", "v1.30.1", "v1.36.9"},
			want: "v1.34.4 v1.35.7 v1.36.0"},
		{from: "v1.35.4", to: "v1.37.0-rc.1", want: "v1.36.3 v1.37.0-rc.1"},
	} {
		from, to := kubernetesOf(t, test.from)[0], kubernetesOf(t, test.to)[0]

		var passed []string

		for _, next := range KubernetesPath(from, to, KubernetesReleases(to, kubernetesOf(t, test.chosen...))) {
			passed = append(passed, next.String())

			if !hopKnown(from, next) {
				t.Errorf("from %s to %s: the step from %s to %s is not known", test.from, test.to, from, next)
			}

			from = next
		}

		if got := strings.Join(passed, " "); got != test.want {
			t.Errorf("from %s to %s passes %q, want %q", test.from, test.to, got, test.want)
		}
	}
}

// Releases may belong to a longer path.
func TestKubernetesPath_ends(t *testing.T) {
	v := kubernetesOf(t, "v1.33.0", "v1.35.0", "v1.37.0")

	got := KubernetesPath(v[0], v[1], KubernetesReleases(v[2], nil))
	if diff := cmp.Diff(kubernetesOf(t, "v1.34.4", "v1.35.0"), got); diff != "" {
		t.Error(diff)
	}
}

// A mistyped version is refused like any other that is too new, and costs no more.
func TestKubernetesReleases_end(t *testing.T) {
	to := kubernetesOf(t, "v1.18446744073709551615.0")[0]
	if releases := KubernetesReleases(to, nil); len(releases) > 100 || releases[0].String() != "v1.28.0" {
		t.Errorf("%d releases: %v", len(releases), releases)
	}

	known := map[uint64]bool{}
	for _, r := range KubernetesReleases(kubernetesOf(t, "v1.38.0")[0], nil) {
		known[r.Minor] = true
	}

	for minor := range latestKubernetesPatches {
		if !known[minor] {
			t.Errorf("v1.%d is not passed", minor)
		}
	}
}

func TestKubernetesUpgrade_refused(t *testing.T) {
	const found = `kubernetes_version: found `

	for _, test := range []struct {
		from, to, talos string
		reasons         []error
		want            []string
	}{
		{from: "v1.34.0", to: "v1.36.3", talos: "v1.13.0"},
		{from: "v1.36.3", to: "v1.36.3", talos: "v1.13.0"},
		{from: "v1.36.0", to: "v1.37.1", talos: "v1.14.0"},
		{from: "v1.35.4", to: "v1.34.9", talos: "v1.13.0", reasons: []error{ErrMinorDowngrade}, want: []string{
			found + `"v1.34.9"; allowed: v1.35.4 (running) or newer; Kubernetes cannot be downgraded from v1.35 to v1.34, because the older version may not support the stored objects. To use it, restore an etcd backup of that version into a new cluster`,
		}},
		{from: "v1.35.4", to: "v1.35.1", talos: "v1.13.0", reasons: []error{ErrPatchDowngrade}, want: []string{
			found + `"v1.35.1"; allowed: v1.35.4 (running) or newer; set allow_downgrade = true to downgrade to an older release of v1.35`,
		}},
		{from: "v1.35.0", to: "v1.35.0-rc.1", talos: "v1.13.0", reasons: []error{ErrPatchDowngrade}, want: []string{
			found + `"v1.35.0-rc.1"; allowed: v1.35.0 (running) or newer; set allow_downgrade = true to downgrade to an older release of v1.35`,
		}},
		{from: "v1.36.0", to: "v1.38.0", talos: "v1.15.0", reasons: []error{ErrKubernetesNotKnown}, want: []string{
			found + `"v1.38.0"; allowed: v1.28 to v1.37 with this provider version, regardless of Talos; ` +
				`set kubernetes_version to v1.37.x at most, or use a newer release of this provider`,
		}},
		{from: "v1.36.0", to: "v2.0.0", talos: "v1.15.0", reasons: []error{ErrKubernetesNotKnown}, want: []string{
			found + `"v2.0.0"; allowed: v1.28 to v1.37 with this provider version, regardless of Talos; ` +
				`set kubernetes_version to v1.37.x at most, or use a newer release of this provider`,
		}},
		{from: "v1.35.4", to: "v1.36.3", talos: "v1.12.4", reasons: []error{ErrKubernetesUnsupported}, want: []string{
			found + `"v1.36.3"; allowed: v1.30 to v1.35 with Talos v1.12.4, regardless of the provider; Kubernetes v1.36.3 needs a talos_version of v1.13 or v1.14`,
		}},
		{from: "v1.34.4", to: "v1.37.0", talos: "v1.12.4", reasons: []error{ErrKubernetesUnsupported}, want: []string{
			found + `"v1.37.0", with v1.36.3 as an intermediate version; allowed: v1.30 to v1.35 with Talos v1.12.4, regardless of the provider; ` +
				`Kubernetes v1.36.3 needs a talos_version of v1.13 or v1.14`,
		}},
		{from: "v1.36.3", to: "v1.37.0", talos: "v1.13.2", reasons: []error{ErrKubernetesUnsupported}, want: []string{
			found + `"v1.37.0"; allowed: v1.31 to v1.36 with Talos v1.13.2, regardless of the provider; ` +
				`Kubernetes v1.37.0 needs a talos_version of v1.14`,
		}},
		{from: "v1.29.0", to: "v1.31.2", talos: "v1.13.0", reasons: []error{ErrKubernetesUnsupported}, want: []string{
			found + `"v1.31.2", with v1.30.14 as an intermediate version; allowed: v1.31 to v1.36 with Talos v1.13.0, regardless of the provider; ` +
				`Kubernetes v1.30.14 needs a talos_version of v1.10, v1.11 or v1.12`,
		}},
		{from: "v1.37.0", to: "v1.38.0", talos: "v1.13.0", reasons: []error{ErrKubernetesNotKnown, ErrKubernetesUnsupported},
			want: []string{
				found + `"v1.38.0"; allowed: v1.28 to v1.37 with this provider version, regardless of Talos; ` +
					`set kubernetes_version to v1.37.x at most, or use a newer release of this provider`,
				found + `"v1.38.0"; allowed: v1.31 to v1.36 with Talos v1.13.0, regardless of the provider; ` +
					`none of the Talos versions of this provider version (v1.10.0 to v1.14.x) supports Kubernetes v1.38.0`,
			}},
		{from: "v1.26.0", to: "v1.29.6", talos: "v1.10.0", reasons: []error{ErrKubernetesNotKnown}, want: []string{
			found + `"v1.29.6"; allowed: v1.28 to v1.37 with this provider version, regardless of Talos; ` +
				`this provider version does not support the upgrade from v1.26.0 to v1.28.0: first upgrade to v1.28.x by other means`,
		}},
	} {
		v := kubernetesOf(t, test.from, test.to)

		err := CheckKubernetesUpgrade(v[0], v[1], KubernetesReleases(v[1], nil), versionsOf(t, test.talos)[0])
		if diff := cmp.Diff(test.want, messages(err)); diff != "" {
			t.Errorf("from %s to %s with Talos %s (-want +got):\n%s", test.from, test.to, test.talos, diff)
		}

		for _, reason := range []error{ErrMinorDowngrade, ErrPatchDowngrade, ErrKubernetesNotKnown,
			ErrKubernetesUnsupported} {
			want := false
			for _, one := range test.reasons {
				want = want || errors.Is(one, reason)
			}

			if errors.Is(err, reason) != want {
				t.Errorf("from %s to %s with Talos %s: because of %v: %v", test.from, test.to, test.talos, reason, !want)
			}
		}
	}
}

func TestTalosFor_kubernetesVersions(t *testing.T) {
	for version, want := range map[string]string{
		"v1.28.0": "v1.10", "v1.33.13": "v1.10 v1.11 v1.12 v1.13 v1.14", "v1.36.3": "v1.13 v1.14", "v1.37.0": "v1.14", "v2.0.0": "",
	} {
		if got := strings.Join(talosFor(kubernetesOf(t, version)[0]), " "); got != want {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
}

func TestCheckImagesFollow_passedMinors(t *testing.T) {
	const pinned = "kubelet:v1.36.3@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

	images := map[string]string{
		"kube-apiserver": "registry.test:5000/kube-apiserver:v1.36.3", "kube-scheduler": "kube-scheduler:v1.36.3-slim",
		"kube-proxy": "kube-proxy:v1.36.2", "kubelet": pinned,
	}
	to := kubernetesOf(t, "v1.36.3")[0]

	for from, want := range map[string][]string{
		"v1.35.4": nil,
		"v1.33.0": {
			`kubernetes_version: found "v1.36.3" with the image "kube-proxy:v1.36.2" for kube-proxy; allowed: an image whose tag begins with v1.36.3, without a digest, because v1.34.4 and v1.35.4 is an intermediate version; ` +
				`upgrade one minor version at a time: first set kubernetes_version to v1.34.x, and the image to that version`,
			`kubernetes_version: found "v1.36.3" with the image "` + pinned +
				`" for kubelet; allowed: an image whose tag begins with v1.36.3, without a digest, because v1.34.4 and v1.35.4 is an intermediate version; ` +
				`upgrade one minor version at a time: first set kubernetes_version to v1.34.x, and the image to that version`,
		},
	} {
		path := KubernetesPath(kubernetesOf(t, from)[0], to, KubernetesReleases(to, nil))

		err := CheckImagesFollow(images, to, path)
		if diff := cmp.Diff(want, messages(err)); diff != "" || errors.Is(err, ErrImagesDoNotFollow) != (want != nil) {
			t.Errorf("from %s (-want +got):\n%s", from, diff)
		}
	}
}
