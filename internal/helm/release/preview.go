package release

import (
	"context"
	"errors"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// Additions returns the changes of a rendering when nothing exists yet, or when the cluster does not answer.
func (r Rendering) Additions() []diff.Change {
	return diff.Compare(nil, slices.Concat(r.Definitions, r.Objects), nil)
}

// Changes says what an apply will make of the objects that are there, in the order in which Helm installs
// them. The manifest of a deployed revision counts as what is there; where the newest revision is not
// deployed, the cluster is asked for each object, as it is for the definitions of the crds folder. An
// observation without a history is a release that is not there, whatever the cluster has of it, but for
// what TakeOwnership takes over. Texts of Spec.Secrets, and what Secrets hold, are hidden. Nothing is changed.
//
// The error is [kubernetes.ErrNoAnswer] when the cluster cannot be reached.
func (c *Cluster) Changes(
	ctx context.Context, spec Spec, rendering Rendering, have Observation,
) ([]diff.Change, error) {
	l := &comparison{cluster: c, spec: spec, former: map[diff.Key][]diff.Object{}}
	err := l.compare(ctx, rendering, have)

	diff.Sort(l.changes)

	return l.changes, redactError(err, spec.Secrets.Redact)
}

// comparison compares the wanted objects with the existing ones.
type comparison struct {
	cluster *Cluster
	spec    Spec
	// former are the objects of the revisions that may have brought what is there, newest first.
	former map[diff.Key][]diff.Object

	mu      sync.Mutex
	changes []diff.Change
}

func (l *comparison) compare(ctx context.Context, rendering Rendering, have Observation) error {
	last, exists := have.Last()
	recorded := last.Status == Deployed || last.Status == Uninstalling || !exists && !l.spec.Options.TakeOwnership

	for _, r := range standing(have) {
		for _, o := range r.Objects {
			l.former[o.Key()] = append(l.former[o.Key()], o)
		}
	}

	group, ctx := panics.WithContext(ctx)
	group.SetLimit(atOnce)

	var known []diff.Object

	for _, o := range distinct(rendering.Objects) {
		// Definitions outlive their releases.
		if recorded && (o.Kind != definitionKind || len(l.former[o.Key()]) > 0) {
			known = append(known, o)
		} else {
			group.Go(func() error { return l.object(ctx, o, wantedContent(o, l.spec.Name)) })
		}
	}

	for _, d := range distinct(rendering.Definitions) {
		group.Go(func() error { return l.definition(ctx, d) })
	}

	var before []diff.Object

	for key, olds := range l.former {
		switch {
		case recorded:
			before = append(before, olds[0])
		case !slices.ContainsFunc(rendering.Objects, func(o diff.Object) bool { return o.Key() == key }):
			group.Go(func() error { return l.removal(ctx, olds[0]) })
		}
	}

	l.add(diff.Compare(before, known, l.spec.Secrets.Redact)...)

	return group.Wait()
}

// standing are the revisions that may have brought what is there, newest first: the deployed one, and
// those that were begun after it.
func standing(have Observation) []Revision {
	var found []Revision

	for _, r := range slices.Backward(have.History) {
		switch r.Status {
		case Deployed:
			return append(found, r)
		case Superseded, Uninstalled, Uninstalling:
			return found
		}

		found = append(found, r)
	}

	return found
}

// distinct leaves the last one of objects that are there twice, as Helm does.
func distinct(objects []diff.Object) []diff.Object {
	places := map[diff.Key]int{}

	var found []diff.Object

	for _, o := range objects {
		if at, twice := places[o.Key()]; twice {
			found[at] = o

			continue
		}

		places[o.Key()] = len(found)
		found = append(found, o)
	}

	return found
}

func (l *comparison) add(changes ...diff.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.changes = append(l.changes, changes...)
}

// object compares one object with the cluster's.
func (l *comparison) object(ctx context.Context, o diff.Object, content map[string]any) error {
	live, differences, err := l.cluster.API.CompareObject(ctx, content)

	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, api.ErrNoAnswer):
		return err
	case unknownKind(err):
		// Its definition comes with the chart, or with another one before it.
	case err != nil:
		l.add(diff.Change{Verb: diff.Alter, Object: o})

		return nil //nolint:nilerr // the API would not let it become that: the apply says so, if it comes to that
	}

	if live == nil {
		l.add(diff.Change{Verb: diff.Add, Object: o})

		return nil
	}

	differences = append(differences, l.dropped(live, o, content)...)
	if change, differs := diff.Altered(o, differences, l.spec.Secrets.Redact); differs {
		l.add(change)
	}

	return nil
}

// dropped are the fields that a former revision brought, that are there, and that are wanted no longer.
// The API does not name them, because it was not talosop who owns them.
func (l *comparison) dropped(live map[string]any, o diff.Object, content map[string]any) []objects.Difference {
	var (
		found []objects.Difference
		there = map[string]bool{}
	)

	for _, d := range objects.Differences(live, content) {
		there[d.Path] = true
	}

	for _, old := range l.former[o.Key()] {
		for _, d := range objects.Differences(wantedContent(old, l.spec.Name), content) {
			if d.Wanted == "" && there[d.Path] {
				there[d.Path] = false
				found = append(found, d)
			}
		}
	}

	return found
}

// definition is one of the crds folder. It is changed to match the chart only on request, and never where another
// release owns it.
func (l *comparison) definition(ctx context.Context, d diff.Object) error {
	live, err := l.cluster.API.GetObject(ctx, referenceTo(d))

	switch _, is := l.spec.elsewhere(live); {
	case err != nil || is:
	case l.spec.Options.UpgradeCRDs:
		return l.object(ctx, d, withoutNulls(placed(d)))
	case live == nil:
		l.add(diff.Change{Verb: diff.Add, Object: d})
	}

	return err
}

// removal is about an object that is no longer wanted: it may never have come, or be another release's.
func (l *comparison) removal(ctx context.Context, o diff.Object) error {
	live, err := l.cluster.API.GetObject(ctx, referenceTo(o))
	if err != nil && !unknownKind(err) {
		return err
	}

	if owner, _ := ownerOf(live); owner == l.spec.Name &&
		(&unstructured.Unstructured{Object: live}).GetDeletionTimestamp() == nil {
		l.add(diff.Change{Verb: diff.Remove, Object: o})
	}

	return nil
}
