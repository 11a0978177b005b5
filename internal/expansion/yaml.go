package expansion

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	former "go.yaml.in/yaml/v2"
	"go.yaml.in/yaml/v4"
)

const (
	// mostOfAliases in bytes is what aliases may add to a text: anchors of people save a few KB.
	mostOfAliases = 16 << 20
	// nodeSize in bytes is about what a decoded list, mapping or scalar takes in addition to its text.
	nodeSize = 64
)

// CheckYAML returns ErrTooLarge for a text whose aliases expand to far more than the text. What it cannot parse it
// leaves to the parser that reads the text next.
//
// The libraries bound how many nodes aliases stand for, and only some of the time: yaml v4 (4.0.0) checks it in
// Unmarshal and Decoder and not in Node.Decode. None bounds their bytes, which sigs.k8s.io/yaml writes out as JSON: an
// alias of three bytes repeats a text of any length.
func CheckYAML(text []byte) error {
	if bytes.IndexByte(text, '&') < 0 || bytes.IndexByte(text, '*') < 0 {
		return nil
	}

	// Both parsers read it: what is an alias to one of them may be plain text to the other.
	if added(text) > mostOfAliases || scalars(text) > mostOfAliases+2*float64(len(text)) {
		return fmt.Errorf("%w: YAML aliases add more than %d bytes; replace them with their values, or remove them",
			ErrTooLarge, mostOfAliases)
	}

	return nil
}

// added is how many bytes the aliases of a text add to it, about, as yaml v4 reads it.
func added(text []byte) (bytes float64) {
	defer func() { _ = recover() }() // both libraries panic on some malformed input

	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	plain, expanded := sizes{follow: false, known: map[*yaml.Node]float64{}}, sizes{true, map[*yaml.Node]float64{}}

	for {
		var document yaml.Node
		if decoder.Decode(&document) != nil {
			return bytes
		}

		bytes += expanded.of(&document) - plain.of(&document)
	}
}

// sizes are those of nodes, each counted once for all its aliases.
type sizes struct {
	follow bool
	known  map[*yaml.Node]float64
}

func (s sizes) of(node *yaml.Node) float64 {
	if size, ok := s.known[node]; ok {
		return size
	}

	s.known[node] = math.Inf(1) // of a node that is within itself

	size := float64(nodeSize + len(node.Value))

	if node.Kind == yaml.AliasNode {
		size = nodeSize

		if s.follow && node.Alias != nil {
			size = s.of(node.Alias)
		}
	}

	for _, child := range node.Content {
		size += s.of(child)
	}

	s.known[node] = size

	return size
}

// scalars is how many bytes of text a document has with its aliases expanded, as yaml v2 reads it, which is below
// sigs.k8s.io/yaml. It bounds the nodes itself.
func scalars(text []byte) (bytes float64) {
	defer func() { _ = recover() }()

	decoder := former.NewDecoder(strings.NewReader(string(text)))

	for {
		var document any
		if decoder.Decode(&document) != nil {
			return bytes
		}

		bytes += textOf(document)
	}
}

func textOf(value any) (bytes float64) {
	switch value := value.(type) {
	case string:
		return float64(len(value))
	case []any:
		for _, item := range value {
			bytes += textOf(item)
		}
	case map[any]any:
		for key, item := range value {
			bytes += textOf(key) + textOf(item)
		}
	}

	return bytes
}
