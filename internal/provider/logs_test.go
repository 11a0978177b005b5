package provider

import (
	"context"
	"errors"
	"testing"
)

func TestLogged_whenTheCLIIsAskedForLogs(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		environment []string
		want        bool
	}{
		{nil, false},
		{[]string{"HOME=/root", "TF_CLI_ARGS=-no-color"}, false},
		{[]string{"TF_LOG="}, false},
		{[]string{"TF_LOG=", "TF_LOG_PATH=/var/log/tofu.log"}, false},
		{[]string{"TF_LOG=off", "TF_LOG_SDK=OFF", "TF_LOG_PROVIDER_TALOSOP=OFF"}, false},
		{[]string{"TF_LOG=off", "TF_LOG_PROVIDER=info"}, true},
		{[]string{"TF_LOG=debug"}, true},
		{[]string{"TF_LOG_PROVIDER=trace"}, true},
		{[]string{"TF_LOG_SDK_FRAMEWORK=warn"}, true},
	} {
		if got := Logged(c.environment); got != c.want {
			t.Errorf("with %q: %t, want %t", c.environment, got, c.want)
		}
	}
}

// The context of a request without logs has none of its values, and ends with it, with the same cause.
func TestWithoutLoggers_endsWithTheRequest(t *testing.T) {
	t.Setenv("TF_LOG", "")

	type key struct{}

	request, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "logger"))
	served := withoutLoggers(request)

	if served.Value(key{}) != nil || served.Err() != nil {
		t.Errorf("it has %v, and ended with %v", served.Value(key{}), served.Err())
	}

	reason := errors.New("the CLI was interrupted")
	cancel(reason)
	<-served.Done()

	if !errors.Is(context.Cause(served), reason) {
		t.Errorf("it ended with %v", context.Cause(served))
	}

	t.Setenv("TF_LOG", "trace")

	if logged := withoutLoggers(request); logged != request {
		t.Error("the loggers are gone although the CLI keeps logs")
	}
}
