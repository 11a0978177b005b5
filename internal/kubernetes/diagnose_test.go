package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/diagnose"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// failingObjects is a namespace whose objects have the statuses that the test gives them.
type failingObjects struct {
	t  *testing.T
	l  *living
	h  helm
	ns string
}

// object makes an object with a status.
func (w failingObjects) object(text string) objects.Reference {
	w.t.Helper()

	o := parsed(w.t, strings.ReplaceAll(text, "NS", w.ns))
	w.h.create(w.t, w.l, o)

	if status, ok := o["status"].(object); ok && len(status) > 0 {
		resource := w.h.resource(w.t, w.l, o)

		// The simulator's controllers write statuses, too.
		check(w.t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			live, err := resource.Get(w.t.Context(), objects.ReferenceTo(o).Name, metav1.GetOptions{})
			if err != nil {
				return err
			}

			live.Object["status"] = status
			_, err = resource.UpdateStatus(w.t.Context(), live, metav1.UpdateOptions{})

			return err
		}))
	}

	return objects.ReferenceTo(o)
}

func (w failingObjects) event(kind, name, message string) {
	w.t.Helper()

	_, err := w.l.api.CoreV1().Events(w.ns).Create(w.t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "e"},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: w.ns, Name: name},
		Type:           "Warning", Reason: "Because", Message: message, LastTimestamp: metav1.Now(),
	}, metav1.CreateOptions{})
	check(w.t, err)
}

// kubelet makes a node whose kubelet answers with logs: what was asked, and then lines.
func (w failingObjects) kubelet(node string, lines ...string) {
	w.t.Helper()

	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		// the client may be gone
		_, _ = fmt.Fprintf(rw, "%s\nprevious=%s\n", strings.Join(lines, "\n"), r.URL.Query().Get("previous"))
	}))
	w.t.Cleanup(server.Close)

	address, err := url.Parse(server.URL)
	check(w.t, err)

	port, err := strconv.ParseInt(address.Port(), 10, 32)
	check(w.t, err)

	w.l.node(w.t, node, nil)

	live, err := w.l.api.CoreV1().Nodes().Get(w.t.Context(), node, metav1.GetOptions{})
	check(w.t, err)

	live.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.Hostname()}}
	live.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	_, err = w.l.api.CoreV1().Nodes().UpdateStatus(w.t.Context(), live, metav1.UpdateOptions{})
	check(w.t, err)
}

const (
	// template has an image that the simulated nodes never run; they have the last word about the
	// statuses of Deployments and DaemonSets.
	template = `selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {nodeSelector: {%[2]s}, containers: [{name: main, image: "Not an image"}]}}`
	// failingPod belongs to the workload of its label.
	failingPod = `{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: NS, labels: {app: %s}}, status: %s, spec: {nodeName: %s,
		containers: [{name: main, image: example.org/app, env: [{name: KEY, valueFrom: {secretKeyRef: {name: access, key: key}}}]}, {name: side, image: example.org/side}]}}`
)

// Each object that is not ready has one text, with the cause or what is nearest to it.
func TestNotReady_namesWhatIsNearestToTheCause(t *testing.T) {
	t.Parallel()

	l := newLiving(t, assets(t))
	c := l.client(t)

	w := failingObjects{t, l, l.helm(t), l.namespace(t, "workloads")}
	_, err := l.api.CoreV1().ServiceAccounts(w.ns).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	check(t, err)

	w.object("{apiVersion: v1, kind: Secret, metadata: {name: access, namespace: NS}, stringData: {key: " +
		"key-of-the-bucket}}")
	w.kubelet("logs", append(strings.Split(strings.Repeat("early\n", 10), "\n"), strings.Repeat("ä", 400),
		"denied: key-of-the-bucket")...)

	kind := func(version, kind, name, spec, status string) objects.Reference {
		return w.object(fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: NS}, spec: {%s}, status: "+
			"{%s}}", version, kind, name, spec, status))
	}
	workload := func(kindName, name, spec, status string) objects.Reference {
		return kind("apps/v1", kindName, name, fmt.Sprintf(template, name, "")+spec, "observedGeneration: 1, "+status)
	}

	crashes := workload("Deployment", "crashes", ", replicas: 2", "replicas: 2, updatedReplicas: 2, availableReplicas: 0")
	w.object(fmt.Sprintf(failingPod, "late", "crashes",
		"{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: no room}]}",
		"null"))
	w.object(fmt.Sprintf(failingPod, "loops", "crashes", `{phase: Running, containerStatuses: [
		{name: main, image: a, imageID: b, ready: true, restartCount: 0, state: {running: {}}},
		{name: side, image: a, imageID: b, ready: false, restartCount: 7, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 3, reason: Error}}}]}`, "logs"))
	w.event("Pod", "loops", "Back-off restarting, with key-of-the-bucket")

	quota := workload("Deployment", "quota", ", replicas: 1", "")
	live, err := c.GetObject(t.Context(), quota)
	check(t, err)
	w.object(fmt.Sprintf(`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: quota-new, namespace: NS, labels: {app: quota}, annotations: {deployment.kubernetes.io/revision: "12"},
		ownerReferences: [{apiVersion: apps/v1, kind: Deployment, controller: true, name: quota, uid: %s}]}, spec: {%s}}`, (&unstructured.Unstructured{Object: live}).GetUID(), fmt.Sprintf(template, "quota", "")))
	w.event("ReplicaSet", "quota-new", "pods are forbidden: exceeded quota")

	stateful := workload("StatefulSet", "stateful", ", serviceName: x, replicas: 3",
		"replicas: 1, readyReplicas: 1, availableReplicas: 1")
	w.object(fmt.Sprintf(failingPod, "stateful-0", "stateful", `{phase: Running, conditions: [{type: Ready, status: 'False', reason: ContainersNotReady}], containerStatuses: [
		{name: main, image: a, imageID: b, ready: false, restartCount: 0, state: {running: {}}}]}`, "logs"))

	set := workload("DaemonSet", "set", "",
		"currentNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0, desiredNumberScheduled: 2")
	w.event("DaemonSet", "set", "admission denied")

	job := w.object(`{apiVersion: batch/v1, kind: Job, metadata: {name: job, namespace: NS}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}},
		status: {startTime: "2026-01-01T00:00:00Z", conditions: [{type: FailureTarget, status: 'True', reason: BackoffLimitExceeded}, {type: Failed, status: 'True', reason: BackoffLimitExceeded, message: too often}]}}`)
	pod := w.object(fmt.Sprintf(failingPod, "pulls", "none",
		`{phase: Pending, initContainerStatuses: [{name: fetch, image: a, imageID: b, ready: false, restartCount: 0, state: {waiting: {reason: ErrImagePull, message: no such image}}}]}`, "logs"))
	claim := kind("v1", "PersistentVolumeClaim", "claim",
		"accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}", "phase: Pending")
	w.event("PersistentVolumeClaim", "claim", "no StorageClass")

	balanced := kind("v1", "Service", "balanced", "type: LoadBalancer, ports: [{port: 80}]", "")
	api := w.object("{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.gone.example.org}, " +
		"spec: {group: gone.example.org, version: v1, groupPriorityMinimum: 1, versionPriority: 1, service: {name: gone, " +
		"namespace: NS}}}")

	// These are as they should be.
	ready := []objects.Reference{
		workload("Deployment", "ready", ", replicas: 0",
			"conditions: [{type: Progressing, status: 'True', reason: NewReplicaSetAvailable}, {type: Available, status: "+
				"'True'}]"),
		workload("StatefulSet", "steady", ", serviceName: x, replicas: 1, updateStrategy: {rollingUpdate: {partition: 1}}",
			"replicas: 1, availableReplicas: 1, readyReplicas: 1, currentRevision: a, updateRevision: b"),
		kind("apps/v1", "DaemonSet", "nowhere", fmt.Sprintf(template, "nowhere", "no: node"), "observedGeneration: 1, "+
			"currentNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0, desiredNumberScheduled: 0"),
		workload("ReplicaSet", "none", ", replicas: 0", "replicas: 0"),
		kind("v1", "Service", "inside", "ports: [{port: 80}]", ""),
		kind("v1", "ConfigMap", "config", "", ""),
		{APIVersion: "example.org/v1", Kind: "NobodyKnows", Name: "x"},
	}
	missing := objects.Reference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: w.ns, Name: "missing"}

	awaitTrue(t, func() bool {
		lines, _ := diagnosed(c.NotReady(t.Context(), []objects.Reference{api}), nil)

		return len(lines) == 1 && strings.Contains(lines[0], "not available: ServiceNotFound")
	})

	lines, _ := diagnosed(c.NotReady(t.Context(),
		append([]objects.Reference{crashes, quota, stateful, set, job, pod, claim, balanced, missing}, ready...)), nil)
	wants := [][]string{
		{
			"Deployment workloads/crashes: ", ": 0/2",
			"; pod loops: container side is waiting: CrashLoopBackOff; restarted 7 times, last termination: exit code 3: " +
				"Error; ",
			"last event: Warning Because: Back-off restarting, with (sensitive) (", "; last log lines: early\n",
			strings.Repeat("ä", 300) + "…\ndenied: (sensitive)\nprevious=true",
		},
		{"Deployment workloads/quota: ",
			": 0/1; no pods; last event about ReplicaSet quota-new: Warning Because: pods are forbidden"},
		{"StatefulSet workloads/stateful: Replicas: 1/3; pod stateful-0: the pod is not ready: ContainersNotReady; last " +
			"event: none; last log lines: ", "previous="},
		{"DaemonSet workloads/set: ", ": 0/",
			"; no pods; last event about DaemonSet set: Warning Because: admission denied"},
		{"Job workloads/job: failed: BackoffLimitExceeded (too often); no pods; last event about Job job: none"},
		{"Pod workloads/pulls: container fetch is waiting: ErrImagePull (no such image); last event: none"},
		{"PersistentVolumeClaim workloads/claim: PVC is not Bound. phase: Pending; last event: Warning Because: no " +
			"StorageClass"},
		{"Service workloads/balanced: no load balancer address assigned; last event: none"},
		{"Deployment workloads/missing: not found"},
	}

	if len(lines) != len(wants) {
		t.Fatalf("not ready are\n%s", strings.Join(lines, "\n"))
	}

	for i, texts := range wants {
		for _, text := range texts {
			if !strings.Contains(lines[i], text) {
				t.Errorf("%q is not in\n%s", text, lines[i])
			}
		}
	}

	if strings.Contains(strings.Join(lines, ""), "key-of-the-bucket") || strings.Count(lines[0], "early") > 10 {
		t.Errorf("too much is reported:\n%s", lines[0])
	}
}

// An unreadable object is reported.
func testNotReadyUnread(t *testing.T, l *living, _ *kubernetes.Client) {
	t.Helper()

	options := l.options
	options.Call, options.Attempt = time.Second, time.Second
	options.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("the network is cut") }

	c, err := kubernetes.New(options)
	check(t, err)
	t.Cleanup(c.Close)

	lines, _ := diagnosed(c.NotReady(t.Context(),
		[]objects.Reference{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "a", Name: "b"}}), nil)
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "Deployment a/b: cannot read it: ") ||
		!strings.Contains(lines[0], "the network is cut") {
		t.Errorf("what cannot be read is %q", lines)
	}
}

// diagnosed is the texts of a diagnosis.
func diagnosed(found []diagnose.NotReady, err error) ([]string, error) {
	var lines []string
	for _, n := range found {
		lines = append(lines, n.String())
	}

	return lines, err
}
