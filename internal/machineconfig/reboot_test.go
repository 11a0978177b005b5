package machineconfig

import "testing"

func TestPlacesThatTakeAReboot(t *testing.T) {
	for _, test := range []struct{ document, path, want string }{
		{"v1alpha1", "machine.files[0].content", "machine.files"},
		{"v1alpha1", "machine.nodeLabels.rack", ""},
		{"v1alpha1", "machine.features.rbac", "machine.features.rbac"},
		{"v1alpha1", "machine.features.hostDNS.enabled", ""},
		{"v1alpha1", "cluster.apiServer.certSANs[3]", ""},
		{"v1alpha1", "persist", "persist"},
		{"v1alpha1", "machine.features", "machine.features"},
		{"HostnameConfig", "hostname", ""},
	} {
		if got := RebootField(test.document, test.path); got != test.want {
			t.Errorf("%s %s: %q, want %q", test.document, test.path, got, test.want)
		}
	}
}
