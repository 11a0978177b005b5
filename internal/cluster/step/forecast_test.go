package step_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// Attributes of a machine are unknown where a step changes them.
func TestShown_ofSteps(t *testing.T) {
	t.Parallel()

	kubelet := func(image string, awaits bool) step.Step {
		return step.UpgradeComponent{Component: kubenames.Kubelet, Image: image, Awaits: awaits}
	}

	for name, test := range map[string]struct {
		step step.Step
		want step.Shown
	}{
		"a configuration":       {step: step.ApplyConfig{Access: step.Member}},
		"a first configuration": {step: step.ApplyConfig{Access: step.Maintenance}, want: step.Shown{Joins: true}},
		"an upgrade":            {step: step.Upgrade{To: "v1.14.1"}, want: step.Shown{Texts: map[step.Field]string{step.FieldTalosVersion: "v1.14.1"}}},
		"another pod": {step: step.Upgrade{To: "v1.14.1", Container: true, Loses: true}, want: step.Shown{Joins: true, Open: []step.Field{step.FieldUUID, step.FieldAddress},
			Texts: map[step.Field]string{step.FieldTalosVersion: "v1.14.1"}}},
		"a kubelet":            {step: kubelet("k:v1.36.0", false), want: step.Shown{Texts: map[step.Field]string{step.FieldKubernetesVersion: "v1.36.0"}}},
		"a kubelet that waits": {step: kubelet("k:v1.36.0", true), want: step.Shown{Open: []step.Field{step.FieldKubernetesVersion}}},
		"a kubelet of no kind": {step: kubelet("k:mine", false), want: step.Shown{Open: []step.Field{step.FieldKubernetesVersion}}},
		"a scheduler":          {step: step.UpgradeComponent{Component: kubenames.KubeScheduler, Image: "s:v1.36.0"}},
		"a node":               {step: step.RestartKubelet{}, want: step.Shown{Open: []step.Field{step.FieldNodeName, step.FieldKubernetesVersion}}},
		"META":                 {step: step.WriteMeta{Keys: "0x0c"}},
		"the UUID":             {step: step.WriteMeta{Keys: "0x0f"}, want: step.Shown{Open: []step.Field{step.FieldUUID}}},
		"a reset":              {step: step.Reset{}, want: step.Shown{Joins: true}},
		"volumes":              {step: step.ReplaceVolumes{}, want: step.Shown{Joins: true}},
	} {
		f := step.Shown{Texts: map[step.Field]string{}}
		f.Add(test.step)

		if test.want.Texts == nil {
			test.want.Texts = map[step.Field]string{}
		}

		if diff := cmp.Diff(test.want, f); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
