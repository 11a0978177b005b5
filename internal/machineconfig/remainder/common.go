package remainder

import (
	"reflect"
)

// Common is what all of several remainders have, as far as it can go before the rest of each.
func Common(all ...Remainder) Remainder {
	common := Remainder{documents: map[string]document{}}
	if len(all) == 0 {
		return common
	}

	for name, d := range all[0].documents {
		shared := document{Document: d.Document, isNew: d.isNew, deletes: d.deletes}

		for _, other := range all[1:] {
			shared.deletes = intersection(shared.deletes, other.documents[name].deletes)
			shared.isNew = shared.isNew && other.documents[name].isNew && reflect.DeepEqual(d.adds, other.documents[name].adds)
		}

		// A value that one of them removes afterwards must not be added before.
		shared.adds = outside(d.adds, subtract(d.deletes, shared.deletes))

		for _, other := range all[1:] {
			own := other.documents[name]
			shared.adds = intersection(shared.adds, outside(own.adds, subtract(own.deletes, shared.deletes)))
		}

		// A separate document is written in one place.
		if !shared.empty() && shared.isNew == d.isNew {
			common.documents[name] = shared
		}
	}

	return common
}

// Without is a remainder without the part that it has in common with others.
func (r Remainder) Without(common Remainder) Remainder {
	rest := Remainder{documents: map[string]document{}, Hidden: r.Hidden}

	for name, d := range r.documents {
		shared := common.documents[name]
		own := document{Document: d.Document, isNew: d.isNew && !shared.isNew,
			deletes: subtract(d.deletes, shared.deletes), adds: subtract(d.adds, shared.adds)}

		if !own.empty() {
			rest.documents[name] = own
		}
	}

	return rest
}

// intersection is what two trees have in common.
func intersection(a, b map[string]any) map[string]any {
	common := map[string]any{}

	for key, value := range a {
		other, there := b[key]
		inner, isMap := value.(map[string]any)
		otherInner, otherMap := other.(map[string]any)

		switch {
		case there && reflect.DeepEqual(value, other):
			common[key] = value
		case isMap && otherMap && !isGone(value) && !isGone(other):
			if shared := intersection(inner, otherInner); len(shared) > 0 {
				common[key] = shared
			}
		}
	}

	return common
}

// subtract is a tree without what it has in common with another.
func subtract(a, b map[string]any) map[string]any {
	rest := map[string]any{}

	for key, value := range a {
		other, there := b[key]
		inner, isMap := value.(map[string]any)
		otherInner, otherMap := other.(map[string]any)

		switch {
		case there && reflect.DeepEqual(value, other):
		case there && isMap && otherMap:
			if left := subtract(inner, otherInner); len(left) > 0 {
				rest[key] = left
			}
		default:
			rest[key] = value
		}
	}

	return rest
}

// outside are the added values that do not replace removed ones.
func outside(adds, deletes map[string]any) map[string]any {
	if isGone(deletes) {
		return nil
	}

	rest := map[string]any{}

	for key, value := range adds {
		going, touched := deletes[key].(map[string]any)
		inner, isMap := value.(map[string]any)

		switch {
		case !touched:
			rest[key] = value
		case isGone(going) || !isMap:
		default:
			if left := outside(inner, going); len(left) > 0 {
				rest[key] = left
			}
		}
	}

	return rest
}
