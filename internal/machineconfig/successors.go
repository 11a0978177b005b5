package machineconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// refusal is the error of a patch that sets a part of the main document which a document has replaced, a generated
// one or that of another patch.
func refusal(f places.Fact, field string, generated bool, contract string) *FieldError {
	var instead []string

	allowed := "either of them"
	if generated {
		allowed += "; configurations of contract " + contract + " have the document"
	}

	if at := f.Document; len(at.Path) > 0 {
		instead = append(instead, fmt.Sprintf("document %s (%s)", at.Kind, strings.Join(at.Path, ".")))
	} else if at.Kind != "" {
		instead = append(instead, "document "+at.Kind)
	}

	if f.Instead != "" {
		instead = append(instead, f.Instead)
	}

	return &FieldError{
		Field: field, Found: f.Main.String() + " of the main document, beside the document " + f.Beside,
		Allowed: allowed, Fix: "write the " + strings.Join(instead, " or the ") + " instead", Err: errBeside,
	}
}

// errBeside is about a part of the main document beside the document that has taken its place.
var errBeside = fmt.Errorf("%w: a field and its document", ErrInvalidConfig)

// conflict finds the patch that sets a part of the main document beside the document that has taken its place. Both
// together are refused by Talos, or one of them has no effect.
func (g *Generator) conflict(d *documents, m Machine) error {
	if !g.contract.MultidocKubernetesConfigSupported() {
		return nil
	}

	main, err := mainContent(d.known)
	if err != nil {
		return err
	}

	for _, f := range places.All() {
		if f.Beside == "" || valueIn(main, f.Main.Path) == nil || !d.known.Has(f.Beside) {
			continue
		}

		field, err := g.firstPatch(m, func(p *patch) bool { return p.sets(f.Main.Path) })
		if err != nil {
			return err
		}

		if field != "" {
			return g.withConverted(m, refusal(f, field, d.generated.Has(f.Beside), g.contract.String()))
		}
	}

	return g.misplaced(d, m)
}

// withConverted adds to a refusal what the patch is in the form of the contract. Without a form with the same effect,
// the error is what it was.
func (g *Generator) withConverted(m Machine, err error) error {
	var refused *FieldError
	if !errors.As(err, &refused) || !errors.Is(err, errBeside) {
		return err
	}

	var (
		patches []string
		which   = -1
	)

	for _, scope := range g.scopes(m) {
		for i, text := range scope.patches {
			if at(scope.field, i) == refused.Field {
				which = len(patches)
			}

			patches = append(patches, text)
		}
	}

	all, unconverted := convertPatches(patches, m.Role, uint64(g.contract.Minor)) //nolint:gosec // parseContract knows it
	if unconverted != nil || which < 0 {
		return err
	}

	if shown, unshown := withoutSecrets(all.Patches[which]); unshown == nil {
		refused.Converted = shown
	}

	return err
}

// misplaced finds the patch that gives a worker a document which only control planes may have.
func (g *Generator) misplaced(d *documents, m Machine) error {
	if m.Role != Worker {
		return nil
	}

	for _, document := range d.known.Documents() {
		only, ok := document.(container.ControlplaneOnlyConfig)
		if !ok {
			continue
		}

		field, err := g.firstPatch(m, func(p *patch) bool {
			return p.merge != nil && hasKind(p.merge.Documents(), only.Kind())
		})
		if err != nil || field == "" {
			return err
		}

		return &FieldError{
			Field: field, Found: "the document " + only.Kind() + " for a worker", Allowed: "it on control planes only",
			Fix: "move it to config_patches of the control plane", Err: ErrInvalidConfig,
		}
	}

	return nil
}

func hasKind(documents []config.Document, kind string) bool {
	return slices.ContainsFunc(documents, func(d config.Document) bool { return d.Kind() == kind })
}

// firstPatch is the field of the first patch of a machine that something is true of; empty when there is none.
func (g *Generator) firstPatch(m Machine, is func(*patch) bool) (field string, err error) {
	for _, scope := range g.scopes(m) {
		for i, text := range scope.patches {
			parsed, err := g.patches.parse(at(scope.field, i), text)
			if err != nil {
				return "", err
			}

			if is(parsed) {
				return at(scope.field, i), nil
			}
		}
	}

	return "", nil
}

// mainContent is the main document as data.
func mainContent(provider coreconfig.Provider) (map[string]any, error) {
	raw := provider.RawV1Alpha1()
	if raw == nil {
		return nil, nil
	}

	encoded, err := encoder.NewEncoder(raw, encoder.WithComments(encoder.CommentsDisabled)).Encode()
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}

	node, err := parseDocument(string(encoded))
	if err != nil {
		return nil, fmt.Errorf("read encoded configuration: %w", errNotData)
	}

	content, err := decodeNode(node)
	if err != nil {
		return nil, fmt.Errorf("read encoded configuration: %w", err)
	}

	main, _ := content.(map[string]any)

	return main, nil
}

// sets reports whether the patch says something at a path of the main document.
func (p *patch) sets(path []string) bool {
	return slices.ContainsFunc(p.contents, func(c content) bool { return c.kind == "" && valueIn(c.fields, path) != nil })
}

// uselessDelete is the part of the main document that a patch deletes and that is in a separate document. Nil when
// there is none.
func (p *patch) uselessDelete(known coreconfig.Provider) (*places.Fact, error) {
	var deletes []places.Fact

	for _, f := range places.All() {
		if f.Beside != "" && known.Has(f.Beside) && slices.ContainsFunc(p.contents, func(c content) bool {
			return c.kind == "" && hasDelete(valueIn(c.fields, f.Main.Path))
		}) {
			deletes = append(deletes, f)
		}
	}

	if len(deletes) == 0 {
		return nil, nil
	}

	main, err := mainContent(known)
	if err != nil {
		return nil, err
	}

	for _, f := range deletes {
		if valueIn(main, f.Main.Path) == nil {
			return &f, nil
		}
	}

	return nil, nil
}
