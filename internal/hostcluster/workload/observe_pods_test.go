package workload

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Pods of a host with two families have an address of each, and the machine may be asked for at either.
func TestAddresses_ofTwoFamilies(t *testing.T) {
	t.Parallel()

	for name, addresses := range map[string][]string{
		"none yet": nil, "one family": {"10.244.1.2"}, "two families": {"10.244.1.2", "fd00:10:244:1::2"},
		"the other one first": {"fd00:10:244:1::2", "10.244.1.2"},
	} {
		pod := &corev1.Pod{}

		for _, address := range addresses {
			pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: address})
		}

		if len(addresses) > 0 {
			pod.Status.PodIP = addresses[0]
		}

		var state MachineState
		if state.describe(pod); !slices.Equal(state.PodIPs, addresses) {
			t.Errorf("%s: of %q the state has %q", name, addresses, state.PodIPs)
		}
	}
}
