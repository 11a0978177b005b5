package release_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// jobbing is a chart with a Job that fails while the value bad is set, and hangs while hang is.
func jobbing(t *testing.T, annotations string) *chart.Package {
	t.Helper()

	return packageOf(t, kubetest.Chart("jobbing", "1.0.0", map[string]string{
		"templates/map.yaml": configMap("data", "{{ .Values.message }}"),
		"templates/job.yaml": `apiVersion: batch/v1
kind: Job
metadata:
  name: job
  labels: {of: "{{ .Release.Name }}"}
  annotations: {` + annotations + `}
spec:
  backoffLimit: 0
  template:
    metadata:
      annotations:
        a: b
        {{- if .Values.bad }}
        ` + kubetest.FailAnnotation + `: "exit code 1: no"
        {{- end }}
        {{- if .Values.hang }}
        ` + kubetest.HangAnnotation + `: "true"
        {{- end }}
    spec: {restartPolicy: Never, containers: [{name: main, image: registry.example/job}]}
`,
	}))
}

const keptHook = `helm.sh/hook: "pre-install,pre-upgrade,pre-delete", helm.sh/hook-delete-policy: hook-succeeded`

// fails runs an apply that has to fail.
func (p *place) fails(t *testing.T, spec release.Spec, chart *chart.Package, intent release.Intent) {
	t.Helper()

	if _, err := p.Apply(t.Context(), spec, chart, intent); err == nil {
		t.Fatal("what fails is not reported")
	}
}

func (p *place) job(t *testing.T) *batchv1.Job {
	t.Helper()

	job, err := p.real.API().BatchV1().Jobs(p.namespace).Get(t.Context(), "job", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}

	if err != nil {
		t.Fatal(err)
	}

	return job
}

// Helm deletes a hook that failed only when its policy says so, and then finds it in its own way.
func TestHooks_keptAreRecreated(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), jobbing(t, keptHook)
	bad, good := p.spec(map[string]any{"bad": true}), p.spec(map[string]any{"message": "1"})
	p.fails(t, bad, chart, release.Intent{Create: true})
	p.fails(t, bad, chart, release.Intent{})

	left := "removed Job " + p.namespace + "/job, a leftover hook of revision "
	same(t, "done", p.apply(t, good, chart, release.Intent{}).Done,
		[]string{left + "2", "installed revision 3"})

	p.fails(t, bad, chart, release.Intent{})

	good.Values = map[string]any{"message": "2"}
	same(t, "done", p.apply(t, good, chart, release.Intent{}).Done,
		[]string{left + "4", "upgraded to revision 5"})
	same(t, "objects", p.configMaps(t), []string{"data=2"})

	if job := p.job(t); job != nil {
		t.Errorf("a hook that succeeded stays: %v", job.Annotations)
	}
}

// The process was killed right after it had made its hook.
func TestHooks_ofKilledRunIsRecreated(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), jobbing(t, keptHook)
	p.killedWithItsJob(t, func(ctx context.Context, c *release.Cluster) error {
		_, err := c.Apply(ctx, p.spec(map[string]any{"hang": true}), chart, release.Intent{Create: true})

		return err
	})

	left := p.job(t)
	if left == nil || left.Status.Succeeded > 0 {
		t.Fatalf("the hook that was left behind is %+v", left)
	}

	p.apply(t, p.spec(nil), chart, release.Intent{Create: true})
	same(t, "statuses", p.statuses(t, p.spec(nil).Name), "failed deployed")
}

// killedWithItsJob ends work, as the end of its process would, at the change that makes a Job: that is done, its answer is
// lost, and nothing comes after it. The test fails when there is no such change.
func (p *place) killedWithItsJob(t *testing.T, work func(ctx context.Context, c *release.Cluster) error) {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	proxy, struck := newFaultProxy(t, p.real), false
	proxy.fault = func(call string, _ int) fault {
		switch {
		case struck:
			cancel()

			return cut
		case changes(call) && strings.Contains(call, "/jobs?"):
			struck = true

			return lose
		default:
			return pass
		}
	}

	err := work(ctx, &release.Cluster{API: proxy.client, Pause: pause, LockDuration: time.Second, Grace: time.Second})
	proxy.lost.Wait()

	proxy.mu.Lock()
	defer proxy.mu.Unlock()

	if err == nil || !struck {
		t.Fatalf("no change was struck: %v", err)
	}
}

// A removal that was interrupted by a hook that failed continues.
func TestHooks_ofRemovalIsRecreated(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), jobbing(t, `helm.sh/hook: pre-delete, helm.sh/hook-delete-policy: hook-succeeded`)
	spec := p.spec(map[string]any{"hang": true})
	p.apply(t, spec, chart, release.Intent{Create: true})

	o := release.RemoveOptions{Wait: true, Timeout: 5 * time.Second}
	if err := p.Remove(t.Context(), spec.Name, o); err == nil || p.job(t) == nil {
		t.Fatalf("the hook ended: %v", err)
	}

	first := p.job(t).UID

	if err := p.Remove(t.Context(), spec.Name, o); err == nil || strings.Contains(err.Error(), "already exists") {
		t.Errorf("the second removal: %v", err)
	}

	if job := p.job(t); job == nil || job.UID == first {
		t.Error("the hook is not recreated")
	}
}

// An object that is not certainly the hook of a failed revision is left alone, and reported as an obstacle.
func TestHooks_ofOthersAreLeftAlone(t *testing.T) {
	t.Parallel()

	for what, change := range map[string]func(job *batchv1.Job){
		"of another release of the chart": func(job *batchv1.Job) { job.Labels["of"] = "other" },
		"no hook":                         func(job *batchv1.Job) { job.Annotations = nil },
		"an object of another release":    func(job *batchv1.Job) { job.Annotations["meta.helm.sh/release-name"] = "other" },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()

			p, chart := newPlace(t), jobbing(t, keptHook)
			p.fails(t, p.spec(map[string]any{"bad": true}), chart, release.Intent{Create: true})

			job := p.job(t)
			change(job)

			kept, err := p.real.API().BatchV1().Jobs(p.namespace).Update(t.Context(), job, metav1.UpdateOptions{})
			if err != nil {
				t.Fatal(err)
			}

			_, err = p.Apply(t.Context(), p.spec(nil), chart, release.Intent{})
			if err == nil || !strings.Contains(err.Error(), "already exists") {
				t.Errorf("%v", err)
			}

			if job := p.job(t); job == nil || job.UID != kept.UID {
				t.Error("it was deleted")
			}
		})
	}
}

// A hook that was there before the revision that failed is not of it.
func TestHooks_objectFromBefore(t *testing.T) {
	t.Parallel()

	// It stays when it succeeds, so that Helm can never make it again.
	p, chart := newPlace(t), jobbing(t, `helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: hook-failed`)
	spec := p.spec(nil)
	p.apply(t, spec, chart, release.Intent{Create: true})

	first := p.job(t).UID

	// Times of objects are full seconds.
	begun := p.job(t).CreationTimestamp.Time
	if err := wait.Until(t.Context(), pause, func(context.Context) error {
		if time.Since(begun) < 2*time.Second {
			return errors.New("too early")
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	spec.Values = map[string]any{"message": "2"}
	for range 2 {
		p.fails(t, spec, chart, release.Intent{})
	}

	if job := p.job(t); job == nil || job.UID != first {
		t.Error("it was deleted")
	}
}

// A Job that failed runs no more, whatever it is made to be.
func TestApply_failedJobsAreRecreated(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), jobbing(t, "")
	bad, good := p.spec(map[string]any{"bad": true}), p.spec(map[string]any{"message": "1"})
	p.fails(t, bad, chart, release.Intent{Create: true})

	again := "removed Job " + p.namespace + "/job, which had failed, to create it again"
	same(t, "done", p.apply(t, good, chart, release.Intent{}).Done, []string{again, "installed revision 2"})

	succeeded := p.job(t).UID

	// An upgrade that fails: what succeeded before is not run again.
	good.Values = map[string]any{"message": "2", "bad": true}
	p.fails(t, good, chart, release.Intent{})

	good.Values = map[string]any{"message": "3"}
	same(t, "done", p.apply(t, good, chart, release.Intent{}).Done, []string{"upgraded to revision 4"})

	if job := p.job(t); job == nil || job.UID != succeeded {
		t.Error("a Job that succeeded was run again")
	}
}
