package release

import (
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/kube"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/runtime"
)

// rollingBack keeps a revision failed when it is rolled back. Helm marks it superseded even if the rollback fails
// (Helm 3.21, action/rollback.go, performRollback). Then it is unknown that the objects it created have to be
// removed.
type rollingBack struct {
	*marking

	failed int
}

// Update implements driver.Updator.
func (b *rollingBack) Update(key string, r *helmrelease.Release) error {
	if r.Version == b.failed && r.Info.Status == helmrelease.StatusSuperseded {
		r.Info.Status = helmrelease.StatusFailed
	}

	return b.marking.Update(key, r)
}

// regaining is the client of a rollback. The target may have objects that are not in the revision before and still
// exist, because that revision failed before Helm deleted them. Helm treats that as an error (Helm 3.21,
// kube/client.go, update).
type regaining struct {
	*merging

	name Name
}

// Update implements kube.Interface.
func (g *regaining) Update(original, target kube.ResourceList, force bool) (*kube.Result, error) {
	original, err := g.regain(original, target)
	if err != nil {
		return &kube.Result{}, err
	}

	return g.merging.Update(original, target, force)
}

// regain is the part of the original that exists in the target and belongs to this release, in its wanted form.
// The error names objects that have another owner by now.
func (g *regaining) regain(original, target kube.ResourceList) (kube.ResourceList, error) {
	all := slices.Clone(original)

	var texts []string

	for _, info := range target {
		object, err := liveOf(info)
		if err != nil {
			return nil, err
		}

		if object == nil {
			continue
		}

		live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, err
		}

		whose := newOwner(live, g.name)
		if !original.Contains(info) {
			whose = foreignOwner(live, g.name)
			all = append(all, copyOf(info))
		}

		if whose != "" {
			texts = append(texts, fmt.Sprintf("%s %s/%s %s", info.Mapping.GroupVersionKind.Kind, info.Namespace, info.Name,
				whose))
		}
	}

	if len(texts) > 0 {
		return nil, owned(texts...)
	}

	return all, nil
}
