package hosttest

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// quickest is the least time between two probes.
const quickest = 50 * time.Millisecond

// probe asks a container whether it is ready until ctx ends, as its pod says. Only TCP probes are known: a container
// without one is ready at once.
func (r *run) probe(ctx context.Context, address netip.Addr) <-chan error {
	results := make(chan error)

	tell := func(err error) {
		select {
		case results <- err:
		case <-ctx.Done():
		}
	}

	spec := talosOf(r.pod.Load())
	if spec.ReadinessProbe == nil || spec.ReadinessProbe.TCPSocket == nil {
		r.node.work.Go(func() { tell(nil) })

		return results
	}

	target := net.JoinHostPort(address.String(), strconv.Itoa(portOf(spec, spec.ReadinessProbe)))
	again := time.NewTicker(max(scaled(spec.ReadinessProbe.PeriodSeconds), quickest))
	dialer := net.Dialer{Timeout: time.Duration(max(spec.ReadinessProbe.TimeoutSeconds, 1)) * time.Second}

	r.node.work.Go(func() {
		defer again.Stop()

		for failed, ok := int32(0), int32(0); ctx.Err() == nil; {
			conn, err := dialer.DialContext(ctx, "tcp4", target)
			if err == nil {
				err = conn.Close()
			}

			if err == nil {
				failed, ok = 0, ok+1
			} else {
				failed, ok = failed+1, 0
			}

			if ok >= max(spec.ReadinessProbe.SuccessThreshold, 1) || failed >= max(spec.ReadinessProbe.FailureThreshold, 1) {
				tell(err)
			}

			select {
			case <-again.C:
			case <-ctx.Done():
			}
		}
	})

	return results
}

// portOf is the port of a probe, which may be the name of one of the container's.
func portOf(spec *corev1.Container, probe *corev1.Probe) int {
	port := probe.TCPSocket.Port

	for _, p := range spec.Ports {
		if port.Type == intstr.String && p.Name == port.StrVal {
			return int(p.ContainerPort)
		}
	}

	return port.IntValue()
}
