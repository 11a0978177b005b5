package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
)

// Options are what a user says about the files of a tool.
type Options struct {
	// Folder has the files of the tool.
	Folder string
	// Secrets is the file with the secrets of the cluster, where it is not the usual one of the tool.
	Secrets string
	// Configurations is a folder of machine configurations that the tool wrote. They replace those that the package makes.
	Configurations string
	// TalosVersion is the version for files that state none.
	TalosVersion string
	// Lookup reads environment variables.
	Lookup func(string) (string, bool)
}

// at is a path of the files of the tool.
func (o Options) at(name string) string {
	if filepath.IsAbs(name) {
		return name
	}

	return filepath.Join(o.Folder, name)
}

// read reads a file of the tool. Encrypted ones are errors.
func (o Options) read(name string) ([]byte, error) {
	content, err := os.ReadFile(o.at(name))
	if err != nil {
		return nil, err
	}

	return content, refuseEncrypted(name, content)
}

func refuseEncrypted(name string, content []byte) error {
	if !bytes.Contains(content, []byte("ENC[AES256_GCM,")) {
		return nil
	}

	return fmt.Errorf("%s is encrypted with sops: decrypt it first, outside version control, such as "+
		"`sops -d %s > decrypted.yaml`", name, name)
}

// rendered executes a template with the functions that both tools offer. A template may read the environment.
func (o Options) rendered(name string, content []byte, data any, options ...string) ([]byte, error) {
	functions := sprig.TxtFuncMap()
	functions["env"] = func(name string) string {
		value, _ := o.Lookup(name)

		return value
	}

	parsed, err := template.New(name).Funcs(functions).Option(options...).Parse(string(content))
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer

	err = parsed.Execute(&out, data)

	return out.Bytes(), err
}

// variable is a reference to an environment variable: $NAME, ${NAME}, or ${NAME:-default}. An expression with anything
// else in braces is refused.
var variable = regexp.MustCompile(`\$(?:\{([^}]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)

var braced = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)(?:(:?)[-=](.*))?$`)

// substituted replaces the variables in a file. One that is unset or empty and has no default is an error, as in
// talhelper (v3, envsubst.BytesRestricted). Comments are removed first, because they may mention variables.
func (o Options) substituted(content []byte) ([]byte, error) {
	content, err := withoutComments(content)
	if err != nil {
		return nil, err
	}

	var problems []error

	result := variable.ReplaceAllStringFunc(string(content), func(found string) string {
		parts := variable.FindStringSubmatch(found)
		name, fallback, hasDefault := parts[2], "", false

		if name == "" {
			inner := braced.FindStringSubmatch(parts[1])
			if inner == nil {
				problems = append(problems, fmt.Errorf("the expression %s is not supported: replace it by its value", found))

				return found
			}

			name, fallback, hasDefault = inner[1], inner[3], inner[0] != inner[1]
		}

		if value, ok := o.Lookup(name); ok && value != "" {
			return value
		}

		if !hasDefault {
			problems = append(problems, fmt.Errorf("the environment variable %s is not set", name))
		}

		return fallback
	})

	return []byte(result), errors.Join(problems...)
}

func withoutComments(content []byte) ([]byte, error) {
	var out bytes.Buffer

	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)

	err := eachDocument(content, func(node *yaml.Node) error {
		removeComments(node)

		return encoder.Encode(node)
	})

	return out.Bytes(), errors.Join(err, encoder.Close())
}

func removeComments(node *yaml.Node) {
	node.HeadComment, node.LineComment, node.FootComment = "", "", ""
	for _, inner := range node.Content {
		removeComments(inner)
	}
}

// eachDocument passes on the documents of a file that are not empty.
func eachDocument(content []byte, each func(*yaml.Node) error) error {
	if err := expansion.CheckYAML(content); err != nil {
		return err
	}

	decoder := yaml.NewDecoder(bytes.NewReader(content))

	for {
		var node yaml.Node

		switch err := decoder.Decode(&node); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}

		if err := each(&node); err != nil {
			return err
		}
	}
}

// environment adds the variables of files that exist to the lookup: YAML, or lines with NAME=value.
func (o Options) environment(names ...string) (Options, error) {
	values := map[string]string{}

	for _, name := range names {
		content, err := o.read(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			return o, err
		}

		for line := range strings.Lines(string(content)) {
			line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "export "))
			if at := strings.IndexAny(line, "=:"); at > 0 && !strings.HasPrefix(line, "#") {
				values[strings.TrimSpace(line[:at])] = scalar(strings.TrimSpace(line[at+1:]))
			}
		}
	}

	before := o.Lookup
	o.Lookup = func(name string) (string, bool) {
		if value, ok := values[name]; ok {
			return value, true
		}

		return before(name)
	}

	return o, nil
}

// scalar is the value of a line, without quotes and comments.
func scalar(text string) string {
	var node yaml.Node
	if yaml.Unmarshal([]byte(text), &node) != nil || len(node.Content) != 1 || node.Content[0].Kind != yaml.ScalarNode {
		return text
	}

	return node.Content[0].Value
}

// decoded decodes a configuration of a tool, and returns the fields that it does not know.
func decoded(content []byte, into any) (unknown []string, err error) {
	if err := expansion.CheckYAML(content); err != nil {
		return nil, err
	}

	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)

	err = decoder.Decode(into)
	if err == nil {
		return nil, nil
	}

	for line := range strings.Lines(err.Error()) {
		if found := unknownField.FindStringSubmatch(line); found != nil {
			unknown = append(unknown, found[1])
		}
	}

	if len(unknown) == 0 {
		return nil, err
	}

	return unknown, yaml.Unmarshal(content, into)
}

var unknownField = regexp.MustCompile(`field (\S+) not found in type`)
