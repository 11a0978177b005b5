package machineconfig

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
)

// An argument with which a component does not start is an error at the patch or setting that has it, in either form.
func TestGenerate_removedArguments(t *testing.T) {
	t.Parallel()

	const (
		api      = "cluster: {apiServer: {extraArgs: {runtime-config: scheduling.k8s.io/v1alpha1=true}}}\n"
		none     = "cluster: {apiServer: {extraArgs: {runtime-config: {$patch: delete}}}}\n"
		pinned   = "cluster: {apiServer: {image: registry.k8s.io/kube-apiserver:v1.35.4}}\n"
		gate     = "cluster: {scheduler: {extraArgs: {feature-gates: \"A=true,HonorPVReclaimPolicy=true\"}}}\n"
		document = "apiVersion: v1alpha1\nkind: KubeAPIServerConfig\n" +
			"extraArgs: {runtime-config: scheduling.k8s.io/v1alpha1=true}\n"
	)

	sandbox := setting.Values{setting.KubeletExtraArgs: map[string]string{"pod-infra-container-image": "a"}}

	for name, test := range map[string]struct {
		contract, kubernetes string
		role                 Role
		patches              []string
		settings             setting.Values
		field, found         string
	}{
		"registered":                 {"v1.13", "v1.35.4", ControlPlane, []string{api}, nil, "", ""},
		"in an older kube-apiserver": {"v1.13", "v1.36.3", ControlPlane, []string{pinned, api}, nil, "", ""},
		"in a patch": {"v1.13", "v1.36.3", ControlPlane, []string{"machine: {}", api}, nil, "pool.patches[1]",
			"the API version scheduling.k8s.io/v1alpha1 of kube-apiserver for Kubernetes v1.36.3"},
		"in a document": {"v1.14", "v1.36.3", ControlPlane, []string{document}, nil, "pool.patches[0]",
			"the API version scheduling.k8s.io/v1alpha1 of kube-apiserver for Kubernetes v1.36.3"},
		"removed by a patch": {"v1.13", "v1.36.3", ControlPlane, []string{api, none}, nil, "", ""},
		"on a worker":        {"v1.13", "v1.36.3", Worker, []string{api}, nil, "", ""},
		"a feature gate": {"v1.13", "v1.36.3", ControlPlane, []string{gate}, nil, "pool.patches[0]",
			"the feature gate HonorPVReclaimPolicy of kube-scheduler for Kubernetes v1.36.3"},
		"in a setting": {"v1.13", "v1.36.3", Worker, nil, sandbox, "pool.kubelet_extra_args",
			"the flag --pod-infra-container-image of kubelet for Kubernetes v1.36.3"},
	} {
		c, m := testCluster(test.contract), testMachine(test.role)
		c.KubernetesVersion, m.PoolPatches, m.PoolSettings = test.kubernetes, test.patches, test.settings

		_, err := Generate(c, m, testBundle(t))

		mistakes := FieldErrors(err)
		if test.found == "" && err != nil || test.found != "" && (len(mistakes) != 1 ||
			mistakes[0].Field != test.field || mistakes[0].Found != test.found) {
			t.Errorf("%s: %v, want %q at %s", name, err, test.found, test.field)
		}
	}
}
