package execute

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/hook"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// annotation of the Lease has the records. Only the holder of the lock writes it.
const annotation = "talosop.dev/hooks"

// records are the hooks that runs began and that none ended, by their keys.
type records map[string]record

// record is what another process needs to end a hook.
type record struct {
	Owner    string        `json:"owner"`
	Name     string        `json:"name"`
	Scope    hook.Scope    `json:"scope"`
	Pools    []string      `json:"pools,omitempty"`
	Machine  string        `json:"machine,omitempty"`
	Node     string        `json:"node,omitempty"`
	Timeout  time.Duration `json:"timeout,omitempty"`
	Continue bool          `json:"continue,omitempty"`
	// After is empty for an HTTP request, which only the configuration has.
	After *hook.Action `json:"after"`
}

func keyOf(owner, name, machine string) string {
	key := owner + "/" + name
	if machine != "" {
		key += "/" + machine
	}

	return key
}

func recordOf(owner string, h hook.Started) record {
	return record{Owner: owner, Name: h.Name, Scope: h.Scope, Pools: h.Pools, Machine: h.Machine, Node: h.Node,
		Timeout: h.Timeout, Continue: h.Continue, After: h.After}
}

// Recorded are the hooks of the resource that a run began and none ended; see lifecycle.Hooks. A hook that is still
// configured is ended as it is configured now, so that a mistake in its `after` can be corrected.
func (e *Executor) Recorded(ctx context.Context) ([]hook.Started, error) {
	text, err := e.Lease.Annotation(ctx, annotation)
	if err != nil {
		return nil, err
	}

	all, err := parse(text)
	if err != nil {
		return nil, wait.Permanent(err)
	}

	var out []hook.Started

	for _, key := range slices.Sorted(maps.Keys(all)) {
		if r := all[key]; r.Owner == e.Owner {
			out = append(out, e.started(key, r))
		}
	}

	return out, nil
}

func (e *Executor) started(key string, r record) hook.Started {
	out := hook.Started{Key: key, Machine: r.Machine, Node: r.Node}

	if i := slices.IndexFunc(e.Hooks, func(h hook.Hook) bool { return h.Name == r.Name && h.After != nil }); i >= 0 {
		out.Hook = e.Hooks[i].For(r.Machine, r.Node)
		out.Scope = r.Scope

		return out
	}

	out.Hook = hook.Hook{Name: r.Name, Scope: r.Scope, Pools: r.Pools, Timeout: r.Timeout, Continue: r.Continue}

	if r.After != nil && *r.After != (hook.Action{}) {
		out.After = r.After

		return out
	}

	// Nothing can end it, so it must not block the run either.
	out.Continue = true

	return out
}

// change changes the records while the lock is held, within the time of a hook.
func (e *Executor) change(ctx context.Context, h hook.Started, change func(records)) error {
	ctx, cancel := context.WithTimeout(ctx, max(h.Timeout, requestTime))
	defer cancel()

	return wait.Backoff(ctx, 50*time.Millisecond, time.Second, func(ctx context.Context) error {
		return e.Lease.Annotate(ctx, annotation, func(before string) (string, error) {
			all, err := parse(before)
			if err != nil {
				return "", err
			}

			if change(all); len(all) == 0 {
				return "", nil
			}

			text, err := json.Marshal(all)

			return string(text), err
		})
	})
}

func parse(text string) (records, error) {
	all := records{}
	if text == "" {
		return all, nil
	}

	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("read the annotation %s of the Lease kube-system/talosop: %w", annotation, err)
	}

	return all, nil
}
