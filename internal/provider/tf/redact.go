package tf

import (
	"context"
	"encoding/base64"
	"regexp"

	"github.com/hashicorp/terraform-plugin-log/tflog"
	"go.yaml.in/yaml/v4"
)

// PrivateKey matches a private key in PEM anywhere in a log line.
var PrivateKey = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z0-9 ]*PRIVATE KEY-----`)

// shortestSecret keeps short words, which could be part of anything, out of the masks. The shortest secret of a
// bundle has 16 characters (a bootstrap token).
const shortestSecret = 12

// MaskSecrets returns a context whose log lines hide every secret of a bundle. No code logs secrets on purpose; this
// protects the keys of a cluster from a careless log line in the future.
func MaskSecrets(ctx context.Context, bundle string) context.Context {
	ctx = tflog.NewSubsystem(ctx, Rollout, tflog.WithRootFields(), tflog.WithLevelFromEnv(rolloutLevel, Rollout))
	ctx = tflog.SubsystemMaskLogRegexes(tflog.MaskLogRegexes(ctx, PrivateKey), Rollout, PrivateKey)

	if bundle == "" {
		return ctx
	}

	masks := MasksOf(bundle)

	return tflog.SubsystemMaskLogStrings(tflog.MaskLogStrings(ctx, masks...), Rollout, masks...)
}

// MasksOf lists the texts that must not be shown: the bundle and every secret in it.
func MasksOf(bundle string) []string {
	var document any
	if err := yaml.Unmarshal([]byte(bundle), &document); err != nil {
		// Whatever it is, the log hides it.
		return []string{bundle}
	}

	return append(secretValues(document), bundle)
}

// secretValues lists the secret scalars of a decoded bundle: all except the certificates and the ID of the cluster.
// Keys are listed as in the file and as the PEM in it.
func secretValues(node any) []string {
	var values []string

	switch node := node.(type) {
	case map[string]any:
		for key, child := range node {
			if key != "crt" && key != "id" {
				values = append(values, secretValues(child)...)
			}
		}
	case string:
		if len(node) < shortestSecret {
			return nil
		}

		values = append(values, node)

		if decoded, err := base64.StdEncoding.DecodeString(node); err == nil && len(decoded) >= shortestSecret {
			values = append(values, string(decoded))
		}
	}

	return values
}
