package client

import (
	"errors"
	"fmt"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Create implements driver.Creator.
func (r *records) Create(key string, rel *helmrelease.Release) error {
	return r.recorded(key, r.Secrets.Create(key, r.described(rel)))
}

// Update implements driver.Updator.
func (r *records) Update(key string, rel *helmrelease.Release) error {
	return r.recorded(key, r.Secrets.Update(key, r.described(rel)))
}

// described is a release whose description shows no secrets. Helm makes an error its description, which quotes
// objects that the API refused, and helm history shows that (Helm 3.21, action/upgrade.go, failRelease).
func (r *records) described(rel *helmrelease.Release) *helmrelease.Release {
	if rel.Info == nil {
		return rel
	}

	out, info := *rel, *rel.Info
	info.Description = r.s.o.Redact(info.Description)
	out.Info = &info

	return &out
}

// Get implements driver.Queryor. Helm panics over a record that it cannot decode
// (Helm 3.21, driver.Secrets.Get sets the labels of nil).
func (r *records) Get(key string) (rel *helmrelease.Release, err error) {
	defer damaged(key, &err)

	return r.Secrets.Get(key)
}

// Delete implements driver.Deletor. Helm gets the record first.
func (r *records) Delete(key string) (rel *helmrelease.Release, err error) {
	defer damaged(key, &err)

	return r.Secrets.Delete(key)
}

func damaged(key string, err *error) {
	if recover() != nil {
		*err = fmt.Errorf("no release record that Helm can read in Secret %s", key)
	}
}

// recorded remembers whether the last attempt to write a record failed.
func (r *records) recorded(key string, err error) error {
	err = explained(err)

	r.s.mu.Lock()
	defer r.s.mu.Unlock()

	delete(r.s.unrecorded, key)

	// That there is a record of this name is an answer that Helm acts on.
	if err != nil && !errors.Is(err, driver.ErrReleaseExists) {
		r.s.unrecorded[key] = fmt.Errorf("record the release in Secret %s: %w", key, err)
	}

	return err
}

// explained says of a record that the API refuses for its size what to do about it.
func explained(err error) error {
	if !tooLarge(err) {
		return err
	}

	return fmt.Errorf("the release record exceeds the 1 MiB limit of Kubernetes Secrets; it contains, compressed, "+
		"the chart with all of its files, the values and the rendered manifest: use a chart with fewer or "+
		"smaller files: %w",
		err)
}

// tooLarge reports whether the API refused a Secret for its size: by its own rule
// (Kubernetes 1.36, validation.ValidateSecret), or because the request as a whole is too large.
func tooLarge(err error) bool {
	if apierrors.IsRequestEntityTooLargeError(err) {
		return true
	}

	cause, has := apierrors.StatusCause(err, metav1.CauseTypeTooLong)

	return has && cause.Field == "data"
}

// withoutSecrets takes the content of records out of what Helm logs: it logs the whole Secret
// of a release that it cannot decode (driver.Secrets.List).
func withoutSecrets(args []any) []any {
	out := make([]any, len(args))

	for i, arg := range args {
		out[i] = arg
		if secret, is := arg.(corev1.Secret); is {
			out[i] = secret.Name
		}
	}

	return out
}
