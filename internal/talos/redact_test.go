package talos

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const secretConfig = `version: v1alpha1
machine:
  type: controlplane
  token: abcdef.0123456789abcdef
  ca:
    crt: TFMwdENSVA==
    key: TFMwdEtFWQ==
  certSANs: [10.0.0.10]
  install: {disk: /dev/sda}
  files:
    - path: /etc/motd
      content: very private words
---
apiVersion: v1alpha1
kind: ExtensionServiceConfig
name: tailscale
environment: [TS_AUTHKEY=tskey-123456]
`

func TestRedactText_forms(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ given, want string }{
		"plain": {"install instructions are required in \"metal\" mode",
			"install instructions are required in \"metal\" mode"},
		"a diff": {
			"this config change can't be applied in immediate mode\ndiff:\n-token: abcdef\n+key: other",
			"this config change can't be applied in immediate mode",
		},
		"a value of the configuration": {
			`token "abcdef.0123456789abcdef" is not valid, disk /dev/sda is`,
			`token "(redacted)" is not valid, disk /dev/sda is`,
		},
		"a file": {"content very private words is too long", "content (redacted) is too long"},
		"unknown keys": {
			"line 1: unknown keys found during decoding:\nmachine:\n    foo: bar-value\n    list:\n        - one-value\n      " +
				"  - name: two-value\n",
			"line 1: unknown keys found during decoding:\nmachine:\n    foo: (redacted)\n    list:\n        - (redacted)\n    " +
				"    - name: (redacted)\n",
		},
		"several errors": {
			"1 error occurred:\n\t* v1alpha1.Config: 1 error occurred:\n\t* either install disk or diskSelector should be " +
				"defined",
			"1 error occurred:\n\t* v1alpha1.Config: 1 error occurred:\n\t* either install disk or diskSelector should be " +
				"defined",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := redactText(test.given, []byte(secretConfig)); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// The text must not come back by unwrapping, and the class must not be lost.
func TestRedact_keepsTheClassOnly(t *testing.T) {
	t.Parallel()

	raw := status.Error(codes.InvalidArgument, "token abcdef.0123456789abcdef is not valid")

	for err := redacted(callError(raw), []byte(secretConfig)); err != nil; err = errors.Unwrap(err) {
		if strings.Contains(fmt.Sprintf("%v %+v", err, err), "abcdef.0") {
			t.Errorf("%T shows the token", err)
		}

		if Classify(err) != ErrRejected {
			t.Errorf("%T is of class %v", err, Classify(err))
		}
	}

	if redacted(nil, nil) != nil {
		t.Error("no error became one")
	}
}

// A configuration that is cut short or no YAML at all leaves what it holds unknown;
// nothing of it may be needed.
func TestRedactText_withBrokenConfig(t *testing.T) {
	t.Parallel()

	for _, config := range []string{"", "{", secretConfig[:80], "\x00\xff", "a: &a [*a]"} {
		if got := redactText("plain", []byte(config)); got != "plain" {
			t.Errorf("%q: %q", config, got)
		}
	}
}
