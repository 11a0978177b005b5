package convert

import (
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// state is what earlier patches of the machine say, where the effect of a later one depends on it.
type state struct {
	// headers are those of all external manifests, of all patches.
	headers *yaml.Node
	// installStays is set where a patch has a part of an installation that no document has.
	installStays bool
	// named is set where a patch has a host name.
	named bool

	seen  map[string]bool
	lists map[string][]*yaml.Node
	switches
}

// switches are parts that are on or off as a whole. They begin as contracts generate them.
type switches struct {
	prism, discovery, discoveryService, access, flannel bool

	prismPort, discoveryEndpoint string
	// scheduling and masters are nil where no patch has them.
	scheduling, masters *bool
	schedules           bool
	manifests           int
	oidc                map[string]string
	disk                string
	devices, servers    bool
	webhooks, rbac      bool
}

func newState(all []*yaml.Node) state {
	s := state{seen: map[string]bool{}, lists: map[string][]*yaml.Node{}, switches: switches{
		prism: true, discovery: true, discoveryService: true, flannel: true, oidc: map[string]string{},
		discoveryEndpoint: constants.DefaultDiscoveryServiceEndpoint,
	}}

	for _, main := range all {
		if headers := places.Node(main, "cluster", "extraManifestHeaders"); headers != nil {
			s.headers = joinedMappings(s.headers, headers)
		}

		if install := places.Node(main, "machine", "install"); install != nil {
			s.installStays = s.installStays || hasOtherThan(install, "disk", "diskSelector", "image", "wipe")
		}

		name := places.Node(main, places.Hostname.Main.Path...)
		s.named = s.named || name != nil && name.Value != ""
	}

	return s
}

// joinedMappings is a mapping with the fields of two, of which those of the second win.
func joinedMappings(first, second *yaml.Node) *yaml.Node {
	all := mapping()
	if first != nil {
		all.Content = slices.Clone(first.Content)
	}

	for i := 0; i+1 < len(second.Content); i += 2 {
		if at := places.KeyOf(all, second.Content[i].Value); at >= 0 {
			all.Content[at+1] = second.Content[i+1]
		} else {
			all.Content = append(all.Content, second.Content[i], second.Content[i+1])
		}
	}

	return all
}

func hasOtherThan(mapping *yaml.Node, keys ...string) bool {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if !slices.Contains(keys, mapping.Content[i].Value) {
			return true
		}
	}

	return false
}

// again reports whether something has been there before.
func (s *state) again(name string) bool {
	before := s.seen[name]
	s.seen[name] = true

	return before
}

// accumulated is a list with what earlier patches have at its path.
func (s *state) accumulated(path string, list *yaml.Node) *yaml.Node {
	all := *list
	all.Content = slices.Concat(s.lists[path], list.Content)
	s.lists[path] = all.Content

	return &all
}
