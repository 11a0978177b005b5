package hostcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/portforward"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// Dial returns a function that makes TCP connections to the machines of a cluster from any computer that runs
// talosop. It accepts the names inside the cluster: [Spec.Address] and its shorter forms, also of machines of
// other resources of the cluster. It also accepts the endpoint's host ([Spec.EndpointHost]), and the addresses of
// the cluster's pods, by which etcd and Kubernetes know their members. Any other address is dialed unchanged.
//
// A machine whose pod does not run is refused at once with the reason, without a wait. Errors are of type
// [*net.OpError]. The endpoint is any control plane: a ready one before one that only runs.
//
// A connection through the host's API is accepted before it is known whether anything listens. If nothing does,
// the first read returns the error.
func (h *Host) Dial(s workload.Spec) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, to string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(to)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}

		conn, err := h.dialHost(ctx, s, network, host, port)
		if err == nil {
			return conn, nil
		}

		var operation *net.OpError
		if errors.As(err, &operation) && operation == err { //nolint:errorlint // one that is wrapped has not all of the text
			return nil, err
		}

		return nil, &net.OpError{Op: "dial", Net: network, Addr: portforward.Address(to), Err: err}
	}
}

func (h *Host) dialHost(ctx context.Context, s workload.Spec, network, host, port string) (net.Conn, error) {
	t, err := h.target(ctx, s, host)
	if err != nil {
		return nil, err
	}

	switch {
	case t.elsewhere:
		return h.reach(ctx, network, net.JoinHostPort(host, port))
	case t.endpoint:
		return h.dialEndpoint(ctx, s, port)
	default:
		return h.dialMachine(ctx, s, t, port)
	}
}

// target is the meaning of a host name or an address.
type target struct {
	// elsewhere is true for an address outside of the cluster.
	elsewhere bool
	// endpoint is any control plane.
	endpoint bool
	// machine's label, such as cp-0.
	machine string
	// ip is the address of a pod, for machines that are called by it.
	ip string
}

// target finds out. The host is asked only about addresses, and names that could be of other resources' machines.
func (h *Host) target(ctx context.Context, s workload.Spec, host string) (target, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return h.targetOfIP(ctx, s, ip.Unmap().String())
	}

	name, full := s.NameOf(strings.ToLower(host))
	if name == s.Cluster {
		return target{endpoint: true}, nil
	}

	machine, ok := strings.CutPrefix(name, s.Cluster+"-")
	if !ok {
		return target{elsewhere: true}, nil
	}

	if slices.ContainsFunc(s.Machines, func(m workload.Machine) bool { return m.Label() == machine }) {
		return target{machine: machine}, nil
	}

	list, err := h.pods.recent(ctx, s)
	if err != nil {
		return target{}, err
	}

	// A machine that is being made or removed has no pod; a single word may be anything.
	if list.machine(machine) == nil && (!full || !isMachine(machine)) {
		return target{elsewhere: true}, nil
	}

	return target{machine: machine}, nil
}

func (h *Host) targetOfIP(ctx context.Context, s workload.Spec, ip string) (target, error) {
	list, err := h.pods.recent(ctx, s)
	if err == nil && list.ip(ip) == nil && !h.pods.had(s, ip) {
		list, err = h.pods.current(ctx, s)
	}

	if err != nil {
		return target{}, err
	}

	pod := list.ip(ip)
	if pod == nil && !h.pods.had(s, ip) {
		return target{elsewhere: true}, nil
	}

	if pod == nil {
		return target{}, fmt.Errorf("the address belonged to a pod of cluster %s that no longer has it", s.Cluster)
	}

	return target{machine: pod.Labels[workload.LabelMachine], ip: ip}, nil
}

// isMachine reports whether a label has the form of a machine's: a pool and a number.
func isMachine(label string) bool {
	i := strings.LastIndexByte(label, '-')
	if i <= 0 {
		return false
	}

	_, err := strconv.ParseUint(label[i+1:], 10, 32)

	return err == nil
}

// dialMachine makes a connection to the pod that a machine has. When that fails it may be a pod that is gone already:
// what is known is looked up again, and another pod tried.
func (h *Host) dialMachine(ctx context.Context, s workload.Spec, t target, port string) (net.Conn, error) {
	list, err := h.pods.recent(ctx, s)
	if err != nil {
		return nil, err
	}

	pod, err := list.running(s, t)
	if err == nil && s.Forwards() && !h.forwards.Connected(pod.UID) {
		// The host forwards to names, for every pod that has them.
		if list, err = h.pods.current(ctx, s); err != nil {
			return nil, err
		}

		pod, err = list.running(s, t)
	}

	if err == nil {
		var conn net.Conn
		if conn, err = h.dialPod(ctx, s, pod, port); err == nil || ctx.Err() != nil {
			return conn, err
		}
	}

	list, again := h.pods.current(ctx, s)
	if again != nil {
		return nil, errors.Join(err, again)
	}

	other, unfit := list.running(s, t)

	switch {
	case unfit != nil:
		return nil, unfit
	case pod != nil && other.UID == pod.UID:
		return nil, err
	default:
		return h.dialPod(ctx, s, other, port)
	}
}

// dialEndpoint makes a connection to any control plane.
func (h *Host) dialEndpoint(ctx context.Context, s workload.Spec, port string) (net.Conn, error) {
	list, err := h.pods.recent(ctx, s)
	if err != nil {
		return nil, err
	}

	conn, err := h.dialAny(ctx, s, list, port)
	if err == nil || ctx.Err() != nil {
		return conn, err
	}

	list, again := h.pods.current(ctx, s)
	if again != nil {
		return nil, errors.Join(err, again)
	}

	return h.dialAny(ctx, s, list, port)
}

func (h *Host) dialAny(ctx context.Context, s workload.Spec, list *podList, port string) (net.Conn, error) {
	var reasons []error

	pods := list.controlPlanes()
	h.forwards.Sort(pods, port)

	for _, pod := range pods {
		if err := fit(pod); err != nil {
			reasons = append(reasons, err)

			continue
		}

		conn, err := h.dialPod(ctx, s, pod, port)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}

		reasons = append(reasons, err)
	}

	if len(reasons) == 0 {
		return nil, fmt.Errorf("no control plane of cluster %s has a pod in namespace %s", s.Cluster, s.Namespace)
	}

	return nil, errors.Join(reasons...)
}

// dialPod makes a connection by the way in that the cluster has.
func (h *Host) dialPod(ctx context.Context, s workload.Spec, pod *corev1.Pod, port string) (net.Conn, error) {
	var (
		conn net.Conn
		err  error
	)

	switch {
	case s.Forwards():
		conn, err = h.forwards.Dial(ctx, pod, port)
	case s.Access == workload.Pod:
		conn, err = h.reach(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, port))
	default:
		conn, err = h.dialService(ctx, s, pod, port)
	}

	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w; connections through the host API require permission to create pods/portforward", err)
	}

	if err != nil {
		return nil, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}

	if s.Forwards() {
		return conn, nil
	}

	return &exposed{Conn: conn, beside: func(ctx context.Context) (net.Conn, error) {
		trusted := s
		trusted.Access = workload.PortForward

		return h.dialPod(ctx, trusted, pod, port)
	}}, nil
}

// exposed is a connection to a pod that bypasses the API of the host. Any system on the path, or with the same
// address, may answer it.
type exposed struct {
	net.Conn

	beside func(ctx context.Context) (net.Conn, error)
}

// Beside connects to the same port of the same pod through the API of the host.
func (e *exposed) Beside(ctx context.Context) (net.Conn, error) { return e.beside(ctx) }
