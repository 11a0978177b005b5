package kubetest

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Call is a request that a server of this package got.
type Call struct {
	// N counts the requests of the server from 1.
	N                   int
	Method, Path, Query string
	// UserAgent and User, that of basic authentication.
	UserAgent, User string
	Body            []byte
	At              time.Time
}

// String returns a text such as "GET /index.yaml".
func (c Call) String() string {
	if c.Query != "" {
		return c.Method + " " + c.Path + "?" + c.Query
	}

	return c.Method + " " + c.Path
}

// Changes reports whether the request is one that may change something.
func (c Call) Changes() bool { return c.Method != http.MethodGet && c.Method != http.MethodHead }

// Fault is what becomes of a request. Numbers from 100 on are the status that it is answered with, without
// having been looked at.
type Fault int

// The faults other than statuses.
const (
	// Passed is no fault.
	Passed Fault = iota
	// Cut ends the connection before the request is looked at.
	Cut
	// Lost ends the connection instead of the answer: the request was carried out.
	Lost
	// Halved ends the connection in the middle of the answer's body.
	Halved
	// Hung never answers.
	Hung
)

// gate counts the requests of a server and lets some of them fail. It is embedded in each.
type gate struct {
	next http.Handler

	mu    sync.Mutex
	calls []Call
	fault func(Call) Fault
	lost  func() // called when what a Lost request asked for is done
}

// Fail decides what becomes of requests from now on; nil ends that. It is called for one request
// at a time.
func (g *gate) Fail(f func(Call) Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.fault, g.lost = f, nil
}

// Seen are the requests until now that fit, all for nil.
func (g *gate) Seen(fits func(Call) bool) []Call {
	g.mu.Lock()
	defer g.mu.Unlock()

	return slices.DeleteFunc(slices.Clone(g.calls), func(c Call) bool { return fits != nil && !fits(c) })
}

// Requests is how many requests there were for paths with a prefix.
func (g *gate) Requests(prefix string) int {
	return len(g.Seen(func(c Call) bool { return strings.HasPrefix(c.Path, prefix) }))
}

// Forget restarts the count.
func (g *gate) Forget() {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.calls = nil
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Read the whole body first: a request that is carried out must not end with the connection.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the asker is gone
	}

	r.Body = io.NopCloser(bytes.NewReader(body))

	switch fault := g.judge(r, body); {
	case fault == Passed:
		g.next.ServeHTTP(w, r)
	case fault == Cut:
		panic(http.ErrAbortHandler)
	case fault == Lost:
		g.lose(r)
		panic(http.ErrAbortHandler)
	case fault == Halved:
		g.half(w, r)
	case fault == Hung:
		<-r.Context().Done()
	default:
		http.Error(w, "a fault of the test", int(fault))
	}
}

// judge counts a request and decides what becomes of it.
func (g *gate) judge(r *http.Request, body []byte) Fault {
	user, _, _ := r.BasicAuth()

	g.mu.Lock()
	defer g.mu.Unlock()

	call := Call{
		N: len(g.calls) + 1, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, UserAgent: r.UserAgent(), User: user,
		Body: body, At: time.Now(),
	}
	g.calls = append(g.calls, call)

	if g.fault == nil {
		return Passed
	}

	return g.fault(call)
}

// lose carries out a request without an answer. Reads do nothing, and watches do not end.
func (g *gate) lose(r *http.Request) {
	if r.Method != http.MethodGet {
		g.next.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))
	}

	g.mu.Lock()
	lost := g.lost
	g.mu.Unlock()

	if lost != nil {
		lost()
	}
}

// half gives half of an answer's body.
func (g *gate) half(w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	g.next.ServeHTTP(answer, r)

	for name, values := range answer.Header() {
		w.Header()[name] = values
	}

	w.WriteHeader(answer.Code)
	_, _ = io.CopyN(w, answer.Body, int64(answer.Body.Len()/2)) // the connection ends anyhow
	_ = http.NewResponseController(w).Flush()

	panic(http.ErrAbortHandler)
}

// open serves at a free address of this machine until the test ends. As HTTP/2, a fault that ends the
// connection ends the request's stream.
func (g *gate) open(t testing.TB, ca authority, http2 bool, also ...string) *httptest.Server {
	t.Helper()

	server := httptest.NewUnstartedServer(g)
	server.EnableHTTP2 = http2
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that are meant to fail
	server.TLS = ca.serve(t, append([]string{"127.0.0.1"}, also...)...)
	server.StartTLS()

	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})

	return server
}

// First lets the first n requests that fit fail, of all for nil.
func First(n int, fits func(Call) bool, f Fault) func(Call) Fault {
	return func(c Call) Fault {
		if n > 0 && (fits == nil || fits(c)) {
			n--

			return f
		}

		return Passed
	}
}

// Always lets all requests that fit fail, all of them for nil.
func Always(fits func(Call) bool, f Fault) func(Call) Fault {
	return func(c Call) Fault {
		if fits == nil || fits(c) {
			return f
		}

		return Passed
	}
}

// guarded asks for a user name and a password, if there are any.
func guarded(username, password string, next http.Handler) http.Handler {
	if username == "" {
		return next
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, ok := r.BasicAuth(); !ok || u != username || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="kubetest"`)
			http.Error(w, "authentication required", http.StatusUnauthorized)

			return
		}

		next.ServeHTTP(w, r)
	})
}

// recall counts only the requests that there were before.
func (g *gate) recall(calls []Call) {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.calls = calls
}
