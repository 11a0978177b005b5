package hosttest_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgo "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/hosttest"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

const image = "ghcr.io/siderolabs/talos:"

func must(t testing.TB, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

// patience bounds what a test waits for, which only matters in failure: a busy machine may take long.
const patience = 3 * time.Minute

// soon fails the test when a condition does not come true.
func soon(t testing.TB, condition func(ctx context.Context) error) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	must(t, wait.Until(ctx, 20*time.Millisecond, condition))
}

// kept are the paths that are on volumes; /run, /system and /tmp are not.
var kept = map[string]string{
	"state": "/system/state", "var": "/var", "cni": "/etc/cni", "kubernetes": "/etc/kubernetes",
	"libexec": "/usr/libexec/kubernetes",
}

// site is a namespace of a host with pods in it.
type site struct {
	*hosttest.Host

	t         testing.TB
	namespace string
	class     string
	ephemeral bool
	probe     int32 // port of readiness
}

func newSite(t testing.TB, h *hosttest.Host) *site {
	t.Helper()

	return &site{Host: h, t: t, namespace: h.Namespace(t), probe: 50000}
}

// make makes a StatefulSet of one pod, its claims and a Service.
func (s *site) make(name, tag string) {
	s.t.Helper()

	s.claims(name)

	labels := map[string]string{"app.kubernetes.io/name": "talos", "machine": name}

	_, err := s.API().CoreV1().Services(s.namespace).Create(s.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{Selector: labels, Type: corev1.ServiceTypeLoadBalancer, PublishNotReadyAddresses: true,
			Ports: []corev1.ServicePort{{
				Name: "talos-api", Port: 50000,
			}}},
	}, metav1.CreateOptions{})
	must(s.t, err)

	_, err = s.API().AppsV1().StatefulSets(s.namespace).Create(s.t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, ServiceName: name,
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			Template:       corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: s.pod(name, tag)},
		},
	}, metav1.CreateOptions{})
	must(s.t, err)
}

func (s *site) claims(name string) {
	s.t.Helper()

	for volume := range kept {
		must(s.t, s.claim(s.t.Context(), name, volume))
	}
}

func (s *site) claim(ctx context.Context, name, volume string) error {
	_, err := s.API().CoreV1().PersistentVolumeClaims(s.namespace).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: volume + "-" + name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: orNil(s.class),
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})

	return err
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}

	return &text
}

func (s *site) pod(name, tag string) corev1.PodSpec {
	container := corev1.Container{
		Name: "talos", Image: image + tag, Env: []corev1.EnvVar{{Name: "PLATFORM", Value: "container"}},
		SecurityContext: &corev1.SecurityContext{Privileged: new(true), ReadOnlyRootFilesystem: new(true)},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(s.probe)}},
			PeriodSeconds: 2,
		},
	}

	var volumes []corev1.Volume

	add := func(name, path string, source corev1.VolumeSource) {
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: source})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
	}
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}

	for _, path := range []string{"run", "system", "tmp"} {
		add(path, "/"+path, empty)
	}

	for volume, path := range kept {
		source := corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: volume + "-" + name}}
		if s.ephemeral {
			source = empty
		}

		add(volume, path, source)
	}

	return corev1.PodSpec{Containers: []corev1.Container{container}, Volumes: volumes,
		AutomountServiceAccountToken: new(false)}
}

// podThat waits for the pod of a machine to be as it should be.
func (s *site) podThat(name string, fits func(*corev1.Pod) error) *corev1.Pod {
	s.t.Helper()

	var pod *corev1.Pod

	soon(s.t, func(ctx context.Context) error {
		var err error
		if pod, err = s.API().CoreV1().Pods(s.namespace).Get(ctx, name+"-0", metav1.GetOptions{}); err != nil {
			return err
		}

		if err := fits(pod); err != nil {
			return fmt.Errorf("%w: pod %s %+v", err, pod.Name, pod.Status)
		}

		return nil
	})

	return pod
}

func ready(pod *corev1.Pod) error {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}

	return errors.New("not ready")
}

// after is a pod that is ready and another one.
func after(old *corev1.Pod) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		if pod.UID == old.UID {
			return errors.New("still the same pod")
		}

		return ready(pod)
	}
}

func (s *site) machine(name string) *sim.Machine { return s.Machine(s.namespace, name+"-0") }

func (s *site) in(name string, stage sim.Stage) {
	s.t.Helper()

	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()

	must(s.t, s.machine(name).AwaitStage(ctx, stage))
}

func (s *site) delete(pod *corev1.Pod) {
	s.t.Helper()

	must(s.t, s.API().CoreV1().Pods(s.namespace).Delete(s.t.Context(), pod.Name,
		*metav1.NewPreconditionDeleteOptions(string(pod.UID))))
}

// overSPDY and overWebSocket are the two ways in which clients ask for a port-forward.
func overSPDY(config *rest.Config, target *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)

	return spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, target), err
}

func overWebSocket(config *rest.Config, target *url.URL) (httpstream.Dialer, error) {
	return portforward.NewSPDYOverWebsocketDialerForStreaming(target, config)
}

// forward opens a port-forward to the Talos API of a pod, as kubectl does, and returns where it is.
func (s *site) forward(pod string) string {
	s.t.Helper()

	return s.forwardBy(s.Config(), overWebSocket, pod, "50000")
}

func (s *site) forwardBy(
	config *rest.Config, dialerFor func(*rest.Config, *url.URL) (httpstream.Dialer, error), pod, port string,
) string {
	s.t.Helper()

	api, err := clientgo.NewForConfig(config)
	must(s.t, err)

	request := api.CoreV1().RESTClient().Post().Resource("pods").Namespace(s.namespace).Name(pod).SubResource(
		"portforward")
	dialer, err := dialerFor(config, request.URL())
	must(s.t, err)

	end, ready := make(chan struct{}), make(chan struct{})

	forwarder, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, []string{"0:" + port}, end,
		ready, io.Discard, io.Discard)
	must(s.t, err)

	result := make(chan error, 1)
	go func() { result <- forwarder.ForwardPorts() }()

	s.t.Cleanup(func() {
		close(end)
		<-result
	})

	select {
	case <-ready:
	case err := <-result:
		s.t.Fatal(err)
	}

	ports, err := forwarder.GetPorts()
	must(s.t, err)

	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(ports[0].Local)))
}

// insecure is a client of a machine in maintenance mode.
func insecure(t testing.TB, address string) *client.Client {
	t.Helper()

	c, err := client.New(t.Context(), client.WithEndpoints(address),
		client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true})) //nolint:gosec // nothing to verify in maintenance mode
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })

	return c
}

// cluster is the Talos cluster of one control plane dev-cp-0.
type cluster struct {
	bundle *pki.Bundle
	config []byte
}

func newCluster(t testing.TB) cluster {
	t.Helper()

	bundle, err := secretstest.Generate()
	must(t, err)

	config, err := machineconfig.Generate(
		machineconfig.Cluster{
			Name: "dev", Endpoint: "https://dev.ns.svc.cluster.local:6443", KubernetesVersion: "v1.36.2", Contract: "v1.13",
			Patches: []string{"machine:\n  features:\n    hostDNS:\n      enabled: true\n      forwardKubeDNSToHost: true\n"},
		},
		machineconfig.Machine{Role: machineconfig.ControlPlane, Mode: machineconfig.Container, Hostname: "dev-cp-0"}, bundle)
	must(t, err)

	return cluster{bundle, config.Bytes}
}

// call calls the API of the configured machine in a pod until it succeeds, through a port-forward.
func (s *site) call(c cluster, name string, call func(context.Context, *client.Client) error) {
	s.t.Helper()

	admin, err := c.bundle.TalosClient([]string{"os:admin"}, time.Hour)
	must(s.t, err)

	pair, err := tls.X509KeyPair(admin.Certificate, admin.Key)
	must(s.t, err)

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(admin.CA)

	talos, err := client.New(s.t.Context(), client.WithEndpoints(s.forward(name+"-0")), client.WithTLSConfig(&tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{pair}, ServerName: "dev-cp-0", MinVersion: tls.VersionTLS13,
	}))
	must(s.t, err)

	defer func() { must(s.t, talos.Close()) }()

	soon(s.t, func(ctx context.Context) error { return call(ctx, talos) })
}

// configure applies a configuration to a machine in maintenance mode.
func (s *site) configure(c cluster, name string) {
	s.t.Helper()

	s.in(name, sim.StageMaintenance)

	_, err := insecure(s.t, s.forward(name+"-0")).ApplyConfiguration(s.t.Context(),
		&machine.ApplyConfigurationRequest{Data: c.config})
	must(s.t, err)
}

// create brings up a control plane, and returns its pod.
func (s *site) create(c cluster, name, tag string) *corev1.Pod {
	s.t.Helper()

	s.make(name, tag)
	s.podThat(name, running)
	s.configure(c, name)
	s.call(c, name, func(ctx context.Context, t *client.Client) error {
		return t.Bootstrap(ctx, &machine.BootstrapRequest{})
	})

	return s.podThat(name, ready)
}

func running(pod *corev1.Pod) error {
	if pod.Status.Phase != corev1.PodRunning {
		return errors.New("it does not run")
	}

	return nil
}

func talosOf(pod *corev1.Pod) corev1.ContainerStatus { return pod.Status.ContainerStatuses[0] }
