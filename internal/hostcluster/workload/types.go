package workload

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Role is the machine's role in its cluster, with the values of machine.type in Talos.
type Role string

// The two roles.
const (
	ControlPlane Role = "controlplane"
	Worker       Role = "worker"
)

// Access is how talosop itself reaches the Talos API of the machines.
type Access string

// The ways in. PortForward needs nothing exposed; the others need what their names say, and
// Pod needs a route to the addresses of pods.
const (
	PortForward  Access = "port-forward"
	NodePort     Access = "node-port"
	LoadBalancer Access = "load-balancer"
	Pod          Access = "pod"
)

// Spec is the wanted state of one resource's machines on the host cluster.
type Spec struct {
	// Cluster is the name of the Talos cluster, a DNS label.
	Cluster string
	// Mark distinguishes clusters of one name, as a label's value: it follows from the secrets.
	Mark string
	// Namespace on the host cluster.
	Namespace string
	// CreateNamespace makes the namespace where it is missing, with leave for privileged pods.
	CreateNamespace bool
	// Domain of the host cluster's DNS, such as cluster.local.
	Domain string
	// Access is how the machines are reached.
	Access Access
	// Endpoint is the Service in front of the control planes; nil for a resource that has none.
	Endpoint *EndpointService
	// Isolated limits the pods to connections among each other.
	Isolated bool
	// Labels and Annotations are put on every object.
	Labels, Annotations map[string]string
	// PodCIDRs and ServiceCIDRs are the networks of the Talos cluster, which must not be the host's; they are
	// only checked by preflight.Check.
	PodCIDRs, ServiceCIDRs []netip.Prefix
	// Machines of the resource, both wanted ones and those to be removed.
	Machines []Machine
}

// EndpointService is the Service in front of the control planes.
type EndpointService struct {
	// Type of the Service through which the Kubernetes API is reached; empty for ClusterIP. TalosAPI opens the ports of
	// Talos there, too.
	Type              corev1.ServiceType
	TalosAPI          bool
	Annotations       map[string]string
	LoadBalancerClass string
}

// Inside reports whether it is reached from inside of the host alone.
func (e EndpointService) Inside() bool { return e.Type == "" || e.Type == corev1.ServiceTypeClusterIP }

// Machine is one machine and the pod that it runs in.
type Machine struct {
	// Name is the machine's identity in Terraform, as in cluster.Machine.
	Name string
	// Pool and Ordinal make its name on the host.
	Pool    string
	Ordinal int
	Role    Role
	// Image of Talos with its tag.
	Image       string
	PullSecrets []string
	Pod         PodSpec
	// Leaving is true for a machine that is to be removed.
	Leaving bool
	// PeerAddress is the address at which the etcd of other control planes knows this one, if known. Its Service
	// gets the address again when it is recreated. See [MachineState.PeerAddress].
	PeerAddress netip.Addr
}

// PodSpec has the options for a machine's pod.
type PodSpec struct {
	Resources     corev1.ResourceRequirements
	Storage       Storage
	NodeSelector  map[string]string
	Tolerations   []corev1.Toleration
	PriorityClass string
	Annotations   map[string]string
}

// Storage is where a machine keeps its data.
type Storage struct {
	// Class of the claims; empty is the default of the host cluster.
	Class string
	// Ephemeral keeps the data in the pod: it is deleted with the pod.
	Ephemeral bool
	// State is the size of /system/state, Var that of /var (images, etcd, logs), Other that of each of /etc/cni,
	// /etc/kubernetes and /usr/libexec/kubernetes.
	State, Var, Other resource.Quantity
}

// Observation is what the host cluster has for the machines of a Spec.
type Observation struct {
	// Machines by their names.
	Machines map[string]MachineState
	// Missing and Drift are about shared objects: objects that do not exist, and fields that another client
	// changed.
	Missing, Drift []Difference
	// Orphans are machines of the same pools that exist on the host and are not in the Spec, by their names on the
	// host without the cluster's (cp-3). A killed apply that could not record its machines leaves them.
	Orphans []string
}

// MachineState is one machine on the host cluster.
type MachineState struct {
	// Exists is whether there is any of the machine's StatefulSet, pod and claims.
	Exists bool
	// Complete is whether everything that the machine needs exists.
	Complete bool
	// Pod is the name of its pod, PodUID distinguishes one pod from the next. Empty without a pod.
	Pod, PodUID string
	// PodIPs are the pod's addresses, one of each family that the host has, the one that it prefers first. Empty while it
	// has none.
	PodIPs []string
	// PeerAddress of a control plane leads to its pod, whichever that is: the address of a Service of its own, which lives
	// as long as the machine. Not valid for workers, and before there is one.
	PeerAddress netip.Addr
	// Container identifies the run of Talos: it changes with every start. Empty while none runs.
	Container string
	// Image is the one that the pod was made with.
	Image string
	// Node of the host cluster that the pod runs on.
	Node string
	// Ready is the pod's condition.
	Ready bool
	// Outdated are the differences between the pod's template and the wanted one; a replaced pod gets the wanted
	// one.
	Outdated []Difference
	// Drift are other differences and missing objects of the machine; Ensure repairs them.
	Drift []Difference
	// Stays are differences of the machine's claims that cannot be repaired.
	Stays []Difference
	// Diagnosis says why the pod does not run, with the last event; empty when it does.
	Diagnosis string
	// VolumesLost is true when a claim of the machine can never be used again. Its volume, or the node of the
	// volume, no longer exists. Or the claim with the machine's data was deleted, and no pod keeps it.
	VolumesLost bool
}

// HostName is the name of the machine's objects, and its host name: dev-cp-0.
func (s Spec) HostName(m Machine) string { return s.Cluster + "-" + m.Label() }

// Label is the machine's name within its cluster: cp-0.
func (m Machine) Label() string { return m.Pool + "-" + strconv.Itoa(m.Ordinal) }

// Address is the name of the machine in the host cluster's DNS.
func (s Spec) Address(m Machine) string { return s.AddressOf(s.HostName(m)) }

// AddressOf is that of the machine with a host name.
func (s Spec) AddressOf(host string) string { return host + "." + s.Namespace + ".svc." + s.Domain }

// EndpointHost is the name of the control planes' Service in the host cluster's DNS.
func (s Spec) EndpointHost() string { return s.Cluster + "." + s.Namespace + ".svc." + s.Domain }

// Machine finds one by its name.
func (s Spec) Machine(name string) (Machine, bool) {
	i := slices.IndexFunc(s.Machines, func(m Machine) bool { return m.Name == name })
	if i < 0 {
		return Machine{}, false
	}

	return s.Machines[i], true
}

// merged is a copy of the first map with what the others have.
func merged(of ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range of {
		maps.Copy(out, m)
	}

	return out
}

// Forwards reports whether connections go through the host's API.
func (s Spec) Forwards() bool { return s.Access == PortForward || s.Access == "" }

// NameOf takes off what names of Services have behind, as resolvers of pods in the namespace would add it:
// dev-cp-0.prod.svc. It says whether anything was there.
func (s Spec) NameOf(host string) (name string, full bool) {
	host = strings.TrimSuffix(host, ".")

	for _, domain := range []string{".svc." + s.Domain, ".svc", ""} {
		if name, ok := strings.CutSuffix(host, "."+s.Namespace+domain); ok && !strings.Contains(name, ".") {
			return name, true
		}
	}

	return host, false
}
