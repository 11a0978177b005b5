package clusterimport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// An identity has the content of an import ID, in the types that identities allow: machines are texts of name and
// address.

// The attributes of identities.
const (
	identityCluster      = "cluster"
	identitySecrets      = "secrets"
	identityName         = "name"
	identityMachines     = "machines"
	identityControlPlane = "control_plane"
	identityWorkers      = "workers"
	identityAccess       = "access"
)

// IdentityVersion is the version of all identities. Each new attribute of an identity raises it: OpenTofu 1.12
// refuses a stored identity of the same version that lacks one.
const IdentityVersion = 1

// UpgradeIdentity reads identities of former versions: missing attributes are null.
func UpgradeIdentity(schema identityschema.Schema) map[int64]resource.IdentityUpgrader {
	upgraders := map[int64]resource.IdentityUpgrader{}

	for version := range int64(IdentityVersion) {
		upgraders[version] = resource.IdentityUpgrader{PriorSchema: &schema, IdentityUpgrader: func(
			_ context.Context, req resource.UpgradeIdentityRequest, resp *resource.UpgradeIdentityResponse,
		) {
			resp.Identity.Raw = req.Identity.Raw
		}}
	}

	return upgraders
}

// SourceIdentity is the part of an identity that locates the secrets of the cluster.
func SourceIdentity() map[string]identityschema.Attribute {
	return map[string]identityschema.Attribute{
		identityCluster: identityschema.StringAttribute{
			OptionalForImport: true,
			Description: "Name of the cluster. An import takes the secrets of this name from `clusters` of the provider, " +
				"and state does not store them.",
		},
		identitySecrets: identityschema.StringAttribute{
			OptionalForImport: true,
			Description: "For imports, instead of `cluster`: path of a file from `talosctl gen secrets`, or of the " +
				"configuration of a control-plane machine.",
		},
	}
}

// Identity are the values of a source in an identity.
func (s Source) Identity() map[string]attr.Value {
	return map[string]attr.Value{
		identityCluster: tf.TextOrNull(s.Cluster), identitySecrets: tf.TextOrNull(s.Secrets),
	}
}

// SourceIn is the source in an identity.
func SourceIn(identity types.Object) Source {
	return Source{Cluster: textIn(identity, identityCluster), Secrets: textIn(identity, identitySecrets)}
}

// textIn is a text in an identity; empty when there is none.
func textIn(identity types.Object, name string) string {
	value, _ := identity.Attributes()[name].(types.String)

	return value.ValueString()
}

// IdentitySchema describes the identity of a resource with machines.
func IdentitySchema(kind Kind) identityschema.Schema {
	attributes := SourceIdentity()

	machines := func(what string) identityschema.Attribute {
		return identityschema.ListAttribute{RequiredForImport: true, ElementType: types.StringType, Description: what}
	}

	const named = ", as `name=address`."

	switch kind {
	case OfControlPlane:
		attributes[identityMachines] = machines("The machines" + named)
	case OfCluster:
		attributes[identityControlPlane] = machines("The control planes" + named)
		attributes[identityWorkers] = identityschema.ListAttribute{
			OptionalForImport: true, ElementType: types.StringType,
			Description: "The workers, as `pool/name=address`.",
		}
	case OfWorkers:
		attributes[identityName] = identityschema.StringAttribute{
			OptionalForImport: true, Description: "Name of the pool.",
		}
		attributes[identityControlPlane] = machines("Addresses of the control planes.")
		attributes[identityMachines] = machines("The machines" + named)
	case OfMachine:
		attributes[identityControlPlane] = machines("Addresses of all control planes. A machine in this list is a " +
			"control plane.")
		attributes[identityMachines] = machines("The one machine" + named)
	}

	if kind != OfControlPlane {
		attributes[identityAccess] = identityschema.StringAttribute{
			OptionalForImport: true,
			Description: "For imports of workers that Terraform reaches only through control planes: " +
				"`through_control_plane`.",
		}
	}

	return identityschema.Schema{Version: IdentityVersion, Attributes: attributes}
}

// SetIdentity stores the identity of machines; CLIs without identities store none.
func SetIdentity(ctx context.Context, identity *tfsdk.ResourceIdentity, kind Kind, p machineset.Set) diag.Diagnostics {
	values := map[string]attr.Value{identityCluster: tf.TextOrNull(p.Settings.Name)}

	if p.Platform().Listed {
		planes, workers := machinesOf(p, step.ControlPlane), machinesOf(p, step.Worker)

		values[identityMachines] = tf.ListOrNull(slices.Concat(planes, workers))
		values[identityControlPlane], values[identityWorkers] = tf.ListOrNull(planes), tf.ListOrNull(workers)
	}

	if kind == OfWorkers || kind == OfMachine {
		values[identityControlPlane] = tf.ListOrNull(p.Endpoints)
	}

	if len(p.Groups) > 0 && kind == OfWorkers {
		values[identityName] = tf.TextOrNull(p.Groups[0].Pool)
	}

	return StoreIdentity(ctx, identity, IdentitySchema(kind), values)
}

// SetIdentityOf stores the identity of one machine for its import: from locates the secrets of its cluster, and is
// the zero value when its cluster is unknown.
func SetIdentityOf(
	ctx context.Context, identity *tfsdk.ResourceIdentity, from Source, planes []string, name, address string,
) diag.Diagnostics {
	values := from.Identity()
	values[identityControlPlane] = tf.ListOrNull(planes)
	values[identityMachines] = tf.TextList([]string{name + "=" + address})

	return StoreIdentity(ctx, identity, IdentitySchema(OfMachine), values)
}

// StoreIdentity stores the values that an identity has; its other values are null.
func StoreIdentity(
	ctx context.Context, identity *tfsdk.ResourceIdentity, schema identityschema.Schema, values map[string]attr.Value,
) diag.Diagnostics {
	if identity == nil {
		return nil // a CLI without identities
	}

	typed := map[string]attr.Type{}
	for name, attribute := range schema.Attributes {
		typed[name] = attribute.GetType()
	}

	stored := tf.NullValues(typed)

	for name, value := range values {
		if _, there := typed[name]; there {
			stored[name] = value
		}
	}

	object, diags := types.ObjectValue(typed, stored)
	diags.Append(identity.Set(ctx, object)...)

	return diags
}

func machinesOf(p machineset.Set, role step.Role) []string {
	var machines []string

	for _, name := range p.Names() {
		if m := p.Machines[name]; m.Group.Role == role {
			machines = append(machines, name+"="+m.Address)
		}
	}

	return machines
}

// fromIdentity reads the request of an import from an identity.
func fromIdentity(ctx context.Context, identity *tfsdk.ResourceIdentity, kind Kind) (Request, error) {
	var object types.Object

	if identity.Get(ctx, &object).HasError() {
		return Request{}, errors.New("the identity is not of the type that its schema has")
	}

	r := &tf.Reader{}
	list := func(name string) []string {
		value, given := object.Attributes()[name].(types.List)
		if !given {
			return nil
		}

		return r.Texts(value)
	}

	request := Request{Source: SourceIn(object), Name: textIn(object, identityName),
		Access: textIn(object, identityAccess)}

	var machines, planes, workers error

	request.Machines, machines = addressesIn(identityMachines, list(identityMachines), true)
	request.ControlPlane, planes = addressesIn(identityControlPlane, list(identityControlPlane), kind == OfCluster)
	request.Workers, workers = poolsIn(list(identityWorkers))

	if err := errors.Join(machines, planes, workers); err != nil {
		return request, err
	}

	return request, request.check(kind)
}

// addressesIn reads addresses by name. Without named, the names are the addresses.
func addressesIn(attribute string, machines []string, named bool) (map[string]string, error) {
	addresses := map[string]string{}

	for _, text := range machines {
		name, address, both := strings.Cut(text, "=")
		if !both {
			address = name
		}

		if name == "" || address == "" || named && !both {
			return nil, fmt.Errorf("%s has %q; a machine is written as name=address", attribute, text)
		}

		if _, twice := addresses[name]; twice {
			return nil, fmt.Errorf("%s has %s twice", attribute, name)
		}

		addresses[name] = address
	}

	return addresses, nil
}

func poolsIn(workers []string) (map[string]map[string]string, error) {
	pools := map[string]map[string]string{}

	for _, text := range workers {
		pool, machine, inPool := strings.Cut(text, machineset.PoolSeparator)
		if !inPool || pool == "" {
			return nil, fmt.Errorf("%s has %q; a worker is written as pool/name=address", identityWorkers, text)
		}

		one, err := addressesIn(identityWorkers, []string{machine}, true)
		if err != nil {
			return nil, err
		}

		for name, address := range one {
			if pools[pool] == nil {
				pools[pool] = map[string]string{}
			}

			if _, twice := pools[pool][name]; twice {
				return nil, fmt.Errorf("%s has %s/%s twice", identityWorkers, pool, name)
			}

			pools[pool][name] = address
		}
	}

	return pools, nil
}
