package backup

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"strings"
)

// registry is the prefix of the keys of Kubernetes (Kubernetes 1.36, --etcd-prefix).
var registry = []byte("/registry/")

// resourceNames are the resources whose prefix in etcd is not their name (Kubernetes 1.36, pkg/kubeapiserver,
// SpecialDefaultResourcePrefixes). An empty name is data of API servers that is no object.
var resourceNames = map[string]string{
	"controllers": "replicationcontrollers", "ingress": "ingresses", "minions": "nodes",
	"services/endpoints": "endpoints", "services/specs": "services",
	"masterleases": "", "peerserverleases": "", "ranges": "",
}

// objects counts the objects of Kubernetes in the bucket of etcd's keys, which has several revisions of a key, and
// deletions. Those that Isolate deletes do not count, so that a restored cluster has as many. Of each key it
// keeps a hash, so its memory grows by some 30 bytes for each object.
type objects struct {
	seed      maphash.Seed
	resources []string          // names by number; the first is none
	numbers   map[string]uint32 // by prefix
	living    map[uint64]uint32 // numbers by the hashes of keys
	entries   []byte            // of the leaf that is summarized, kept for its memory
}

// The form in which a leaf notes an entry: the hash of its key, and the number of its resource.
const (
	objectSize = 12
	deletion   = 1 << 31
)

func newObjects() *objects {
	return &objects{seed: maphash.MakeSeed(), resources: []string{""}, numbers: map[string]uint32{},
		living: map[uint64]uint32{}}
}

// note appends the entry of a leaf, if it is about an object.
func (o *objects) note(e entry) {
	if !isRevision(e.key) {
		return
	}

	key, err := keyOf(e.value)
	if err != nil {
		return // of another program, whose entries etcd does not read
	}

	number := o.number(resourcePrefix(key))
	if number == 0 || connects(string(key)) {
		return
	}

	if len(e.key) != revisionSize {
		number |= deletion
	}

	o.entries = binary.LittleEndian.AppendUint64(o.entries, maphash.Bytes(o.seed, key))
	o.entries = binary.LittleEndian.AppendUint32(o.entries, number)
}

// number is that of the resource with a prefix; 0 for none.
func (o *objects) number(prefix []byte) uint32 {
	if number, known := o.numbers[string(prefix)]; known || len(prefix) == 0 {
		return number
	}

	number := uint32(0)
	if name := resourceName(string(prefix)); name != "" {
		number = uint32(len(o.resources)) //nolint:gosec // there are fewer resources
		o.resources = append(o.resources, name)
	}

	o.numbers[string(prefix)] = number

	return number
}

// follow takes the noted entries of a leaf into account. Leaves come in the order of revisions, so the last one of a
// key counts.
func (o *objects) follow(entries []byte) {
	for ; len(entries) >= objectSize; entries = entries[objectSize:] {
		hash, number := binary.LittleEndian.Uint64(entries), binary.LittleEndian.Uint32(entries[8:])
		if number&deletion != 0 {
			delete(o.living, hash)
		} else {
			o.living[hash] = number
		}
	}
}

// counted is the number of objects by resource.
func (o *objects) counted() map[string]int64 {
	counts := map[string]int64{}
	for _, number := range o.living {
		counts[o.resources[number]]++
	}

	return counts
}

// resourcePrefix is the part of a key that says its resource: one name, or two for custom resources, which come with
// their group, and for some others. It is empty where the key is no object of Kubernetes.
func resourcePrefix(key []byte) []byte {
	path, ours := bytes.CutPrefix(key, registry)
	first, rest, found := bytes.Cut(path, []byte("/"))

	if !ours || !found {
		return nil
	}

	if !bytes.ContainsRune(first, '.') && string(first) != "services" {
		return first
	}

	second, _, found := bytes.Cut(rest, []byte("/"))
	if !found {
		return nil
	}

	return path[:len(first)+1+len(second)]
}

// resourceName is the plural name of the resource with a prefix, followed by the group of a custom resource; empty
// for what is no object.
func resourceName(prefix string) string {
	if name, special := resourceNames[prefix]; special {
		return name
	}

	if group, plural, grouped := strings.Cut(prefix, "/"); grouped {
		return plural + "." + group
	}

	return prefix
}
