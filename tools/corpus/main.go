// Command corpus asks the machinery library of each release what it says of the corpus of patches: merged into a
// configuration as talosop generates it, and as talosop sends them.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/corpus"
	"github.com/talosop/terraform-provider-talosop/tools/machinery"
)

//go:embed oracle/main.go.txt
var oracle []byte

// question and answer are those of the oracle.
type (
	question struct{ Base, Patch string }
	answer   struct{ Stage, Reason, Config string }
)

func main() { machinery.Write(judge) }

// judge is the verdicts of all releases as JSON.
func judge(ctx context.Context) ([]byte, error) {
	inputs, err := corpus.Load()
	if err != nil {
		return nil, err
	}

	all := map[string]corpus.Verdict{}

	for minor, release := range machinery.Releases {
		contract := fmt.Sprintf("v1.%d", minor)
		if !slices.Contains(corpus.Contracts(), contract) {
			continue
		}

		if err := judgeBy(ctx, release, contract, inputs, all); err != nil {
			return nil, fmt.Errorf("ask machinery %s: %w", release, err)
		}
	}

	var text bytes.Buffer

	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")

	err = encoder.Encode(all)

	return text.Bytes(), err
}

// judgeBy adds the verdicts of one release.
func judgeBy(
	ctx context.Context, release, contract string, inputs []corpus.Input, all map[string]corpus.Verdict,
) error {
	var (
		questions []question
		keys      []string
	)

	for _, input := range inputs {
		for _, role := range input.Roles {
			generated, sent, err := questionsOf(input, contract, role)
			if err != nil {
				return err
			}

			questions = append(questions, generated, sent)
			keys = append(keys, corpus.Key(input, contract, role))
		}
	}

	answers, err := ask(ctx, release, questions)
	if err != nil {
		return err
	}

	for i, key := range keys {
		patched, sent := answers[2*i], answers[2*i+1]
		verdict := corpus.Verdict{Stage: patched.Stage, Reason: patched.Reason, Sent: sent.Reason}

		if patched.Config != "" {
			if verdict.Changes, err = changes(questions[2*i].Base, patched.Config); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}

		all[key] = verdict
	}

	return nil
}

// questionsOf are the patch with a generated configuration, and the configuration that talosop sends with the patch;
// where talosop refuses the patch, that without it.
func questionsOf(
	input corpus.Input, contract string, role machineconfig.Role,
) (generated, sent question, err error) {
	cluster, m := corpus.Settings(contract, role)

	generator, err := machineconfig.NewChecker(cluster)
	if err != nil {
		return question{}, question{}, err
	}

	base, err := generator.Machine(m)
	if err != nil {
		return question{}, question{}, err
	}

	text := input.PatchFor(contract)
	generated, sent = question{string(base.Bytes), text}, question{Base: string(base.Bytes)}

	m.Patches = []string{text}
	if patched, err := generator.Machine(m); err == nil {
		sent.Base = string(patched.Bytes)
	}

	return generated, sent, nil
}

func ask(ctx context.Context, release string, questions []question) ([]answer, error) {
	asked, err := json.Marshal(questions)
	if err != nil {
		return nil, err
	}

	printed, err := machinery.Run(ctx, release, map[string][]byte{"config/oracle/main.go": oracle}, "config/oracle",
		bytes.NewReader(asked))
	if err != nil {
		return nil, err
	}

	var answers []answer

	return answers, json.Unmarshal(printed, &answers)
}

func changes(before, after string) ([]string, error) {
	found, err := machineconfig.DiffWhole(before, after)
	if err != nil {
		return nil, err
	}

	var lines []string
	for _, change := range found {
		lines = append(lines, change.String())
	}

	return lines, nil
}
