package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/talosop/terraform-provider-talosop/internal/helm/postrender"
	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
)

// inputsLength is how many hex digits of the hash are kept: a label value may have 63 characters.
const inputsLength = 40

// Inputs is the mark of all that goes into a release: the chart by its digest, the values, the
// patches and the options that change what is rendered. Releases with the same mark need nothing;
// it tells nothing about the values, and is the same for values that are equal for Helm.
func Inputs(spec Spec, digest string) string {
	encoded, err := json.Marshal(struct {
		Chart, Values string
		Patches       []postrender.Patch
		IncludeCRDs   bool
		EnableDNS     bool
		SubNotes      bool
		Reuse         Reuse
	}{
		Chart: digest, Values: values.Digest(spec.Values), Patches: spec.Patches,
		IncludeCRDs: spec.Options.IncludeCRDs, EnableDNS: spec.Options.EnableDNS, SubNotes: spec.Options.SubNotes,
		Reuse: spec.Options.Reuse,
	})
	if err != nil {
		// Texts, booleans and structs of texts can always be encoded.
		panic(err)
	}

	sum := sha256.Sum256(encoded)

	return hex.EncodeToString(sum[:])[:inputsLength]
}
