package functions

import (
	"context"
	"errors"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// pure is a function of its arguments.
type pure struct {
	name       string
	definition function.Definition
	// mayBeBlank are the parameters whose empty string has a meaning.
	mayBeBlank []string
	// call returns the result. A *machineconfig.FieldError in its error is shown at the argument that its field starts
	// with.
	call func(ctx context.Context, arguments function.ArgumentsData) (attr.Value, error)
}

// Metadata implements the framework.
func (p pure) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = p.name
}

// Definition implements the framework.
func (p pure) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = p.definition
}

// Run implements the framework.
func (p pure) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	if resp.Error = p.refuseBlanks(ctx, req.Arguments); resp.Error != nil {
		return
	}

	result, err := p.call(ctx, req.Arguments)
	if err != nil {
		resp.Error = p.problem(err)

		return
	}

	resp.Error = resp.Result.Set(ctx, result)
}

// refuseBlanks refuses arguments that are empty or only spaces, as tf.BlankTexts does in configurations.
func (p pure) refuseBlanks(ctx context.Context, arguments function.ArgumentsData) *function.FuncError {
	var shown *function.FuncError

	for i, parameter := range p.definition.Parameters {
		if parameter.GetType().Equal(types.StringType) && !slices.Contains(p.mayBeBlank, parameter.GetName()) {
			var text types.String

			shown = function.ConcatFuncErrors(shown, arguments.GetArgument(ctx, i, &text), refuseBlank(int64(i), text))
		}
	}

	variadic, at := p.definition.VariadicParameter, len(p.definition.Parameters)
	if variadic == nil || !variadic.GetType().Equal(types.StringType) ||
		slices.Contains(p.mayBeBlank, variadic.GetName()) {
		return shown
	}

	var texts []types.String

	shown = function.ConcatFuncErrors(shown, arguments.GetArgument(ctx, at, &texts))
	for i, text := range texts {
		shown = function.ConcatFuncErrors(shown, refuseBlank(int64(at+i), text))
	}

	return shown
}

// problem shows an error at its argument; of several mistakes at that of the first.
func (p pure) problem(err error) *function.FuncError {
	var framework *function.FuncError
	if errors.As(err, &framework) {
		return framework
	}

	var shown *function.FuncError

	for _, mistake := range machineconfig.FieldErrors(err) {
		steps := mistake.Steps()
		if len(steps) == 0 {
			continue
		}

		name, _ := steps[0].(string)
		text := *mistake

		// The CLIs name this part, so it is left out.
		if len(steps) == 1 || p.definition.VariadicParameter != nil && name == p.definition.VariadicParameter.GetName() {
			text.Field = ""
		}

		shown = function.ConcatFuncErrors(shown, function.NewArgumentFuncError(p.position(steps), text.Error()))
	}

	if shown == nil {
		return function.NewFuncError(err.Error())
	}

	return shown
}

// position is the position of an argument in a call; steps are its name, and the index within the last parameter.
func (p pure) position(steps []any) int64 {
	for i, parameter := range p.definition.Parameters {
		if parameter.GetName() == steps[0] {
			return int64(i)
		}
	}

	at := len(p.definition.Parameters)

	if len(steps) > 1 {
		if n, ok := steps[1].(int); ok {
			at += n
		}
	}

	return int64(at)
}

// get reads the arguments of a call.
func get(ctx context.Context, arguments function.ArgumentsData, targets ...any) error {
	if err := arguments.Get(ctx, targets...); err != nil {
		return err
	}

	return nil
}
