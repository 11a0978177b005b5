package kubernetes_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// authority signs for one cluster.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}

	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}

	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}

	return authority{cert, key}
}

func (a authority) issue(t *testing.T, ips ...net.IP) (certPEM, keyPEM []byte) {
	t.Helper()

	return a.issueUntil(t, time.Now().Add(time.Hour), ips...)
}

func (a authority) issueUntil(t *testing.T, ends time.Time, ips ...net.IP) (certPEM, keyPEM []byte) {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: ends, IPAddresses: ips,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}

	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}

	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}

	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

func (a authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// apiServer serves handler on a loopback address with a certificate of the authority
// and asks for client certificates of the same one.
func (a authority) apiServer(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()

	cert, err := tls.X509KeyPair(a.issue(t, net.IPv4(127, 0, 0, 1)))
	if err != nil {
		t.Fatal(err)
	}

	return a.serve(t, handler, cert)
}

func (a authority) serve(t *testing.T, handler http.HandlerFunc, cert tls.Certificate) *httptest.Server {
	t.Helper()

	clients := x509.NewCertPool()
	clients.AddCert(a.cert)

	s := httptest.NewUnstartedServer(handler)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs: clients}
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // a handshake that closing the server cuts is no output of the product
	s.StartTLS()
	t.Cleanup(s.Close)

	return s
}

func (a authority) client(t *testing.T, endpoint string, fallbacks ...string) *kubernetes.Client {
	t.Helper()

	cert, key := a.issue(t)

	c, err := kubernetes.New(api.Options{
		Endpoint: endpoint, Fallbacks: fallbacks, CA: a.pem(), Cert: cert, Key: key,
		Connect: 20 * time.Second, Attempt: 20 * time.Second, Call: time.Minute, Poll: soon,
	})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)

	return c
}

// closedPort is an address where nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { check(t, l.Close()) })

	// That of a connection stays taken, where a port that was given back may be another server's.
	taken, err := net.Dial("tcp", l.Addr().String())
	check(t, err)
	t.Cleanup(func() { check(t, taken.Close()) })

	return taken.LocalAddr().String()
}

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

func refusal(code int, reason metav1.StatusReason) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		answer(w, code, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Reason: reason, Message: "the answer is " + string(reason), Code: int32(code),
		})
	}
}

func nodeList(names ...string) http.HandlerFunc {
	list := corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}}
	for _, name := range names {
		list.Items = append(list.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}

	return func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, list) }
}

func TestObserve_readsNodesFromTheCache(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local()

	var requests atomic.Int32

	server := ca.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 2 && r.URL.Path == "/readyz" {
			return
		}

		if r.URL.Path != "/api/v1/nodes" || r.URL.Query().Get("resourceVersion") != "0" {
			t.Errorf("request for %s, want the nodes from the cache", r.URL)
		}

		answer(w, http.StatusOK, corev1.NodeList{
			TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"},
			Items: []corev1.Node{
				{
					ObjectMeta: metav1.ObjectMeta{Name: "worker-1"},
					Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{
						{Key: "example.com/other", Effect: corev1.TaintEffectNoSchedule,
							TimeAdded: &metav1.Time{Time: since.Add(time.Hour)}},
						{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: since}},
					}},
					Status: corev1.NodeStatus{
						Conditions: []corev1.NodeCondition{{
							Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown",
							LastTransitionTime: metav1.Time{Time: since},
						}},
						NodeInfo: corev1.NodeSystemInfo{OSImage: "Debian"},
					},
				},
				{
					ObjectMeta: metav1.ObjectMeta{Name: "cp-1", Annotations: map[string]string{"talosop.dev/owner": "mine"}},
					Status: corev1.NodeStatus{
						Addresses: []corev1.NodeAddress{
							{Type: corev1.NodeInternalIP, Address: "10.0.0.11"}, {Type: corev1.NodeHostName, Address: "cp-1"},
						},
						Conditions: []corev1.NodeCondition{
							{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
							{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
						},
						NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.35.2", OSImage: "Talos (v1.12.1)", BootID: "b007"},
					},
				},
			},
		})
	})

	got := ca.client(t, server.URL).Observe(t.Context())
	want := kubestate.State{Reachable: true, Owners: map[string]string{},
		Endpoint: kubestate.Endpoint{URL: server.URL, Asked: true},
		Unproven: map[string]string{"cp-1": "mine"}, Nodes: []kubestate.Node{
			{Name: "cp-1", Addresses: []string{"10.0.0.11", "cp-1"}, Ready: true, KubeletVersion: "v1.35.2",
				TalosVersion: "v1.12.1", BootID: "b007"},
			{Name: "worker-1", ReadyReason: "NodeStatusUnknown", ReadySince: since, Unschedulable: true,
				UnschedulableSince: since},
		}}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}

	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests, want one for the nodes and one for the readiness", n)
	}
}

func TestObserve_asksTheControlPlanes(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	other := newAuthority(t)
	healthy := ca.apiServer(t, nodeList("cp-2"))

	tests := map[string]struct {
		endpoint string
		works    bool
		cause    string
	}{
		"the endpoint is closed": {endpoint: "https://" + closedPort(t), works: true,
			cause: "connection refused"},
		"the endpoint is of another cluster": {endpoint: other.apiServer(t, nodeList("stranger")).URL, works: true,
			cause: "unknown authority"},
		"the endpoint has a broken API server": {
			endpoint: ca.apiServer(t, refusal(500, metav1.StatusReasonInternalError)).URL, works: true, cause: "InternalError"},
		"the endpoint has no API server": {
			endpoint: ca.apiServer(t, func(w http.ResponseWriter,
				_ *http.Request) {
				w.WriteHeader(http.StatusServiceUnavailable)
			}).URL, works: true, cause: "unable to handle"},
		"the endpoint refuses the user": {endpoint: ca.apiServer(t, refusal(403, metav1.StatusReasonForbidden)).URL,
			works: false, cause: "Forbidden"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := ca.client(t, test.endpoint, healthy.Listener.Addr().String()).Observe(t.Context())
			if got.Reachable != test.works || test.works && (len(got.Nodes) != 1 || got.Nodes[0].Name != "cp-2") {
				t.Errorf("with a healthy control plane: %+v, want reachable %t", got, test.works)
			}

			alone := ca.client(t, test.endpoint).Observe(t.Context())
			if alone.Reachable || !strings.Contains(alone.Cause, test.cause) {
				t.Errorf("alone: %+v, want the cause to name %q", alone, test.cause)
			}
		})
	}
}

func TestObserve_staysWithTheServerThatAnswered(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)

	var atEndpoint atomic.Int32

	endpoint := ca.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		atEndpoint.Add(1)
		refusal(500, metav1.StatusReasonInternalError)(w, r)
	})
	first, second := ca.apiServer(t, nodeList("cp-1")), ca.apiServer(t, nodeList("cp-2"))
	client := ca.client(t, endpoint.URL, first.Listener.Addr().String(), second.Listener.Addr().String())

	for range 3 {
		if got := client.Observe(t.Context()); !got.Reachable || got.Nodes[0].Name != "cp-1" {
			t.Fatalf("state = %+v, want the node of the first control plane", got)
		}
	}

	if n := atEndpoint.Load(); n != 1 {
		t.Errorf("the broken endpoint was asked %d times, want once", n)
	}

	first.CloseClientConnections()
	first.Close()

	if got := client.Observe(t.Context()); !got.Reachable || got.Nodes[0].Name != "cp-2" {
		t.Errorf("state = %+v, want the node of the second control plane", got)
	}
}

// A server that accepts and never answers costs its share of the time, no more, and the error has the reasons of
// all servers.
func TestObserve_isBounded(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	release := make(chan struct{})
	silent := ca.apiServer(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})

	defer close(release)

	cert, key := ca.issue(t)

	client, err := kubernetes.New(api.Options{
		Endpoint: silent.URL, Fallbacks: []string{closedPort(t), silent.Listener.Addr().String()},
		CA: ca.pem(), Cert: cert, Key: key, Attempt: time.Second, Call: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}

	got := client.Observe(within(t, time.Minute))
	if got.Reachable || !strings.Contains(got.Cause, "connection refused") ||
		!strings.Contains(got.Cause, silent.URL+": ") {
		t.Errorf("state = %+v, want the reasons of both servers", got)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if got := client.Observe(ctx); got.Reachable || !strings.Contains(got.Cause, context.Canceled.Error()) {
		t.Errorf("after a cancellation: %+v", got)
	}
}

func TestDeleteNode_answers(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)

	tests := map[string]struct {
		handler http.HandlerFunc
		wantErr string
	}{
		"there": {handler: deletedLate(t, 2)},
		"gone":  {handler: refusal(404, metav1.StatusReasonNotFound)},
		"forbidden": {handler: refusal(403, metav1.StatusReasonForbidden),
			wantErr: "delete node worker-1: the answer is Forbidden"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := ca.client(t, ca.apiServer(t, test.handler).URL).DeleteNode(t.Context(), "worker-1")
			if fmt.Sprint(err) != test.wantErr && (err != nil || test.wantErr != "") {
				t.Errorf("err = %v, want %q", err, test.wantErr)
			}
		})
	}
}

// deletedLate serves a node that lists show that many times after its deletion.
func deletedLate(t *testing.T, times int32) http.HandlerFunc {
	t.Helper()

	var asked atomic.Int32

	return func(w http.ResponseWriter, r *http.Request) {
		switch path := r.Method + " " + r.URL.String(); {
		case path == "DELETE /api/v1/nodes/worker-1":
			answer(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status: metav1.StatusSuccess})
		case path != "GET /api/v1/nodes/worker-1?resourceVersion=0":
			t.Errorf("request %s", path)
		case asked.Add(1) <= times:
			answer(w, http.StatusOK, corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}})
		default:
			refusal(404, metav1.StatusReasonNotFound)(w, r)
		}
	}
}

func TestReady_andVersion(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	client := ca.client(t, ca.apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/readyz":
			fmt.Fprint(w, "ok")
		case "/version":
			answer(w, http.StatusOK, map[string]string{"gitVersion": "v1.35.2"})
		default:
			t.Errorf("request for %s", r.URL)
		}
	}).URL)

	if err := client.Ready(t.Context()); err != nil {
		t.Error(err)
	}

	if version, err := client.Version(t.Context()); version != "v1.35.2" || err != nil {
		t.Errorf("version %q, error %v", version, err)
	}

	if err := ca.client(t, "https://"+closedPort(t)).Ready(t.Context()); err == nil {
		t.Error("an API that is closed counts as ready")
	}
}

func TestNew_rejects(t *testing.T) {
	t.Parallel()

	ca := newAuthority(t)
	cert, key := ca.issue(t)
	good := api.Options{Endpoint: "https://10.0.0.10:6443", CA: ca.pem(), Cert: cert, Key: key}

	tests := map[string]struct {
		change func(*api.Options)
		want   string
	}{
		"no scheme":      {func(o *api.Options) { o.Endpoint = "10.0.0.10:6443" }, "not an https URL"},
		"plain http":     {func(o *api.Options) { o.Endpoint = "http://10.0.0.10:6443" }, "not an https URL"},
		"no CA":          {func(o *api.Options) { o.CA = []byte("nothing") }, "CA contains no PEM certificate"},
		"no certificate": {func(o *api.Options) { o.Cert = nil }, "read Kubernetes API credentials"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o := good
			test.change(&o)

			if _, err := kubernetes.New(o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("err = %v, want %q", err, test.want)
			}
		})
	}
}

func TestOptions_hideCredentials(t *testing.T) {
	t.Parallel()

	o := api.Options{Endpoint: "https://10.0.0.10:6443", Key: []byte("very private"), Cert: []byte("very private")}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if text := fmt.Sprintf(verb, o); strings.Contains(text, "private") || strings.Contains(text, "118") {
			t.Errorf("%s shows %s", verb, text)
		}
	}
}

// decode reads what a client sent, in protobuf or in JSON.
func decode[T any, P interface {
	*T
	runtime.Object
}](t *testing.T, r *http.Request) T {
	t.Helper()

	body, err := io.ReadAll(r.Body)
	check(t, err)

	var out T

	_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, P(&out))
	check(t, err)

	return out
}
