package backupschedule_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	talosclient "github.com/siderolabs/talos/pkg/machinery/client"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubedynamic "k8s.io/client-go/dynamic"
	clientgo "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// scheduleSite is a cluster of one simulated machine whose Kubernetes API is a real kube-apiserver without
// controllers. Where noted, the test acts as two of them: that of Talos for its ServiceAccounts, and that of Jobs.
type scheduleSite struct {
	*sim.Simulator

	machine  *sim.Machine
	endpoint string
	Secrets  string
	API      clientgo.Interface
	any      kubedynamic.Interface

	// whole is the test that owns the site.
	whole *testing.T

	Mu      sync.Mutex
	allowed []string
	// fails is why Jobs fail, empty when they succeed.
	fails string
	done  int
}

var talosAccounts = schema.GroupVersionResource{Group: "talos.dev", Version: "v1alpha1", Resource: "serviceaccounts"}

func newScheduleSite(t *testing.T) *scheduleSite {
	t.Helper()

	s := &scheduleSite{
		whole:     t,
		Simulator: sim.ForTest(t, sim.Options{Assets: filepath.Dir(clitest.Asset(t, "kube-apiserver"))}),
		Secrets:   tftest.Bundle(),
	}

	bundle, err := pki.Parse([]byte(s.Secrets))
	tftest.Must(t, err)

	s.endpoint, err = s.Endpoint()
	tftest.Must(t, err)

	config, err := machineconfig.Generate(
		machineconfig.Cluster{Name: "prod", Endpoint: s.endpoint, KubernetesVersion: "v1.36.3", Contract: "v1.13"},
		machineconfig.Machine{
			Role: machineconfig.ControlPlane, Mode: machineconfig.Metal,
			Install: machineconfig.Install{Disk: "/dev/sda", Image: "ghcr.io/siderolabs/installer:v1.13.0"},
		}, bundle)
	tftest.Must(t, err)

	s.machine, err = s.AddMachine(t.Context(), sim.MachineOptions{Name: "cp-1", Config: config.Bytes})
	tftest.Must(t, err)
	s.bootstrap(t, bundle)

	admin, err := bundle.KubernetesClient("admin", []string{"system:masters"}, time.Hour)
	tftest.Must(t, err)

	access := &rest.Config{Host: s.endpoint, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: admin.CA, CertData: admin.Certificate, KeyData: admin.Key}}
	s.API, err = clientgo.NewForConfig(access)
	tftest.Must(t, err)
	s.any, err = kubedynamic.NewForConfig(access)
	tftest.Must(t, err)

	return s
}

func (s *scheduleSite) bootstrap(t *testing.T, bundle *pki.Bundle) {
	t.Helper()

	admin, err := bundle.TalosClient([]string{"os:admin"}, time.Hour)
	tftest.Must(t, err)

	cert, err := tls.X509KeyPair(admin.Certificate, admin.Key)
	tftest.Must(t, err)

	talos, err := talosclient.New(t.Context(), talosclient.WithEndpoints(s.machine.Endpoint()),
		talosclient.WithTLSConfig(&tls.Config{
			Certificates: []tls.Certificate{cert}, InsecureSkipVerify: true, //nolint:gosec // the machine belongs to the test
		}))
	tftest.Must(t, err)
	t.Cleanup(func() { tftest.Must(t, talos.Close()) })

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()

	tftest.Must(t, wait.Until(ctx, 20*time.Millisecond,
		func(ctx context.Context) error { return talos.Bootstrap(ctx, &machine.BootstrapRequest{}) }))
	tftest.Must(t, s.machine.AwaitReady(ctx))
}

// serviceAccounts defines the kind as Talos does (Talos 1.13,
// internal/app/machined/pkg/controllers/k8s/internal/k8stemplates/testdata/talos-service-account-crd.yaml).
const serviceAccounts = `{
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "serviceaccounts.talos.dev"},
  "spec": {
    "conversion": {"strategy": "None"}, "group": "talos.dev", "scope": "Namespaced",
    "names": {"kind": "ServiceAccount", "listKind": "ServiceAccountList", "plural": "serviceaccounts", "shortNames": ["tsa"], "singular": "serviceaccount"},
    "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
      "spec": {"type": "object", "properties": {"roles": {"type": "array", "items": {"type": "string"}}}},
      "status": {"type": "object", "properties": {"failureReason": {"type": "string"}}}
    }}}}]
  }
}`

// allow turns on the feature kubernetesTalosAPIAccess for namespaces: from then on the test does what Talos does
// (Talos 1.13, kubeaccess/serviceaccount/crd_controller.go, syncHandler).
func (s *scheduleSite) allow(t *testing.T, namespaces ...string) {
	t.Helper()

	s.Mu.Lock()
	first := s.allowed == nil
	s.allowed = namespaces
	s.Mu.Unlock()

	if !first {
		return
	}

	definition := &unstructured.Unstructured{}
	tftest.Must(t, json.Unmarshal([]byte(serviceAccounts), definition))

	_, err := s.any.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}).
		Create(t.Context(), definition, metav1.CreateOptions{})
	tftest.Must(t, err)

	s.play(s.syncAccounts)
}

// play repeats the work of a controller while the site lives. It ignores errors of objects that change meanwhile,
// because a controller tries again.
func (s *scheduleSite) play(sync func(ctx context.Context) error) {
	t := s.whole

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})

	go func() {
		defer close(done)

		for ctx.Err() == nil {
			if err := sync(ctx); err != nil && ctx.Err() == nil {
				t.Logf("a controller tries again: %v", err)
			}

			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()

	t.Cleanup(func() { cancel(); <-done })
}

func (s *scheduleSite) syncAccounts(ctx context.Context) error {
	list, err := s.any.Resource(talosAccounts).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil // not served yet
	}

	if err != nil {
		return err
	}

	s.Mu.Lock()
	allowed := s.allowed
	s.Mu.Unlock()

	var problems []error
	for i := range list.Items {
		problems = append(problems, s.syncAccount(ctx, &list.Items[i], allowed))
	}

	return errors.Join(problems...)
}

func (s *scheduleSite) syncAccount(ctx context.Context, account *unstructured.Unstructured, allowed []string) error {
	namespace := account.GetNamespace()

	reason := ""
	if !slices.Contains(allowed, namespace) {
		reason = "Namespace is not allowed: " + namespace
	}

	if found, _, _ := unstructured.NestedString(account.Object, "status", "failureReason"); found != reason {
		if reason == "" {
			unstructured.RemoveNestedField(account.Object, "status", "failureReason")
		} else if err := unstructured.SetNestedField(account.Object, reason, "status", "failureReason"); err != nil {
			return err
		}

		if _, err := s.any.Resource(talosAccounts).Namespace(namespace).Update(ctx, account,
			metav1.UpdateOptions{}); err != nil {
			return err
		}
	}

	if reason != "" {
		return nil
	}

	_, err := s.API.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: account.GetName(), OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(account, account.GroupVersionKind())},
		},
		Data: map[string][]byte{"config": []byte("a talosconfig")},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}

	return err
}

// runJobs acts as the controller of Jobs and the kubelet: each Job ends at once.
func (s *scheduleSite) runJobs() { s.play(s.syncJobs) }

// failing makes Jobs fail from now on; an empty reason makes them succeed.
func (s *scheduleSite) failing(reason string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()

	s.fails = reason
}

// ended is how many Jobs have ended.
func (s *scheduleSite) ended() int {
	s.Mu.Lock()
	defer s.Mu.Unlock()

	return s.done
}

func (s *scheduleSite) syncJobs(ctx context.Context) error {
	jobs, err := s.API.BatchV1().Jobs("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}

	s.Mu.Lock()
	defer s.Mu.Unlock()

	var problems []error

	for i := range jobs.Items {
		if job := &jobs.Items[i]; len(job.Status.Conditions) == 0 {
			s.done++

			problems = append(problems, s.end(ctx, job))
		}
	}

	return errors.Join(problems...)
}

func (s *scheduleSite) end(ctx context.Context, job *batchv1.Job) error {
	now := metav1.Now()
	yes := func(kind batchv1.JobConditionType, reason string) batchv1.JobCondition {
		return batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: reason,
			LastTransitionTime: now}
	}

	job.Status.StartTime = &now

	if s.fails == "" {
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
		job.Status.Conditions = []batchv1.JobCondition{yes(batchv1.JobSuccessCriteriaMet, ""), yes(batchv1.JobComplete, "")}
	} else {
		if err := s.failPod(ctx, job); err != nil {
			return err
		}

		job.Status.Failed = 1
		job.Status.Conditions = []batchv1.JobCondition{yes(batchv1.JobFailureTarget, "BackoffLimitExceeded"),
			yes(batchv1.JobFailed, "BackoffLimitExceeded")}
	}

	_, err := s.API.BatchV1().Jobs(job.Namespace).UpdateStatus(ctx, job, metav1.UpdateOptions{})

	return err
}

// failPod makes the pod of a failed Job, as the PodSecurity admission of its namespace allows.
func (s *scheduleSite) failPod(ctx context.Context, job *batchv1.Job) error {
	_, err := s.API.CoreV1().ServiceAccounts(job.Namespace).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}

	template := job.Spec.Template.DeepCopy()
	template.Labels[batchv1.JobNameLabel] = job.Name

	pod, err := s.API.CoreV1().Pods(job.Namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: job.Name + "-" + strings.ToLower(fmt.Sprint(time.Now().UnixNano()%100000)), Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: template.Spec,
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}

	pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
		Name: pod.Spec.Containers[0].Name,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 255, Reason: "Error",
			Message: s.fails}},
	}}}

	_, err = s.API.CoreV1().Pods(job.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})

	return err
}

// objects lists the schedule's objects in a namespace, sorted.
func (s *scheduleSite) objects(t *testing.T, namespace string) string {
	t.Helper()

	var names []string

	for kind, resource := range map[string]schema.GroupVersionResource{
		"CronJob":             {Group: "batch", Version: "v1", Resource: "cronjobs"},
		"Job":                 {Group: "batch", Version: "v1", Resource: "jobs"},
		"Secret":              {Version: "v1", Resource: "secrets"},
		"TalosServiceAccount": talosAccounts,
	} {
		list, err := s.any.Resource(resource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		tftest.Must(t, err)

		for i := range list.Items {
			names = append(names, kind+" "+list.Items[i].GetName())
		}
	}

	slices.Sort(names)

	return strings.Join(names, ", ")
}
