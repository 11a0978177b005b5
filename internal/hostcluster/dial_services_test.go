package hostcluster_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// Services have the ways in that need no right to forward.
func TestDial_throughServices(t *testing.T) {
	d := newDialing(t)
	d.pod(t, d.spec, machine("cp", 0), "10.66.9.1", nil)

	reached := map[string]string{}
	d.host = open(t, hostcluster.Options{
		Kubeconfig: api.Kubeconfig{Path: d.cluster.Kubeconfig()}, Reach: reachByMap(reached),
	})

	api := d.cluster.API().CoreV1().Services(d.spec.Namespace)
	service, err := api.Create(t.Context(),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "dev-cp-0"}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Name: "talos-api", Port: 50000}},
		}}, metav1.CreateOptions{})
	check(t, err)

	d.spec.Access = workload.LoadBalancer
	d.refused(t, "dev-cp-0:50000", "dev-cp-0 has no load balancer address yet")

	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}, {Hostname: "lb.example"}}
	service, err = api.UpdateStatus(t.Context(), service, metav1.UpdateOptions{})
	check(t, err)

	reached["lb.example:50000"] = echoServer(t, "balanced")
	d.answers(t, "10.66.9.1:50000", "balanced")

	d.spec.Access = workload.Pod
	reached["10.66.9.1:50000"] = echoServer(t, "direct")
	d.answers(t, "dev-cp-0:50000", "direct")

	d.spec.Access = workload.NodePort
	service.Spec.Type = corev1.ServiceTypeNodePort
	service, err = api.Update(t.Context(), service, metav1.UpdateOptions{})
	check(t, err)

	nodes, err := d.cluster.API().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "!nothing"})
	check(t, err)

	for _, n := range nodes.Items {
		if n.Name == d.name {
			reached[fmt.Sprintf("%s:%d", n.Status.Addresses[0].Address, service.Spec.Ports[0].NodePort)] = echoServer(t, "node port")
		}
	}

	d.answers(t, "dev-cp-0:50000", "node port")
	d.refused(t, "dev-cp-0:6443", "no port 6443")
}

// The external address of the endpoint is that of its Service.
func TestExternalEndpoint_isTheAddressOfItsService(t *testing.T) {
	d := newDialing(t)
	ports := []corev1.ServicePort{{Name: "kubernetes-api", Port: 6443}}
	api := d.cluster.API().CoreV1().Services(d.spec.Namespace)

	if to, err := d.host.ExternalEndpoint(t.Context(), d.spec); to != "" || err != nil {
		t.Errorf("a resource without an endpoint has %q, %v", to, err)
	}

	d.spec.Endpoint = &workload.EndpointService{}
	if to, err := d.host.ExternalEndpoint(t.Context(), d.spec); to != "" || err != nil {
		t.Errorf("without a Service: %q, %v", to, err)
	}

	d.spec.Endpoint.Type = corev1.ServiceTypeLoadBalancer
	if _, err := d.host.ExternalEndpoint(t.Context(), d.spec); !apierrors.IsNotFound(err) {
		t.Errorf("without the Service that is wanted: %v", err)
	}

	service, err := api.Create(t.Context(),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "dev-external"}, Spec: corev1.ServiceSpec{Ports: ports}},
		metav1.CreateOptions{})
	check(t, err)

	if to, err := d.host.ExternalEndpoint(t.Context(), d.spec); to != "" || err != nil {
		t.Errorf("a Service that is reached inside has %q, %v", to, err)
	}

	service.Spec.Type = corev1.ServiceTypeLoadBalancer
	service, err = api.Update(t.Context(), service, metav1.UpdateOptions{})
	check(t, err)

	if to, err := d.host.ExternalEndpoint(t.Context(), d.spec); err == nil ||
		!strings.Contains(err.Error(), "no load balancer address yet") {
		t.Errorf("a balancer that is not there yet has %q, %v", to, err)
	}

	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "2001:db8::1"}}
	service, err = api.UpdateStatus(t.Context(), service, metav1.UpdateOptions{})
	check(t, err)

	if to, err := d.host.ExternalEndpoint(t.Context(), d.spec); to != "[2001:db8::1]:6443" || err != nil {
		t.Errorf("a balancer has %q, %v", to, err)
	}

	service.Spec.Type = corev1.ServiceTypeNodePort
	service, err = api.Update(t.Context(), service, metav1.UpdateOptions{})
	check(t, err)

	to, err := d.host.ExternalEndpoint(t.Context(), d.spec)
	if port := fmt.Sprintf(":%d", service.Spec.Ports[0].NodePort); err != nil || !strings.HasSuffix(to, port) {
		t.Errorf("a node port is at %q, %v, want the port %s", to, err, port)
	}
}
