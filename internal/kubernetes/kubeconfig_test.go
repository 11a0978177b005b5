package kubernetes_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/lock"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// kubeconfigOf is a file of one context.
func kubeconfigOf(server string, ca []byte, user string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: one, user: me}}]
clusters: [{name: one, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: me, user: {%s}}]
`, server, base64.StdEncoding.EncodeToString(ca), user)
}

func certificateOf(o api.Options) string {
	return fmt.Sprintf("client-certificate-data: %s, client-key-data: %s", base64.StdEncoding.EncodeToString(o.Cert),
		base64.StdEncoding.EncodeToString(o.Key))
}

func fromContent(t *testing.T, content string) *kubernetes.Client {
	t.Helper()

	c, err := kubernetes.NewFromKubeconfig(api.Kubeconfig{Content: []byte(content)}, api.Options{})
	check(t, err)
	t.Cleanup(c.Close)

	return c
}

// A client of a kubeconfig does on a real API server what another one does, as long as its
// credentials are good.
func TestKubeconfig_onAnAPIServer(t *testing.T) {
	t.Parallel()

	l := newLiving(t, assets(t))

	_, err := l.api.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "default"}},
	}, metav1.CreateOptions{})
	check(t, err)

	token, err := l.api.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	check(t, err)

	file := filepath.Join(t.TempDir(), "token")
	check(t, os.WriteFile(file, []byte(token.Status.Token), 0o600))

	for name, user := range map[string]string{
		"certificate": certificateOf(l.options), "token": "token: " + token.Status.Token, "token file": "tokenFile: " + file,
		"plugin": plugin("echo '" + strings.Replace(credential, "TOKEN", token.Status.Token, 1) + "'"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			serves(t, fromContent(t, kubeconfigOf(l.options.Endpoint, l.options.CA, user)), strings.ReplaceAll(name, " ", "-"))
		})
	}

	t.Run("a bad token", func(t *testing.T) {
		t.Parallel()

		c := fromContent(t, kubeconfigOf(l.options.Endpoint, l.options.CA, "token: "+token.Status.Token+"x"))
		_, err := c.GetObject(t.Context(), objects.Reference{APIVersion: "v1", Kind: "Namespace", Name: "default"})

		if !apierrors.IsUnauthorized(err) || errors.Is(err, api.ErrNoAnswer) ||
			strings.Contains(err.Error(), token.Status.Token) {
			t.Errorf("a bad token gives %v", err)
		}

		if _, err := library(t, t.Context(), c).CoreV1().Nodes().List(t.Context(),
			metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
			t.Errorf("a bad token gives a library %v", err)
		}
	})
}

// credential is what a plugin prints.
const credential = `{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "TOKEN"}}`

func plugin(script string) string {
	return fmt.Sprintf("exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: IfAvailable, command: "+
		"/bin/sh, args: [-c, %q]}", script)
}

// serves asks a client for what addons need of it.
func serves(t *testing.T, c *kubernetes.Client, name string) {
	t.Helper()

	want := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "namespace": "default"},
		"data": object{"a": "b"}}

	_, err := c.ApplyObject(t.Context(), want)
	check(t, err)
	expectDifferences(t, c, want)

	_, err = library(t, t.Context(), c).CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
	check(t, err)

	if state := c.Observe(t.Context()); !state.Reachable || len(state.Nodes) != 1 {
		t.Errorf("the cluster is %+v", state)
	}

	// The control plane that it observed is not asked, its own server is.
	check(t, c.DeleteObject(t.Context(), objects.ReferenceTo(want), ""))

	lock := c.Lock(lock.Options{Lease: "lease-" + name})
	_, release, err := lock.Acquire(within(t, time.Minute), nil)
	check(t, err)
	check(t, lock.Held(t.Context()))
	release()
}

// Routes to a server and kinds of credentials that need no real server.
func TestKubeconfig_ways(t *testing.T) {
	t.Parallel()

	a := newAuthority(t)
	cert, key := a.issue(t)
	certificate := certificateOf(api.Options{Cert: cert, Key: key})

	server := a.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "" && user+password != "mesecret" {
			t.Errorf("the password is of %s", user)
		}

		answer(w, http.StatusOK, corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"},
			Items: []corev1.Node{{}}})
	})
	host := server.Listener.Addr().String()
	proxy, proxied := proxyTo(t, host)
	plain := kubeconfigOf(server.URL, a.pem(), certificate)
	_, port, err := net.SplitHostPort(host)
	check(t, err)

	for name, content := range map[string]string{
		"certificate": plain,
		"basic":       kubeconfigOf(server.URL, a.pem(), certificate+", username: me, password: secret"),
		"slash":       kubeconfigOf(server.URL+"/", a.pem(), certificate),
		"server name": strings.Replace(kubeconfigOf("https://localhost:"+port, a.pem(), certificate), "server:",
			"tls-server-name: 127.0.0.1, server:", 1),
		"not verified": strings.Replace(kubeconfigOf("https://localhost:"+port, nil, certificate), "server:",
			"insecure-skip-tls-verify: true, server:", 1),
		"proxy": strings.Replace(kubeconfigOf("https://10.9.8.7:6443", a.pem(), certificate), "server:",
			"proxy-url: "+proxy+", tls-server-name: 127.0.0.1, server:", 1),
		"a folder in URL": kubeconfigOf(server.URL+"/k8s/clusters/c-1", a.pem(), certificate),
	} {
		c := fromContent(t, content)

		if state := c.Observe(t.Context()); !state.Reachable || len(state.Nodes) != 1 {
			t.Errorf("%s: the cluster is %+v", name, state)
		}

		if _, err := library(t, t.Context(), c).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	if proxied.Load() == 0 {
		t.Error("the proxy was not asked")
	}

	stranger := newAuthority(t)
	c := fromContent(t, kubeconfigOf(server.URL, stranger.pem(), certificate))

	if state := c.Observe(t.Context()); state.Reachable || !strings.Contains(state.Cause, "x509") {
		t.Errorf("a server of another authority is %+v", state)
	}
}

// proxyTo is a proxy that connects to one address for every request.
func proxyTo(t *testing.T, address string) (string, *atomic.Int32) {
	t.Helper()

	var asked atomic.Int32

	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)

		if user, password, _ := proxyAuth(r); r.Method != http.MethodConnect || user != "p" || password != "hidden" {
			http.Error(w, "no", http.StatusProxyAuthRequired)

			return
		}

		there, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", address)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)

			return
		}
		defer there.Close()

		w.WriteHeader(http.StatusOK)

		// The server may have read the first byte of what comes after the headers: it is in its buffer.
		here, sent, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)

			return
		}
		defer here.Close()

		go func() { _, _ = io.Copy(there, sent) }()

		_, _ = io.Copy(here, there)
	}))
	t.Cleanup(proxy.Close)

	return strings.Replace(proxy.URL, "//", "//p:hidden@", 1), &asked
}

func proxyAuth(r *http.Request) (user, password string, ok bool) {
	return (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
}

// A file, and those that it names, are found where they are.
func TestKubeconfig_files(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue(t)
	server := a.apiServer(t, nodeList("n"))

	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", filepath.Join(home, "another"))
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	check(t, os.Mkdir(filepath.Join(home, ".kube"), 0o700))

	for name, content := range map[string][]byte{"ca.crt": a.pem(), "me.crt": cert, "me.key": key} {
		check(t, os.WriteFile(filepath.Join(home, ".kube", name), content, 0o600))
	}

	content := kubeconfigOf(server.URL, nil, "client-certificate: me.crt, client-key: me.key")
	content = strings.Replace(content, "certificate-authority-data: ", "certificate-authority: ca.crt", 1)
	check(t, os.WriteFile(filepath.Join(home, ".kube", "config"), []byte(content), 0o600))

	c, err := kubernetes.NewFromKubeconfig(api.Kubeconfig{Path: "~/.kube/config"}, api.Options{})
	check(t, err)
	t.Cleanup(c.Close)

	if state := c.Observe(t.Context()); !state.Reachable {
		t.Errorf("the cluster is %+v", state)
	}

	check(t, os.Remove(filepath.Join(home, ".kube", "me.key")))

	if _, err := kubernetes.NewFromKubeconfig(api.Kubeconfig{Path: "~/.kube/config"},
		api.Options{}); err == nil || !strings.Contains(err.Error(), "me.key") {
		t.Errorf("without the key: %v", err)
	}

	if _, err := kubernetes.NewFromKubeconfig(api.Kubeconfig{Path: "~/none"}, api.Options{}); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
}

// A plugin that waits for ever holds nothing up.
func TestKubeconfig_pluginHangs(t *testing.T) {
	t.Parallel()

	a := newAuthority(t)
	server := a.apiServer(t, nodeList("n"))
	pipe := filepath.Join(t.TempDir(), "pipe")
	c := fromContent(t, kubeconfigOf(server.URL, a.pem(), plugin("mkfifo "+pipe+" && cat "+pipe)))

	cause := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)

	go func() {
		_, err := library(t, ctx, c).CoreV1().Nodes().List(context.WithoutCancel(ctx), metav1.ListOptions{})
		done <- err
	}()

	awaitTrue(t, func() bool {
		_, err := os.Stat(pipe)

		return err == nil
	})
	cancel(cause)

	if err := <-done; !errors.Is(err, cause) {
		t.Errorf("the request ends with %v", err)
	}

	// Let the plugin end.
	f, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	check(t, err)
	check(t, f.Close())
}

// Errors of a file are reported without secrets.
func TestKubeconfig_errors(t *testing.T) {
	t.Parallel()

	a := newAuthority(t)
	good := kubeconfigOf("https://10.0.0.1:6443", a.pem(), "token: very-private")
	several := strings.Replace(good, "contexts: [", "contexts: [{name: there, context: {cluster: gone, user: me}}, "+
		"{name: nobody, context: {cluster: one, user: gone}}, ", 1)

	for name, test := range map[string]struct {
		content, context, want string
	}{
		"nothing":     {"", "", "the file is empty"},
		"blank":       {" \n", "", "the file is empty"},
		"no YAML":     {"a: *very-private", "", "not valid kubeconfig YAML"},
		"a list":      {"[very-private]", "", "not valid kubeconfig YAML"},
		"no contexts": {"apiVersion: v1\nkind: Config", "", "no contexts defined"},
		"no current context": {strings.Replace(several, "current-context: here", "", 1), "",
			"no current context; set one of here, nobody, there"},
		"no such context": {several, "elsewhere", "context elsewhere not found; the file has here, nobody, there"},
		"no such cluster": {several, "there", `cluster "gone" of context there not found`},
		"no such user":    {several, "nobody", `user "gone" of context nobody not found`},
		"a bad server": {strings.Replace(good, "https://10.0.0.1:6443", "10.0.0.1:6443", 1), "",
			"the server of cluster one is not an http(s) URL"},
		"secrets in server": {strings.Replace(good, "https://", "https://me:very-private@", 1), "",
			"the server URL of cluster one contains credentials"},
		"a bad proxy": {strings.Replace(good, "server:", "proxy-url: \"ftp://me:very-private@proxy\", server:", 1), "",
			"the proxy-url of cluster one is not an http"},
		"an unreadable proxy": {
			strings.Replace(good, "server:", "proxy-url: \"https://me:very-private%zz@proxy\", server:", 1), "",
			"the proxy-url of cluster one is not an http",
		},
		"a bad CA": {kubeconfigOf("https://10.0.0.1:6443", []byte("very-private"), "token: very-private"), "",
			"unable to load root certificates"},
		"a bad certificate": {kubeconfigOf("https://10.0.0.1:6443", a.pem(),
			"client-certificate-data: dmVyeS1wcml2YXRl, client-key-data: dmVyeS1wcml2YXRl"), "",
			"tls: failed to find any PEM data"},
		"no command": {kubeconfigOf("https://10.0.0.1:6443", a.pem(),
			"exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}"), "", "command must be specified"},
	} {
		k := api.Kubeconfig{Content: []byte(test.content), Context: test.context}

		_, err := kubernetes.NewFromKubeconfig(k, api.Options{})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}

		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			if text := fmt.Sprintf(verb, k) + fmt.Sprint(err); strings.Contains(text, "private") ||
				strings.Contains(text, "76657279") {
				t.Errorf("%s: %s shows %s", name, verb, text)
			}
		}
	}

	if _, err := kubernetes.NewFromKubeconfig(api.Kubeconfig{Path: "a", Content: []byte("b")},
		api.Options{}); err == nil {
		t.Error("a path and a content are taken")
	}
}

// Where kubeconfigs have to be static, no command of theirs runs and no file that they name is read.
func TestKubeconfig_static(t *testing.T) {
	t.Parallel()

	a := newAuthority(t)
	ran := filepath.Join(t.TempDir(), "ran")

	for name, test := range map[string]struct{ user, want string }{
		"a token":          {"token: very-private", ""},
		"a command":        {plugin("touch " + ran), "the command of exec"},
		"an auth-provider": {"auth-provider: {name: gcp}", "the auth-provider gcp"},
		"a token file":     {"tokenFile: /etc/passwd", "the tokenFile /etc/passwd"},
		"a certificate":    {"client-certificate: /etc/passwd, client-key: /etc/passwd", "the files client-certificate"},
	} {
		k := api.Kubeconfig{Content: []byte(kubeconfigOf("https://127.0.0.1:1", a.pem(), test.user)), Static: true}

		c, err := kubernetes.NewFromKubeconfig(k, api.Options{Attempt: time.Second, Call: time.Second})
		if err == nil {
			_, _ = c.GetObject(t.Context(), objects.Reference{APIVersion: "v1", Kind: "Namespace", Name: "default"})
		}

		_, _, again := k.Config()

		for _, err := range []error{err, again} {
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%s: %v, want %q", name, err, test.want)
			}
		}
	}

	if _, err := os.Stat(ran); err == nil {
		t.Error("the command ran")
	}
}
