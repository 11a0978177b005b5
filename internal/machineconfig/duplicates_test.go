package machineconfig

import (
	"errors"
	"strings"
	"testing"
)

const admission = "cluster: {apiServer: {admissionControl: [{name: PodSecurity, configuration: {exemptions: "

// What a component finds twice in a list is refused at the patch that adds it, in both forms.
func TestGenerate_duplicatesInLists(t *testing.T) {
	const document = "apiVersion: v1alpha1\nkind: "

	for name, test := range map[string]struct {
		contract string
		patches  []string
		twice    string
	}{
		"namespace of the defaults": {"v1.13", []string{admission + "{namespaces: [kube-system]}}}]}}"}, "kube-system"},
		"namespace in two patches": {"v1.13", []string{admission + "{namespaces: [a]}}}]}}",
			admission + "{namespaces: [b, a]}}}]}}"}, "a"},
		"user name":     {"v1.11", []string{admission + "{usernames: [a]}}}]}}", admission + "{usernames: [a]}}}]}}"}, "a"},
		"runtime class": {"v1.11", []string{admission + "{runtimeClasses: [a, a]}}}]}}"}, "a"},
		"namespace in a document": {documentContract, []string{document + "KubeAdmissionControlConfig\nname: PodSecurity\n" +
			"configuration: {exemptions: {namespaces: [kube-system]}}\n"}, "kube-system"},
		"authorizer": {"v1.13", []string{"cluster: {apiServer: {authorizationConfig: [{name: a, type: Node}]}}",
			"cluster: {apiServer: {authorizationConfig: [{name: b, type: Node}]}}"}, "Node"},
		"authorizer in a document": {documentContract, []string{document + "KubeAuthorizerConfig\nname: b\ntype: RBAC\n"},
			"RBAC"},
		"enforcement": {"v1.13", []string{"machine: {kubelet: {extraConfig: {enforceNodeAllocatable: [pods]}}}",
			"machine: {kubelet: {extraConfig: {enforceNodeAllocatable: [pods]}}}"}, "pods"},
		"enforcement in a document": {documentContract, []string{
			document + "KubeletConfig\nconfig: {enforceNodeAllocatable: [pods]}\n",
			document + "KubeletConfig\nconfig: {enforceNodeAllocatable: [pods]}\n"}, "pods"},
		"scheduler profile": {"v1.13", []string{"cluster: {scheduler: {config: {profiles: [{schedulerName: a}]}}}",
			"cluster: {scheduler: {config: {profiles: [{schedulerName: a}]}}}"}, "a"},
		"scheduler profile in a document": {documentContract, []string{
			document + "KubeSchedulerConfig\nconfig: {profiles: [{schedulerName: a}]}\n",
			document + "KubeSchedulerConfig\nconfig: {profiles: [{schedulerName: a}]}\n"}, "a"},
		"credential provider": {"v1.13", []string{
			"machine: {kubelet: {credentialProviderConfig: {providers: [{name: a}]}}}",
			"machine: {kubelet: {credentialProviderConfig: {providers: [{name: a}]}}}"}, "a"},
		"issuer": {documentContract, []string{document + "KubeAuthenticationConfig\nconfiguration: {jwt: [{issuer: {url: " +
			"https://a.test}}, {issuer: {url: https://a.test}}]}\n"}, "https://a.test"},
	} {
		// A patch without an error is before them, and one after them.
		patches := append(append([]string{"machine: {sysctls: {a: b}}"}, test.patches...), "machine: {sysctls: {c: d}}")

		_, err := with(t, test.contract, patches...)
		mistakes := FieldErrors(err)

		if len(mistakes) != 1 || !errors.Is(err, ErrInvalidConfig) || mistakes[0].Field != at("patches", len(test.patches)) ||
			!strings.Contains(mistakes[0].Found, quoted(test.twice)+" twice") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A list is replaced by a patch that deletes what it is in, and one that writes it whole.
func TestGenerate_replacesLists(t *testing.T) {
	for contract, patches := range map[string][]string{
		"v1.13": {"cluster: {apiServer: {admissionControl: [{name: PodSecurity, $patch: delete}]}}",
			admission + "{namespaces: [kube-system, a]}}}]}}"},
		documentContract: {"apiVersion: v1alpha1\nkind: KubeAdmissionControlConfig\nname: PodSecurity\n$patch: delete\n",
			"apiVersion: v1alpha1\nkind: KubeAdmissionControlConfig\nname: PodSecurity\n" +
				"configuration: {exemptions: {namespaces: [kube-system, a]}}\n"},
	} {
		if text, err := with(t, contract, patches...); err != nil || !strings.Contains(text, "- a\n") {
			t.Errorf("%s: %v", contract, err)
		}
	}
}

// Talos takes a network of validSubnets once, however often it is named.
func TestGenerate_takesRepeatedSubnets(t *testing.T) {
	for contract, patch := range map[string]string{
		"v1.13":          "machine: {kubelet: {nodeIP: {validSubnets: [10.0.0.0/8]}}}",
		documentContract: "apiVersion: v1alpha1\nkind: KubeNodeConfig\nnodeIP: {validSubnets: [10.0.0.0/8]}\n",
	} {
		if _, err := with(t, contract, patch, patch); err != nil {
			t.Errorf("%s: %v", contract, err)
		}
	}
}
