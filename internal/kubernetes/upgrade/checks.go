package upgrade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/go-kubernetes/kubernetes/upgrade"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
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

func silent(string, ...any) {}

// settingsOf checks the components of one machine.
func settingsOf(
	ctx context.Context, steps []step, node string, controlPlane bool,
	of func(ctx context.Context, node string) (state.State, error),
) (Obstacles, error) {
	var found Obstacles

	resources, err := of(ctx, node)
	if err != nil {
		return found, fmt.Errorf("check the components on %s: %w", node, err)
	}

	controlPlanes, workers := []string{node}, []string(nil)
	if !controlPlane {
		controlPlanes, workers = workers, controlPlanes
	}

	known := func(context.Context, string) (state.State, error) { return resources, nil }

	for _, s := range steps {
		checks, err := upgrade.NewChecksWithStateProvider(s.path, known, nil, controlPlanes, workers, silent)
		if err != nil {
			return found, fmt.Errorf("check the components on %s: %w", node, err)
		}

		var removed upgrade.ComponentRemovedItemsError

		if err := checks.Run(ctx); err != nil && !errors.As(err, &removed) {
			return found, fmt.Errorf("check the components on %s: %w", node, err)
		}

		found.add(settings(removed, s))
	}

	return found, nil
}

func settings(removed upgrade.ComponentRemovedItemsError, s step) Obstacles {
	var found Obstacles

	for _, kind := range []struct {
		name, prefix string
		items        []upgrade.ComponentItem
	}{
		{"flag", "--", removed.CLIFlags}, {"feature gate", "", removed.FeatureGates},
		{"admission plugin", "", removed.AdmissionFlags},
	} {
		for _, item := range kind.items {
			found.Settings = append(found.Settings, RemovedSetting{
				Kind: kind.name, Name: kind.prefix + item.Value, Component: item.Component, Nodes: []string{item.Node},
				RemovedIn: s.to.String(),
			})
		}
	}

	return found
}

// alsoRemoved are resources that a minor version removes, and that go-kubernetes 0.2.41 does not list (Kubernetes 1.36
// has no k8s.io/api/scheduling/v1alpha1).
var alsoRemoved = map[minor][]string{36: {"workloads.v1alpha1.scheduling.k8s.io"}}

// removedResources lists objects of resources that are removed. go-kubernetes knows
// which these are and counts the objects; their names are read here.
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
		checks, err := upgrade.NewChecksWithStateProvider(s.path, nil, config, nil, nil, silent)
		if err != nil {
			return found, fmt.Errorf("list objects of removed APIs: %w", err)
		}

		var removed upgrade.ComponentRemovedItemsError

		if err := checks.Run(ctx); err != nil && !errors.As(err, &removed) {
			errs = append(errs, fmt.Errorf("list objects of the APIs that Kubernetes %s removes: %w", s.to, api.WithoutURL(err)))

			continue
		}

		resources := slices.Collect(maps.Keys(removed.APIResources))

		for _, resource := range append(resources, alsoRemoved[s.to]...) {
			names, count, err := namesOf(ctx, objects, resource)
			if err != nil {
				errs = append(errs, err)
			}

			if count = max(count, removed.APIResources[resource]); count > 0 {
				found.Resources = append(found.Resources,
					RemovedResource{Resource: resource, Objects: names, Count: count, RemovedIn: s.to.String()})
			}
		}
	}

	return found, errors.Join(errs...)
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
