package setting

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// OIDCConfig is an issuer of identities that the API server takes.
type OIDCConfig struct {
	IssuerURL, ClientID string
	// UsernameClaim is sub where it is empty.
	UsernameClaim string
	// UsernamePrefix is the URL of the issuer and a # where it is empty and the claim is not email; "-" is none.
	UsernamePrefix            string
	GroupsClaim, GroupsPrefix string
	// RequiredClaims are claims that an identity has to have, with their values.
	RequiredClaims map[string]string
	// CA is a PEM certificate that the issuer is known by; empty means those of the image of the API server.
	CA string
}

// OIDC lets the API server take the identities of an issuer: up to contract v1.13 by its arguments, then by its
// configuration of authentication, beside which it refuses the arguments (machinery 1.14, config/types/k8s,
// authentication.go).
var OIDC = define(definition[*OIDCConfig]{
	name:          "oidc",
	controlPlanes: true,
	empty:         func(value *OIDCConfig) bool { return value == nil },
	levels:        whole[*OIDCConfig]{},

	put: func(c *Config, value *OIDCConfig) {
		if own, ok := places.Document[*k8s.KubeAuthenticationConfigV1Alpha1](c.Documents); ok {
			own.AuthConfig.Object["jwt"] = []any{value.authenticator()}

			return
		}

		c.addArguments(places.APIServerArgs, value.arguments())
	},

	read: func(c Config) *OIDCConfig {
		if own, ok := places.Document[*k8s.KubeAuthenticationConfigV1Alpha1](c.Documents); ok {
			return readAuthenticator(own.AuthConfig.Object["jwt"])
		}

		if arguments := places.Value[meta.Args](c.Documents, places.APIServerArgs); arguments != nil {
			return readArguments(*arguments)
		}

		return nil
	},

	check: (*OIDCConfig).check,
})

// The arguments of the API server (Kubernetes 1.36, pkg/kubeapiserver/options/authentication.go).
const (
	issuerArgument         = "oidc-issuer-url"
	clientArgument         = "oidc-client-id"
	usernameArgument       = "oidc-username-claim"
	usernamePrefixArgument = "oidc-username-prefix"
	groupsArgument         = "oidc-groups-claim"
	groupsPrefixArgument   = "oidc-groups-prefix"
	requiredArgument       = "oidc-required-claim"
)

func (o *OIDCConfig) arguments() map[string]string {
	arguments := map[string]string{issuerArgument: o.IssuerURL, clientArgument: o.ClientID,
		usernameArgument: o.UsernameClaim, usernamePrefixArgument: o.UsernamePrefix, groupsArgument: o.GroupsClaim,
		groupsPrefixArgument: o.GroupsPrefix}

	for claim, value := range o.RequiredClaims {
		arguments[requiredArgument] = claim + "=" + value
	}

	maps.DeleteFunc(arguments, func(_, text string) bool { return text == "" })

	return arguments
}

// readArguments is the reverse; nil where the arguments name no issuer and client.
func readArguments(arguments meta.Args) *OIDCConfig {
	texts := map[string]string{}

	for name, values := range arguments.ToMap() {
		if len(values) == 1 {
			texts[name] = values[0]
		}
	}

	o := ofArguments(texts)
	if o.IssuerURL == "" || o.ClientID == "" {
		return nil
	}

	return o
}

func ofArguments(arguments map[string]string) *OIDCConfig {
	o := &OIDCConfig{IssuerURL: arguments[issuerArgument], ClientID: arguments[clientArgument],
		UsernameClaim: arguments[usernameArgument], UsernamePrefix: arguments[usernamePrefixArgument],
		GroupsClaim: arguments[groupsArgument], GroupsPrefix: arguments[groupsPrefixArgument]}

	if claim, value, ok := strings.Cut(arguments[requiredArgument], "="); ok {
		o.RequiredClaims = map[string]string{claim: value}
	}

	return o
}

// The defaults of the API server for the arguments, which its configuration of authentication does not have.
const (
	defaultUsernameClaim = "sub"
	emailClaim           = "email"
	noPrefix             = "-"
)

// authenticator is the entry of the configuration of authentication that is the same as the arguments.
func (o *OIDCConfig) authenticator() map[string]any {
	issuer := map[string]any{"url": o.IssuerURL, "audiences": []any{o.ClientID}}
	if o.CA != "" {
		issuer["certificateAuthority"] = o.CA
	}

	claim := o.UsernameClaim
	if claim == "" {
		claim = defaultUsernameClaim
	}

	prefix := o.UsernamePrefix

	switch {
	case prefix == noPrefix:
		prefix = ""
	case prefix == "" && claim != emailClaim:
		prefix = o.IssuerURL + "#"
	}

	mappings := map[string]any{"username": map[string]any{"claim": claim, "prefix": prefix}}
	if o.GroupsClaim != "" {
		mappings["groups"] = map[string]any{"claim": o.GroupsClaim, "prefix": o.GroupsPrefix}
	}

	authenticator := map[string]any{"issuer": issuer, "claimMappings": mappings}

	if len(o.RequiredClaims) > 0 {
		var rules []any
		for _, claim := range slices.Sorted(maps.Keys(o.RequiredClaims)) {
			rules = append(rules, map[string]any{"claim": claim, "requiredValue": o.RequiredClaims[claim]})
		}

		authenticator["claimValidationRules"] = rules
	}

	return authenticator
}

// readAuthenticator is the reverse; nil where there is not exactly one entry that settings can say.
func readAuthenticator(entries any) *OIDCConfig {
	list, _ := entries.([]any)
	if len(list) != 1 {
		return nil
	}

	issuer, mappings := within(list[0], "issuer"), within(list[0], "claimMappings")
	username, groups := within(mappings, "username"), within(mappings, "groups")

	o := &OIDCConfig{IssuerURL: textIn(issuer, "url"), CA: textIn(issuer, "certificateAuthority"),
		UsernameClaim: textIn(username, "claim"), UsernamePrefix: textIn(username, "prefix"),
		GroupsClaim: textIn(groups, "claim"), GroupsPrefix: textIn(groups, "prefix")}

	if audiences, _ := issuer["audiences"].([]any); len(audiences) == 1 {
		o.ClientID, _ = audiences[0].(string)
	}

	switch {
	case o.UsernamePrefix == o.IssuerURL+"#" && o.UsernameClaim != emailClaim:
		o.UsernamePrefix = ""
	case o.UsernamePrefix == "" && o.UsernameClaim != emailClaim:
		o.UsernamePrefix = noPrefix
	}

	if o.UsernameClaim == defaultUsernameClaim {
		o.UsernameClaim = ""
	}

	entry, _ := list[0].(map[string]any)
	rules, _ := entry["claimValidationRules"].([]any)

	for _, rule := range rules {
		fields, _ := rule.(map[string]any)
		if o.RequiredClaims == nil {
			o.RequiredClaims = map[string]string{}
		}

		o.RequiredClaims[textIn(fields, "claim")] = textIn(fields, "requiredValue")
	}

	if !reflect.DeepEqual(any(o.authenticator()), list[0]) {
		return nil
	}

	return o
}

func within(content any, name string) map[string]any {
	fields, _ := content.(map[string]any)
	inner, _ := fields[name].(map[string]any)

	return inner
}

func textIn(fields map[string]any, name string) string {
	text, _ := fields[name].(string)

	return text
}

func (o *OIDCConfig) check(found *problems, t Target) {
	if parsed, err := url.Parse(o.IssuerURL); (o.IssuerURL != "" || !t.Partial) &&
		(err != nil || parsed.Scheme != "https" || parsed.Host == "") {
		found.add("oidc.issuer_url", quoted(o.IssuerURL), "a URL such as https://id.example.com/realm",
			"Kubernetes accepts only https issuers")
	}

	if o.ClientID == "" && !t.Partial {
		found.add("oidc.client_id", "no client", "the ID of the client that gets tokens from the issuer", "set it")
	}

	if o.GroupsPrefix != "" && o.GroupsClaim == "" && !t.Partial {
		found.add("oidc.groups_prefix", "groups_prefix without groups_claim", "both, or none", "set groups_claim")
	}

	if t.Contract == nil || t.Contract.MultidocKubernetesConfigSupported() {
		return
	}

	if o.CA != "" {
		found.add("oidc.ca", "a certificate with version_contract "+t.Contract.String(),
			"it with contract v1.14 and newer: before, the API server reads it from a file", "remove it, or move to v1.14")
	}

	if len(o.RequiredClaims) > 1 {
		found.add("oidc.required_claims", "more than one claim with version_contract "+t.Contract.String(),
			"one: before contract v1.14 it is one argument of the API server", "remove the others, or move to v1.14")
	}
}

// Authenticator is the entry of the configuration of authentication that is the same as arguments of the API server.
func Authenticator(arguments map[string]string) (map[string]any, error) {
	o := ofArguments(arguments)
	if o.IssuerURL == "" || o.ClientID == "" {
		return nil, fmt.Errorf("KubeAuthenticationConfig needs both %s and %s: write them in one patch", issuerArgument,
			clientArgument)
	}

	again := o.arguments()
	for name := range arguments {
		if again[name] != arguments[name] {
			return nil, fmt.Errorf("KubeAuthenticationConfig has nothing for %s: write the document", name)
		}
	}

	return o.authenticator(), nil
}
