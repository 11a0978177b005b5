package client

import (
	"context"
	"io"
	"sync"

	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	clientgo "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
)

// client is Helm's client of a cluster, with waits and deletions of the session.
//
// It uses the parts of Helm's client (3.21, kube.Client) that make requests and return. Create, and the half of
// Update that creates and patches, retry a conflict five times within 50 ms (createResource: retry.DefaultRetry).
// Build, Get and IsReachable retry nothing. Wait, WaitWithJobs, WaitForDelete, WatchUntilReady and
// WaitAndGetCompletedPodPhase start from context.Background, the last two with watches, and are not used. Neither
// are the logs of hooks (kube.InterfaceLogs), which Helm would read to the end and drop. The error of a failed
// hook has its output.
//
// After a failed hook, Helm writes to the log of the process, past the redaction, why it could not delete the hook
// or show its log (3.21, action/hooks.go, execHook). Both texts have no content of objects. Manifests were built
// before, so only errors of reads, deletions and waits remain, which name objects and quote the API. And without
// kube.InterfaceLogs Helm requests no log.
type client struct {
	s    *Session
	helm *kube.Client
}

var (
	_ kube.Interface                    = (*client)(nil)
	_ kube.InterfaceExt                 = (*client)(nil)
	_ kube.InterfaceThreeWayMerge       = (*client)(nil)
	_ kube.InterfaceDeletionPropagation = (*client)(nil)
	_ kube.InterfaceResources           = (*client)(nil)
)

// Session is a cluster as Helm's actions on one release see it, until its context ends. It is safe
// for concurrent use, as far as the actions are.
type Session struct {
	ctx     context.Context //nolint:containedctx // Helm's interfaces take none
	api     *kubernetes.Client
	o       Options
	config  *rest.Config
	getter  *getter
	clients clientgo.Interface
	objects dynamic.Interface
	records *records
	place   place
	close   func()

	mu sync.Mutex
	// failure is the last wait that failed, unrecorded why a record was not written, by its key.
	failure    *NotReadyError
	unrecorded map[string]error
	// foreign are the objects that stay, each with its text. deleted are the deleted objects in their last form,
	// and gone those of which nothing is left. All by identity.
	foreign map[identity]string
	deleted map[identity]types.UID
	gone    map[identity]bool
	// withheld is what a template did not get; missing is what it looked up and another release may create.
	withheld string
	missing  []string
	// reported are the notes that were reported, each once.
	reported map[string]bool
}

// records are the Secrets in which Helm keeps its releases.
type records struct {
	*driver.Secrets

	s *Session
}

// IsReachable implements kube.Interface.
func (c *client) IsReachable() error { return c.helm.IsReachable() }

// Create implements kube.Interface.
func (c *client) Create(resources kube.ResourceList) (*kube.Result, error) {
	return c.helm.Create(resources)
}

// Get implements kube.InterfaceResources.
func (c *client) Get(resources kube.ResourceList, related bool) (map[string][]runtime.Object, error) {
	return c.helm.Get(resources, related)
}

// BuildTable implements kube.InterfaceResources.
func (c *client) BuildTable(reader io.Reader, validate bool) (kube.ResourceList, error) {
	return c.helm.BuildTable(reader, validate)
}

// Update implements kube.Interface.
func (c *client) Update(original, target kube.ResourceList, force bool) (*kube.Result, error) {
	return c.update(original, target, force, c.helm.Update)
}

// UpdateThreeWayMerge implements kube.InterfaceThreeWayMerge.
func (c *client) UpdateThreeWayMerge(original, target kube.ResourceList, force bool) (*kube.Result, error) {
	return c.update(original, target, force, c.helm.UpdateThreeWayMerge)
}

// update has Helm create and patch, and deletes the remaining objects of the original itself. Helm's own deletion
// does not check the owner of an object. It also only logs what it could not delete, and no later manifest has
// those objects (kube.Client.update). The result is never nil, since the actions read it after an error
// (action.Upgrade, releasingUpgrade: results.Created).
func (c *client) update(
	original, target kube.ResourceList, force bool,
	update func(original, target kube.ResourceList, force bool) (*kube.Result, error),
) (*kube.Result, error) {
	result, err := update(original.Intersect(target), target, force)
	if result == nil {
		result = &kube.Result{}
	}

	if err != nil {
		return result, err
	}

	deleted, err := c.deleteEach(original.Difference(target), metav1.DeletePropagationBackground, unlessKept)
	result.Deleted = deleted

	return result, err
}

// Delete implements kube.Interface.
func (c *client) Delete(resources kube.ResourceList) (*kube.Result, []error) {
	return c.DeleteWithPropagationPolicy(resources, metav1.DeletePropagationBackground)
}

// DeleteWithPropagationPolicy implements kube.InterfaceDeletionPropagation. It returns no
// errors for no objects, which Helm takes for one (kube.ErrNoObjectsVisited).
func (c *client) DeleteWithPropagationPolicy(
	resources kube.ResourceList, policy metav1.DeletionPropagation,
) (*kube.Result, []error) {
	deleted, err := c.deleteEach(resources, policy, whatever)
	if err != nil {
		return &kube.Result{Deleted: deleted}, []error{err}
	}

	return &kube.Result{Deleted: deleted}, nil
}

// identity identifies objects as Helm does (kube.ResourceList, isMatchingInfo).
type identity struct{ group, kind, namespace, name string }

func identify(info *resource.Info) identity {
	gvk := info.Mapping.GroupVersionKind

	return identity{group: gvk.Group, kind: gvk.Kind, namespace: info.Namespace, name: info.Name}
}
