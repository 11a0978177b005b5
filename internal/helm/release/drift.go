package release

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// Drift returns the differences between the objects of a revision and their wanted form, one line for each, such
// as "Deployment prod/web is missing" or `ConfigMap prod/settings: data.mode is "b" instead of "a"`. Only fields
// of the manifest count, and the API server itself computes what an apply would change (a dry run). Drift skips
// objects that moved to another release, and those of hooks. It also skips missing objects that end by themselves:
// Jobs with a ttlSecondsAfterFinished, and Pods whose restartPolicy is Never or OnFailure. It shows no content of
// a Secret.
//
// The error is [kubernetes.ErrNoAnswer] when the cluster cannot be reached. Another error names the objects that
// could not be compared, such as those of an aggregated API that does not answer; the lines then cover all others.
func (c *Cluster) Drift(ctx context.Context, revision Revision, o DriftOptions) ([]string, error) {
	if o.Depth == DepthRelease {
		return nil, nil
	}

	var (
		found findings
		group panics.Group
	)

	group.SetLimit(atOnce)

	for _, object := range revision.Objects {
		paths, whole := o.ignores(object)
		if whole {
			continue
		}

		group.Go(func() error {
			if !found.leave() {
				found.add(c.driftOf(ctx, object, o, paths))
			}

			return nil
		})
	}

	_ = group.Wait() // each error is in the findings

	lines, err := found.all(ctx)
	for i := range lines {
		lines[i] = o.Secrets.Redact(lines[i])
	}

	slices.Sort(lines)

	return slices.Compact(lines), redactError(err, o.Secrets.Redact)
}

// findings are the results of a comparison for drift so far.
type findings struct {
	mu     sync.Mutex
	lines  []string
	failed []error
	// answered is whether anything is known of any object.
	answered bool
	// silence is how many objects one after the other got no answer, left how many were not asked
	// for because of that.
	silence, left int
}

// leave reports whether to skip an object, because a full batch of objects in a row got no answer: each would take
// its full timeout.
func (f *findings) leave() bool {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.silence < atOnce {
		return false
	}

	f.left++

	return true
}

// add adds the result for one object.
func (f *findings) add(lines []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.lines = append(f.lines, lines...)

	if err != nil {
		f.failed = append(f.failed, err)
	}

	if errors.Is(err, api.ErrNoAnswer) {
		f.silence++
	} else {
		f.answered, f.silence = true, 0
	}
}

// all are the lines, and why there may be others.
func (f *findings) all(ctx context.Context) ([]string, error) {
	if len(f.failed) == 0 {
		return f.lines, nil
	}

	if !f.answered || ctx.Err() != nil {
		return nil, f.failed[0]
	}

	for i, err := range f.failed {
		if errors.Is(err, api.ErrNoAnswer) {
			// It is so of one object, and not of the cluster.
			f.failed[i] = errors.New(err.Error())
		}
	}

	if f.left > 0 {
		f.failed = append(f.failed, fmt.Errorf("%d more were not checked", f.left))
	}

	return f.lines, errors.Join(f.failed...)
}

// driftOf returns the drift of one object.
func (c *Cluster) driftOf(ctx context.Context, object diff.Object, o DriftOptions, ignored []string) ([]string, error) {
	var (
		live        map[string]any
		differences []objects.Difference
		err         error
	)

	if o.Depth == DepthPresence {
		live, err = c.API.GetObject(ctx, referenceTo(object))
	} else {
		live, differences, err = c.API.CompareObject(ctx, wantedContent(object, o.Release))
	}

	if err != nil && !unknownKind(err) {
		return nil, err
	}

	if live == nil && endsByItself(object) {
		return nil, nil
	}

	if live == nil {
		return []string{object.String() + " is missing"}, nil
	}

	if owner, owned := ownerOf(live); owned && owner != o.Release {
		return nil, nil
	}

	var lines []string

	for _, d := range differences {
		if !slices.ContainsFunc(ignored, func(pattern string) bool { return covers(pattern, d.Path) }) {
			lines = append(lines, object.String()+": "+difference(object, d))
		}
	}

	return lines, nil
}

// endsByItself reports whether a missing object may have finished its work. The API deletes finished Jobs after
// their TTL, and finished Pods when there are many or their node is gone (Kubernetes 1.36, ttl-after-finished and
// pod-garbage-collector controllers). An upgrade that recreates such an object would run it again each time.
func endsByItself(object diff.Object) bool {
	spec, _ := object.Content["spec"].(map[string]any)

	switch key := object.Key(); {
	case key.Group == jobKind.Group && key.Kind == jobKind.Kind:
		return spec["ttlSecondsAfterFinished"] != nil
	case key.Group == "" && key.Kind == "Pod":
		return spec["restartPolicy"] == "Never" || spec["restartPolicy"] == "OnFailure"
	default:
		return false
	}
}

// difference is one that may be shown: what a Secret holds may not, and Helm's redaction knows only
// those texts that were given as secrets.
func difference(object diff.Object, d objects.Difference) string {
	if object.Kind == "Secret" && d.Found != "" && d.Wanted != "" {
		return d.Path + " is another one"
	}

	return d.String()
}

// wantedContent is an object as it can be applied: with its namespace and what Helm writes on it, and
// without the nulls that templates leave where they render nothing.
func wantedContent(object diff.Object, release Name) map[string]any {
	content := ownedBy(release, withoutNulls(object.Content), nil)

	if metadata, ok := content["metadata"].(map[string]any); ok && object.Namespace != "" {
		metadata["namespace"] = object.Namespace
	}

	return content
}

func withoutNulls(in map[string]any) map[string]any {
	out := make(map[string]any, len(in))

	for key, value := range in {
		switch v := value.(type) {
		case nil:
		case map[string]any:
			out[key] = withoutNulls(v)
		case []any:
			list := make([]any, len(v))

			for i, element := range v {
				list[i] = element
				if m, ok := element.(map[string]any); ok {
					list[i] = withoutNulls(m)
				}
			}

			out[key] = list
		default:
			out[key] = value
		}
	}

	return out
}

// ignores says which fields of an object are left out, or that all of it is.
func (o DriftOptions) ignores(object diff.Object) (paths []string, whole bool) {
	for _, i := range o.Ignore {
		if !matches(i.Kind, object.Kind) || !matches(i.Name, object.Name) || !matches(i.Namespace, object.Namespace) {
			continue
		}

		if len(i.Paths) == 0 {
			return nil, true
		}

		paths = append(paths, i.Paths...)
	}

	return paths, false
}

// matches compares with a pattern; one that cannot be read matches nothing.
func matches(pattern, text string) bool {
	if pattern == "" {
		return true
	}

	matched, err := path.Match(pattern, text)

	return err == nil && matched
}

// Check finds patterns that cannot be read.
func (i Ignore) Check() error {
	for field, pattern := range map[string]string{"kind": i.Kind, "name": i.Name, "namespace": i.Namespace} {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%s: %q is not a valid pattern", field, pattern)
		}
	}

	return nil
}

// covers reports whether a path is the one of a pattern, or below it.
func covers(pattern, at string) bool {
	want, have := fieldsOf(pattern), fieldsOf(at)

	for i := range min(len(want), len(have)) {
		if want[i] != "*" && want[i] != have[i] {
			return false
		}
	}

	return len(have) >= len(want)
}

// fieldsOf splits a path such as spec.containers[web].image, where what is in brackets may have dots.
func fieldsOf(path string) []string {
	var fields []string

	for path != "" {
		end := strings.IndexAny(path, ".[")

		switch {
		case path[0] == '[' && strings.Contains(path, "]"):
			inside, after, _ := strings.Cut(path[1:], "]")
			fields, path = append(fields, inside), strings.TrimPrefix(after, ".")
		case end <= 0:
			return append(fields, strings.TrimPrefix(path, "."))
		default:
			fields = append(fields, path[:end])
			path = strings.TrimPrefix(path[end:], ".")
		}
	}

	return fields
}
