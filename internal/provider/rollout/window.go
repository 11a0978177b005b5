package rollout

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	clock "github.com/talosop/terraform-provider-talosop/internal/provider/timetable"
	"github.com/talosop/terraform-provider-talosop/internal/timetable"
)

type windowModel struct {
	Cron     types.String `tfsdk:"cron"`
	Duration types.String `tfsdk:"duration"`
	TimeZone types.String `tfsdk:"time_zone"`
	Outside  types.String `tfsdk:"outside"`
}

// The choices of outside.
const (
	outsideWait   = "wait"
	outsideRefuse = "refuse"
)

// windowAttribute is when machines may be taken out of service.
func windowAttribute() schema.SingleNestedAttribute {
	return tf.OptionalObject("When updates may take machines out of service (default: always): see the "+
		"[guide](../guides/holding-changes)."+tf.TerraformOnly, map[string]schema.Attribute{
		"cron": tf.RequiredString("When the window opens: a cron expression of five fields, such as `0 22 * * "+
			"6`.", windowCron),
		"duration": tf.RequiredString("How long the window is open, such as `4h`.", windowDuration),
		"time_zone": tf.OptionalString("Time zone of `cron`, such as `Europe/Berlin`. Default: `"+clock.DefaultZone+"`.",
			clock.TimeZone),
		"outside": tf.OptionalString("What happens outside the window: the apply waits (`wait`, the default), or the "+
			"plan is refused (`refuse`).", stringvalidator.OneOf(outsideWait, outsideRefuse)),
	})
}

// windowCron accepts the time at which a window opens.
var windowCron = tf.StringCheck{
	Allowed: "value must be a cron expression of five fields",
	Check: func(at path.Path, value string) diag.Diagnostic {
		_, err := clock.Read(value, "")
		if err == nil {
			_, err = timetable.ReadWindow(value, time.Hour, clock.DefaultZone)
		}

		if err == nil {
			return nil
		}

		return tf.Diagnostic(invalidWindow.At(
			tf.PathOf(at), finding.Args{"value": value, "cause": strings.TrimSuffix(err.Error(), ".")}))
	},
}

// windowDuration accepts how long a window is open.
var windowDuration = tf.StringCheck{
	Allowed: "value must be a duration such as 90m or 4h, of at most seven days",
	Check: func(at path.Path, value string) diag.Diagnostic {
		d, err := time.ParseDuration(value)
		if err == nil {
			_, err = timetable.ReadWindow("@daily", d, clock.DefaultZone)
		}

		if err == nil {
			return nil
		}

		return tf.Diagnostic(invalidWindowDuration.At(tf.PathOf(at), finding.Args{"value": value}))
	},
}

// putWindow puts the window into changes; the validators report mistakes.
func putWindow(ctx context.Context, r *tf.Reader, from types.Object, to *machineset.Changes) {
	m, ok := tf.Object[windowModel](ctx, r, from)
	if !ok {
		return
	}

	duration, err := time.ParseDuration(r.Text(m.Duration))
	if err != nil {
		return
	}

	zone := cmp.Or(r.Text(m.TimeZone), clock.DefaultZone)
	if w, err := timetable.ReadWindow(r.Text(m.Cron), duration, zone); err == nil {
		to.Window, to.RefusesOutside = w, r.Text(m.Outside) == outsideRefuse
	}
}
