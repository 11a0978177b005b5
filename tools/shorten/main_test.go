package main

import "testing"

func TestShorten_dropsListsThatRepeat(t *testing.T) {
	const page = "# Page\n\n- `a` (Attributes) One. ([below](#nestedatt--a))\n- `b` (Attributes) See `a`. ([below](#nestedatt--b))\n\n" +
		"<a id=\"nestedatt--a\"></a>\n### `a`\n\nOptional:\n\n- `x` (String) Said here.\n- `y` (String) As there.\n\n\n" +
		"<a id=\"nestedatt--b\"></a>\n### `b`\n\nOptional:\n\n- `x` (String, Sensitive) As there.\n" +
		"- `y` (Attributes) As there. ([below](#nestedatt--b--y))\n\n" +
		"<a id=\"nestedatt--b--y\"></a>\n### `b.y`\n\nRequired:\n\n- `z` (String) As there.\n\n## Import\n\nAs follows.\n"

	const want = "# Page\n\n- `a` (Attributes) One. ([below](#nestedatt--a))\n- `b` (Attributes) See `a`.\n\n" +
		"<a id=\"nestedatt--a\"></a>\n### `a`\n\nOptional:\n\n- `x` (String) Said here.\n- `y` (String) As there.\n\n\n" +
		"## Import\n\nAs follows.\n"

	if got := shorten(page); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
