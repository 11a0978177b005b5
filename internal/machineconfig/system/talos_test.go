package system

import "testing"

func TestSettings_leastTalos(t *testing.T) {
	for _, test := range []struct {
		settings Settings
		want     uint64
	}{
		{Settings{}, 0},
		{Settings{Volumes: map[string]Volume{"STATE": {EncryptionKeys: map[string]Key{"0": {NodeID: true}}}}}, 0},
		{Settings{Volumes: map[string]Volume{"EPHEMERAL": {EncryptionKeys: map[string]Key{"0": {LockToState: true}}}}}, keysInDocuments},
		{Settings{Volumes: map[string]Volume{"EPHEMERAL": {MaxSize: "80%"}}}, pcrsOfKeys},
		{Settings{ImageVerification: []ImageRule{{Image: "*", Skip: true}}}, verifiedImages},
		{Settings{WorkloadIsolation: new(true)}, isolation},
		{Settings{WorkloadIsolation: new(false)}, 0},
		{Settings{Volumes: map[string]Volume{"LOG": {MinSize: "1GiB"}}}, ownVolumes},
	} {
		if got := test.settings.LeastTalos(); got != test.want {
			t.Errorf("%+v needs 1.%d, want 1.%d", test.settings, got, test.want)
		}
	}
}
