package metakey_test

import (
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/metakey"
)

func TestRead_whatTextsWrote(t *testing.T) {
	t.Parallel()

	keys := []uint8{metakey.Network, 0x0c, 0xff}

	text := metakey.Texts(keys)
	if text != "0x0a, 0x0c, 0xff" {
		t.Errorf("text %q", text)
	}

	if got := metakey.Read(text); !slices.Equal(got, keys) {
		t.Errorf("read %v", got)
	}

	if got := metakey.Read("nonsense, 0x100"); len(got) > 0 {
		t.Errorf("read %v out of nonsense", got)
	}
}

func TestMissing_listsInOrder(t *testing.T) {
	t.Parallel()

	want := map[uint8]string{0x0e: "c", 0x0c: "a", 0x0d: "b"}
	if got := metakey.Missing(want, map[uint8]string{0x0c: "a", 0x0d: "x", 0x06: "y"}); !slices.Equal(got, []uint8{0x0d, 0x0e}) {
		t.Errorf("missing %v", got)
	}
}
