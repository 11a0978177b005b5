package machineconfig

import (
	"fmt"
	"strings"
	"sync"

	"k8s.io/utils/lru"
)

// reading is a document that was read. It is shared by all who read the same text, and not to be changed.
type reading struct {
	chunk

	// loaded is the document as data.
	loaded func() (document, error)
}

// mostReadings is how many documents are kept, of up to 200 KB each.
const mostReadings = 64

// readings are the documents that were read last, by their texts. The machines of a pool have the same main document,
// and each observation and comparison reads it: what takes as long as all else about a machine is done once.
var readings = lru.New(mostReadings)

// readAll reads the documents of a configuration, for those who change nothing of them. Errors do not quote values.
func readAll(cfg []byte) ([]*reading, error) {
	var all []*reading

	for _, text := range splitText(strings.ReplaceAll(string(cfg), "\r\n", "\n")) {
		r, err := read(text)
		if err != nil {
			return nil, fmt.Errorf("not YAML: %s", withoutQuotes(err.Error()))
		}

		all = append(all, r)
	}

	return all, nil
}

// read is readAll of one document.
func read(text string) (*reading, error) {
	known, _ := readings.Get(text)
	if r, ok := known.(*reading); ok {
		return r, nil
	}

	node, err := parseDocument(text)
	if err != nil {
		return nil, err
	}

	r := &reading{chunk: chunk{text: text, node: node}}
	r.loaded = sync.OnceValues(r.chunk.loaded)
	readings.Add(text, r)

	return r, nil
}
