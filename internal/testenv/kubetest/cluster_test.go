package kubetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

func TestMain(m *testing.M) { Run(m) }

func must(t testing.TB, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

// soon fails the test when a condition does not come true.
func soon(t testing.TB, condition func(ctx context.Context) error) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), upTime)
	defer cancel()

	must(t, wait.Until(ctx, pollPeriod, condition))
}

func template(annotations map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "registry.example/web:1"}}},
	}
}

func deploy(t testing.TB, c *Cluster, namespace string, pods corev1.PodTemplateSpec) {
	t.Helper()

	_, err := c.API().AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: pods.Labels}, Replicas: new(int32(2)),
			Template: pods},
	}, metav1.CreateOptions{})
	must(t, err)
}

// podThat waits for a pod of a namespace that is as it should be.
func podThat(t testing.TB, c *Cluster, namespace string, fits func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()

	var found *corev1.Pod

	soon(t, func(ctx context.Context) error {
		pods, err := c.API().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}

		for i := range pods.Items {
			if found = &pods.Items[i]; fits(found) {
				return nil
			}
		}

		return fmt.Errorf("%d pods, the last one %+v", len(pods.Items), found)
	})

	return found
}

func waitsFor(reason string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Waiting != nil &&
			pod.Status.ContainerStatuses[0].State.Waiting.Reason == reason
	}
}

func unscheduled(pod *corev1.Pod) bool {
	c := conditionOf(pod, corev1.PodScheduled)

	return c != nil && c.Status == corev1.ConditionFalse
}

func TestDeployment_getsReadyAndGoes(t *testing.T) {
	testenv.BeforeRelease(t, "TestApply_lifeOfRelease")

	c := Shared(t)
	namespace := c.Namespace(t)
	deploy(t, c, namespace, template(map[string]string{DelayAnnotation: "300ms"}))

	soon(t, func(ctx context.Context) error {
		d, err := c.API().AppsV1().Deployments(namespace).Get(ctx, "web", metav1.GetOptions{})
		if err == nil && d.Status.ReadyReplicas != 2 {
			err = fmt.Errorf("%+v", d.Status)
		}

		return err
	})

	must(t, c.API().AppsV1().Deployments(namespace).Delete(t.Context(), "web",
		metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}))
	soon(t, func(ctx context.Context) error {
		pods, err := c.API().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = errors.New("there are still pods")
		}

		return err
	})
}

func TestPods_failingOnesSayWhy(t *testing.T) {
	testenv.BeforeRelease(t, "TestApply_namesWhatIsNotReady")

	c := Shared(t)
	namespace := c.Namespace(t)
	deploy(t, c, namespace, template(map[string]string{FailAnnotation: "exit code 3: no such table"}))

	pod := podThat(t, c, namespace, waitsFor("CrashLoopBackOff"))
	if ended := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated; ended == nil || ended.ExitCode != 3 {
		t.Errorf("ended %+v, want exit code 3", ended)
	}

	log, err := c.API().CoreV1().Pods(namespace).GetLogs(pod.Name,
		&corev1.PodLogOptions{Container: "web", TailLines: new(int64(1))}).DoRaw(t.Context())
	must(t, err)

	if string(log) != "no such table\n" {
		t.Errorf("log %q", log)
	}

	soon(t, func(ctx context.Context) error {
		events, err := c.API().CoreV1().Events(namespace).List(ctx,
			metav1.ListOptions{FieldSelector: "reason=BackOff,involvedObject.name=" + pod.Name})
		if err == nil && len(events.Items) != 1 {
			err = fmt.Errorf("%d events", len(events.Items))
		}

		return err
	})
}

func TestPods_thatDoNotGetReady(t *testing.T) {
	testenv.BeforeRelease(t, "TestApply_namesWhatIsNotReady")

	for annotation, fits := range map[string]func(*corev1.Pod) bool{
		HangAnnotation:         waitsFor("ContainerCreating"),
		MissingImageAnnotation: waitsFor("ImagePullBackOff"),
		NeverReadyAnnotation: func(pod *corev1.Pod) bool {
			c := conditionOf(pod, corev1.PodReady)

			return pod.Status.Phase == corev1.PodRunning && c != nil && c.Status == corev1.ConditionFalse
		},
	} {
		t.Run(annotation, func(t *testing.T) {
			c := Shared(t)
			namespace := c.Namespace(t)
			deploy(t, c, namespace, template(map[string]string{annotation: "true"}))
			podThat(t, c, namespace, fits)
		})
	}

	t.Run("no node", func(t *testing.T) {
		c := Shared(t)
		namespace := c.Namespace(t)
		pods := template(nil)
		pods.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		deploy(t, c, namespace, pods)
		pod := podThat(t, c, namespace, unscheduled)
		if why := conditionOf(pod, corev1.PodScheduled).Message; !strings.Contains(why,
			"0/1 nodes are available: 1 node(s) didn't match Pod's node affinity") {
			t.Error(why)
		}
	})
}

func TestJobs_completeOrFail(t *testing.T) {
	testenv.BeforeRelease(t, "TestApply_namesFailedHook")

	for name, test := range map[string]struct {
		annotations map[string]string
		want        batchv1.JobConditionType
	}{
		"completes": {nil, batchv1.JobComplete},
		"fails":     {map[string]string{FailAnnotation: "exit code 2: cannot migrate"}, batchv1.JobFailed},
	} {
		t.Run(name, func(t *testing.T) {
			c := Shared(t)
			namespace := c.Namespace(t)
			pods := template(test.annotations)
			pods.Spec.RestartPolicy = corev1.RestartPolicyNever

			_, err := c.API().BatchV1().Jobs(namespace).Create(t.Context(), &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Name: "migrate"}, Spec: batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: pods},
			}, metav1.CreateOptions{})
			must(t, err)

			soon(t, func(ctx context.Context) error {
				job, err := c.API().BatchV1().Jobs(namespace).Get(ctx, "migrate", metav1.GetOptions{})
				if err != nil {
					return err
				}

				for _, condition := range job.Status.Conditions {
					if condition.Type == test.want {
						return nil
					}
				}

				return fmt.Errorf("%+v", job.Status)
			})
		})
	}
}

func TestClaims_areBound(t *testing.T) {
	testenv.BeforeRelease(t, "TestEnsure_makesWhatMachinesNeedOnce")

	c := Shared(t)
	namespace := c.Namespace(t)
	pods := template(nil)

	_, err := c.API().AppsV1().StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: pods.Labels}, Template: pods,
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				},
			}},
		},
	}, metav1.CreateOptions{})
	must(t, err)

	podThat(t, c, namespace, func(pod *corev1.Pod) bool {
		return pod.Name == "db-0" &&
			pod.Status.Phase == corev1.PodRunning
	})
}

func TestCluster_talosopReachesIt(t *testing.T) {
	testenv.BeforeRelease(t, "TestApply_lifeOfRelease")

	c := NewCluster(t)

	if err := c.Client(t, api.Options{}).Ready(t.Context()); err != nil {
		t.Error(err)
	}

	if !strings.Contains(c.Secrets(t), "trustdinfo") {
		t.Error("the secrets are no bundle")
	}
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}

	return nil
}
