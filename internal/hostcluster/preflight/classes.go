package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// The annotations that mark the storage class of claims that name none (Kubernetes 1.36,
// pkg/volume/util/storageclass.go IsDefaultAnnotation).
const (
	defaultClassAnnotation     = "storageclass.kubernetes.io/is-default-class"
	betaDefaultClassAnnotation = "storageclass.beta.kubernetes.io/is-default-class"
)

// checkClasses looks for the classes that machines to be made name.
func (c *checking) checkClasses(ctx context.Context) error {
	if err := c.checkStorage(ctx); err != nil {
		return err
	}

	for _, name := range named(c.missing(), func(m workload.Machine) []string { return []string{m.Pod.PriorityClass} }) {
		_, err := c.host.API().SchedulingV1().PriorityClasses().Get(ctx, name, metav1.GetOptions{})

		switch {
		case apierrors.IsNotFound(err):
			c.priorities = append(c.priorities, name)
			c.await(attributePriority, "Priority class %s does not exist on the host.",
				"Create it, or choose an existing one.", name)
		case c.unseenIf(err, "priority classes"), err == nil:
		default:
			return fmt.Errorf("read priority class %s: %w", name, err)
		}
	}

	return nil
}

// classless reports whether a priority class is known to be missing.
func (c *checking) classless(name string) bool { return slices.Contains(c.priorities, name) }

// named are the names that machines have, each once, and none that is empty.
func named(machines []workload.Machine, names func(workload.Machine) []string) []string {
	var all []string
	for _, m := range machines {
		all = append(all, names(m)...)
	}

	slices.Sort(all)

	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return name == "" })
}

func (c *checking) checkStorage(ctx context.Context) error {
	claiming := slices.DeleteFunc(slices.Clone(c.missing()),
		func(m workload.Machine) bool { return m.Pod.Storage.Ephemeral })
	if len(claiming) == 0 {
		return nil
	}

	classes, err := c.host.API().StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if c.unseenIf(err, "storage classes") {
		return nil
	}

	if err != nil {
		return fmt.Errorf("list the storage classes: %w", err)
	}

	all, hasDefault := make([]string, 0, len(classes.Items)), false

	for i := range classes.Items {
		all = append(all, classes.Items[i].Name)
		hasDefault = hasDefault || isDefault(&classes.Items[i])
	}

	there := "It has none."
	if len(all) > 0 {
		there = "Available: " + strings.Join(all, ", ") + "."
	}

	for _, name := range named(claiming, func(m workload.Machine) []string { return []string{m.Pod.Storage.Class} }) {
		if !slices.Contains(all, name) {
			c.await(attributeClass, "Storage class %s does not exist on the host. %s",
				"Choose an existing one, or create it.", name, there)
		}
	}

	if !hasDefault && slices.ContainsFunc(claiming, func(m workload.Machine) bool { return m.Pod.Storage.Class == "" }) {
		c.await(attributeClass, "No storage class is set, and the host has no default storage class. %s",
			"Set one, or, for disposable clusters, set pod.storage.ephemeral.", there)
	}

	return nil
}

func isDefault(class *storagev1.StorageClass) bool {
	return class.Annotations[defaultClassAnnotation] == "true" || class.Annotations[betaDefaultClassAnnotation] == "true"
}

// checkPullSecrets looks for the secrets that images are pulled with.
func (c *checking) checkPullSecrets(ctx context.Context) error {
	for _, name := range named(c.missing(), func(m workload.Machine) []string { return m.PullSecrets }) {
		secret, err := c.host.API().CoreV1().Secrets(c.spec.Namespace).Get(ctx, name, metav1.GetOptions{})

		switch {
		case apierrors.IsNotFound(err):
			// Kubelets try without it, and images that need none are pulled.
			c.warn(attributePullSecrets, "Namespace %s has no Secret %s: images that need it cannot be pulled.",
				"Create it; kubelets retry until it exists.", c.spec.Namespace, name)
		case c.unseenIf(err, "secrets"):
		case err != nil:
			return fmt.Errorf("read Secret %s/%s: %w", c.spec.Namespace, name, err)
		case secret.Type != corev1.SecretTypeDockerConfigJson && secret.Type != corev1.SecretTypeDockercfg:
			c.warn(attributePullSecrets, "Secret %s/%s has type %s, which is not for image pulls.",
				"Change its type to "+string(corev1.SecretTypeDockerConfigJson)+".", c.spec.Namespace, name, secret.Type)
		}
	}

	return nil
}
