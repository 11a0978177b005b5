package settings

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var oidc = map[string]schema.Attribute{
	"issuer_url":     required("URL of the issuer (https)"),
	"client_id":      required("Id of the client that tokens are for"),
	"username_claim": optional("Claim that is the name of the user (default `sub`)"),
	"username_prefix": optional("What user names begin with; `-` is nothing (default: the URL of the issuer and a `#`, " +
		"nothing with the claim `email`)"),
	"groups_claim":  optional("Claim that has the groups of the user (default: none)"),
	"groups_prefix": optional("What names of groups begin with (default: nothing)"),
	"required_claims": texts(Cluster, "Claims that a token has to have, with their values; one before contract v1.14.",
		false),
	"ca": optional("PEM certificates that the issuer is known by, from contract v1.14 on (default: public ones)"),
}

var vip = map[string]schema.Attribute{
	"address": required("The address, IPv4 or IPv6, which no machine has by itself"),
	"link": optional("Name or alias of the link that gets it, such as `enp1s0`. Default: the one that has `address` of " +
		"the machine, which is asked for it; `talosop_machine_config` asks none and needs it"),
}

func required(what string) schema.StringAttribute {
	return tf.RequiredString(what + ".")
}

func optional(what string) schema.StringAttribute {
	return tf.OptionalString(what + ".")
}
