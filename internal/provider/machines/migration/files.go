package migration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/migrate"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines"
	"github.com/talosop/terraform-provider-talosop/internal/safefile"
)

// file is a file of the configuration. Its owner alone may read it, in any case.
type file struct {
	name, text string
	secret     bool
}

const (
	secretsFile       = "secrets.yaml"
	secretPatchesFile = "secret-patches.yaml"
)

// files are the files of a cluster, main.tf first.
func files(
	ctx context.Context, tool string, c migrate.Cluster, secrets string, d machines.Described,
) ([]file, error) {
	w := &writer{ctx: ctx}

	resource, err := w.resource(label(c.Name), d)
	if err != nil {
		return nil, err
	}

	hasPatches := len(d.Secret)+len(d.SecretMachine) > 0
	main := hclwrite.Format([]byte(head(tool, c.Omitted) + provider(c.Name, hasPatches) + imports(c) + resource))

	all := append([]file{{name: "main.tf", text: string(main)}}, w.files...)
	all = append(all, file{name: secretsFile, text: secrets, secret: true})
	ignored := "/" + secretsFile + "\n"

	if hasPatches {
		text, err := secretPatches(d)
		if err != nil {
			return nil, err
		}

		all = append(all, file{name: secretPatchesFile, text: text, secret: true})
		ignored += "/" + secretPatchesFile + "\n"
	}

	return append(all, file{name: ".gitignore", text: ignored}), nil
}

// head is the comment at the top of main.tf. Names of fields come from the files of the other tool.
func head(tool string, omitted []migrate.Omission) string {
	var text strings.Builder

	fmt.Fprintf(&text, "# Written by `migrate %s` from the files of %s. Remove the import block after the first apply.\n",
		tool, tool)

	for _, o := range omitted {
		fmt.Fprintf(&text, "# Not translated: %s.\n", strings.Join(strings.Fields(o.Field+": "+o.Reason), " "))
	}

	return text.String()
}

func secretPatches(d machines.Described) (string, error) {
	own := map[string]any{}
	for host, patches := range d.SecretMachine {
		own[host] = map[string]any{"config_patches": patches}
	}

	text, err := yaml.Marshal(map[string]any{"config_patches": d.Secret, "machines": own})

	return string(text), err
}

// provider is the blocks terraform and provider. State does not contain the secrets of the cluster.
func provider(name string, patches bool) string {
	more := ""
	if patches {
		more = "\n      config_patches = local.secret_patches.config_patches\n" +
			"      machines       = local.secret_patches.machines"
	}

	text := fmt.Sprintf(`
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

# State contains neither the secrets of the cluster nor the patches of this block. Replace the files by a secret store.
provider "talosop" {
  clusters = {
    %s = {
      secrets = file("${path.module}/%s")%s
    }
  }
}
`, quoted(name), secretsFile, more)

	if patches {
		text += fmt.Sprintf("\nlocals {\n  secret_patches = yamldecode(file(\"${path.module}/%s\"))\n}\n",
			secretPatchesFile)
	}

	return text
}

// imports is the import block.
func imports(c migrate.Cluster) string {
	planes, workers := "", ""

	for _, m := range c.Machines {
		line := fmt.Sprintf("      %s = %s\n", quoted(m.Name), quoted(m.Address))
		if m.ControlPlane {
			planes += line
		} else {
			workers += "  " + line
		}
	}

	text := fmt.Sprintf("\nimport {\n  to = talosop_cluster.%s\n  id = jsonencode({\n    cluster = %s\n"+
		"    control_plane = {\n%s    }\n", label(c.Name), quoted(c.Name), planes)

	if workers != "" {
		text += fmt.Sprintf("    workers = {\n      %s = {\n%s      }\n    }\n", poolOfWorkers, workers)
	}

	return text + "  })\n}\n"
}

var notInLabel = regexp.MustCompile(`[^0-9A-Za-z_-]`)

// label is a name of a resource for a cluster.
func label(name string) string {
	name = notInLabel.ReplaceAllString(name, "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' || name[0] == '-' {
		return "_" + name
	}

	return name
}

// quoted is a text of the configuration language.
func quoted(text string) string { return string(hclwrite.TokensForValue(cty.StringVal(text)).Bytes()) }

// place writes the files into a folder, where none of them may exist.
func place(folder string, all []file) error {
	var problems []error

	for _, f := range all {
		if _, err := os.Lstat(filepath.Join(folder, f.name)); err == nil {
			problems = append(problems, fmt.Errorf("%s exists: name an empty folder with -out", filepath.Join(folder, f.name)))
		}
	}

	if len(problems) > 0 {
		return errors.Join(problems...)
	}

	for _, f := range all {
		if err := placeOne(filepath.Join(folder, f.name), f.text); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
	}

	return nil
}

func placeOne(name, text string) error {
	pending, err := safefile.Create(name)
	if err != nil {
		return err
	}

	if _, err = io.WriteString(pending, text); err == nil {
		err = pending.Place()
	}

	return errors.Join(err, pending.Discard())
}
