package release

import (
	"errors"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
)

// The API server's quotes of Secrets are left out, even if their values are not known as secret.
func TestErrors_holdNoSecrets(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct{ text, want string }{
		"patch": {
			`cannot patch "q1" with kind Secret:  "" is invalid: patch: Invalid value: "{\"data\":{\"gen\":\"R0VO\"},\"kind\":\"Secret\"}": json: cannot unmarshal bool`,
			`cannot patch "q1" with kind Secret:  "" is invalid: patch: Invalid value: "(sensitive)": json: cannot unmarshal bool`,
		},
		"cut off": {`cannot patch "q1" with kind Secret: {"metadata":{"name":"a"},"data":{"gen":"R0VO`,
			`cannot patch "q1" with kind Secret: (sensitive)`},
		"odd text":   {`Secret "a": {"data":{"gen":"}R0VO"}} is bad`, `Secret "a": (sensitive) is bad`},
		"other line": {"Secret a/b is bad\nConfigMap {a}", "Secret a/b is bad\nConfigMap {a}"},
		"whole object": {
			`cannot patch "q1" with kind ConfigMap:  "" is invalid: patch: Invalid value: "{\"apiVersion\":\"v1\",\"data\":{\"gen\":\"GEN\"}}": json: cannot unmarshal bool`,
			`cannot patch "q1" with kind ConfigMap:  "" is invalid: patch: Invalid value: "(sensitive)": json: cannot unmarshal bool`,
		},
		"part of one": {`cannot patch "q1" with kind ConfigMap: {"data":{"a":"b"}}`,
			`cannot patch "q1" with kind ConfigMap: {"data":{"a":"b"}}`},
		"other secrets": {"SecretStore a {b}", "SecretStore a {b}"},
	} {
		if got := redactWithoutObjects(values.Secrets(nil).Redact)(test.text); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}

	cause := errors.New(`cannot patch "q1" with kind Secret: {"data":{"gen":"R0VO"}}`)

	err := redactError(&FailedError{Cause: cause, Next: cause.Error(), Diagnosis: []string{cause.Error()}},
		values.Secrets(nil).Redact)
	if strings.Contains(err.Error(), "R0VO") || !errors.Is(err, cause) {
		t.Errorf("it is %v", err)
	}
}
