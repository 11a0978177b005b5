// Package hooks is the argument `hooks`: custom actions around the time that machines are out of service.
package hooks

import (
	"fmt"
	"net/http"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/healthcheck/probe"
	"github.com/talosop/terraform-provider-talosop/internal/hook"
	"github.com/talosop/terraform-provider-talosop/internal/hook/execute"
	"github.com/talosop/terraform-provider-talosop/internal/provider/healthchecks"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// The choices of on_failure.
const (
	stops     = "stop"
	continues = "continue"
)

// name is the format of hook names, which become names of jobs.
var name = regexp.MustCompile(`^[a-z0-9]([-_a-z0-9]{0,38}[a-z0-9])?$`)

const (
	purpose = "Custom actions, by name, before working machines go out of service (`before`) and once they are back " +
		"(`after`). An `after` also runs if the apply fails, or else in the next apply"
	guide = " ([guide](../guides/hooks))."
)

// Attribute is `hooks`. timeout checks durations.
func Attribute(timeout validator.String) schema.MapNestedAttribute {
	return schema.MapNestedAttribute{
		Optional: true,
		Validators: []validator.Map{
			mapvalidator.SizeAtLeast(1),
			mapvalidator.KeysAre(stringvalidator.RegexMatches(name,
				"the name of a hook has at most 40 lower-case letters, digits, dashes and underscores, and begins and ends "+
					"with a letter or digit")),
			complete{},
		},
		MarkdownDescription: purpose + guide + tf.TerraformOnly,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"scope": tf.OptionalString("`machine` (the default): around the time that a machine is out of service. "+
				"`rollout`: before the first machine of an apply goes out of service, and after the last one is back.",
				stringvalidator.OneOf(string(hook.Machine), string(hook.Rollout))),
			"pools": tf.OptionalStrings("Pools whose machines the hook is for, and `control_plane` for the control planes "+
				"(default: all machines).", listvalidator.SizeAtLeast(1)),
			"before": tf.OptionalObject("What runs before. Set one of `job`, `patch` and `http`. Its texts may contain "+
				"`{{machine}}` and `{{node}}` in the scope `machine`.", actionAttributes()),
			"after": tf.OptionalObject("What undoes `before`, with the same attributes. It must succeed if it runs again, "+
				"or if `before` did not run.", actionAttributes()),
			"timeout": tf.OptionalString("How long each part is repeated until it succeeds (default `5m`).", timeout),
			"on_failure": tf.OptionalString("What happens when a part does not succeed: `stop` (the default) ends the "+
				"apply, and `continue` warns.", stringvalidator.OneOf(stops, continues)),
		}},
	}
}

// AttributeAsIn is Attribute on a page that refers to another page for nested attributes.
func AttributeAsIn(resource string, timeout validator.String) schema.MapNestedAttribute {
	a := Attribute(timeout)
	a.NestedObject.Attributes = tf.WithDescriptions(a.NestedObject.Attributes, func(string) string { return "As there." })
	a.MarkdownDescription = fmt.Sprintf("Custom actions around the time that machines are out of service, "+
		"[as in `talosop_%s`](%s#%s).", resource, resource, "nestedatt--hooks") + tf.TerraformOnly

	return a
}

func actionAttributes() map[string]schema.Attribute {
	request := healthchecks.RequestAttributes("URL with `http` or `https`. The computer that runs Terraform requests it.",
		"Expected status code (default: any 2xx).")
	request["method"] = tf.OptionalString("Method of the request (default `POST`).", stringvalidator.OneOf(http.MethodGet,
		http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete))
	request["body"] = tf.OptionalString("Body of the request. Set its `Content-Type` in `headers`.")

	return map[string]schema.Attribute{
		"job": tf.OptionalString("Manifest (YAML) of a Job of `batch/v1` that must succeed. It is created with a unique "+
			"name and deleted afterwards.", job),
		"patch": tf.OptionalObject("Change of an object of the cluster.", map[string]schema.Attribute{
			"api_version": tf.RequiredString("API version, such as `longhorn.io/v1beta2`."),
			"kind":        tf.RequiredString("Kind, such as `Setting`; not Secret.", stringvalidator.NoneOf("Secret")),
			"namespace":   tf.OptionalString("Namespace. Leave it out for kinds without a namespace."),
			"name":        tf.RequiredString("Name of the object, which must exist."),
			"patch": tf.RequiredString("Merge patch, or a list of JSON 6902 operations, in YAML.",
				patch),
		}),
		"http": tf.OptionalObject("HTTP request, such as a call to a webhook.", request),
	}
}

// job accepts the manifest of a Job, with placeholders.
var job = tf.StringCheck{
	Allowed: "value must be the manifest of a Job of batch/v1",
	Check: func(at path.Path, value string) diag.Diagnostic {
		if _, err := probe.ParseJob(filled(value)); err != nil {
			return healthchecks.InvalidJob(at, err)
		}

		return nil
	},
}

// patch accepts a patch of an object, with placeholders.
var patch = tf.StringCheck{
	Allowed: "value must be a merge patch, or a list of JSON 6902 operations, in YAML",
	Check: func(at path.Path, value string) diag.Diagnostic {
		if _, err := execute.ParsePatch(filled(value)); err != nil {
			return tf.Diagnostic(invalidPatch.At(tf.PathOf(at), finding.Args{"cause": err.Error()}))
		}

		return nil
	},
}

func filled(text string) string { return hook.Fill(text, "machine", "node") }
