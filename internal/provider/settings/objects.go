package settings

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// object is a nested object with the model M, whose value is a *V.
type object[M, V any] struct {
	attributes map[string]schema.Attribute
	decode     func(r *tf.Reader, m M) V
	encode     func(v V) M
}

func (k object[M, V]) attribute(description string, secret bool) schema.Attribute {
	return schema.SingleNestedAttribute{Optional: true, Sensitive: secret, Attributes: k.attributes,
		MarkdownDescription: description}
}

func (k object[M, V]) read(ctx context.Context, r *tf.Reader, v attr.Value) any {
	given, ok := v.(types.Object)
	if !ok {
		return nil
	}

	model, ok := tf.Object[M](ctx, r, given)
	if !ok {
		return nil
	}

	value := k.decode(r, model)

	return &value
}

func (k object[M, V]) write(ctx context.Context, value any) (attr.Value, diag.Diagnostics) {
	of := tf.ObjectOf(k.attributes).AttrTypes

	given, ok := value.(*V)
	if !ok {
		return types.ObjectNull(of), nil
	}

	return types.ObjectValueFrom(ctx, of, k.encode(*given))
}

func (object[M, V]) over(general string) string { return ", in place of " + general }

type oidcModel struct {
	IssuerURL      types.String `tfsdk:"issuer_url"`
	ClientID       types.String `tfsdk:"client_id"`
	UsernameClaim  types.String `tfsdk:"username_claim"`
	UsernamePrefix types.String `tfsdk:"username_prefix"`
	GroupsClaim    types.String `tfsdk:"groups_claim"`
	GroupsPrefix   types.String `tfsdk:"groups_prefix"`
	RequiredClaims types.Map    `tfsdk:"required_claims"`
	CA             types.String `tfsdk:"ca"`
}

var oidc = object[oidcModel, setting.OIDCConfig]{
	attributes: map[string]schema.Attribute{
		"issuer_url":     required("URL of the issuer (https)"),
		"client_id":      required("Id of the client that tokens are for"),
		"username_claim": optional("Claim that is the name of the user (default `sub`)"),
		"username_prefix": optional("What user names begin with; `-` is nothing (default: the URL of the issuer and a `#`, " +
			"nothing with the claim `email`)"),
		"groups_claim":  optional("Claim that has the groups of the user (default: none)"),
		"groups_prefix": optional("What names of groups begin with (default: nothing)"),
		"required_claims": texts{}.attribute("Claims that a token has to have, with their values; one before contract v1.14.",
			false),
		"ca": optional("PEM certificates that the issuer is known by, from contract v1.14 on (default: public ones)"),
	},
	decode: func(r *tf.Reader, m oidcModel) setting.OIDCConfig {
		return setting.OIDCConfig{IssuerURL: r.Text(m.IssuerURL), ClientID: r.Text(m.ClientID),
			UsernameClaim: r.Text(m.UsernameClaim), UsernamePrefix: r.Text(m.UsernamePrefix),
			GroupsClaim: r.Text(m.GroupsClaim), GroupsPrefix: r.Text(m.GroupsPrefix),
			RequiredClaims: r.TextMap(m.RequiredClaims), CA: r.Text(m.CA)}
	},
	encode: func(v setting.OIDCConfig) oidcModel {
		return oidcModel{IssuerURL: types.StringValue(v.IssuerURL), ClientID: types.StringValue(v.ClientID),
			UsernameClaim: tf.TextOrNull(v.UsernameClaim), UsernamePrefix: tf.TextOrNull(v.UsernamePrefix),
			GroupsClaim: tf.TextOrNull(v.GroupsClaim), GroupsPrefix: tf.TextOrNull(v.GroupsPrefix),
			RequiredClaims: mapOrNull(v.RequiredClaims), CA: tf.TextOrNull(v.CA)}
	},
}

type vipModel struct {
	Address types.String `tfsdk:"address"`
	Link    types.String `tfsdk:"link"`
}

var vip = object[vipModel, setting.VIPConfig]{
	attributes: map[string]schema.Attribute{
		"address": required("The address, IPv4 or IPv6, which no machine has by itself"),
		"link": optional("Name or alias of the link that gets it, such as `enp1s0`. Default: the one that has `address` of the " +
			"machine, which is asked for it; `talosop_machine_config` asks none and needs it"),
	},
	decode: func(r *tf.Reader, m vipModel) setting.VIPConfig {
		return setting.VIPConfig{Address: r.Text(m.Address), Link: r.Text(m.Link)}
	},
	encode: func(v setting.VIPConfig) vipModel {
		return vipModel{Address: types.StringValue(v.Address), Link: tf.TextOrNull(v.Link)}
	},
}

func required(what string) schema.StringAttribute {
	return schema.StringAttribute{Required: true, MarkdownDescription: what + "."}
}

func optional(what string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: what + "."}
}
