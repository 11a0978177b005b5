package provider

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/provider/direct"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

// NewServer returns a constructor of the server for main. It counts its work in requests.
func NewServer(version string, requests *Requests) func() tfprotov6.ProviderServer {
	return func() tfprotov6.ProviderServer {
		return guarded{Serve(NewOf(version, providerdata.NewProviderData())), requests}
	}
}

// Serve is the server of a provider. It serves the resources with many values directly.
func Serve(p direct.Provider) direct.Server {
	return direct.NewServer(p, "talosop_cluster", "talosop_control_plane", "talosop_worker", "talosop_machine")
}

// guarded is a server that turns panics into errors. A process that ends loses the state of all its other
// operations, and the CLIs print the value of the panic, which may be a secret.
//
// guarded keeps the prior state, whatever was done since: the panic lost what the operation had stored. This equals
// a process that was killed, after which every operation resumes. The planned state would not be better: a create
// would yield a tainted object, and the next apply would wipe its machines.
//
// State stores have an interface of their own, which the provider does not implement.
type guarded struct {
	served

	requests *Requests
}

// served is what the framework serves and [tf6server] needs.
type served = direct.Server

// keeping answers a request with the response of the server or, after a panic, with a response made from the
// diagnostic. All requests pass here, so it also removes unused loggers.
func keeping[Request, Response any](
	ctx context.Context, g guarded, request Request, serve func(context.Context, Request) (*Response, error), name string,
	fallback func([]*tfprotov6.Diagnostic) *Response,
) (response *Response, err error) {
	ctx, done := g.requests.begin(ctx)
	defer done()

	panicked := panics.Call(func() { response, err = serve(withoutLoggers(ctx), request) })
	if panicked == nil {
		return response, err
	}

	return fallback(mistakes(name, panicked)), nil
}

// answering is keeping with a response that has the diagnostics and the kept state.
func answering[Request, Response any](
	ctx context.Context, g guarded, request Request, serve func(context.Context, Request) (*Response, error), name string,
	kept ...Response,
) (*Response, error) {
	return keeping(ctx, g, request, serve, name, func(d []*tfprotov6.Diagnostic) *Response {
		var response Response
		if len(kept) > 0 {
			response = kept[0]
		}

		reflect.ValueOf(&response).Elem().FieldByName("Diagnostics").Set(reflect.ValueOf(d))

		return &response
	})
}

func mistakes(name string, panicked error) []*tfprotov6.Diagnostic {
	return []*tfprotov6.Diagnostic{{
		Severity: tfprotov6.DiagnosticSeverityError, Summary: "Internal error", Detail: mistake(name, panicked),
	}}
}

func mistake(name string, panicked error) string {
	text := &strings.Builder{}
	fmt.Fprintf(text, "%s ended because of a bug in the provider. State keeps its former values, and a started change "+
		"may be finished. Plan and apply again to continue.\n\n"+
		"Report this with the lines below, which contain no values.", name)

	if e := (*panics.Error)(nil); errors.As(panicked, &e) {
		text.WriteString("\n\n" + e.Type)

		for _, function := range e.Functions {
			text.WriteString("\n  " + function)
		}
	}

	return text.String()
}

// GetMetadata implements tfprotov6.ProviderServer, like all methods below.
func (g guarded) GetMetadata(
	ctx context.Context, req *tfprotov6.GetMetadataRequest,
) (*tfprotov6.GetMetadataResponse, error) {
	return answering(ctx, g, req, g.served.GetMetadata, "Naming what there is")
}

func (g guarded) GetProviderSchema(
	ctx context.Context, req *tfprotov6.GetProviderSchemaRequest,
) (*tfprotov6.GetProviderSchemaResponse, error) {
	return answering(ctx, g, req, g.served.GetProviderSchema, "The schema")
}

func (g guarded) GetResourceIdentitySchemas(
	ctx context.Context, req *tfprotov6.GetResourceIdentitySchemasRequest,
) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return answering(ctx, g, req, g.served.GetResourceIdentitySchemas, "The schema of identities")
}

func (g guarded) ValidateProviderConfig(
	ctx context.Context, req *tfprotov6.ValidateProviderConfigRequest,
) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return answering(ctx, g, req, g.served.ValidateProviderConfig, "The validation of the provider block",
		tfprotov6.ValidateProviderConfigResponse{PreparedConfig: req.Config})
}

func (g guarded) ConfigureProvider(
	ctx context.Context, req *tfprotov6.ConfigureProviderRequest,
) (*tfprotov6.ConfigureProviderResponse, error) {
	return answering(ctx, g, req, g.served.ConfigureProvider, "The configuration of the provider")
}

func (g guarded) StopProvider(
	ctx context.Context, req *tfprotov6.StopProviderRequest,
) (*tfprotov6.StopProviderResponse, error) {
	return keeping(ctx, g, req, g.served.StopProvider, "Stopping",
		func(d []*tfprotov6.Diagnostic) *tfprotov6.StopProviderResponse {
			return &tfprotov6.StopProviderResponse{Error: d[0].Detail}
		})
}

func (g guarded) ValidateResourceConfig(
	ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest,
) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return answering(ctx, g, req, g.served.ValidateResourceConfig, "The validation of a "+req.TypeName)
}

func (g guarded) UpgradeResourceState(
	ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	return answering(ctx, g, req, g.served.UpgradeResourceState, "Reading the state of a "+req.TypeName)
}

func (g guarded) UpgradeResourceIdentity(
	ctx context.Context, req *tfprotov6.UpgradeResourceIdentityRequest,
) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	return answering(ctx, g, req, g.served.UpgradeResourceIdentity, "Reading the identity of a "+req.TypeName)
}

func (g guarded) ReadResource(
	ctx context.Context, req *tfprotov6.ReadResourceRequest,
) (*tfprotov6.ReadResourceResponse, error) {
	return answering(ctx, g, req, g.served.ReadResource, "The refresh of a "+req.TypeName,
		tfprotov6.ReadResourceResponse{NewState: req.CurrentState, Private: req.Private, NewIdentity: req.CurrentIdentity})
}

func (g guarded) PlanResourceChange(
	ctx context.Context, req *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	return answering(ctx, g, req, g.served.PlanResourceChange, "The plan of a "+req.TypeName,
		tfprotov6.PlanResourceChangeResponse{PlannedState: req.PriorState, PlannedPrivate: req.PriorPrivate,
			PlannedIdentity: req.PriorIdentity})
}

func (g guarded) ApplyResourceChange(
	ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	return answering(ctx, g, req, g.served.ApplyResourceChange, "The apply of a "+req.TypeName,
		tfprotov6.ApplyResourceChangeResponse{NewState: req.PriorState, Private: req.PlannedPrivate,
			NewIdentity: req.PlannedIdentity})
}

func (g guarded) ImportResourceState(
	ctx context.Context, req *tfprotov6.ImportResourceStateRequest,
) (*tfprotov6.ImportResourceStateResponse, error) {
	return answering(ctx, g, req, g.served.ImportResourceState, "The import of a "+req.TypeName)
}

func (g guarded) MoveResourceState(
	ctx context.Context, req *tfprotov6.MoveResourceStateRequest,
) (*tfprotov6.MoveResourceStateResponse, error) {
	return answering(ctx, g, req, g.served.MoveResourceState, "The move to a "+req.TargetTypeName)
}

func (g guarded) GenerateResourceConfig(
	ctx context.Context, req *tfprotov6.GenerateResourceConfigRequest,
) (*tfprotov6.GenerateResourceConfigResponse, error) {
	return answering(ctx, g, req, g.served.GenerateResourceConfig, "Writing the configuration of a "+req.TypeName)
}

func (g guarded) ValidateDataResourceConfig(
	ctx context.Context, req *tfprotov6.ValidateDataResourceConfigRequest,
) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return answering(ctx, g, req, g.served.ValidateDataResourceConfig, "The validation of data "+req.TypeName)
}

func (g guarded) ReadDataSource(
	ctx context.Context, req *tfprotov6.ReadDataSourceRequest,
) (*tfprotov6.ReadDataSourceResponse, error) {
	return answering(ctx, g, req, g.served.ReadDataSource, "Reading data "+req.TypeName)
}

// msgpackNil is null in the protocol.
const msgpackNil = 0xc0

func (g guarded) CallFunction(
	ctx context.Context, req *tfprotov6.CallFunctionRequest,
) (*tfprotov6.CallFunctionResponse, error) {
	// OpenTofu sends nothing for a null argument (1.12, internal/plugin6, CallFunction).
	for i, argument := range req.Arguments {
		if argument == nil || argument.MsgPack == nil && argument.JSON == nil {
			req.Arguments[i] = &tfprotov6.DynamicValue{MsgPack: []byte{msgpackNil}}
		}
	}

	return keeping(ctx, g, req, g.served.CallFunction, "The function "+req.Name,
		func(d []*tfprotov6.Diagnostic) *tfprotov6.CallFunctionResponse {
			return &tfprotov6.CallFunctionResponse{Error: &tfprotov6.FunctionError{Text: d[0].Detail}}
		})
}

func (g guarded) GetFunctions(
	ctx context.Context, req *tfprotov6.GetFunctionsRequest,
) (*tfprotov6.GetFunctionsResponse, error) {
	return answering(ctx, g, req, g.served.GetFunctions, "Naming the functions")
}

func (g guarded) ValidateEphemeralResourceConfig(
	ctx context.Context, req *tfprotov6.ValidateEphemeralResourceConfigRequest,
) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	return answering(ctx, g, req, g.served.ValidateEphemeralResourceConfig, "The validation of an ephemeral "+req.TypeName)
}

func (g guarded) OpenEphemeralResource(
	ctx context.Context, req *tfprotov6.OpenEphemeralResourceRequest,
) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	return answering(ctx, g, req, g.served.OpenEphemeralResource, "Opening an ephemeral "+req.TypeName)
}

func (g guarded) RenewEphemeralResource(
	ctx context.Context, req *tfprotov6.RenewEphemeralResourceRequest,
) (*tfprotov6.RenewEphemeralResourceResponse, error) {
	return answering(ctx, g, req, g.served.RenewEphemeralResource, "Renewing an ephemeral "+req.TypeName,
		tfprotov6.RenewEphemeralResourceResponse{Private: req.Private})
}

func (g guarded) CloseEphemeralResource(
	ctx context.Context, req *tfprotov6.CloseEphemeralResourceRequest,
) (*tfprotov6.CloseEphemeralResourceResponse, error) {
	return answering(ctx, g, req, g.served.CloseEphemeralResource, "Closing an ephemeral "+req.TypeName)
}
