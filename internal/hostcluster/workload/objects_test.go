package workload

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
)

// specOf is one with all that can be chosen.
func specOf(cluster, mark string, pools ...string) Spec {
	s := Spec{
		Cluster: cluster, Mark: mark, Namespace: "talos", Domain: "cluster.local", Access: PortForward,
		Endpoint: &EndpointService{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: "internal",
			Annotations: map[string]string{"lb": "x"}},
		Labels:      map[string]string{"team": "blue", LabelCluster: "mine", LabelManagedBy: "me"},
		Annotations: map[string]string{"note": "n"},
	}

	for _, pool := range pools {
		role := Worker
		if pool == "cp" {
			role = ControlPlane
		}

		for n := range 2 {
			s.Machines = append(s.Machines, Machine{
				Name: pool + "-" + string(rune('0'+n)), Pool: pool, Ordinal: n, Role: role,
				Image: "registry.example/talos:v1.13.0", PullSecrets: []string{"pull"},
				Pod: PodSpec{
					Resources: corev1.ResourceRequirements{
						Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")}},
					Storage: Storage{
						Class: "fast", State: resource.MustParse("1Gi"), Var: resource.MustParse("20Gi"),
						Other: resource.MustParse("100Mi"),
					},
					NodeSelector:  map[string]string{"disk": "ssd"},
					Tolerations:   []corev1.Toleration{{Key: "talos", Operator: corev1.TolerationOpExists}},
					PriorityClass: "high", Annotations: map[string]string{"pod": "p"},
				},
			})
		}
	}

	return s
}

func TestStatefulSet_hasWhatTalosNeeds(t *testing.T) {
	t.Parallel()

	s := specOf("dev", "m", "cp", "batch")

	for _, m := range s.Machines {
		set := s.StatefulSet(m)
		pod := set.Spec.Template.Spec
		c := pod.Containers[0]

		if c.Image != m.Image || len(c.Env) != 1 || c.Env[0].Name != "PLATFORM" || c.Env[0].Value != "container" ||
			len(c.Command)+len(c.Args) > 0 {
			t.Errorf("%s runs %+v", m.Name, c)
		}

		security := c.SecurityContext
		if !*security.Privileged || !*security.ReadOnlyRootFilesystem ||
			security.SeccompProfile.Type != corev1.SeccompProfileTypeUnconfined {
			t.Errorf("%s has privileges %+v", m.Name, security)
		}

		if *pod.AutomountServiceAccountToken || *pod.EnableServiceLinks || pod.HostNetwork || pod.HostPID ||
			*pod.TerminationGracePeriodSeconds < 180 {
			t.Errorf("%s has pod %+v", m.Name, pod)
		}

		if pod.NodeSelector["disk"] != "ssd" || len(pod.Tolerations) != 1 || pod.PriorityClassName != "high" ||
			pod.ImagePullSecrets[0].Name != "pull" ||
			c.Resources.Limits.Memory().String() != "4Gi" || set.Spec.Template.Annotations["pod"] != "p" ||
			set.Spec.Template.Annotations["note"] != "n" {
			t.Errorf("%s lacks what was chosen: %+v", m.Name, pod)
		}

		port := "talos-api"
		if m.Role == ControlPlane {
			port = "kubernetes-api"
		}

		if probe := c.ReadinessProbe.TCPSocket.Port.StrVal; probe != port || c.LivenessProbe != nil {
			t.Errorf("%s is ready by its port %s", m.Name, probe)
		}

		if *set.Spec.Replicas != 1 || set.Spec.UpdateStrategy.Type != "OnDelete" || len(set.Spec.VolumeClaimTemplates) > 0 {
			t.Errorf("%s has StatefulSet %+v", m.Name, set.Spec)
		}
	}
}

// Each path that Talos writes to is a volume, those with data are claims or not as asked, and /opt is none: it has the
// CNI's programs.
func TestStatefulSet_mounts(t *testing.T) {
	t.Parallel()

	s := specOf("dev", "m", "cp")
	scratch := []string{"/run", "/system", "/tmp"}
	data := []string{"/etc/cni", "/etc/kubernetes", "/system/state", "/usr/libexec/kubernetes", "/var"}

	for _, ephemeral := range []bool{false, true} {
		m := s.Machines[0]
		m.Pod.Storage.Ephemeral = ephemeral

		pod := s.StatefulSet(m).Spec.Template.Spec
		volumes := map[string]corev1.VolumeSource{}

		for _, v := range pod.Volumes {
			volumes[v.Name] = v.VolumeSource
		}

		claims := map[string]string{}
		for _, c := range s.Claims(m) {
			claims[c.Name] = c.Spec.Resources.Requests.Storage().String()

			if *c.Spec.StorageClassName != "fast" ||
				!slices.Equal(c.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}) {
				t.Errorf("a claim is %+v", c.Spec)
			}
		}

		kept := map[string]string{}

		for _, mount := range pod.Containers[0].VolumeMounts {
			switch v := volumes[mount.Name]; {
			case v.PersistentVolumeClaim != nil:
				kept[mount.MountPath] = claims[v.PersistentVolumeClaim.ClaimName]
			case v.EmptyDir != nil:
				kept[mount.MountPath] = ""
			default:
				t.Errorf("%s is %+v", mount.MountPath, v)
			}

			if mount.ReadOnly || mount.SubPath != "" {
				t.Errorf("%s is mounted as %+v", mount.MountPath, mount)
			}
		}

		want := map[string]string{}
		for _, path := range slices.Concat(scratch, data) {
			want[path] = ""
		}

		if !ephemeral {
			maps.Copy(want, map[string]string{
				"/system/state": "1Gi", "/var": "20Gi", "/etc/cni": "100Mi", "/etc/kubernetes": "100Mi",
				"/usr/libexec/kubernetes": "100Mi",
			})
		}

		if !maps.Equal(kept, want) || ephemeral == (len(claims) > 0) {
			t.Errorf("with ephemeral storage %t the paths are %v", ephemeral, kept)
		}
	}
}

// No two machines share a pod, whatever the names of clusters and pools, and a cluster of the same name with other
// secrets is another one.
func TestSelectors_matchOnePodEach(t *testing.T) {
	t.Parallel()

	clusters := []Spec{specOf("dev", "m", "cp", "batch", "batch-0"), specOf("dev", "other", "cp", "batch"),
		specOf("dev-batch", "m", "cp", "batch")}

	for i, s := range clusters {
		for _, m := range s.Machines {
			for _, selector := range []map[string]string{s.StatefulSet(m).Spec.Selector.MatchLabels,
				s.MachineService(m).Spec.Selector} {
				var matched []string

				for j, other := range clusters {
					for _, n := range other.Machines {
						if labels.SelectorFromSet(selector).Matches(labels.Set(other.StatefulSet(n).Spec.Template.Labels)) {
							matched = append(matched, string(rune('0'+j))+other.HostName(n))
						}
					}
				}

				if want := string(rune('0'+i)) + s.HostName(m); !slices.Equal(matched, []string{want}) {
					t.Errorf("the selector of %s matches %v", want, matched)
				}
			}
		}

		selector := labels.SelectorFromSet(s.EndpointServices()[0].Spec.Selector)

		for j, other := range clusters {
			for _, n := range other.Machines {
				if selector.Matches(labels.Set(other.StatefulSet(n).Spec.Template.Labels)) != (i == j && n.Role == ControlPlane) {
					t.Errorf("that %s of cluster %d is behind the endpoint of cluster %d is wrong", other.HostName(n), j, i)
				}
			}
		}
	}
}

func TestServices_byAccess(t *testing.T) {
	t.Parallel()

	s := specOf("dev", "m", "cp", "batch")
	endpoints := s.EndpointServices()
	inside, outside := endpoints[0], endpoints[1]

	if inside.Name != "dev" || inside.Spec.Type != corev1.ServiceTypeClusterIP || inside.Annotations["lb"] != "" ||
		ports(inside) != "talos-api:50000 kubernetes-api:6443 talos-trust:50001" {
		t.Errorf("the endpoint inside is %+v", inside)
	}

	if outside.Name != "dev-external" || outside.Spec.PublishNotReadyAddresses ||
		*outside.Spec.LoadBalancerClass != "internal" ||
		!maps.Equal(outside.Annotations, map[string]string{"lb": "x", "note": "n"}) ||
		ports(outside) != "kubernetes-api:6443" {
		t.Errorf("the endpoint outside is %+v", outside)
	}

	s.Endpoint.Type, s.Endpoint.TalosAPI = corev1.ServiceTypeNodePort, true
	if outside = s.EndpointServices()[1]; outside.Spec.LoadBalancerClass != nil ||
		ports(outside) != "kubernetes-api:6443 talos-api:50000 talos-trust:50001" {
		t.Errorf("with the ports of Talos it is %+v", outside)
	}

	s.Endpoint.Type = ""
	if endpoints = s.EndpointServices(); len(endpoints) != 1 || endpoints[0].Annotations["lb"] != "x" {
		t.Errorf("without a type there are %+v", endpoints)
	}

	s.Endpoint = nil
	if len(s.EndpointServices()) > 0 {
		t.Error("a resource without control planes has an endpoint")
	}

	for access, kind := range map[Access]corev1.ServiceType{
		PortForward: corev1.ServiceTypeClusterIP, Pod: corev1.ServiceTypeClusterIP,
		NodePort: corev1.ServiceTypeNodePort, LoadBalancer: corev1.ServiceTypeLoadBalancer,
	} {
		s.Access = access

		for _, m := range s.Machines {
			service := s.MachineService(m)

			want := "talos-api:50000"
			if m.Role == ControlPlane {
				want += " kubernetes-api:6443"
			}

			if service.Spec.Type != kind || (service.Spec.ClusterIP == "None") != (kind == corev1.ServiceTypeClusterIP) ||
				!service.Spec.PublishNotReadyAddresses || ports(service) != want ||
				service.Name+".talos.svc.cluster.local" != s.Address(m) {
				t.Errorf("with access %s the Service of %s is %+v", access, m.Name, service)
			}
		}
	}
}

// Of each control plane there is an address that its pods come and go behind, ready or not, and whatever the way in.
func TestServices_forPeers(t *testing.T) {
	t.Parallel()

	s := specOf("dev", "m", "cp", "batch")

	for _, access := range []Access{PortForward, NodePort, LoadBalancer, Pod} {
		s.Access = access

		for _, m := range s.Machines {
			service := s.peerService(m)
			if (service == nil) != (m.Role == Worker) || len(s.Services(m)) != map[Role]int{ControlPlane: 2, Worker: 1}[m.Role] {
				t.Errorf("%s has the Services %v", m.Name, s.Services(m))
			}

			if service == nil {
				continue
			}

			if service.Name != s.HostName(m)+"-peer" || service.Spec.Type != corev1.ServiceTypeClusterIP ||
				service.Spec.ClusterIP != "" ||
				!service.Spec.PublishNotReadyAddresses || !maps.Equal(service.Spec.Selector, s.machineSelector(m)) ||
				!s.Ours(service) ||
				ports(service) != "talos-api:50000 kubernetes-api:6443 talos-trust:50001 etcd-client:2379 etcd-peer:2380" {
				t.Errorf("with access %s the Service for the peers of %s is %+v", access, m.Name, service)
			}

			for _, port := range service.Spec.Ports {
				if port.TargetPort.IntVal != port.Port {
					t.Errorf("port %s leads to %s", port.Name, port.TargetPort.String())
				}
			}
		}
	}

	m := s.Machines[0]
	m.PeerAddress = netip.MustParseAddr("10.96.1.2")

	if ip := s.peerService(m).Spec.ClusterIP; ip != "10.96.1.2" {
		t.Errorf("the Service has the address %q", ip)
	}
}

func ports(service *corev1.Service) string {
	var all []string

	for _, p := range service.Spec.Ports {
		all = append(all, fmt.Sprintf("%s:%d", p.Name, p.Port))
	}

	return strings.Join(all, " ")
}

// Labels of the user do not hide talosop's objects from it.
func TestLabels_ofTheUser(t *testing.T) {
	t.Parallel()

	s := specOf("dev", "m", "cp")
	got := s.machineLabels(s.Machines[0])
	want := map[string]string{
		"team": "blue", LabelManagedBy: "talosop", LabelName: "talos", LabelCluster: "dev", LabelMark: "m",
		LabelPool: "cp", LabelMachine: "cp-0", LabelRole: "controlplane",
	}

	if !maps.Equal(got, want) {
		t.Errorf("the labels are %v", got)
	}

	claim := s.Claims(s.Machines[0])[0]
	if !s.Ours(claim) || specOf("dev", "other").Ours(claim) {
		t.Error("whose a claim is is wrong")
	}
}
