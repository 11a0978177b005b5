package metakey_test

import (
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/metakey"
)

func TestKeys_readWhatTheyWrote(t *testing.T) {
	t.Parallel()

	keys := metakey.Keys{metakey.Network, 0x0c, 0xff}

	text, err := keys.MarshalText()
	if err != nil || string(text) != "0x0a, 0x0c, 0xff" {
		t.Errorf("text %q, %v", text, err)
	}

	var got metakey.Keys
	if err := got.UnmarshalText(text); err != nil || !slices.Equal(got, keys) {
		t.Errorf("read %v, %v", got, err)
	}

	if err := got.UnmarshalText([]byte("nonsense, 0x100")); err == nil {
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
