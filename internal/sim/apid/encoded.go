package apid

import (
	"context"
	"sync"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/cosi-project/runtime/pkg/state"
)

// encodedView encodes each version of a resource once. Clients of a simulated machine read the same resources again and
// again, and the library writes the YAML of a resource for each of them.
type encodedView struct {
	state.CoreState

	encoded sync.Map // the last *protobuf.Resource by namespace, type and ID
}

// Get implements state.CoreState.
func (v *encodedView) Get(ctx context.Context, p resource.Pointer, o ...state.GetOption) (resource.Resource, error) {
	r, err := v.CoreState.Get(ctx, p, o...)
	if err != nil {
		return nil, err
	}

	return v.encode(r)
}

// List implements state.CoreState.
func (v *encodedView) List(ctx context.Context, k resource.Kind, o ...state.ListOption) (resource.List, error) {
	list, err := v.CoreState.List(ctx, k, o...)
	if err != nil {
		return list, err
	}

	for i, r := range list.Items {
		if list.Items[i], err = v.encode(r); err != nil {
			return resource.List{}, err
		}
	}

	return list, nil
}

func (v *encodedView) encode(r resource.Resource) (resource.Resource, error) {
	md := r.Metadata()
	key := [3]string{md.Namespace(), md.Type(), md.ID()}

	if last, ok := v.encoded.Load(key); ok {
		if last, ok := last.(*protobuf.Resource); ok && sameVersion(*last.Metadata(), *md) {
			return last, nil
		}
	}

	encoded, err := protobuf.FromResource(r)
	if err != nil {
		return nil, err
	}

	v.encoded.Store(key, encoded)

	return encoded, nil
}

// sameVersion is false for a resource that was deleted and made again, whose versions start again at one.
func sameVersion(a, b resource.Metadata) bool {
	return a.Equal(b) && a.Created().Equal(b.Created()) && a.Updated().Equal(b.Updated())
}
