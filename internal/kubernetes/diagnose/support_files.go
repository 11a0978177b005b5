package diagnose

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// redacted stands in the place of the values of variables of containers.
const redacted = "(sensitive value)"

// SupportFiles are the nodes and the pods of kube-system as YAML files, without possible secrets, under the names
// that talosctl support gives them (go-talos-support 0.3.1, collectors.go/GetKubernetesCollectors). An error still
// comes with the files that could be read.
func (d *Diagnosis) SupportFiles(ctx context.Context) (map[string][]byte, error) {
	nodes, unlisted := d.api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	pods, unlistedPods := d.api.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})

	files := map[string][]byte{}
	errs := []error{oneLine("list the nodes", unlisted), oneLine("list the pods of kube-system", unlistedPods)}

	if unlisted == nil {
		for i := range nodes.Items {
			plain(&nodes.Items[i].ObjectMeta)
		}

		errs = append(errs, encode(files, "nodes.yaml", nodes))
	}

	if unlistedPods == nil {
		for i := range pods.Items {
			plain(&pods.Items[i].ObjectMeta)
			hideValues(&pods.Items[i].Spec)
		}

		errs = append(errs, encode(files, "systemPods.yaml", pods))
	}

	return files, errors.Join(errs...)
}

func oneLine(what string, err error) error {
	if err == nil {
		return nil
	}

	return fmt.Errorf("%s: %s", what, api.OneLine(err))
}

func encode(files map[string][]byte, name string, object any) (err error) {
	files[name], err = yaml.Marshal(object)

	return err
}

// plain removes the managed fields, and copies of whole objects.
func plain(m *metav1.ObjectMeta) {
	m.ManagedFields = nil
	delete(m.Annotations, corev1.LastAppliedConfigAnnotation)
}

// hideValues removes the values of variables, some of which are passwords.
func hideValues(spec *corev1.PodSpec) {
	hide := func(variables []corev1.EnvVar) {
		for i := range variables {
			if variables[i].Value != "" {
				variables[i].Value = redacted
			}
		}
	}

	for i := range spec.InitContainers {
		hide(spec.InitContainers[i].Env)
	}

	for i := range spec.Containers {
		hide(spec.Containers[i].Env)
	}

	for i := range spec.EphemeralContainers {
		hide(spec.EphemeralContainers[i].Env)
	}
}
