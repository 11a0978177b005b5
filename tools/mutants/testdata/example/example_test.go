package example

import (
	"slices"
	"testing"
)

func TestWeak_names(t *testing.T) {
	t.Parallel()

	if names, err := Weak([]int{2, -4, 4}, true); err != nil || !slices.Equal(names, []string{"d", "f"}) {
		t.Error(names, err)
	}
}

func TestWeak_refuses(t *testing.T) {
	t.Parallel()

	if _, err := Weak(nil, true); err == nil {
		t.Error("nothing")
	}

	if _, err := Weak([]int{1}, false); err == nil {
		t.Error("odd")
	}
}

func TestEndless(t *testing.T) {
	if Endless() != 6 {
		t.Error(Endless())
	}
}

func TestSlow(t *testing.T) {
	for i := 0; ; i++ {
		_ = Unreached()
	}
}
