package values_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
)

func TestEqual_asRecorded(t *testing.T) {
	t.Parallel()

	given := merge(t, `
a: [1, 1000000, 1.5, 18446744073709551615, "1", "", null, true, {}, []]
html: "<a href='x'>&\u2028"
`)

	encoded, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}

	var record map[string]any
	if err := json.Unmarshal(encoded, &record); err != nil {
		t.Fatal(err)
	}

	if !values.Equal(given, record) || values.Digest(given) != values.Digest(record) {
		t.Errorf("%v is not %v", given, record)
	}

	if found := values.Differences(given, record, nil); len(found) > 0 {
		t.Errorf("differences %v", found)
	}
}

func TestEqual_values(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		a, b map[string]any
		want bool
	}{
		"nothing": {nil, map[string]any{}, true},
		"numbers": {map[string]any{"a": int64(1), "b": 2, "c": uint8(3)},
			map[string]any{"a": 1.0, "b": float32(2), "c": json.Number("3")}, true},
		"no minus":        {map[string]any{"a": math.Copysign(0, -1)}, map[string]any{"a": 0}, true},
		"number and text": {map[string]any{"a": 1}, map[string]any{"a": "1"}, false},
		"null and none":   {map[string]any{"a": nil}, map[string]any{}, false},
		"order of lists":  {map[string]any{"a": []any{1, 2}}, map[string]any{"a": []any{2, 1}}, false},
		"empty":           {map[string]any{"a": []any{}}, map[string]any{"a": map[string]any{}}, false},
		"named types":     {map[string]any{"a": []string{"x"}}, map[string]any{"a": []any{"x"}}, true},
	} {
		if got := values.Equal(test.a, test.b); got != test.want {
			t.Errorf("%s: equal %t", name, got)
		}

		if got := values.Digest(test.a) == values.Digest(test.b); got != test.want {
			t.Errorf("%s: same digest %t", name, got)
		}
	}
}

// TestDigest_stays fails when the digest of values changes with a new build, which would run every addon again.
func TestDigest_stays(t *testing.T) {
	t.Parallel()

	sum := sha256.Sum256([]byte(`{"a":{"y":"ü","z":"<&>"},"b":[1,1.5,1e+21,"x",null,true]}`))

	got := values.Digest(merge(t, "b: [1, 1.5, 1e21, x, null, true]\na: {z: '<&>', \"y\": ü}\n"))
	if want := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

func TestDifferences_lines(t *testing.T) {
	t.Parallel()

	before := merge(t, `
image: {tag: "1.0", pullPolicy: Always}
list: [a, b]
replicas: 1000000
"dotted.key": 1
kind: {a: 1}
long: `+long+`
database: {password: old, url: "https://x"}
secrets: {enabled: false}
nothing: null
same: [{a: 1}]
`)
	after := merge(t, `
image: {tag: "1.1"}
list: [a, c, d]
replicas: 2000000
"dotted.key": 2
kind: <text>
long: z
database: {password: new, url: "https://:hunter2@x"}
secrets: {enabled: true}
same: [{a: 1}]
new: {a: 1}
`)

	want := []string{
		`database.password: (sensitive) -> (sensitive)`,
		`database.url: (sensitive) -> (sensitive)`,
		`["dotted.key"]: 1 -> 2`,
		`image.pullPolicy removed`,
		`image.tag: "1.0" -> "1.1"`,
		`kind: a mapping -> "<text>"`,
		`list[1]: "b" -> "c"`,
		`list[2] added`,
		`long: "` + long[:79] + `… -> "z"`,
		`new added`,
		`nothing removed`,
		`replicas: 1000000 -> 2000000`,
		`secrets.enabled: false -> true`,
	}

	if diff := cmp.Diff(want, values.Differences(before, after, values.Secrets{"hunter2"})); diff != "" {
		t.Error(diff)
	}
}

const long = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"

// TestDifferences_cutAfterHiding is for a secret that the cut would leave a part of.
func TestDifferences_cutAfterHiding(t *testing.T) {
	t.Parallel()

	found := values.Differences(map[string]any{"a": "x"}, map[string]any{"a": long + "hunter2"},
		values.Secrets{long[60:] + "hunter2"})
	if diff := cmp.Diff([]string{"a: (sensitive) -> (sensitive)"}, found); diff != "" {
		t.Error(diff)
	}
}

// TestDifferences_hideSmallSecrets is for texts that Redact leaves.
func TestDifferences_hideSmallSecrets(t *testing.T) {
	t.Parallel()

	for _, value := range []any{"abc", int64(12), 12.0} {
		found := values.Differences(map[string]any{"a": "x"}, map[string]any{"a": value}, values.Secrets{"abc", "12"})
		if diff := cmp.Diff([]string{"a: (sensitive) -> (sensitive)"}, found); diff != "" {
			t.Error(diff)
		}
	}
}
