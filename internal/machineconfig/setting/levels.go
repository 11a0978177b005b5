package setting

import "reflect"

// levels is how the values that several levels have of a setting become one, and how one is divided among them.
type levels[T any] interface {
	// merge is the value of a machine whose levels have two.
	merge(general, own T) T
	// common is the common part of two values; ok is false where that is nothing.
	common(a, b T) (alike T, ok bool)
	// without is what a level has to add to a general value to get all; ok is false where that is nothing.
	without(all, general T) (rest T, ok bool)
}

// byKey is a map whose entries each have the value of the most specific level.
type byKey struct{}

func (byKey) merge(general, own map[string]string) map[string]string { return with(general, own) }

func (byKey) common(a, b map[string]string) (map[string]string, bool) {
	alike := beyond(a, beyond(a, b))

	return alike, len(alike) > 0
}

func (byKey) without(all, general map[string]string) (map[string]string, bool) {
	rest := beyond(all, general)

	return rest, len(rest) > 0
}

func isEmptyMap(value map[string]string) bool { return len(value) == 0 }

// whole is a value that the most specific level replaces.
type whole[T any] struct{}

func (whole[T]) merge(_, own T) T { return own }

func (whole[T]) common(a, b T) (T, bool) { return a, reflect.DeepEqual(a, b) }

func (whole[T]) without(all, general T) (T, bool) { return all, !reflect.DeepEqual(all, general) }

// erased is levels of a type for values whose type is not known.
type erased[T any] struct {
	of     func(any) T
	levels levels[T]
}

func (e erased[T]) merge(general, own any) any { return e.levels.merge(e.of(general), e.of(own)) }

func (e erased[T]) common(a, b any) (any, bool) { return e.levels.common(e.of(a), e.of(b)) }

func (e erased[T]) without(all, general any) (any, bool) {
	return e.levels.without(e.of(all), e.of(general))
}

// Merge is what a machine gets of the levels that it belongs to, the most general one first: maps are merged by key,
// and all others replaced.
func Merge(all ...Values) Values {
	var merged Values

	for _, own := range all {
		for s, value := range own {
			if general, both := merged[s]; both {
				value = s.levels.merge(general, value)
			}

			merged.Set(s, value)
		}
	}

	return merged
}

// Common is what all machines have in common, which is empty for no machines.
func Common(all ...Values) Values {
	var common Values

	if len(all) == 0 {
		return nil
	}

	for s, value := range all[0] {
		alike := true

		for _, other := range all[1:] {
			theirs, has := other[s]
			if alike = alike && has; alike {
				value, alike = s.levels.common(value, theirs)
			}
		}

		if alike {
			common.Set(s, value)
		}
	}

	return common
}

// Own is what a machine has in addition to the general values, so that both together are all of its values.
// General is the result of Common for it.
func (v Values) Own(general Values) Values {
	var rest Values

	for s, value := range v {
		own := true
		if above, both := general[s]; both {
			value, own = s.levels.without(value, above)
		}

		if own {
			rest.Set(s, value)
		}
	}

	return rest
}
