package etcdservice

import (
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/talosversion"
)

// defaults are the images of etcd that releases of Talos run unless the configuration names another one: EtcdImage and
// DefaultEtcdVersion of machinery 1.10.6, 1.11.6, 1.12.4, 1.13.6 and 1.14.1 (constants/constants.go).
var defaults = map[uint64]string{
	10: "gcr.io/etcd-development/etcd:v3.5.21",
	11: "gcr.io/etcd-development/etcd:v3.6.5",
	12: "registry.k8s.io/etcd:v3.6.7",
	13: "registry.k8s.io/etcd:v3.6.12",
	14: "registry.k8s.io/etcd:3.7.1",
}

// image is the one that the machine runs: of its own release, and not of the machinery that this is built with.
func (s *Service) image() string {
	image := s.Config().Cluster().Etcd().Image()
	if image != constants.EtcdImage+":"+constants.DefaultEtcdVersion {
		return image
	}

	return defaults[talosversion.Of(s.TalosVersion()).Minor]
}

// versionOf is the version in the tag of an image; that of the newest release where it has none.
func versionOf(image string) string {
	tag, ok := kubenames.Tag(image)
	if !ok {
		return constants.DefaultEtcdVersion
	}

	version, _, _ := strings.Cut(strings.TrimPrefix(tag, "v"), "-")

	return version
}
