package workload

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// What Talos serves (Talos 1.13, constants.ApidPort, constants.TrustdPort, constants.DefaultControlPlanePort,
// constants.EtcdClientPort and constants.EtcdPeerPort), and the names of the ports.
const (
	talosPort          = 50000
	trustPort          = 50001
	KubernetesPort     = 6443
	etcdClientPort     = 2379
	etcdPeerPort       = 2380
	talosPortName      = "talos-api"
	trustPortName      = "talos-trust"
	kubernetesPortName = "kubernetes-api"
	etcdClientPortName = "etcd-client"
	etcdPeerPortName   = "etcd-peer"
)

// EnforceLabel of a namespace is the Pod Security Standard that pods have to meet in it; Talos takes a privileged one.
const (
	EnforceLabel    = "pod-security.kubernetes.io/enforce"
	PrivilegedLevel = "privileged"
)

// Namespace is the one that the machines are in, as it is made. Clusters share a namespace, so that it has no mark: the
// last of them that made it removes it, see [Client.RemoveShared].
func (s Spec) namespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace, Labels: map[string]string{
		LabelManagedBy: managedBy, EnforceLabel: PrivilegedLevel,
	}}}
}

// EndpointServices are those in front of the control planes, none for a resource that has none: one for the inside of
// the host, with the name of the cluster, and where it is reached from outside one for that. Only API servers that
// listen are behind them: that is what the pods' readiness is.
func (s Spec) EndpointServices() []*corev1.Service {
	if s.Endpoint == nil {
		return nil
	}

	inside := s.endpointService(s.Cluster, corev1.ServiceTypeClusterIP)
	// A worker serves nothing before trustd of a control plane has signed its certificate, and it first tries the
	// endpoint (Talos 1.13, k8s/static_endpoint.go and secrets/api.go).
	inside.Spec.Ports = append(inside.Spec.Ports, servicePort(trustPortName, trustPort))

	if s.Endpoint.Inside() {
		inside.Annotations = merged(s.Annotations, s.Endpoint.Annotations)

		return []*corev1.Service{inside}
	}

	outside := s.endpointService(s.ExternalName(), s.Endpoint.Type)
	outside.Annotations = merged(s.Annotations, s.Endpoint.Annotations)
	outside.Spec.Ports = []corev1.ServicePort{servicePort(kubernetesPortName, KubernetesPort)}

	if s.Endpoint.TalosAPI {
		outside.Spec.Ports = append(outside.Spec.Ports, servicePort(talosPortName, talosPort),
			servicePort(trustPortName, trustPort))
	}

	if class := s.Endpoint.LoadBalancerClass; class != "" && outside.Spec.Type == corev1.ServiceTypeLoadBalancer {
		outside.Spec.LoadBalancerClass = &class
	}

	return []*corev1.Service{inside, outside}
}

func (s Spec) endpointService(name string, kind corev1.ServiceType) *corev1.Service {
	return s.service(name, s.labels(), kind,
		merged(s.identity(), map[string]string{LabelRole: string(ControlPlane)}), ControlPlane)
}

// ExternalName is that of the Service that leads to the Kubernetes API from outside. No machine is called so: their
// names end with numbers.
func (s Spec) ExternalName() string { return s.Cluster + "-external" }

// MachineService gives a machine its name in the host's DNS and, depending on the access, an external address. It
// includes pods that are not ready: a machine in maintenance mode is not, and has to be configured.
func (s Spec) MachineService(m Machine) *corev1.Service {
	service := s.service(s.HostName(m), s.machineLabels(m), corev1.ServiceTypeClusterIP, s.machineSelector(m), m.Role)
	service.Spec.PublishNotReadyAddresses = true

	switch s.Access {
	case NodePort:
		service.Spec.Type = corev1.ServiceTypeNodePort
	case LoadBalancer:
		service.Spec.Type = corev1.ServiceTypeLoadBalancer
	default:
		service.Spec.ClusterIP = corev1.ClusterIPNone
	}

	return service
}

// peerService gives a control plane an address that outlives its pods, nil for a worker. The members of etcd know
// each other by addresses, and learn a new one only from a member that has quorum (Talos 1.13,
// etcd/advertised_peer.go). If all members got new pods at once, when their host restarts, they would never find
// each other again. Its address is [MachineState.PeerAddress].
//
// It is separate from the machine's Service, whose kind depends on the access: that one has no address, or exposes
// it. The machine announces the address for all that it serves (Talos 1.13, cluster/local_affiliate.go). So the
// Service forwards all of that, whether the pod is ready or not. The ports are numbers: names would have to be
// declared in the pod.
func (s Spec) peerService(m Machine) *corev1.Service {
	if m.Role != ControlPlane {
		return nil
	}

	service := s.service(s.HostName(m)+peerSuffix, s.machineLabels(m), corev1.ServiceTypeClusterIP, s.machineSelector(m),
		m.Role)
	service.Spec.PublishNotReadyAddresses = true
	service.Spec.Ports = append(service.Spec.Ports, servicePort(trustPortName, trustPort),
		servicePort(etcdClientPortName, etcdClientPort), servicePort(etcdPeerPortName, etcdPeerPort))

	for i := range service.Spec.Ports {
		service.Spec.Ports[i].TargetPort = intstr.FromInt32(service.Spec.Ports[i].Port)
	}

	if m.PeerAddress.IsValid() {
		service.Spec.ClusterIP = m.PeerAddress.String()
	}

	return service
}

// peerSuffix ends the name of a control plane's Service for its peers. No machine is called so: their names end with
// numbers.
const peerSuffix = "-peer"

// Services are those of one machine.
func (s Spec) Services(m Machine) []*corev1.Service {
	return slices.DeleteFunc([]*corev1.Service{s.MachineService(m), s.peerService(m)},
		func(service *corev1.Service) bool { return service == nil })
}

func (s Spec) service(
	name string, labels map[string]string, kind corev1.ServiceType, selector map[string]string, role Role,
) *corev1.Service {
	ports := []corev1.ServicePort{servicePort(talosPortName, talosPort)}
	if role == ControlPlane {
		ports = append(ports, servicePort(kubernetesPortName, KubernetesPort))
	}

	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: labels, Annotations: merged(s.Annotations)},
		Spec:       corev1.ServiceSpec{Type: kind, Selector: selector, Ports: ports},
	}
}

// servicePort names its protocol: with the port it is the key of the list, without which fields have no owner.
func servicePort(name string, port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromString(name)}
}
