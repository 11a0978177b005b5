package settings

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Level is where a setting is given.
type Level int

// The levels, the most general one first.
const (
	// Cluster is all machines of a cluster, in its resource, and Handle the same in its handle.
	Cluster Level = iota
	Handle
	// ControlPlane is the resource of the control planes of a cluster, which has no more general level.
	ControlPlane
	// ControlPlaneBlock and Workers are the machines of one role beside a more general level.
	ControlPlaneBlock
	Workers
	// Configured is machines that others make, with a configuration of talosop: no change reaches them.
	Configured
	// Machine is one of several machines.
	Machine
	// OneMachine is the resource of one machine.
	OneMachine
)

// below is whether another level of the same resource describes the setting.
func (l Level) below() bool { return l == ControlPlaneBlock || l == Machine }

var everywhere = []Level{Cluster, Handle, ControlPlane, ControlPlaneBlock, Workers, Configured, Machine, OneMachine}

// Attributes are those of a level.
func Attributes(at Level) map[string]schema.Attribute {
	attributes := map[string]schema.Attribute{}

	for _, r := range table {
		if slices.Contains(r.on, at) {
			attributes[r.setting.Name] = r.kind.attribute(r.text(at), r.secret)
		}

		// What is in it is described on the level above.
		if nested, ok := attributes[r.setting.Name].(schema.SingleNestedAttribute); ok && at.below() {
			nested.Attributes = tf.AsThere(nested.Attributes)
			attributes[r.setting.Name] = nested
		}
	}

	return attributes
}

// text is the description of an attribute.
func (r row) text(at Level) string {
	metal, cost, name := "", r.cost, "`"+r.setting.Name+"`"
	if r.setting.Metal {
		metal = tf.MetalOnly
	}

	if at == Configured || at == Handle && cost != tf.AppliedLive {
		cost = ""
	}

	first := strings.TrimSuffix(tf.FirstSentence(r.what), ".")

	switch at {
	case Cluster, ControlPlane:
		return metal + r.what + cost
	case Handle:
		return metal + first + "." + cost
	case ControlPlaneBlock:
		return name + " of the control planes" + r.kind.over("that of the cluster") + "."
	case Machine:
		return name + " of this machine" + r.kind.over("that of its group") + "."
	default:
		return metal + first + r.kind.over(name+" of the cluster") + "." + cost
	}
}

// Settings are all that an import reads back.
func Settings() []*setting.Setting {
	all := make([]*setting.Setting, 0, len(table))
	for _, r := range table {
		all = append(all, r.setting)
	}

	return all
}

// Read reads the settings of one level from its models.
func Read(ctx context.Context, r *tf.Reader, models ...any) setting.Values {
	var values setting.Values

	for _, row := range table {
		for _, model := range models {
			if field, ok := fieldOf(reflect.ValueOf(model), row.setting.Name); ok {
				value, is := field.Interface().(attr.Value)
				if read := row.kind.read(ctx, r, value); is && read != nil {
					values.Set(row.setting, read)
				}
			}
		}
	}

	return values
}

// Write writes the settings of one level into pointers to its models, null where there are none. Settings that the
// level does not have are left out.
func Write(ctx context.Context, values setting.Values, models ...any) diag.Diagnostics {
	var diags diag.Diagnostics

	for _, row := range table {
		for _, model := range models {
			field, ok := fieldOf(reflect.ValueOf(model).Elem(), row.setting.Name)
			if !ok {
				continue
			}

			value, more := row.kind.write(ctx, values[row.setting])
			diags.Append(more...)
			field.Set(reflect.ValueOf(value))
		}
	}

	return diags
}

// Unknown fills pointers to models with unknown values.
func Unknown(models ...any) {
	for _, row := range table {
		for _, model := range models {
			if field, ok := fieldOf(reflect.ValueOf(model).Elem(), row.setting.Name); ok {
				field.Set(reflect.ValueOf(tf.Unknown(row.kind.attribute("", false).GetType())))
			}
		}
	}
}

// None is a model without settings.
func None[M any]() (model M) {
	Write(context.Background(), nil, &model) // null values have no mistakes

	return model
}

// fieldOf is the field of a model for a setting.
func fieldOf(model reflect.Value, name string) (reflect.Value, bool) {
	at, ok := tf.FieldsOf(model.Type())[name]
	if !ok {
		return reflect.Value{}, false
	}

	return model.FieldByIndex(at), true
}
