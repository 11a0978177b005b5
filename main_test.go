package main

import "testing"

func TestLogged_whenTheCLIIsAskedForLogs(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		environment []string
		want        bool
	}{
		{nil, false},
		{[]string{"HOME=/root", "TF_CLI_ARGS=-no-color"}, false},
		{[]string{"TF_LOG="}, false},
		{[]string{"TF_LOG=debug"}, true},
		{[]string{"TF_LOG_PROVIDER=trace"}, true},
		{[]string{"TF_LOG_SDK_FRAMEWORK=warn"}, true},
	} {
		if got := logged(c.environment); got != c.want {
			t.Errorf("with %q: %t, want %t", c.environment, got, c.want)
		}
	}
}
