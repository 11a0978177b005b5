// Package execute runs the hooks of users: it records them in the Lease of the cluster, and runs Jobs, patches of
// objects and HTTP requests.
package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/expansion"
	"github.com/talosop/terraform-provider-talosop/internal/healthcheck/probe"
	"github.com/talosop/terraform-provider-talosop/internal/hook"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Cluster is the Kubernetes API as hooks need it.
type Cluster interface {
	probe.Cluster

	// PatchObject changes an object with a merge patch, or with a list of JSON 6902 operations.
	PatchObject(ctx context.Context, ref objects.Reference, patch []byte) error
}

// Lease is the lock of the cluster, with annotations that only its holder writes.
type Lease interface {
	Held(ctx context.Context) error
	Annotation(ctx context.Context, key string) (string, error)
	Annotate(ctx context.Context, key string, change func(before string) (string, error)) error
}

// Executor runs the hooks of one resource. It is safe for concurrent use.
type Executor struct {
	Hooks   []hook.Hook
	Cluster Cluster
	Lease   Lease
	// Owner is the ID of the resource.
	Owner string
	// Interval between two attempts of one action; 5 s by default.
	Interval time.Duration
}

// Of are the hooks for a machine that goes out of service, and its node; see lifecycle.Hooks.
func (e *Executor) Of(m cluster.Machine, node string) []hook.Started {
	pool := m.Pool
	if m.Role == step.ControlPlane {
		pool = hook.ControlPlanes
	}

	var out []hook.Started

	for _, h := range e.Hooks {
		if len(h.Pools) > 0 && !slices.Contains(h.Pools, pool) {
			continue
		}

		if h.Scope == hook.Rollout || !h.NamesMachine() {
			out = append(out, hook.Started{Hook: h, Key: keyOf(e.Owner, h.Name, "")})

			continue
		}

		out = append(out, hook.Started{
			Hook: h.For(m.Name, node), Key: keyOf(e.Owner, h.Name, m.Name), Machine: m.Name, Node: node})
	}

	return out
}

// Begin records a hook, so that another run can undo it, and runs its `before`; see lifecycle.Hooks.
func (e *Executor) Begin(ctx context.Context, h hook.Started, waiting func(reason string)) error {
	if h.After != nil {
		if err := e.change(ctx, h, func(all records) { all[h.Key] = recordOf(e.Owner, h) }); err != nil {
			return fmt.Errorf("record it: %w", err)
		}
	}

	return e.run(ctx, h, "before", h.Before, waiting)
}

// End runs the `after` of a hook, and removes its record; see lifecycle.Hooks. The lock is confirmed before each
// attempt: the run that has it meanwhile undoes the hook.
func (e *Executor) End(ctx context.Context, h hook.Started, waiting func(reason string)) error {
	if h.After == nil && h.Before == nil {
		return errors.New("the configuration does not have it any more, and its record has no HTTP requests. Configure it " +
			"again; or undo by hand what its `before` did, and remove the annotation " + annotation +
			" of the Lease kube-system/talosop")
	}

	if h.After == nil {
		return nil
	}

	if err := e.run(ctx, h, "after", h.After, waiting); err != nil {
		return err
	}

	if err := e.change(ctx, h, func(all records) { delete(all, h.Key) }); err != nil {
		return fmt.Errorf("remove its record: %w", err)
	}

	return nil
}

// FailedError is a part of a hook that did not succeed in time.
type FailedError struct {
	Part   string
	Within time.Duration
	// Cause is why it did not succeed last.
	Cause error
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("its `%s` did not succeed within %s: %s", e.Part, e.Within, e.Cause)
}

// Unwrap is the cause.
func (e *FailedError) Unwrap() error { return e.Cause }

// run repeats an action until it succeeds.
func (e *Executor) run(
	ctx context.Context, h hook.Started, part string, action *hook.Action, waiting func(reason string),
) error {
	if action == nil {
		return nil
	}

	var left error

	timeout := cmp.Or(h.Timeout, hook.DefaultTimeout)

	cause, err := probe.Repeat(ctx, timeout, e.Interval, func(ctx context.Context, notYet func(error)) error {
		if err := e.Lease.Held(ctx); err != nil {
			return err
		}

		if err := e.clearJobs(ctx, h); err != nil {
			return err
		}

		return e.act(ctx, h, action, notYet, &left)
	}, waiting)
	if cause != nil {
		return &FailedError{part, timeout, cause}
	}

	return errors.Join(err, left)
}

// requestTime bounds one request that is no job.
const requestTime = 15 * time.Second

func (e *Executor) act(
	ctx context.Context, h hook.Started, action *hook.Action, notYet func(error), left *error,
) error {
	if action.Job != "" {
		manifest, err := probe.ParseJob(action.Job)
		if err != nil {
			return wait.Permanent(err)
		}

		return probe.RunJob(ctx, e.Cluster, probe.JobOf(manifest, h.Name, jobLabel, labelOf(h)), notYet, left)
	}

	ctx, cancel := context.WithTimeoutCause(ctx, requestTime, fmt.Errorf("no response within %s", requestTime))
	defer cancel()

	if action.HTTP != nil {
		return probe.Request(ctx, *action.HTTP)
	}

	patch, err := ParsePatch(action.Patch.Patch)
	if err != nil {
		return wait.Permanent(err)
	}

	return e.Cluster.PatchObject(ctx, objects.Reference{APIVersion: action.Patch.APIVersion, Kind: action.Patch.Kind,
		Namespace: action.Patch.Namespace, Name: action.Patch.Name}, patch)
}

// ParsePatch reads a patch of an object as JSON: a merge patch, or a list of JSON 6902 operations.
func ParsePatch(text string) ([]byte, error) {
	if err := expansion.CheckYAML([]byte(text)); err != nil {
		return nil, err
	}

	var decoded any
	if err := yaml.UnmarshalStrict([]byte(text), &decoded); err != nil {
		return nil, err
	}

	switch patch := decoded.(type) {
	case map[string]any:
		if len(patch) == 0 {
			return nil, errors.New("it changes nothing")
		}
	case []any:
		if err := checkOperations(patch); err != nil {
			return nil, err
		}
	default:
		return nil, errors.New("expected a mapping, or a list of JSON 6902 operations")
	}

	return yaml.YAMLToJSON([]byte(text))
}

// operations are those of JSON 6902.
var operations = []string{"add", "remove", "replace", "move", "copy", "test"}

func checkOperations(patch []any) error {
	if len(patch) == 0 {
		return errors.New("it changes nothing")
	}

	for i, element := range patch {
		operation, _ := element.(map[string]any)
		name, _ := operation["op"].(string)
		path, _ := operation["path"].(string)

		if !slices.Contains(operations, name) || path == "" || path[0] != '/' {
			return fmt.Errorf("operation %d needs op (one of %v) and a path that begins with /", i+1, operations)
		}
	}

	return nil
}
