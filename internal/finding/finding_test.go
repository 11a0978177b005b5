package finding

import "testing"

// A summary writes a nested attribute as a configuration does.
func TestInvalid_namesNestedAttributes(t *testing.T) {
	t.Parallel()

	patch := Root("workers").AtMapKey("storage").AtName("config_patches").AtListIndex(1)

	for _, test := range []struct {
		at         Path
		what, want string
	}{
		{Root("endpoint"), "endpoint", "Invalid endpoint"},
		{Path{}, "secrets", "Invalid secrets"},
		{patch, "config_patches", `Invalid workers["storage"].config_patches[1]`},
		{patch, "patch", `Invalid patch: workers["storage"].config_patches[1]`},
	} {
		if got := Invalid(test.at, test.what, "", "", "").Summary; got != test.want {
			t.Errorf("the summary is %q, want %q", got, test.want)
		}
	}
}
