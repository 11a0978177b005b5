package upgrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/go-kubernetes/kubernetes/upgrade"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/removals"
)

const (
	// namedObjects are how many objects of a removed API are named.
	namedObjects = 10
	// checkedAtOnce bounds how many nodes are asked at the same time.
	checkedAtOnce = 32
)

// UpgradeChecks finds what an upgrade of Kubernetes would run into. hops are the steps of one minor version that it
// takes, each from one version to another; without any, only what blocks every change is found. controlPlanes and
// workers name the machines, and of returns the resources of Talos on one of them. It changes nothing.
//
// Each source is asked for itself: a machine, the objects of removed APIs, each API server for deprecated APIs that
// were requested since it started, and the kinds of objects that block changes. The error joins those of the sources
// that could not be asked, and says nothing about the obstacles beside it, which the others found.
func (u *Upgrade) UpgradeChecks(
	ctx context.Context, hops [][2]string, controlPlanes, workers []string,
	of func(ctx context.Context, node string) (state.State, error),
) (Obstacles, error) {
	steps, err := stepsOf(hops)
	if err != nil {
		return Obstacles{}, err
	}

	s := &search{limit: make(chan struct{}, checkedAtOnce)}

	for _, source := range u.standing() {
		s.start(func() (Obstacles, error) { return u.bounded(ctx, source) })
	}

	if len(steps) > 0 {
		for _, node := range controlPlanes {
			s.start(func() (Obstacles, error) { return settingsOf(ctx, steps, node, true, of) })
		}

		for _, node := range workers {
			s.start(func() (Obstacles, error) { return settingsOf(ctx, steps, node, false, of) })
		}

		s.start(func() (Obstacles, error) { return u.removedResources(ctx, steps) })

		var servers []*api.Server

		servers, err = u.apiServers(ctx)
		for _, server := range servers {
			s.start(func() (Obstacles, error) { return u.removedRequests(ctx, steps, server) })
		}
	}

	_ = s.running.Wait() // each source has its own error
	s.found.sort()

	slices.SortFunc(s.errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })

	return s.found, errors.Join(append(s.errs, err)...)
}

// search asks several sources at once.
type search struct {
	running panics.Group
	limit   chan struct{}

	mu    sync.Mutex
	found Obstacles
	errs  []error
}

func (s *search) start(source func() (Obstacles, error)) {
	s.running.Go(func() error {
		s.limit <- struct{}{}
		defer func() { <-s.limit }()

		found, err := source()

		s.mu.Lock()
		defer s.mu.Unlock()

		s.found.add(found)

		if err != nil {
			s.errs = append(s.errs, err)
		}

		return nil
	})
}

// step is an upgrade by one minor version.
type step struct {
	path *upgrade.Path
	// from and to are minor versions of Kubernetes 1.
	from, to minor
}

func stepsOf(hops [][2]string) ([]step, error) {
	steps := make([]step, 0, len(hops))

	for _, hop := range hops {
		path, err := upgrade.NewPath(hop[0], hop[1])
		if err != nil {
			return nil, fmt.Errorf("check the upgrade from %s to %s: %w", hop[0], hop[1], err)
		}

		s := step{path: path}
		if s.from, err = minorOf(path.FromVersion()); err != nil {
			return nil, err
		}

		if s.to, err = minorOf(path.ToVersion()); err != nil {
			return nil, err
		}

		steps = append(steps, s)
	}

	return steps, nil
}

// settingsOf checks the arguments of the components of one machine.
func settingsOf(
	ctx context.Context, steps []step, node string, controlPlane bool,
	of func(ctx context.Context, node string) (state.State, error),
) (Obstacles, error) {
	var found Obstacles

	resources, err := of(ctx, node)
	if err != nil {
		return found, fmt.Errorf("check the components on %s: %w", node, err)
	}

	components := []kubenames.Component{kubenames.Kubelet}
	if controlPlane {
		components = append(components, kubenames.StaticPods()...)
	}

	from, to := steps[0].from, steps[len(steps)-1].to

	for _, component := range components {
		arguments, err := argumentsOf(ctx, resources, component)
		if err != nil {
			return found, fmt.Errorf("check the components on %s: %w", node, err)
		}

		removed, err := removals.Of(component, arguments, uint64(to))
		if err != nil {
			return found, err
		}

		for _, setting := range removed {
			if in := minor(setting.RemovedIn()); in > from {
				found.Settings = append(found.Settings, RemovedSetting{Kind: setting.Kind, Name: setting.Name,
					Component: string(component), Nodes: []string{node}, RemovedIn: in.String()})
			}
		}
	}

	return found, nil
}

// argumentsOf are those that Talos starts a component with; none of one that it does not run.
func argumentsOf(ctx context.Context, resources state.State, component kubenames.Component) ([]string, error) {
	if component == kubenames.Kubelet {
		spec, err := safe.StateGetByID[*k8s.KubeletSpec](ctx, resources, k8s.KubeletID)
		if err != nil {
			return nil, unlessMissing(err)
		}

		return spec.TypedSpec().Args, nil
	}

	pod, err := safe.StateGetByID[*k8s.StaticPod](ctx, resources, string(component))
	if err != nil {
		return nil, unlessMissing(err)
	}

	var manifest corev1.Pod

	if err := decodeInto(&manifest, pod.TypedSpec().Pod); err != nil || len(manifest.Spec.Containers) == 0 {
		return nil, err
	}

	return manifest.Spec.Containers[0].Command, nil
}

// decodeInto reads a typed object from one that Talos has as plain values.
func decodeInto(into any, plain map[string]any) error {
	encoded, err := json.Marshal(plain)
	if err != nil {
		return err
	}

	return json.Unmarshal(encoded, into)
}

func unlessMissing(err error) error {
	if state.IsNotFoundError(err) {
		return nil
	}

	return err
}

// removedResources lists objects of resources that are removed. go-kubernetes knows which these are and counts the
// objects; their names are read here. It does not list all resources of API versions that are removed, so the API is
// asked for these.
func (u *Upgrade) removedResources(ctx context.Context, steps []step) (Obstacles, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, u.api.Options.Call, fmt.Errorf("no response within %s",
		u.api.Options.Call))
	defer cancel()

	var (
		found Obstacles
		errs  []error
	)

	config := u.api.Library(ctx).Config()

	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return found, fmt.Errorf("list objects of removed APIs: %w", err)
	}

	for _, s := range steps {
		counted, err := u.resourcesWithout(ctx, s, config)
		if err != nil {
			errs = append(errs, err)
		}

		for resource, least := range counted {
			names, count, err := namesOf(ctx, objects, resource)
			if err != nil {
				errs = append(errs, err)
			}

			if count = max(count, least); count > 0 {
				found.Resources = append(found.Resources,
					RemovedResource{Resource: resource, Objects: names, Count: count, RemovedIn: s.to.String()})
			}
		}
	}

	return found, errors.Join(errs...)
}

// resourcesWithout are the resources that a step removes, with the number of their objects as far as it is known. None
// are known after an error of go-kubernetes.
func (u *Upgrade) resourcesWithout(ctx context.Context, s step, config *rest.Config) (map[string]int, error) {
	checks, err := upgrade.NewChecksWithStateProvider(s.path, nil, config, nil, nil, func(string, ...any) {})
	if err != nil {
		return nil, fmt.Errorf("list objects of removed APIs: %w", err)
	}

	var (
		removed upgrade.ComponentRemovedItemsError
		errs    []error
	)

	if err := checks.Run(ctx); err != nil && !errors.As(err, &removed) {
		return nil, fmt.Errorf("list objects of the APIs that Kubernetes %s removes: %w", s.to, api.WithoutURL(err))
	}

	counted := map[string]int{}
	maps.Copy(counted, removed.APIResources)

	for _, groupVersion := range removals.GroupVersions(uint64(s.to)) {
		names, err := u.resourcesOf(ctx, groupVersion)
		if err != nil {
			errs = append(errs, err)
		}

		for _, name := range names {
			counted[name] = max(counted[name], 0)
		}
	}

	return counted, errors.Join(errs...)
}

// resourcesOf are the resources of a group version, such as workloads.v1alpha1.scheduling.k8s.io; none of one that the
// API does not serve.
func (u *Upgrade) resourcesOf(ctx context.Context, groupVersion string) ([]string, error) {
	list := &metav1.APIResourceList{}

	err := u.api.CoreV1().RESTClient().Get().AbsPath("/apis/" + groupVersion).Do(ctx).Into(list)
	if err != nil {
		return nil, served(fmt.Errorf("list the resources of %s: %w", groupVersion, api.WithoutURL(err)))
	}

	group, version, _ := strings.Cut(groupVersion, "/")

	var names []string

	for _, r := range list.APIResources {
		if slices.Contains(r.Verbs, "list") {
			names = append(names, r.Name+"."+version+"."+group)
		}
	}

	return names, nil
}

// namesOf names the first objects of a resource, and counts all. There are none of a resource that is not served.
func namesOf(ctx context.Context, objects dynamic.Interface, resource string) (names []string, count int, err error) {
	gvr, _ := schema.ParseResourceArg(resource)
	if gvr == nil {
		return nil, 0, fmt.Errorf("list %s: not a valid resource name", resource)
	}

	list, err := objects.Resource(*gvr).List(ctx, metav1.ListOptions{Limit: namedObjects})

	switch {
	case apierrors.IsNotFound(err):
		return nil, 0, nil
	case err != nil:
		return nil, 0, fmt.Errorf("list %s: %w", resource, api.WithoutURL(err))
	}

	count = len(list.Items)
	if more := list.GetRemainingItemCount(); more != nil {
		count += int(*more)
	}

	for i := range list.Items {
		name := list.Items[i].GetName()
		if namespace := list.Items[i].GetNamespace(); namespace != "" {
			name = namespace + "/" + name
		}

		names = append(names, name)
	}

	return names, count, nil
}

// apiServers are all API servers of the cluster, by their own addresses as far as known:
// each counts the requests that came to it.
func (u *Upgrade) apiServers(ctx context.Context) ([]*api.Server, error) {
	list, err := u.api.CoreV1().Nodes().List(ctx,
		metav1.ListOptions{ResourceVersion: "0", LabelSelector: api.ControlPlaneLabel})
	if err != nil {
		// There is no server to ask.
		return nil, fmt.Errorf("list the control planes: %w", api.WithoutURL(err))
	}

	u.api.Learn(list.Items)

	return u.api.Servers(), nil
}
