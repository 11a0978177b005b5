package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/image/schematic"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// topfConfig is topf.yaml (postfinance/topf 0.5, pkg/config).
type topfConfig struct {
	ClusterName       string         `yaml:"clusterName"`
	ClusterEndpoint   string         `yaml:"clusterEndpoint"`
	KubernetesVersion string         `yaml:"kubernetesVersion"`
	TalosVersion      string         `yaml:"talosVersion"`
	Schematic         string         `yaml:"schematicId"`
	Factory           string         `yaml:"factory"`
	Platform          string         `yaml:"platform"`
	SecureBoot        bool           `yaml:"secureboot"`
	SecretsProvider   string         `yaml:"secretsProvider"`
	NodesProvider     string         `yaml:"nodesProvider"`
	PatchesFolder     string         `yaml:"patchesDir"`
	SecretsFile       string         `yaml:"secretsPath"`
	Nodes             []topfNode     `yaml:"nodes"`
	Data              map[string]any `yaml:"data"`
}

// topfNode has the names that templates use.
type topfNode struct {
	Host         string         `yaml:"host"`
	IP           string         `yaml:"ip"`
	Role         string         `yaml:"role"`
	Data         map[string]any `yaml:"data"`
	TalosVersion string         `yaml:"talosVersion"`
	SchematicID  string         `yaml:"schematicId"`
	Factory      string         `yaml:"factory"`
	Platform     string         `yaml:"platform"`
	SecureBoot   bool           `yaml:"secureboot"`
}

// topfContext is what templates of patches see.
type topfContext struct {
	ClusterName       string
	ClusterEndpoint   string
	KubernetesVersion string
	TalosVersion      string
	SchematicID       string
	Data              map[string]any
	Node              topfNode
}

const topfControlPlane = "control-plane"

type topfReader struct {
	Options

	config  topfConfig
	cluster *Cluster
	version string
}

// Topf reads topf.yaml with the patches beside it.
func Topf(o Options) (Cluster, error) {
	r := topfReader{Options: o, cluster: &Cluster{}}
	if err := r.read(); err != nil {
		return Cluster{}, fmt.Errorf("topf.yaml: %w", err)
	}

	var err error
	if r.cluster.Bundle, err = o.secrets(cmp.Or(r.config.SecretsFile, "secrets.yaml")); err != nil {
		if r.config.SecretsProvider != "" {
			err = fmt.Errorf("%w; write it with `%s secrets get %s`", err, r.config.SecretsProvider, r.config.ClusterName)
		}

		return Cluster{}, err
	}

	if o.Configurations != "" {
		return *r.cluster, o.generated(r.cluster, func(m Machine) string { return m.Name + ".yaml" })
	}

	for i := range r.cluster.Machines {
		m := &r.cluster.Machines[i]
		if m.Config, err = r.machine(*m, r.config.Nodes[i]); err != nil {
			return Cluster{}, fmt.Errorf("node %s: %w", m.Name, err)
		}
	}

	return *r.cluster, nil
}

func (r *topfReader) read() error {
	content, err := r.Options.read("topf.yaml")
	if err != nil {
		return err
	}

	if err := refuseReferences("topf.yaml", content); err != nil {
		return err
	}

	unknown, err := decoded(content, &r.config)
	if err != nil {
		return err
	}

	for _, field := range unknown {
		r.cluster.omit(field, "topf does not know this field, so it had no effect")
	}

	if r.version, err = r.Options.version("talosVersion", r.config.TalosVersion); err != nil {
		return err
	}

	if r.config.NodesProvider != "" {
		r.cluster.omit("nodesProvider", fmt.Sprintf("the migration starts no program: add the nodes that `%s nodes %s` "+
			"prints to `nodes`, and repeat it", r.config.NodesProvider, r.config.ClusterName))
	}

	r.cluster.Name = r.config.ClusterName

	for _, node := range r.config.Nodes {
		if node.Role != topfControlPlane && node.Role != "worker" {
			return fmt.Errorf("node %s: the role is %q, not control-plane or worker", node.Host, node.Role)
		}

		r.cluster.Machines = append(r.cluster.Machines, Machine{Name: node.Host, Address: cmp.Or(node.IP, node.Host),
			ControlPlane: node.Role == topfControlPlane,
			TalosVersion: machineconfig.CanonicalVersion(cmp.Or(node.TalosVersion, r.version))})
	}

	return r.cluster.check()
}

// reference is one that topf resolves with the program vals.
var reference = regexp.MustCompile(`ref\+[a-z0-9]+://`)

func refuseReferences(name string, content []byte) error {
	if !reference.Match(content) {
		return nil
	}

	return fmt.Errorf("%s has references of vals (ref+…): replace them by their values first, such as with "+
		"`vals eval -f %s`", name, name)
}

// machine makes the configuration of a node: the generated one with the installer image, and the patches.
func (r *topfReader) machine(m Machine, node topfNode) ([]byte, error) {
	context := topfContext{ClusterName: r.config.ClusterName, ClusterEndpoint: r.config.ClusterEndpoint,
		KubernetesVersion: r.config.KubernetesVersion, TalosVersion: r.config.TalosVersion,
		SchematicID: cmp.Or(node.SchematicID, r.config.Schematic), Data: r.config.Data, Node: node}

	var err error
	if context.SchematicID, err = r.schematic(context); err != nil {
		return nil, fmt.Errorf("schematicId: %w", err)
	}

	installer, err := image.Installer{
		Version: machineconfig.CanonicalVersion(m.TalosVersion), Schematic: context.SchematicID,
		Platform: cmp.Or(node.Platform, r.config.Platform), SecureBoot: node.SecureBoot || r.config.SecureBoot,
		Registry: cmp.Or(node.Factory, r.config.Factory),
	}.Reference()
	if err != nil {
		return nil, err
	}

	patches := []string{"machine:\n  install:\n    image: " + installer + "\n"}

	for _, folder := range []string{"all", node.Role, filepath.Join("node", node.Host)} {
		more, err := r.folder(filepath.Join(r.at(r.config.PatchesFolder), folder), context)
		if err != nil {
			return nil, err
		}

		patches = append(patches, more...)
	}

	// The contract is that of the cluster, even for a node with a version of its own.
	input, err := r.cluster.input(r.config.ClusterEndpoint, r.config.KubernetesVersion, r.version)
	if err != nil {
		return nil, err
	}

	made, err := input.Config(m.role())
	if err != nil {
		return nil, err
	}

	base, err := made.Bytes()
	if err != nil {
		return nil, err
	}

	return patched(base, patches...)
}

// schematic is the id of a schematic, which may be in a file.
func (r *topfReader) schematic(context topfContext) (string, error) {
	if context.SchematicID == "" {
		return image.VanillaSchematic, nil
	}

	name, inFile := strings.CutPrefix(context.SchematicID, "@")
	if !inFile {
		return name, nil
	}

	content, err := os.ReadFile(r.at(name))
	if err != nil {
		return "", err
	}

	if strings.HasSuffix(name, ".tpl") {
		if content, err = r.rendered(name, content, context, "missingkey=error"); err != nil {
			return "", err
		}
	}

	return schematic.IDOf(string(content))
}

// patchFile are the names of patches. It is not anchored, as in topf.
var patchFile = regexp.MustCompile(`\.ya?ml(\.tpl)?`)

// folder reads the patches of a folder and of those in it, in the order of their names.
func (r *topfReader) folder(name string, context topfContext) ([]string, error) {
	entries, err := os.ReadDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}

	var all []string

	for _, entry := range entries {
		at := filepath.Join(name, entry.Name())

		info, err := os.Stat(at) // follows links
		if err != nil {
			return nil, err
		}

		var patches []string

		switch {
		case info.IsDir():
			patches, err = r.folder(at, context)
		case patchFile.MatchString(entry.Name()):
			patches, err = r.patchesIn(at, context)
		}

		if err != nil {
			return nil, err
		}

		all = append(all, patches...)
	}

	return all, nil
}

// patchesIn are the patches of a file, one for each document.
func (r *topfReader) patchesIn(name string, context topfContext) (patches []string, err error) {
	content, err := r.Options.read(name)
	if err != nil {
		return nil, err
	}

	if strings.HasSuffix(name, ".tpl") {
		content, err = r.rendered(name, content, context, "missingkey=error")
	} else {
		err = refuseReferences(name, content)
	}

	if err != nil {
		return nil, err
	}

	err = eachDocument(content, func(node *yaml.Node) error {
		var fields map[string]any
		if err := node.Decode(&fields); err != nil {
			return errors.New("a patch is no mapping: topf takes strategic merge patches alone")
		}

		if len(fields) == 0 {
			return nil
		}

		text, err := yaml.Marshal(fields)
		patches = append(patches, string(text))

		return err
	})
	if err != nil {
		return nil, fmt.Errorf("patch %s: %w", name, err)
	}

	return patches, nil
}
