package settings

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var oidc = map[string]schema.Attribute{
	"issuer_url":     required("URL of the issuer (https)"),
	"client_id":      required("ID of the client that the tokens are issued for"),
	"username_claim": optional("Claim with the name of the user (default `sub`)"),
	"username_prefix": optional("Prefix of usernames; `-` for none (default: the URL of the issuer and a `#`, or none " +
		"with the claim `email`)"),
	"groups_claim":  optional("Claim with the groups of the user (default: none)"),
	"groups_prefix": optional("Prefix of group names (default: none)"),
	"required_claims": texts(Cluster, "Claims that a token must have, with their values; only one before contract "+
		"v1.14.",
		false),
	"ca": optional("PEM certificates that identify the issuer, from contract v1.14 (default: public authorities)"),
}

var vip = map[string]schema.Attribute{
	"address": required("The address, IPv4 or IPv6, which no machine uses itself"),
	"link": optional("Name or alias of the link that gets the address, such as `enp1s0`. Default: the link with " +
		"`address` of the machine, which the provider queries; required in `talosop_machine_config`"),
}

func required(what string) schema.StringAttribute {
	return tf.RequiredString(what + ".")
}

func optional(what string) schema.StringAttribute {
	return tf.OptionalString(what + ".")
}
