package api

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/redirect"
)

// Config is what client-go needs to reach the server with connections of the caller's own, for those that
// upgrade them: an empty proxy of the file means none, whatever the environment says. Files are read as in
// [NewFromKubeconfig], with the same errors; the credentials are in it, so it must not be shown. context is the
// name of the one that was taken.
func (k Kubeconfig) Config() (config *rest.Config, context string, err error) {
	config, context, err = k.config()
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", k, err)
	}

	return config, context, nil
}

func (k Kubeconfig) config() (config *rest.Config, context string, err error) {
	file, err := k.load()
	if err != nil {
		return nil, "", err
	}

	config, err = k.choose(file)
	if err != nil {
		return nil, "", err
	}

	// Unreadable files are reported now.
	if err := rest.LoadTLSFiles(rest.CopyConfig(config)); err != nil {
		return nil, "", err
	}

	if config.Proxy == nil {
		config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } //nolint:nilnil // no proxy
	}

	return config, cmp.Or(k.Context, file.CurrentContext), nil
}

// Authenticate adds the credentials of a [Kubeconfig.Config] to what goes over connections. A request ends with its
// context also while a plugin makes credentials for it. A redirect to another server is an error.
func Authenticate(config *rest.Config, connections http.RoundTripper) (http.RoundTripper, error) {
	wrapped, err := rest.HTTPWrappersForConfig(config, refusalRedactor{connections})
	if err != nil {
		return nil, err
	}

	if config.ExecProvider != nil {
		wrapped = interruptible{wrapped}
	}

	return redirect.Refusing{RoundTripper: wrapped}, nil
}
