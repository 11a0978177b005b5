package machined

import (
	"context"
	"fmt"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
)

// Modify creates or updates a resource of the boot. The in-memory state refuses only
// programming errors, so a refusal is logged and left at that.
func Modify[T resource.Resource](b *Boot, r T, change func(T)) {
	err := safe.StateModify(context.Background(), b.Resources, r, func(r T) error {
		change(r)

		return nil
	})
	if err != nil {
		b.World.Logf("%s: write %s: %v", b.name, r.Metadata(), err)
	}
}

// Remove destroys a resource if it exists.
func Remove(b *Boot, r resource.Resource) {
	err := b.Resources.Destroy(context.Background(), r.Metadata())
	if err != nil && !state.IsNotFoundError(err) {
		b.World.Logf("%s: remove %s: %v", b.name, r.Metadata(), err)
	}
}

// Read hands a resource's content over and returns its version.
func Read[T resource.Resource](b *Boot, r T, use func(T)) (version string, err error) {
	found, err := b.Resources.Get(context.Background(), r.Metadata())
	if err != nil {
		return "", fmt.Errorf("read %s: %w", r.Metadata(), err)
	}

	typed, ok := found.(T)
	if !ok {
		return "", fmt.Errorf("read %s: got %T", r.Metadata(), found)
	}

	use(typed)

	return found.Metadata().Version().String(), nil
}

// Replace writes a resource that has no typed setter, such as a machine configuration.
func Replace(ctx context.Context, st state.State, r resource.Resource) error {
	old, err := st.Get(ctx, r.Metadata())

	switch {
	case state.IsNotFoundError(err):
		err = st.Create(ctx, r)
	case err == nil:
		r.Metadata().SetVersion(old.Metadata().Version())
		err = st.Update(ctx, r)
	}

	if err != nil {
		return fmt.Errorf("write %s: %w", r.Metadata(), err)
	}

	return nil
}

// NewResources is the COSI state of one boot, on the shared catalog of types.
func NewResources(catalog state.CoreState) state.State {
	return state.WrapCore(namespaced.NewState(func(ns resource.Namespace) state.CoreState {
		if ns == meta.NamespaceName {
			return catalog
		}

		return NewNamespace(ns)
	}))
}

// NewNamespace is the store of one namespace of resources.
func NewNamespace(ns resource.Namespace) state.CoreState {
	return inmem.NewStateWithOptions(
		inmem.WithHistoryInitialCapacity(8),
		inmem.WithHistoryMaxCapacity(1024),
		inmem.WithHistoryGap(4),
	)(ns)
}
