package hosttest

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubelet"
)

// status is the kubelet's report about a pod.
func (r *run) status(pod *corev1.Pod) *corev1.PodStatus {
	return kubelet.Report{Phase: r.phase, Begun: r.begun, HostIP: r.node.address.String(), PodIP: r.address,
		Container: r.container.Container}.Status(pod)
}

// podAddress is the address of the pod in which the machine at an address runs, and machineAddress the other way round.
func podAddress(machine netip.Addr) netip.Addr { return swapped(machine, 10) }

func machineAddress(pod netip.Addr) netip.Addr { return swapped(pod, 127) }

func swapped(address netip.Addr, first byte) netip.Addr {
	a := address.As4()
	a[0] = first

	return netip.AddrFrom4(a)
}

// imageID is the reference of an image by its digest.
func imageID(reference string) string {
	ref, err := image.ParseReference(reference)
	if err != nil {
		return reference
	}

	if ref.Digest == "" {
		sum := sha256.Sum256([]byte(reference))
		ref.Digest = "sha256:" + hex.EncodeToString(sum[:])
	}

	ref.Tag = ""

	return ref.String()
}

func hexadecimal(uuids string) string { return strings.ReplaceAll(uuids, "-", "") }
