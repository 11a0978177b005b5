package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const cronJob = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "0 0 1 1 *"
  suspend: false
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "registry.example/a:1"}]}}}}
`

const ingress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
`

const strange = "apiVersion: gone.example/v1\nkind: Widget\nmetadata: {name: w}\n"

// aged makes the record of a release one from when the cluster was older.
func aged(t *testing.T, s *Session, name string) {
	t.Helper()

	releases := s.Configuration().Releases

	rel, err := releases.Last(name)
	must(t, err)

	rel.Manifest = strings.NewReplacer("batch/v1\n", "batch/v1beta1\n", "networking.k8s.io/v1\n",
		"extensions/v1beta1\n").Replace(rel.Manifest) + "\n---\n# nothing\n---\n" +
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: gone.example/v1, kind: Widget, metadata: {name: w}}]\n"
	must(t, releases.Update(rel))
}

func TestBuild_removedKinds(t *testing.T) {
	f := newFront(t)
	namespace := f.cluster.Namespace(t)

	var reported []string

	s := f.open(t, t.Context(), Options{Namespace: namespace, Release: "web",
		Progress: func(text string) { reported = append(reported, text) }})

	_, err := install(s, "web").Run(templates(cronJob, ingress, configMap("one")), nil)
	must(t, err)
	aged(t, s, "web")

	_, err = upgrade(s).Run("web",
		templates(strings.Replace(cronJob, "suspend: false", "suspend: true", 1), ingress, configMap("one")), nil)
	must(t, err)

	jobs := f.cluster.API().BatchV1().CronJobs(namespace)

	found, err := jobs.Get(t.Context(), "tick", metav1.GetOptions{})
	must(t, err)

	if !*found.Spec.Suspend {
		t.Error("the CronJob was not upgraded")
	}

	aged(t, s, "web")

	_, err = action.NewUninstall(s.Configuration()).Run("web")
	must(t, err)

	soon(t, func(ctx context.Context) error {
		_, err := jobs.Get(ctx, "tick", metav1.GetOptions{})
		_, err2 := f.cluster.API().NetworkingV1().Ingresses(namespace).Get(ctx, "web", metav1.GetOptions{})

		if !apierrors.IsNotFound(err) || !apierrors.IsNotFound(err2) {
			return fmt.Errorf("they are there: %w, %w", err, err2)
		}

		return nil
	})

	for _, want := range []string{
		"CronJob " + namespace + "/tick: the cluster no longer serves batch/v1beta1; it is the same object as " +
			"batch/v1",
		"Ingress " + namespace + "/web: the cluster no longer serves extensions/v1beta1; it is the same object as " +
			"networking.k8s.io/v1",
		"Widget w: the cluster no longer has kind Widget of gone.example/v1, so the object is gone",
	} {
		if !strings.Contains(strings.Join(reported, "\n"), want) {
			t.Errorf("not reported: %q", want)
		}
	}
}

func TestBuild_removedKindsAreNotWritten(t *testing.T) {
	f := newFront(t)
	s := f.open(t, t.Context(), Options{Namespace: f.cluster.Namespace(t)})

	for name, manifest := range map[string]string{"gone": strange,
		"older": strings.Replace(cronJob, "batch/v1", "batch/v1beta1", 1)} {
		for _, trusting := range []bool{false, true} {
			i := install(s, fmt.Sprintf("%s-%t", name, trusting))
			i.DisableOpenAPIValidation = trusting

			if _, err := i.Run(templates(manifest), nil); err == nil || !strings.Contains(err.Error(), "no matches for kind") {
				t.Errorf("%s, %t: %v", name, trusting, err)
			}
		}
	}
}

// TestBuild_silentAPIIsNoRemovedKind: kinds of an aggregated API are not removed when that API does not answer.
func TestBuild_silentAPIIsNoRemovedKind(t *testing.T) {
	f := newFront(t)
	s := f.open(t, t.Context(), Options{Namespace: f.cluster.Namespace(t)})

	services := f.cluster.Dynamic().Resource(
		schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})

	_, err := services.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1.gone.example"},
		"spec": map[string]any{
			"group": "gone.example", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"name": "none", "namespace": "default"},
		},
	}}, metav1.CreateOptions{})
	must(t, err)

	t.Cleanup(func() {
		must(t, services.Delete(context.WithoutCancel(t.Context()), "v1.gone.example", metav1.DeleteOptions{}))
	})

	soon(t, func(context.Context) error {
		s.getter.mapper.Reset()

		list, err := s.client().Build(strings.NewReader(strange), false)
		if err == nil {
			return fmt.Errorf("it builds %d objects", len(list))
		}

		if !strings.Contains(err.Error(), "list the kinds of gone.example/v1") {
			return err
		}

		return nil
	})
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.NAME.example}
spec:
  group: NAME.example
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

func TestReady_definitionsAreUsableAtOnce(t *testing.T) {
	f := newFront(t)
	namespace := f.cluster.Namespace(t)
	slots := NewSlots(0)
	s := f.open(t, t.Context(), Options{Namespace: namespace, Slots: slots})
	other := f.open(t, t.Context(), Options{Namespace: namespace, Slots: slots})

	t.Cleanup(func() {
		err := f.cluster.Dynamic().Resource(schema.GroupVersionResource{
			Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
		}).Delete(context.WithoutCancel(t.Context()), "widgets.fresh.example", metav1.DeleteOptions{})
		must(t, err)
	})

	// It knows the kinds from before.
	_, err := install(other, "other").Run(templates(configMap("other")), nil)
	must(t, err)

	widget := "apiVersion: fresh.example/v1\nkind: Widget\nmetadata: {name: %s}\n"
	c := templates(fmt.Sprintf(widget, "one"))
	c.Files = []*helmchart.File{{Name: "crds/widget.yaml", Data: []byte(strings.ReplaceAll(definition, "NAME", "fresh"))}}

	_, err = install(s, "web").Run(c, nil)
	must(t, err)

	soon(t, func(context.Context) error {
		_, err := other.client().Build(strings.NewReader(fmt.Sprintf(widget, "two")), true)

		return err
	})

	if err := errors.Join(s.RecordError(), other.RecordError()); err != nil {
		t.Error(err)
	}
}
