package finding

import "testing"

// A finding about several attributes is at what contains them.
func TestCommon_containsAll(t *testing.T) {
	t.Parallel()

	machines := Root("workers").AtMapKey("gpu").AtName("machines")
	address := machines.AtMapKey("w-1").AtName("address")

	for _, test := range []struct {
		of   []Path
		want string
	}{
		{nil, ""},
		{[]Path{address}, `workers["gpu"].machines["w-1"].address`},
		{[]Path{address, machines.AtMapKey("w-2").AtName("address")}, `workers["gpu"].machines`},
		{[]Path{address, machines}, `workers["gpu"].machines`},
		{[]Path{address, Root("control_plane")}, ""},
	} {
		if got := Common(test.of).String(); got != test.want {
			t.Errorf("the path of %v is %q, want %q", test.of, got, test.want)
		}
	}
}
