package kubernetes_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

type object = map[string]any

// cronJob is one of which the API server fills in much.
func cronJob(namespace, schedule string) object {
	return object{
		"apiVersion": "batch/v1", "kind": "CronJob", "metadata": object{"name": "nightly", "namespace": namespace},
		"spec": object{
			"schedule": schedule, "suspend": false,
			"jobTemplate": object{"spec": object{"template": object{"spec": object{
				"restartPolicy": "Never",
				"containers": []any{object{
					"name": "main", "image": "example.org/app", "env": []any{object{"name": "BUCKET", "value": "one"}},
					"resources": object{"requests": object{"cpu": "0.5"}},
				}},
			}}}},
		},
	}
}

// Objects are applied, compared, repaired and removed on a real API server.
func TestObjects_onAnAPIServer(t *testing.T) {
	t.Parallel()

	l := newLiving(t, assets(t))
	c := l.client(t)

	for name, test := range map[string]func(*testing.T, *living, *kubernetes.Client){
		"differences": testDifferences, "deletion": testDeletion, "kinds": testKinds, "contents": testContents,
		"jobs":      testJob,
		"no answer": testNoAnswer, "charts": testChartObjects, "changed charts": testChangedChartObjects,
		"incomparable": testIncomparable,
		"custom":       testCustomObjects, "definitions": testDefinitions, "any kind": testAnyKind,
		"unread": testNotReadyUnread,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, l, c)
		})
	}
}

func (l *living) namespace(t *testing.T, name string) string {
	t.Helper()

	_, err := l.api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	check(t, err)

	return name
}

// What the API server fills in is no difference, nor are fields that other clients add. A change of our fields is
// one, with its path, and the next apply repairs it.
func testDifferences(t *testing.T, l *living, c *kubernetes.Client) {
	t.Helper()

	ns := l.namespace(t, "differences")
	want := cronJob(ns, "0 3 * * *")
	ref := objects.ReferenceTo(want)

	if live, _, err := c.CompareObject(t.Context(), want); live != nil || err != nil {
		t.Fatalf("there is %v, %v before it was made", live, err)
	}

	_, err := c.ApplyObject(t.Context(), want)
	check(t, err)
	expectDifferences(t, c, want)

	jobs := l.api.BatchV1().CronJobs(ns)

	found, err := jobs.Get(t.Context(), "nightly", metav1.GetOptions{})
	check(t, err)

	// A field of another client.
	found.Spec.StartingDeadlineSeconds = new(int64(60))
	found, err = jobs.Update(t.Context(), found, metav1.UpdateOptions{})
	check(t, err)
	expectDifferences(t, c, want)

	found.Spec.Schedule = "0 4 * * *"
	found.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Env = nil
	_, err = jobs.Update(t.Context(), found, metav1.UpdateOptions{})
	check(t, err)
	expectDifferences(t, c, want,
		"spec.jobTemplate.spec.template.spec.containers[main].env is missing",
		`spec.schedule is "0 4 * * *" instead of "0 3 * * *"`)

	_, err = c.ApplyObject(t.Context(), want)
	check(t, err)
	expectDifferences(t, c, want)

	if found, err = jobs.Get(t.Context(), "nightly", metav1.GetOptions{}); err != nil ||
		*found.Spec.StartingDeadlineSeconds != 60 {
		t.Errorf("another client's field is %v, %v", found.Spec.StartingDeadlineSeconds, err)
	}

	if ref.String() != "CronJob differences/nightly" {
		t.Errorf("it is called %s", ref)
	}

	// A refusal of the API is an answer, reported at once.
	if _, err := c.ApplyObject(t.Context(), cronJob(ns, "never")); err == nil || errors.Is(err, api.ErrNoAnswer) ||
		!strings.Contains(err.Error(), "never") {
		t.Errorf("a bad schedule gives %v", err)
	}
}

func expectDifferences(t *testing.T, c *kubernetes.Client, want object, texts ...string) {
	t.Helper()

	live, found, err := c.CompareObject(t.Context(), want)
	check(t, err)

	if live == nil {
		t.Fatal("there is no object")
	}

	var got []string
	for _, d := range found {
		got = append(got, d.String())
	}

	if strings.Join(got, "\n") != strings.Join(texts, "\n") {
		t.Errorf("differences are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(texts, "\n"))
	}
}

// A deletion waits until the object is gone, and spares another one of its name.
func testDeletion(t *testing.T, l *living, c *kubernetes.Client) {
	t.Helper()

	ns := l.namespace(t, "deletion")
	want := cronJob(ns, "0 3 * * *")
	ref := objects.ReferenceTo(want)

	held, err := c.ApplyObject(t.Context(), want)
	check(t, err)
	check(t, c.DeleteObject(t.Context(), ref, "another-uid"))

	if still, err := c.GetObject(t.Context(), ref); err != nil || still == nil {
		t.Fatalf("another object was deleted: %v", err)
	}

	jobs := l.api.BatchV1().CronJobs(ns)
	found, err := jobs.Get(t.Context(), "nightly", metav1.GetOptions{})
	check(t, err)

	found.Finalizers = []string{"example.org/wait"}
	_, err = jobs.Update(t.Context(), found, metav1.UpdateOptions{})
	check(t, err)

	short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()

	if err := c.DeleteObject(short, ref, ""); err == nil || !strings.Contains(err.Error(), "example.org/wait") {
		t.Errorf("a deletion that is held up gives %v", err)
	}

	found, err = jobs.Get(t.Context(), "nightly", metav1.GetOptions{})
	check(t, err)

	found.Finalizers = nil
	_, err = jobs.Update(t.Context(), found, metav1.UpdateOptions{})
	check(t, err)

	uid, _ := held["metadata"].(object)["uid"].(string)
	check(t, c.DeleteObject(within(t, time.Minute), ref, uid))
	check(t, c.DeleteObject(t.Context(), ref, ""))
}

// A kind is served from when it is defined.
func testKinds(t *testing.T, _ *living, c *kubernetes.Client) {
	t.Helper()

	served := func() bool {
		is, err := c.ServesKind(t.Context(), "example.org/v1", "Thing")
		check(t, err)

		return is
	}

	if served() {
		t.Fatal("a kind is served that is not defined")
	}

	_, err := c.ApplyObject(t.Context(), object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": "things.example.org"},
		"spec": object{
			"group": "example.org", "scope": "Namespaced", "names": object{"kind": "Thing", "plural": "things"},
			"versions": []any{object{
				"name": "v1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": object{"type": "object"}},
			}},
		},
	})
	check(t, err)

	check(t, wait.Until(within(t, time.Minute), 20*time.Millisecond, func(context.Context) error {
		if !served() {
			return errors.New("it is not served")
		}

		return nil
	}))
}

// The contents of a namespace are the objects that clients made there.
func testContents(t *testing.T, l *living, c *kubernetes.Client) {
	t.Helper()

	ns := l.namespace(t, "contents")

	_, err := l.api.CoreV1().ServiceAccounts(ns).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	check(t, err)

	if found, err := c.ContentsOf(t.Context(), ns); err != nil || len(found) > 0 {
		t.Errorf("an empty namespace has %v, %v", found, err)
	}

	_, err = c.ApplyObject(t.Context(), object{
		"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "theirs", "namespace": ns},
	})
	check(t, err)

	if found, err := c.ContentsOf(t.Context(), ns); err != nil || len(found) != 1 ||
		found[0].String() != "Secret contents/theirs" {
		t.Errorf("the namespace has %v, %v", found, err)
	}

	if there, err := c.AwaitNamespace(t.Context(), ns); err != nil || there == nil {
		t.Errorf("the namespace is %v, %v", there, err)
	}
}

// A Job is not ready because of its pods, as the kubelet would report them: with what
// the container wrote last.
func testJob(t *testing.T, l *living, c *kubernetes.Client) {
	t.Helper()

	ns := l.namespace(t, "jobs")

	if lines, err := diagnosed(c.Job(t.Context(), ns, "run")); err != nil || len(lines) != 1 ||
		lines[0] != "Job jobs/run: no pods; last event about Job run: none" {
		t.Errorf("a Job without pods: %q, %v", lines, err)
	}

	pods := l.api.CoreV1().Pods(ns)
	_, err := l.api.CoreV1().ServiceAccounts(ns).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	check(t, err)

	_, err = l.api.CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "access"},
		StringData: map[string]string{"key": "key-of-the-bucket", "file": "first: long-word-of-a-file\n", "short": "push"},
	}, metav1.CreateOptions{})
	check(t, err)

	for name, status := range map[string]corev1.PodStatus{
		"good": {Phase: corev1.PodSucceeded},
		"bad": {Phase: corev1.PodFailed,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 255, Reason: "Error",
					Message: "failed to push snapshot: Access Denied. (key-of-the-bucket, long-word-of-a-file)\n"},
			}}}},
		"waits": {Phase: corev1.PodPending,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"},
			}}}},
	} {
		pod, err := pods.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{batchv1.JobNameLabel: "run"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/app", Env: []corev1.EnvVar{
				{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: "access"}, Key: "key",
				}}},
			}}}},
		}, metav1.CreateOptions{})
		check(t, err)

		pod.Status = status
		_, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
		check(t, err)
	}

	_, err = l.api.CoreV1().Events(ns).Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "e1"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: "waits"},
		Type:           "Warning", Reason: "Failed", Message: "it was not pulled",
		LastTimestamp: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
	}, metav1.CreateOptions{})
	check(t, err)

	lines, err := diagnosed(c.Job(t.Context(), ns, "run"))
	check(t, err)

	all := strings.Join(lines, "\n")
	for _, text := range []string{"pod bad: ", "exit code 255",
		"failed to push snapshot: Access Denied. ((sensitive), (sensitive))", "pod waits: ", "ImagePullBackOff",
		"it was not pulled"} {
		if !strings.Contains(all, text) {
			t.Errorf("%q is not in\n%s", text, all)
		}
	}

	if len(lines) != 2 {
		t.Errorf("not ready are\n%s", all)
	}
}

// A request that no server answers is retried, and reports that nothing is known.
func testNoAnswer(t *testing.T, l *living, _ *kubernetes.Client) {
	t.Helper()

	var cut atomic.Bool

	options := l.options
	options.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if cut.Load() {
			return nil, errors.New("the network is cut")
		}

		return (&net.Dialer{}).DialContext(ctx, network, address)
	}

	c, err := kubernetes.New(options)
	check(t, err)
	t.Cleanup(c.Close)

	cut.Store(true)

	want := object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": "late"}}

	if _, err := c.GetObject(t.Context(), objects.ReferenceTo(want)); !errors.Is(err, api.ErrNoAnswer) {
		t.Errorf("reading without a network gives %v", err)
	}

	timer := time.AfterFunc(time.Second, func() { cut.Store(false) })
	defer timer.Stop()

	_, err = c.ApplyObject(t.Context(), want)
	check(t, err)
}
