package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	"github.com/talosop/terraform-provider-talosop/internal/healthcheck"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// askObject is nil when what has to be true is true of each object.
func (p *Prober) askObject(ctx context.Context, check healthcheck.Object) error {
	ref := objects.Reference{APIVersion: check.APIVersion, Kind: check.Kind, Namespace: check.Namespace,
		Name: check.Name}

	if check.Name == "" {
		objects, err := p.Cluster.ListObjects(ctx, ref, check.Selector)
		if err != nil {
			return err
		}

		var unhealthy []error
		for _, object := range objects {
			unhealthy = append(unhealthy, healthy(ctx, check, object))
		}

		return errors.Join(unhealthy...)
	}

	object, err := p.Cluster.GetObject(ctx, ref)
	if err != nil {
		return err
	}

	if object == nil {
		return fmt.Errorf("%s does not exist", ref)
	}

	return healthy(ctx, check, object)
}

// healthy is nil when what has to be true of an object is.
func healthy(ctx context.Context, check healthcheck.Object, object map[string]any) error {
	var err error

	switch {
	case check.Condition != "":
		err = conditionIsTrue(object, check.Condition)
	case check.CEL != "":
		err = expressionIsTrue(ctx, check.CEL, object)
	default:
		err = valueIs(object, check.JSONPath, check.Value)
	}

	if err != nil {
		return fmt.Errorf("%s: %w", objects.ReferenceTo(object), err)
	}

	return nil
}

func conditionIsTrue(object map[string]any, kind string) error {
	// An object without conditions has no true one; a value that is no list counts as none.
	conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")

	for _, element := range conditions {
		condition, _ := element.(map[string]any)
		if condition["type"] != kind {
			continue
		}

		if condition["status"] == "True" {
			return nil
		}

		text := fmt.Sprintf("condition %s is %v", kind, condition["status"])
		if message, _ := condition["message"].(string); message != "" {
			text += ": " + message
		}

		return errors.New(text)
	}

	return fmt.Errorf("condition %s is missing", kind)
}

// mostCost bounds what an expression may cost, as the units of CEL count it.
const mostCost = 1_000_000

// environment of expressions: the variable object, and the functions for strings, lists and sets.
func environment() (*cel.Env, error) {
	return cel.NewEnv(cel.Variable("object", cel.DynType), cel.OptionalTypes(), ext.Strings(), ext.Lists(), ext.Sets())
}

// Compile reads an expression. The error says where it is wrong.
func Compile(expression string) (cel.Program, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}

	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}

	if kind := ast.OutputType(); !kind.IsExactType(cel.BoolType) && !kind.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("it returns %s instead of bool", kind)
	}

	return env.Program(ast, cel.CostLimit(mostCost), cel.InterruptCheckFrequency(100))
}

func expressionIsTrue(ctx context.Context, expression string, object map[string]any) error {
	program, err := Compile(expression)
	if err != nil {
		return err
	}

	out, _, err := program.ContextEval(ctx, map[string]any{"object": object})
	if err != nil {
		return fmt.Errorf("%s: %w", expression, err)
	}

	if out.Value() != true {
		return fmt.Errorf("%s is %v", expression, out.Value())
	}

	return nil
}

// ParseJSONPath reads a template, with or without braces. The error says what is wrong with it.
func ParseJSONPath(template string) (*jsonpath.JSONPath, error) {
	if !strings.Contains(template, "{") {
		template = "{." + strings.TrimPrefix(template, ".") + "}"
	}

	parsed := jsonpath.New("check").AllowMissingKeys(true)

	return parsed, parsed.Parse(template)
}

func valueIs(object map[string]any, template, want string) error {
	parsed, err := ParseJSONPath(template)
	if err != nil {
		return err
	}

	var found bytes.Buffer
	if err := parsed.Execute(&found, object); err != nil {
		return fmt.Errorf("%s: %w", template, err)
	}

	if found.String() != want {
		return fmt.Errorf("%s is %q, expected %q", template, found.String(), want)
	}

	return nil
}
