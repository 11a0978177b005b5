package machineset

import (
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// A configuration is rendered only for the images of machines whose images differ from those of the last run.
func TestImages_areComparedWhereTheyMayDiffer(t *testing.T) {
	t.Parallel()

	const is, was = "kubelet:v1.36.3", "kubelet:v1.35.4"

	for name, test := range map[string]struct {
		Recorded Record
		Drift    []string
	}{
		"as recorded": {Recorded: Record{Phase: cluster.Ready,
			Machines: map[string]step.MachineState{"w-1": {Images: kubenames.Images{kubenames.Kubelet: is}}}}},
		"changed": {
			Recorded: Record{Phase: cluster.Ready,
				Machines: map[string]step.MachineState{"w-1": {Images: kubenames.Images{kubenames.Kubelet: was}}}},
			Drift: []string{"image of kubelet: kubelet:v1.36.3, expected kubelet:v1.35.4"},
		},
		"reported before": {
			Recorded: Record{
				Phase: cluster.Ready, Machines: map[string]step.MachineState{
					"w-1": {Images: kubenames.Images{kubenames.Kubelet: is}}},
				Seen: record.Machines{"w-1": {Drift: record.Drift{
					{Kind: record.ImageDiffers, Component: kubenames.Kubelet, Found: is}}}},
			},
			Drift: []string{"image of kubelet: kubelet:v1.36.3, expected kubelet:v1.35.4"},
		},
		"after an update that failed": {
			Recorded: Record{Phase: cluster.Degraded,
				Machines: map[string]step.MachineState{"w-1": {Images: kubenames.Images{kubenames.Kubelet: is}}}},
			Drift: []string{"image of kubelet: kubelet:v1.36.3, expected kubelet:v1.35.4"},
		},
	} {
		want, have := withoutDrift()
		state := have.Machines["w-1"]
		state.Images = kubenames.Images{kubenames.Kubelet: is}
		have.Machines["w-1"] = state

		examination := &Examination{Wanted: func() (Rendered, error) {
			return Rendered{Machines: map[string]cluster.Configured{"w-1": {Images: kubenames.Images{kubenames.Kubelet: was}}}}, nil
		}}
		examination.ExpectImages(want.Machines, have, test.Recorded)

		if got := DriftOf(Set{}, want, have, nil)["w-1"].Lines(); !slices.Equal(got, test.Drift) {
			t.Errorf("%s: drift is %q", name, got)
		}
	}
}

// APIs are removed only by minor versions, so patch versions are not checked.
func TestRemovedAPIs_byMinorVersion(t *testing.T) {
	t.Parallel()

	parse := func(text string) machineconfig.KubernetesVersion {
		v, err := machineconfig.ParseKubernetesVersion(text)
		if err != nil {
			t.Fatal(err)
		}

		return v
	}

	for name, test := range map[string]struct {
		From, To string
		want     [][2]string
	}{
		"two minors": {"v1.34.1", "v1.36.3", [][2]string{{"v1.34.1", "v1.35.4"}, {"v1.35.4", "v1.36.3"}}},
		"a patch":    {"v1.36.1", "v1.36.3", nil},
		"none":       {"v1.36.3", "v1.36.3", nil},
		"back":       {"v1.36.3", "v1.36.1", nil},
	} {
		to := parse(test.To)
		u := UpgradeOf{Path: KubernetesPath{Lowest: parse(test.From), To: to,
			Releases: machineconfig.KubernetesReleases(to, []machineconfig.KubernetesVersion{parse("v1.35.4")})}}

		if got := u.Minors(); !slices.Equal(got, test.want) {
			t.Errorf("%s: asked is %q", name, got)
		}
	}
}
