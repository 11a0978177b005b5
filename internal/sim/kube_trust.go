package sim

import (
	"bytes"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
)

func trustIn(cfg config.Config) kubeTrust {
	var t kubeTrust

	if issuing := cfg.K8sAPIServerCAConfig().IssuingCA(); issuing != nil { // workers have none
		t.issuing = issuing.Crt
	}

	for _, ca := range cfg.K8sAPIServerCAConfig().AcceptedCAs() {
		t.accepted = append(t.accepted, ca.Crt)
	}

	return t
}

func (t kubeTrust) takes(ca []byte) bool {
	return slices.ContainsFunc(t.accepted, func(known []byte) bool {
		return bytes.Equal(bytes.TrimSpace(known), bytes.TrimSpace(ca))
	})
}

// knows reports whether the kubelet of a machine and an API server take each other's certificates. world is held.
func (b *boot) knows(server *boot) bool {
	own := b.m.Disk.EnrolledBy

	return trustIn(b.Config()).takes(server.kubeTrust.issuing) && (own == nil || server.kubeTrust.takes(own))
}

// kubernetesSigner is the authority that a controller manager of the cluster signs with; nil while there is none.
// world is held.
func (b *boot) kubernetesSigner() []byte {
	for _, other := range b.cluster.boots {
		if other.kubeUp != nil {
			return other.kubeTrust.issuing
		}
	}

	return nil
}
