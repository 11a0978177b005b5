package machineconfig

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// Check makes the configuration of a machine as Generate does, but with secrets of its own that are thrown
// away, and reports what is wrong with the settings. It is for plans in which the secrets are not known
// yet; what is wrong does not depend on them. Errors are FieldErrors.
func Check(c Cluster, m Machine) error {
	generator, err := NewChecker(c)
	if err != nil {
		return err
	}

	_, err = generator.Machine(m)

	return err
}

// NewChecker is the Generator behind Check, for checking many machines of a cluster. What it generates must
// not be used.
func NewChecker(c Cluster) (*Generator, error) {
	throwaway, err := throwawayBundle()
	if err != nil {
		return nil, err
	}

	return NewGenerator(c, throwaway)
}

// throwawayBundle is made once in a process. The service account key is the only expensive part of a
// bundle, and contracts before v1.7 have a cheap one.
var throwawayBundle = sync.OnceValues(func() (*pki.Bundle, error) {
	generated, err := secrets.NewBundle(secrets.NewClock(), config.TalosVersion1_6)
	if err != nil {
		return nil, fmt.Errorf("make secrets for validation: %w", err)
	}

	return pki.Wrap(generated)
})

// runtimeMode is what the validation of the machinery library asks about a machine.
type runtimeMode Mode

func (m runtimeMode) String() string        { return string(m) }
func (m runtimeMode) RequiresInstall() bool { return Mode(m) != Container }
func (m runtimeMode) InContainer() bool     { return Mode(m) == Container }

var _ validation.RuntimeMode = runtimeMode(Metal)

// check validates the finished configuration as the machine would before it is installed, the strictest
// case, and names the setting at fault.
func (g *Generator) check(d *documents, m Machine) (warnings []string, err error) {
	main := d.known.RawV1Alpha1()

	switch {
	case main == nil || main.MachineConfig == nil || main.ClusterConfig == nil:
		return nil, g.blame(m, "no machine or no cluster section")
	case main.MachineConfig.MachineType != string(m.Role):
		return nil, g.blame(m, fmt.Sprintf("machine.type %s for a machine of role %s", main.MachineConfig.MachineType, m.Role))
	case m.Mode != Container && !hasInstallDisk(d.known):
		return nil, &FieldError{
			Field: "machine.install.disk", Found: "no disk to install on", Allowed: "a device such as /dev/sda, or a disk selector",
			Fix: "set install.disk or install.disk_selector", Err: ErrInvalidConfig,
		}
	}

	warnings, err = d.known.Validate(runtimeMode(m.Mode))

	hidden, hiddenErr := newScrubber(d.known, len(warnings) > 0 || err != nil)
	if hiddenErr != nil {
		return nil, hiddenErr
	}

	for i := range warnings {
		warnings[i] = hidden.scrub(warnings[i])
	}

	if err != nil {
		return nil, g.blame(m, hidden.scrub(oneLine(err)))
	}

	return warnings, nil
}

func hasInstallDisk(provider config.Provider) bool {
	install := provider.RawV1Alpha1().MachineConfig.MachineInstall

	return install != nil && (install.InstallDisk != "" || install.InstallDiskSelector != nil)
}

// blame finds the patch that made the configuration invalid, by leaving out patches from the end until it is
// valid, and reports problem there.
func (g *Generator) blame(m Machine, problem string) error {
	mistake := &FieldError{
		Found:   "settings that make an invalid configuration (" + problem + ")",
		Allowed: "what Talos accepts for a " + string(m.Role) + " machine", Err: ErrInvalidConfig,
	}

	scopes := g.scopes(m)
	for i := len(scopes) - 1; i >= 0; i-- {
		for n := len(scopes[i].patches); n > 0; n-- {
			if !g.validWith(m, i, n-1) {
				continue
			}

			mistake.Field = at(scopes[i].field, n-1)
			mistake.Found = "a patch that makes the configuration invalid (" + problem + ")"
			mistake.Fix = "correct or remove this patch"

			return mistake
		}
	}

	return mistake
}

// validWith says whether the configuration is valid with the patches of the scopes before the given one, and
// the first n of that one.
func (g *Generator) validWith(m Machine, scope, n int) bool {
	shorter := &Generator{cluster: g.cluster, contract: g.contract, input: g.input}
	lists := []*[]string{&shorter.cluster.Patches, &m.PoolPatches, &m.Patches}

	*lists[scope] = (*lists[scope])[:n]
	for _, list := range lists[scope+1:] {
		*list = nil
	}

	documents, err := shorter.patched(m)
	if err != nil {
		return false
	}

	main := documents.known.RawV1Alpha1()
	if main == nil || main.MachineConfig == nil || main.ClusterConfig == nil || main.MachineConfig.MachineType != string(m.Role) {
		return false
	}

	provider, err := documents.known.PatchV1Alpha1(giveInstallDisk)
	if err != nil {
		return false
	}

	_, err = provider.Validate(runtimeMode(m.Mode))

	return err == nil
}

// giveInstallDisk fills in a disk, so that one that only a later patch gives does not count as a mistake of an
// earlier one.
func giveInstallDisk(main *v1alpha1.Config) error {
	if main.MachineConfig.MachineInstall == nil {
		main.MachineConfig.MachineInstall = &v1alpha1.InstallConfig{}
	}

	if install := main.MachineConfig.MachineInstall; install.InstallDisk == "" && install.InstallDiskSelector == nil {
		install.InstallDisk = "/dev/any"
	}

	return nil
}

// oneLine turns the nested lists of problems of the machinery library into one line.
func oneLine(err error) string {
	var lines []string

	for line := range strings.Lines(err.Error()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "* ")
		if line != "" && !strings.HasSuffix(line, "occurred:") {
			lines = append(lines, line)
		}
	}

	return strings.Join(lines, "; ")
}

// scrubber removes secrets of a configuration from messages: some validations of the machinery library quote
// the value they refuse, a WireGuard key for instance.
type scrubber struct{ secrets []string }

// newScrubber collects what RedactSecrets would hide. With needed false it is free and must not be used.
func newScrubber(provider config.Provider, needed bool) (scrubber, error) {
	if !needed {
		return scrubber{}, nil
	}

	plain, err := encodedValues(provider)
	if err != nil {
		return scrubber{}, err
	}

	redacted, err := encodedValues(provider.RedactSecrets(redactedValue))
	if err != nil {
		return scrubber{}, err
	}

	var s scrubber

	for value := range plain {
		if !redacted[value] && len(value) >= shortestSecret {
			s.secrets = append(s.secrets, value)
		}
	}

	// A secret may contain another one: the longest goes first.
	slices.SortFunc(s.secrets, func(a, b string) int { return len(b) - len(a) })

	return s, nil
}

const (
	redactedValue = "redacted"
	// shortestSecret keeps a secret like "a" from blotting out every message.
	shortestSecret = 4
)

func (s scrubber) scrub(message string) string {
	for _, secret := range s.secrets {
		message = strings.ReplaceAll(message, secret, "(sensitive)")
	}

	return message
}

// encodedValues is the set of all text in a configuration.
func encodedValues(provider config.Provider) (map[string]bool, error) {
	encoded, err := provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}

	chunks, err := split(string(encoded))
	if err != nil {
		return nil, fmt.Errorf("read encoded configuration: %w", err)
	}

	values := map[string]bool{}

	for _, c := range chunks {
		content, err := decodeNode(c.node)
		if err != nil {
			return nil, err
		}

		for _, leaf := range flatten(content) {
			values[fmt.Sprint(leaf.value)] = true
		}
	}

	return values, nil
}
