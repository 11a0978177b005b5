package settings

import (
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
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
	// ControlPlaneBlock and Workers are the machines of one role below a more general level.
	ControlPlaneBlock
	Workers
	// Configured is unmanaged machines with a configuration of talosop: no change reaches them.
	Configured
	// Machine is one of several machines.
	Machine
	// OneMachine is the resource of one machine.
	OneMachine
)

var everywhere = []Level{Cluster, Handle, ControlPlane, ControlPlaneBlock, Workers, Configured, Machine, OneMachine}

// Attributes are those of a level.
func Attributes(at Level) map[string]schema.Attribute {
	attributes := map[string]schema.Attribute{}

	for _, r := range table {
		if slices.Contains(r.on, at) {
			attributes[r.called()] = r.kind(at, r.text(at), r.secret)
		}
	}

	return attributes
}

// called is the name of the attribute.
func (r row) called() string {
	if r.setting == nil {
		return r.name
	}

	return r.setting.Name
}

// text is the description of an attribute.
func (r row) text(at Level) string {
	metal, cost, name := "", r.cost, "`"+r.called()+"`"
	if r.setting != nil && r.setting.Metal {
		metal = tf.MetalOnly
	}

	if at == Configured || at == Handle && cost != tf.AppliedLive && cost != tf.ReplacesCluster {
		cost = ""
	}

	first := strings.TrimSuffix(tf.FirstSentence(r.what), ".")

	switch at {
	case Cluster, ControlPlane:
		return metal + r.what + cost
	case Handle:
		return metal + first + "." + cost
	case ControlPlaneBlock:
		return name + " of the control planes" + r.over("the value of the cluster") + "."
	case Machine:
		return name + " of this machine" + r.over("the value of its group") + "."
	default:
		return metal + first + r.over(name+" of the cluster") + "." + cost
	}
}

// over ends a sentence with the effect on the value of a more general level.
func (r row) over(general string) string {
	if _, byKey := r.kind(Cluster, "", false).(schema.MapAttribute); byKey {
		return ", merged by key over " + general
	}

	return ", instead of " + general
}

// Settings are all settings that an import reads from each machine.
func Settings() []*setting.Setting {
	var all []*setting.Setting

	for _, r := range table {
		if r.setting != nil {
			all = append(all, r.setting)
		}
	}

	return all
}

// Read reads the settings of one level from its models.
func Read(r *tf.Reader, models ...any) setting.Values {
	var values setting.Values

	for row, field := range fields(models) {
		if value, is := field.Interface().(attr.Value); is && row.setting != nil {
			read := row.setting.New()
			r.Into(value, read)
			values.Set(row.setting, reflect.ValueOf(read).Elem().Interface())
		}
	}

	return values
}

// ReadCluster reads the settings of a whole cluster from a model.
func ReadCluster(r *tf.Reader, c *machineconfig.Cluster, model any) {
	for row, field := range fields([]any{model}) {
		if value, is := field.Interface().(attr.Value); is && row.setting == nil {
			r.IntoFields(map[string]attr.Value{row.name: value}, c)
		}
	}
}

// Write writes the settings of one level into pointers to its models, null for missing ones. It skips settings that
// the level does not have.
func Write(values setting.Values, models ...any) {
	for row, field := range fields(models) {
		if row.setting != nil {
			row.write(field, values[row.setting])
		}
	}
}

// WriteCluster writes the settings of a whole cluster into a pointer to a model.
func WriteCluster(c machineconfig.Cluster, model any) {
	for row, field := range fields([]any{model}) {
		if row.setting == nil {
			row.write(field, tf.PlainField(reflect.ValueOf(c), row.name).Interface())
		}
	}
}

// Unknown fills pointers to models with unknown values.
func Unknown(models ...any) {
	for row, field := range fields(models) {
		field.Set(reflect.ValueOf(tf.Unknown(row.typ())))
	}
}

// None is a model without settings.
func None[M any]() (model M) {
	Write(nil, &model)

	return model
}

// write puts a plain value into the field of a model.
func (r row) write(field reflect.Value, plain any) {
	field.Set(reflect.ValueOf(tf.ValueOf[attr.Value](r.typ(), plain)))
}

// typ is the type of the attribute.
func (r row) typ() attr.Type { return r.kind(Cluster, "", false).GetType() }

// fields are those of models, or of what they point to, with the row of each.
func fields(models []any) iter.Seq2[row, reflect.Value] {
	return func(yield func(row, reflect.Value) bool) {
		for _, model := range models {
			value := reflect.Indirect(reflect.ValueOf(model))
			known := tf.FieldsOf(value.Type())

			for _, row := range table {
				if at, ok := known[row.called()]; ok && !yield(row, value.FieldByIndex(at)) {
					return
				}
			}
		}
	}
}
