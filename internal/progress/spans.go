package progress

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/talosop/terraform-provider-talosop/internal/environ"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

const (
	serviceName = "terraform-provider-talosop"
	// sendTime is how long the end of a run waits until its spans are sent.
	sendTime = 5 * time.Second
)

// Spans creates spans of events and sends them to the endpoint in the OpenTelemetry variables.
type Spans struct {
	provider *sdk.TracerProvider
	parent   context.Context //nolint:containedctx // the trace of Terraform's caller; it cancels nothing
}

// SpansFromEnvironment reads the OpenTelemetry variables (its specification, "Environment Variables" and "OTLP
// Exporter"). It returns nil unless OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set, and nil
// where OTEL_SDK_DISABLED or OTEL_TRACES_EXPORTER disables spans. TRACEPARENT is the parent span of the runs, as in
// Terraform. It sends nothing yet.
func SpansFromEnvironment(ctx context.Context, version string) (*Spans, error) {
	if firstOf("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT") == "" {
		return nil, nil //nolint:nilnil // spans are not requested
	}

	if disabled, err := sdkDisabled(); disabled || err != nil {
		return nil, err
	}

	switch exporter := os.Getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "", "otlp":
	case "none":
		return nil, nil //nolint:nilnil // spans are not requested
	default:
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER is %q; talosop supports otlp and none", exporter)
	}

	client, err := clientFor(firstOf("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"))
	if err != nil {
		return nil, err
	}

	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("OpenTelemetry: %w", err)
	}

	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", serviceName), attribute.String("service.version", version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OpenTelemetry: %w", err)
	}

	parent := propagation.TraceContext{}.Extract(context.Background(),
		propagation.MapCarrier{"traceparent": os.Getenv("TRACEPARENT"), "tracestate": os.Getenv("TRACESTATE")})

	return &Spans{provider: sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about)), parent: parent}, nil
}

// sdkDisabled reads OTEL_SDK_DISABLED. An empty variable counts as unset, as in the specification. Values that are
// not booleans are an error, so that no span is sent by accident.
func sdkDisabled() (bool, error) {
	const name = "OTEL_SDK_DISABLED"

	if os.Getenv(name) == "" {
		return false, nil
	}

	return environ.Switch(name)
}

// clientFor returns the client of a protocol. The default of the specification is http/protobuf.
func clientFor(protocol string) (otlptrace.Client, error) {
	switch protocol {
	case "", "http/protobuf":
		return otlptracehttp.NewClient(), nil
	case "grpc":
		return otlptracegrpc.NewClient(), nil
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q; talosop supports http/protobuf and grpc", protocol)
	}
}

func firstOf(names ...string) string {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}

	return ""
}

// runSpans are the span of a run and the spans of its running steps, by machine.
type runSpans struct {
	run   trace.Span
	steps map[string]trace.Span
}

// tell starts and ends a span with its step. Other events become events of that span.
func (s *runSpans) tell(f *Follow, e lifecycle.Event) {
	about := trace.WithAttributes(attribute.String("talosop.cluster", f.cluster),
		attribute.String("talosop.machine", e.Machine))
	tracer := f.follower.Spans.provider.Tracer(serviceName)

	if s.run == nil {
		_, s.run = tracer.Start(f.follower.Spans.parent, f.resource,
			trace.WithAttributes(attribute.String("talosop.cluster", f.cluster)))
		s.steps = map[string]trace.Span{}
	}

	span, under := s.steps[e.Machine]

	switch {
	case e.State == lifecycle.StepStarted:
		_, s.steps[e.Machine] = tracer.Start(trace.ContextWithSpan(f.follower.Spans.parent, s.run), e.Step.String(), about)
	case under && (e.State == lifecycle.StepFinished || e.State == lifecycle.StepFailed):
		if e.State == lifecycle.StepFailed {
			span.SetStatus(codes.Error, e.Reason)
		}

		span.End()
		delete(s.steps, e.Machine)
	case under:
		span.AddEvent(e.Reason)
	default:
		s.run.AddEvent(string(e.State)+": "+e.Reason, about)
	}
}

// end ends the open spans and waits a few seconds until all of them are sent.
func (s *runSpans) end(ctx context.Context, spans *Spans, err error) {
	if s.run == nil {
		return
	}

	for _, step := range s.steps {
		step.End()
	}

	if err != nil {
		s.run.SetStatus(codes.Error, err.Error())
	}

	s.run.End()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTime)
	defer cancel()

	// An unreachable collector does not fail the run; the SDK reports it to its own error handler.
	_ = spans.provider.ForceFlush(ctx)
}
