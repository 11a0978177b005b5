package release_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

const claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n" +
	"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"

func (p *place) claim(t *testing.T) *corev1.PersistentVolumeClaim {
	t.Helper()

	found, err := p.real.API().CoreV1().PersistentVolumeClaims(p.namespace).Get(t.Context(), "data", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	return found
}

// Keeping an addon whose removal did not finish keeps its data.
func TestRemove_takenBack(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	chart := packageOf(t, kubetest.Chart("data", "1.0.0", map[string]string{
		"templates/a.yaml": configMap("a", ""), "templates/b.yaml": configMap("b", ""), "templates/claim.yaml": claim,
	}))
	spec := p.spec(nil)
	spec.Options.Wait = false
	p.apply(t, spec, chart, release.Intent{Create: true})

	before := p.claim(t)

	proxy := newFaultProxy(t, p.real)
	proxy.fault = func(call string, _ int) fault {
		if strings.HasPrefix(call, "DELETE ") &&
			(strings.Contains(call, "/configmaps/b") || strings.Contains(call, "/persistentvolumeclaims")) {
			return forbid
		}

		return pass
	}

	direct := p.API
	p.API = proxy.client

	if err := p.Remove(t.Context(), spec.Name, release.RemoveOptions{}); err == nil {
		t.Fatal("deletions that are refused are not reported")
	}

	p.API = direct
	same(t, "statuses", p.statuses(t, spec.Name), "uninstalling")
	same(t, "objects", p.configMaps(t), []string{"b="})

	outcome := p.apply(t, spec, chart, release.Intent{})
	same(t, "done", outcome.Done, []string{"recovered revision 1: the uninstall was interrupted", "upgraded to revision 2"})
	same(t, "objects", p.configMaps(t), []string{"a=", "b="})

	if after := p.claim(t); after.UID != before.UID || after.DeletionTimestamp != nil {
		t.Errorf("another claim: %s, deleted %v", after.UID, after.DeletionTimestamp)
	}

	if err := p.Remove(t.Context(), spec.Name, release.RemoveOptions{}); err != nil {
		t.Fatal(err)
	}

	same(t, "statuses", p.statuses(t, spec.Name), "")
}

// What never came to be is installed, with the hooks of an installation.
func TestRemove_failedInstallationTakenBack(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), breakable(t)
	spec := p.spec(map[string]any{"bad": true})
	p.failing(t, spec, chart, release.Intent{Create: true})

	proxy := newFaultProxy(t, p.real)
	proxy.fault = func(call string, _ int) fault {
		if strings.HasPrefix(call, "DELETE ") && strings.Contains(call, "/configmaps/") {
			return forbid
		}

		return pass
	}

	direct := p.API
	p.API = proxy.client

	if err := p.Remove(t.Context(), spec.Name, release.RemoveOptions{}); err == nil {
		t.Fatal("deletions that are refused are not reported")
	}

	p.API, spec.Values = direct, nil
	outcome := p.apply(t, spec, chart, release.Intent{})
	same(t, "done", outcome.Done, []string{
		"recovered revision 1: the uninstall was interrupted", "installed revision 2",
		"removed ConfigMap " + p.namespace + "/b, a leftover of a failed revision",
	})
}

// The run waits for an object that is being deleted, and recreates it.
func TestRemove_takenBackTooLate(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	chart := packageOf(t, kubetest.Chart("data", "1.0.0", map[string]string{
		"templates/a.yaml": strings.Replace(configMap("a", ""), "{name: a}", "{name: a, finalizers: [talosop.example/held]}",
			1),
		"templates/b.yaml": configMap("b", ""),
	}))
	spec := p.spec(nil)
	p.apply(t, spec, chart, release.Intent{Create: true})

	maps := p.real.API().CoreV1().ConfigMaps(p.namespace)
	unblock := func() {
		_, _ = maps.Patch(context.WithoutCancel(t.Context()), "a", "application/merge-patch+json",
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	}

	t.Cleanup(unblock)

	proxy := newFaultProxy(t, p.real)
	proxy.fault = func(call string, _ int) fault {
		if strings.HasPrefix(call, "DELETE ") && strings.Contains(call, "/configmaps/b") {
			return forbid
		}

		return pass
	}

	direct := p.API
	p.API = proxy.client

	if err := p.Remove(t.Context(), spec.Name, release.RemoveOptions{}); err == nil {
		t.Fatal("deletions that are refused are not reported")
	}

	p.API, spec.Options.Timeout = direct, 2*time.Second
	if _, err := p.Apply(t.Context(), spec, chart, release.Intent{}); err == nil ||
		!strings.Contains(err.Error(), "talosop.example/held") {
		t.Fatalf("over what is on its way out: %v", err)
	}

	unblock()

	outcome := p.apply(t, spec, chart, release.Intent{})
	same(t, "done", outcome.Done, []string{"upgraded to revision 2"})
	same(t, "objects", p.configMaps(t), []string{"a=", "b="})
}

func TestRemove_preDeleteHookFails(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	chart := packageOf(t, kubetest.Chart("hooked", "1.0.0", map[string]string{
		"templates/claim.yaml": claim,
		"templates/hook.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: goodbye, annotations: {helm.sh/hook: " +
			"pre-delete}}\n" +
			"spec: {backoffLimit: 0, template: {metadata: {annotations: {" + kubetest.FailAnnotation +
			": \"exit code 1: not yet\"}}, " +
			"spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}}\n",
	}))
	spec, o := p.spec(nil), release.RemoveOptions{Timeout: testTimeout}
	spec.Options.Wait = false
	p.apply(t, spec, chart, release.Intent{Create: true})

	before := p.claim(t)
	hook := func() string {
		job, err := p.real.API().BatchV1().Jobs(p.namespace).Get(t.Context(), "goodbye", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}

		return string(job.UID)
	}

	refused := func() string {
		t.Helper()

		err := p.Remove(t.Context(), spec.Name, o)
		if err == nil {
			t.Fatal("a hook that fails is not reported")
		}

		for _, text := range []string{"Job " + p.namespace + "/goodbye", "exit code 1", "disable_hooks = true"} {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%q is not in:\n%s", text, err)
			}
		}

		if last, _ := p.observed(t, spec.Name).Last(); last.Status != release.Uninstalling {
			t.Errorf("the release is %s", last.Status)
		}

		return hook()
	}

	if first, second := refused(), refused(); first == second {
		t.Error("the hook of the second removal did not run")
	}

	// Kept after all: nothing was removed, and no hook of a removal runs.
	ran := hook()
	outcome := p.apply(t, spec, chart, release.Intent{})
	same(t, "done", outcome.Done, []string{"recovered revision 1: the uninstall was interrupted", "upgraded to revision 2"})

	if after := p.claim(t); after.UID != before.UID || hook() != ran {
		t.Errorf("another claim or hook: %s, %s", after.UID, hook())
	}

	refused()

	o.DisableHooks = true
	if err := p.Remove(t.Context(), spec.Name, o); err != nil {
		t.Fatal(err)
	}

	same(t, "statuses", p.statuses(t, spec.Name), "")
}
