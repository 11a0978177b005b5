// Package etcdimage reads which version of etcd a machine configuration asks for. Pure.
package etcdimage

import (
	"bytes"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/expansion"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// Minor is the minor version, such as 3.6, of the image of etcd that a configuration names; empty where it names
// none, so that Talos chooses, and where the image does not tell its version.
func Minor(config []byte) string {
	var main struct {
		Cluster struct {
			Etcd struct {
				Image string `yaml:"image"`
			} `yaml:"etcd"`
		} `yaml:"cluster"`
	}

	// The main document has it with every contract, and comes first (machinery 1.14, v1alpha1.EtcdConfig).
	first, _, _ := bytes.Cut(config, []byte("\n---\n"))
	if !bytes.Contains(first, []byte("etcd")) || expansion.CheckYAML(first) != nil || yaml.Unmarshal(first, &main) != nil {
		return ""
	}

	tag, _ := kubenames.Tag(main.Cluster.Etcd.Image)

	return etcdstate.MinorOf(tag)
}
