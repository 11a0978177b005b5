package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	clientgo "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
)

// Options of a [Session].
type Options struct {
	// Namespace of the release: where its records are, and its objects that name none.
	Namespace string
	// Release is its name. With it, objects that say they belong to another release now are
	// never deleted, see [Session.Foreign].
	Release string
	// Redact removes secrets from a text before it is shown; nil leaves texts alone.
	Redact func(string) string
	// Progress receives what Helm logs and other events that are not errors. It may be nil, and several goroutines
	// may call it.
	Progress func(string)
	// WithholdSecrets keeps templates from looking up Secrets, see [Session.Withheld].
	WithholdSecrets bool
	// Slots are shared with other sessions of the process; nil shares with none.
	Slots *Slots
	// Grace is how long records of releases may be written after the context ended, 20 s by default. Pause is the
	// time between two observations in a wait, and before a rate-limited request is retried, 1 s by default.
	Grace, Pause time.Duration
}

// Open makes a session; it does no I/O. Everything that is done with it ends with ctx. The error
// is about a client that cannot be made of api's configuration.
func Open(ctx context.Context, api *kubernetes.Client, o Options) (*Session, error) {
	s := &Session{
		ctx: ctx, api: api, o: o.withDefaults(),
		unrecorded: map[string]error{}, foreign: map[identity]string{}, deleted: map[identity]types.UID{},
		gone: map[identity]bool{}, reported: map[string]bool{},
	}

	s.place.slots = s.o.Slots
	s.config = s.bind(ctx)

	if err := s.prepare(); err != nil {
		return nil, fmt.Errorf("connect to the Kubernetes API: %w", err)
	}

	late, end := outlive(ctx, s.o.Grace)
	s.close = end

	recorder, err := clientgo.NewForConfig(s.bind(late))
	if err != nil {
		end()

		return nil, fmt.Errorf("connect to the Kubernetes API: %w", err)
	}

	secrets := driver.NewSecrets(boundedRecords{recorder.CoreV1().Secrets(s.o.Namespace)})
	secrets.Log = func(format string, args ...any) { s.log(format, withoutSecrets(args)...) }
	s.records = &records{Secrets: secrets, s: s}

	return s, nil
}

// prepare makes the clients that end with the context.
func (s *Session) prepare() (err error) {
	if s.clients, err = clientgo.NewForConfig(s.config); err != nil {
		return err
	}

	if s.objects, err = dynamic.NewForConfig(s.config); err != nil {
		return err
	}

	s.getter, err = newGetter(s.config, s.o.Namespace)

	return err
}

func (o Options) withDefaults() Options {
	if o.Redact == nil {
		o.Redact = func(text string) string { return text }
	}

	if o.Progress == nil {
		o.Progress = func(string) {}
	}

	if o.Slots == nil {
		o.Slots = NewSlots(0)
	}

	o.Grace = cmp.Or(o.Grace, 20*time.Second)
	o.Pause = cmp.Or(o.Pause, time.Second)

	return o
}

// bind makes the configuration of clients that end with ctx.
func (s *Session) bind(ctx context.Context) *rest.Config {
	config := s.api.Config(ctx)
	config.Transport = &bound{RoundTripper: config.Transport, ctx: ctx, slots: s.o.Slots, pause: s.o.Pause}
	config.WarningHandler = warnings{s}

	return config
}

// outlive returns a context that ends some time after ctx, or with end.
func outlive(ctx context.Context, grace time.Duration) (late context.Context, end func()) {
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	timer := make(chan *time.Timer, 1)

	stop := context.AfterFunc(ctx, func() {
		timer <- time.AfterFunc(grace, func() { cancel(context.Cause(ctx)) })
	})

	return late, func() {
		if !stop() {
			select {
			case t := <-timer:
				t.Stop()
			default:
			}
		}

		cancel(errors.New("the session is closed"))
	}
}

// Close ends what the session still does, which is nothing when no action is running. Nothing can
// be recorded with it afterwards.
func (s *Session) Close() { s.close() }

// Configuration is what Helm's actions are made with. Each call returns a new one, because the
// actions change it: they keep the capabilities of the cluster in it, and exchange its clients.
func (s *Session) Configuration() *action.Configuration {
	releases := storage.Init(s.records)
	releases.Log = s.log

	var templates genericclioptions.RESTClientGetter = s.getter
	if s.o.WithholdSecrets {
		templates = withholding{s.getter, s}
	}

	return &action.Configuration{
		RESTClientGetter: templates,
		Releases:         releases,
		KubeClient:       s.client(),
		Log:              s.log,
		HookOutputFunc:   func(_, _, _ string) io.Writer { return io.Discard },
	}
}

func (s *Session) client() *client {
	return &client{s: s, helm: &kube.Client{
		Factory: factory{cmdutil.NewFactory(s.getter)}, Log: s.log, Namespace: s.o.Namespace,
	}}
}

// Work does what takes memory, such as running an action, when there is a slot for it. While the
// action waits for objects, the slot is given to others. The error is that of work, or why ctx ended
// before there was a slot. Work within work takes no second slot.
func (s *Session) Work(work func() error) error { return s.place.during(s.ctx, work) }

// Failure is the last wait or hook that failed, nil when none did. Helm's errors do not always
// wrap it (action.Install, performInstall: "failed pre-install: %s").
func (s *Session) Failure() *NotReadyError {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.failure
}

// RecordError is why a record of the release could not be written, nil when all are. Helm only logs
// some of them (action.Configuration.recordRelease), and reports success.
func (s *Session) RecordError() error {
	s.mu.Lock()
	defer s.mu.Unlock()

	var all []error
	for _, key := range slices.Sorted(maps.Keys(s.unrecorded)) {
		all = append(all, s.unrecorded[key])
	}

	return errors.Join(all...)
}

// Foreign are the objects that were not deleted because they belong to another release now, each
// such as "ConfigMap default/web: it belongs to the release default/other".
func (s *Session) Foreign() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Sorted(maps.Values(s.foreign))
}

// log receives what Helm logs.
func (s *Session) log(format string, args ...any) {
	s.o.Progress(s.o.Redact(fmt.Sprintf(format, args...)))
}

// note reports a text once.
func (s *Session) note(text string) {
	s.mu.Lock()
	reported := s.reported[text]
	s.reported[text] = true
	s.mu.Unlock()

	if !reported {
		s.o.Progress(s.o.Redact(text))
	}
}

// warnings are those of the API: fields that it does not know, versions that it will not serve
// for long.
type warnings struct{ s *Session }

// HandleWarningHeader implements rest.WarningHandler.
func (w warnings) HandleWarningHeader(code int, _, text string) {
	// 299 is the only one that the API gives (client-go 0.36, rest.WarningLogger).
	if code == 299 && text != "" {
		w.s.note("the Kubernetes API warns: " + text)
	}
}
