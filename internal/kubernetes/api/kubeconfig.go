package api

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // the one auth-provider that client-go still has
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clienttransport "k8s.io/client-go/transport"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// Kubeconfig says how to reach a cluster, in the format of kubectl. Either Path or Content is given.
type Kubeconfig struct {
	// Path of the file; ~ is the home directory. Files that it names are relative to its folder.
	Path string
	// Content of such a file. Files that it names are relative to the working directory.
	Content []byte
	// Context to use, the current context of the file by default.
	Context string
	// Static refuses a user whose credentials come from a command or a separate file.
	Static bool
}

// String hides the credentials.
func (k Kubeconfig) String() string {
	text := "the given kubeconfig"
	if k.Path != "" {
		text = "the kubeconfig " + k.Path
	}

	if k.Context != "" {
		text += " (context " + k.Context + ")"
	}

	return text
}

// GoString hides the credentials from %#v.
func (k Kubeconfig) GoString() string { return k.String() }

// Format hides the credentials from every verb.
func (k Kubeconfig) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, k.String()) }

// NewFromKubeconfig prepares a client of the one server that a kubeconfig names, with all the ways
// to authenticate that client-go has, and through its proxy-url. Of the options, Endpoint,
// Fallbacks, CA, Cert, Key and Port are not used; control planes that the cluster names itself are
// not asked. Neither KUBECONFIG nor proxies of the environment are read; a plugin that makes
// credentials has the environment of the process and no terminal.
//
// Files are read and checked, the server is not asked. No error has credentials in it. Contexts
// of the file are named when the one that is asked for is not there.
func NewFromKubeconfig(k Kubeconfig, o Options) (*Client, error) {
	c, err := newFromKubeconfig(k, o.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", k, err)
	}

	return c, nil
}

func newFromKubeconfig(k Kubeconfig, o Options) (*Client, error) {
	file, err := k.load()
	if err != nil {
		return nil, err
	}

	config, err := k.choose(file)
	if err != nil {
		return nil, err
	}

	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, errors.New("the server of the cluster is not a URL")
	}

	// Unreadable files are reported now, and the CA identifies the cluster.
	checked := rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(checked); err != nil {
		return nil, err
	}

	connections, err := authenticated(config, o)
	if err != nil {
		return nil, err
	}

	if config.ExecProvider != nil {
		o.Attempt, o.Call = max(o.Attempt, pluginBound), max(o.Call, pluginBound)
	}

	s := &Server{URL: strings.TrimSuffix(base.String(), "/"), http: connections}
	c := &Client{Options: o.withoutCredentials(), given: []*Server{s}}
	c.Cluster = fmt.Sprintf("%x", sha256.Sum256(append([]byte(s.URL+"\n"), checked.CAData...)))

	return c, c.open()
}

// load reads the file.
func (k Kubeconfig) load() (*clientcmdapi.Config, error) {
	content, path := k.Content, ""

	switch {
	case k.Path != "" && len(k.Content) > 0:
		return nil, errors.New("set either a path or the content, not both")
	case k.Path != "":
		var err error
		if path, err = expand(k.Path); err != nil {
			return nil, err
		}

		if content, err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}

	if len(strings.TrimSpace(string(content))) == 0 {
		return nil, errors.New("the file is empty")
	}

	if err := expansion.CheckYAML(content); err != nil {
		return nil, err
	}

	file, err := clientcmd.Load(content)
	if err != nil {
		// The parser's error can quote the file.
		return nil, errors.New("not valid kubeconfig YAML with clusters, users and contexts")
	}

	if path == "" {
		return file, nil
	}

	for _, c := range file.Clusters {
		c.LocationOfOrigin = path
	}

	for _, u := range file.AuthInfos {
		u.LocationOfOrigin = path
	}

	return file, clientcmd.ResolveLocalPaths(file)
}

// expand replaces ~ by the home directory.
func expand(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok || rest != "" && !os.IsPathSeparator(rest[0]) {
		return path, nil
	}

	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}

	return filepath.Join(home, rest), nil
}

// choose returns the entries of the requested context.
func (k Kubeconfig) choose(file *clientcmdapi.Config) (*rest.Config, error) {
	name := cmp.Or(k.Context, file.CurrentContext)

	names := strings.Join(slices.Sorted(maps.Keys(file.Contexts)), ", ")
	chosen := file.Contexts[name]

	switch {
	case len(file.Contexts) == 0:
		return nil, errors.New("no contexts defined")
	case name == "":
		return nil, fmt.Errorf("no current context; set one of %s", names)
	case chosen == nil:
		return nil, fmt.Errorf("context %s not found; the file has %s", name, names)
	case file.Clusters[chosen.Cluster] == nil:
		return nil, fmt.Errorf("cluster %q of context %s not found", chosen.Cluster, name)
	case chosen.AuthInfo != "" && file.AuthInfos[chosen.AuthInfo] == nil:
		return nil, fmt.Errorf("user %q of context %s not found", chosen.AuthInfo, name)
	}

	if err := k.checkUser(chosen.AuthInfo, file.AuthInfos[chosen.AuthInfo]); err != nil {
		return nil, err
	}

	if err := checkURLs(chosen.Cluster, file.Clusters[chosen.Cluster]); err != nil {
		return nil, err
	}

	config, err := clientcmd.NewNonInteractiveClientConfig(*file, name, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, err
	}

	if config.ExecProvider != nil {
		config.ExecProvider.StdinUnavailable = true
		config.ExecProvider.StdinUnavailableMessage = "no input is available during an apply"
	}

	config.UserAgent = userAgent

	return config, nil
}

// checkUser refuses a user that runs commands or reads files, where that is not allowed: the author of the
// kubeconfig would choose them.
func (k Kubeconfig) checkUser(name string, user *clientcmdapi.AuthInfo) error {
	var source string

	switch {
	case !k.Static || user == nil:
	case user.Exec != nil:
		source = "the command of exec"
	case user.AuthProvider != nil:
		source = "the auth-provider " + user.AuthProvider.Name
	case user.TokenFile != "":
		source = "the tokenFile " + user.TokenFile
	case user.ClientCertificate != "" || user.ClientKey != "":
		source = "the files client-certificate and client-key"
	}

	if source == "" {
		return nil
	}

	return fmt.Errorf("user %s gets its credentials from %s, but the provider sets static_kubeconfigs, which allows "+
		"only token, client-certificate-data and client-key-data in the kubeconfig itself", name, source)
}

// checkURLs refuses what would show credentials in errors: clientcmd quotes URLs that it cannot
// read, and the server's is part of every error.
func checkURLs(name string, cluster *clientcmdapi.Cluster) error {
	switch server, err := url.Parse(cluster.Server); {
	case cluster.Server == "":
		return fmt.Errorf("cluster %s has no server", name)
	case err != nil || server.Host == "" || server.Scheme != "https" && server.Scheme != "http":
		return fmt.Errorf("the server of cluster %s is not an http(s) URL", name)
	case server.User != nil:
		return fmt.Errorf("the server URL of cluster %s contains credentials; set them in a user of the kubeconfig",
			name)
	}

	proxy, err := url.Parse(cluster.ProxyURL)
	if cluster.ProxyURL != "" && (err != nil || !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme)) {
		return fmt.Errorf("the proxy-url of cluster %s is not an http, https or socks5 URL", name)
	}

	return nil
}

// authenticating is a transport that adds credentials to what goes over its connections.
type authenticating struct {
	http.RoundTripper
	connections *http.Transport
}

// CloseIdleConnections closes unused connections.
func (a authenticating) CloseIdleConnections() { a.connections.CloseIdleConnections() }

// pluginBound is how long a request may take for which a plugin makes credentials: it may have to
// ask a service on the way.
const pluginBound = 30 * time.Second

// interruptible returns when the context of a request ends. A plugin is run without one (client-go 0.36,
// plugin/pkg/client/auth/exec refreshCredsLocked), and one that waits for ever would be waited for.
type interruptible struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (i interruptible) RoundTrip(r *http.Request) (*http.Response, error) {
	return panics.Within(r.Context(), func() (*http.Response, error) { return i.RoundTripper.RoundTrip(r) },
		func(response *http.Response) { _ = response.Body.Close() }) // unread
}

// authenticated is rest.TransportFor with connections of our own: those of client-go are shared by
// the whole process, and take proxies from its environment.
func authenticated(config *rest.Config, o Options) (transport, error) {
	config.Dial = reach(o)

	means, err := config.TransportConfig()
	if err != nil {
		return nil, err
	}

	tlsConfig, err := clienttransport.TLSConfigFor(means)
	if err != nil {
		return nil, err
	}

	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}

	connections := newTransport(o, tlsConfig)
	connections.Proxy, connections.DisableCompression = means.Proxy, means.DisableCompression
	// A plugin's certificate ends with the connections it was shown on.
	connections.DialContext = means.DialHolder.Dial

	wrapped, err := clienttransport.HTTPWrappersForConfig(means, refusalRedactor{connections})
	if err != nil {
		return nil, err
	}

	if config.ExecProvider != nil {
		wrapped = interruptible{wrapped}
	}

	return authenticating{wrapped, connections}, nil
}
