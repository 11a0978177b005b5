// Package healthchecks is the argument `health_checks`: custom checks that machines wait for.
package healthchecks

import (
	"fmt"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/healthcheck/probe"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// name is the format of check names, which become names of jobs.
var name = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

const (
	purpose = "Custom checks, by name, that must pass before a working machine goes out of service and after it is " +
		"back. A failed check ends the apply, which names it"
	guide = " ([guide](../guides/health-checks))."
)

// Attribute is `health_checks`. timeout checks durations.
func Attribute(timeout validator.String) schema.MapNestedAttribute {
	return schema.MapNestedAttribute{
		Optional: true,
		Validators: []validator.Map{
			mapvalidator.SizeAtLeast(1),
			mapvalidator.KeysAre(stringvalidator.RegexMatches(name,
				"the name of a check has at most 40 lower-case letters, digits and dashes, and no dash at its ends")),
			complete{},
		},
		MarkdownDescription: purpose + guide + tf.TerraformOnly,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"timeout": tf.OptionalString("How long the check is repeated until it passes (default `5m`).", timeout),
			"object": tf.OptionalObject("Object of the cluster, and what must be true of it. Set one of `object`, `http` "+
				"and `job`.", objectAttributes()),
			"http": tf.OptionalObject("URL that Terraform requests with GET, and the expected response.",
				RequestAttributes("URL with `http` or `https`.", "Expected status code (default `200`).")),
			"job": tf.OptionalString("Manifest (YAML) of a Job of `batch/v1` that must succeed. Each check creates it with "+
				"a unique name and deletes it afterwards.", job),
		}},
	}
}

// AttributeAsIn is Attribute on a page that refers to another page for nested attributes.
func AttributeAsIn(resource string, timeout validator.String) schema.MapNestedAttribute {
	a := Attribute(timeout)
	a.NestedObject.Attributes = tf.WithDescriptions(a.NestedObject.Attributes, func(string) string { return "As there." })
	a.MarkdownDescription = fmt.Sprintf("Custom checks that machines wait for, [as in `talosop_%s`](%s#%s).", resource,
		resource, "nestedatt--health_checks") + tf.TerraformOnly

	return a
}

func objectAttributes() map[string]schema.Attribute {
	text := func(required bool, description string, checks ...validator.String) schema.StringAttribute {
		return schema.StringAttribute{Required: required, Optional: !required, MarkdownDescription: description,
			Validators: checks}
	}

	return map[string]schema.Attribute{
		"api_version": text(true, "API version, such as `ceph.rook.io/v1`."),
		"kind": text(true, "Kind, such as `CephCluster`; not Secret.",
			stringvalidator.NoneOf("Secret")),
		"namespace":      text(false, "Namespace. Leave it out for kinds without a namespace, or to check all namespaces."),
		"name":           text(false, "Name. Without it, every object of the kind must pass; an empty list passes, too."),
		"label_selector": text(false, "Label selector of the objects, such as `app=db`; not with `name`."),
		"condition":      text(false, "Status condition that must be `True`, such as `Ready`."),
		"cel": text(false, "CEL expression over `object` that must be true, such as `object.status.phase == "+
			"\"Ready\"`.", expression),
		"jsonpath": text(false, "JSONPath in the format of `kubectl`, whose result must equal `value`.", template),
		"value":    tf.OptionalString("Expected result of `jsonpath`.", tf.MayBeBlank{}),
	}
}

// RequestAttributes are those of a request and its response, with the descriptions of two of them.
func RequestAttributes(url, status string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"url": tf.RequiredString(url,
			stringvalidator.RegexMatches(regexp.MustCompile(`^https?://[^/]`),
				"a URL begins with http:// or https:// and a host")),
		"status":   tf.OptionalNumber(status, int64validator.Between(100, 599)),
		"contains": tf.OptionalString("Text that the response must contain."),
		"ca":       tf.OptionalString("Authority (PEM) of the server certificate. Default: those of the system."),
		"headers": schema.MapAttribute{
			Validators: []validator.Map{tf.MayBeBlank{}},
			Optional:   true, Sensitive: true, ElementType: types.StringType,
			MarkdownDescription: "Headers of the request, stored in state. A redirect to another scheme, host or port is " +
				"followed without them.",
		},
	}
}

// expression accepts CEL that returns a bool.
var expression = tf.StringCheck{
	Allowed: "value must be an expression in CEL that gives a bool",
	Check: func(at path.Path, value string) diag.Diagnostic {
		if _, err := probe.Compile(value); err != nil {
			return tf.Diagnostic(invalidCEL.At(tf.PathOf(at), finding.Args{"value": value, "cause": err.Error()}))
		}

		return nil
	},
}

// template accepts JSONPath.
var template = tf.StringCheck{
	Allowed: "value must be a JSONPath",
	Check: func(at path.Path, value string) diag.Diagnostic {
		if _, err := probe.ParseJSONPath(value); err != nil {
			return tf.Diagnostic(invalidJSONPath.At(
				tf.PathOf(at), finding.Args{"value": value, "cause": err.Error()}))
		}

		return nil
	},
}

// job accepts the manifest of a Job.
var job = tf.StringCheck{
	Allowed: "value must be the manifest of a Job of batch/v1",
	Check: func(at path.Path, value string) diag.Diagnostic {
		if _, err := probe.ParseJob(value); err != nil {
			return InvalidJob(at, err)
		}

		return nil
	},
}

// InvalidJob reports a manifest that is not a Job.
func InvalidJob(at path.Path, err error) diag.Diagnostic {
	return tf.Diagnostic(invalidJob.At(tf.PathOf(at), finding.Args{"cause": err.Error()}))
}
