package backup

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// The file format of bbolt (bbolt 1.4, internal/common: page.go, meta.go, inode.go), as
// machines with little-endian memory write it, which are all that Talos runs on.
const (
	headerSize   = 16 // id, flags, count, overflow
	elementSize  = 16 // of a branch or leaf page
	bucketSize   = 16 // root, sequence
	metaSize     = 64
	metaMagic    = 0xED0CDAED
	metaVersion  = 2
	branchPage   = 0x01
	leafPage     = 0x02
	metaPage     = 0x04
	freelistPage = 0x10
	bucketEntry  = 0x01
	noFreelist   = ^uint64(0) // etcd does not store the list (etcd 3.6, NoFreelistSync)
	manyFree     = 0xFFFF     // the count of a longer list is its first entry
	minPageSize  = 512
	maxPageSize  = 1 << 16
	// maxSpan in bytes is more than one page with its overflow has in a database of etcd,
	// whose requests are at most some MiB. A damaged length must not be believed.
	maxSpan = 64 << 20
	// maxDepth is more levels than a tree of bbolt gets.
	maxDepth = 64
)

// meta is the content of one of the two first pages.
type meta struct {
	size                       uint32
	root, freelist, high, txid uint64
}

// damaged is an ErrDamaged.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// parseMeta reads what one of the two first pages says; the page may be cut after it.
func parseMeta(id uint64, data []byte) (meta, error) {
	m := data[headerSize : headerSize+metaSize]
	sum := fnv.New64a()
	sum.Write(m[:metaSize-8])

	found := meta{
		size: binary.LittleEndian.Uint32(m[8:]), root: binary.LittleEndian.Uint64(m[16:]),
		freelist: binary.LittleEndian.Uint64(m[32:]),
		high:     binary.LittleEndian.Uint64(m[40:]), txid: binary.LittleEndian.Uint64(m[48:]),
	}

	switch {
	case binary.LittleEndian.Uint32(m) != metaMagic || binary.LittleEndian.Uint32(m[4:]) != metaVersion:
		return meta{}, damaged("page %d is not a bbolt meta page", id)
	case binary.LittleEndian.Uint64(m[metaSize-8:]) != sum.Sum64():
		return meta{}, damaged("the checksum of page %d does not match", id)
	case binary.LittleEndian.Uint64(data[:]) != id || binary.LittleEndian.Uint16(data[8:]) != metaPage:
		return meta{}, damaged("page %d has ID %d or is not a meta page", id, binary.LittleEndian.Uint64(data[:]))
	case found.size < minPageSize || found.size > maxPageSize || found.size&(found.size-1) != 0:
		return meta{}, damaged("invalid page size %d", found.size)
	case found.high < 3 || found.high > 1<<40:
		return meta{}, damaged("invalid page count %d", found.high)
	default:
		return found, nil
	}
}

// entry is the content of a leaf page.
type entry struct {
	key, value []byte
	both       []byte // the value follows its key
	bucket     bool
}

// bounds are the keys that a page may hold: from least on, and below the limit unless that
// is nil.
type bounds struct{ least, limit []byte }

func (b bounds) admit(key []byte) bool {
	return bytes.Compare(key, b.least) >= 0 && (b.limit == nil || bytes.Compare(key, b.limit) < 0)
}

// fork is an element of a branch page: the least key of a child.
func fork(data []byte, i int) (key []byte, child uint64, err error) {
	at := headerSize + i*elementSize
	if at+elementSize > len(data) {
		return nil, 0, damaged("branch element %d is outside its page", i+1)
	}

	found, err := cut(data, at, binary.LittleEndian.Uint32(data[at:]), binary.LittleEndian.Uint32(data[at+4:]), 0)

	return found.key, binary.LittleEndian.Uint64(data[at+8:]), err
}

// leaf visits the entries of a leaf page, which may be one inside a value.
func leaf(data []byte, within bounds, visit func(entry) error) error {
	var last []byte

	for i := range int(binary.LittleEndian.Uint16(data[10:])) {
		at := headerSize + i*elementSize
		if at+elementSize > len(data) {
			return damaged("leaf element %d is outside its page", i+1)
		}

		flags := binary.LittleEndian.Uint32(data[at:])
		if flags&^bucketEntry != 0 {
			return damaged("unknown entry type %#x", flags)
		}

		found, err := cut(data, at, binary.LittleEndian.Uint32(data[at+4:]), binary.LittleEndian.Uint32(data[at+8:]),
			binary.LittleEndian.Uint32(data[at+12:]))
		if err != nil {
			return err
		}

		if !within.admit(found.key) || i > 0 && bytes.Compare(last, found.key) >= 0 {
			return damaged("the keys of a leaf are out of order")
		}

		found.bucket = flags == bucketEntry
		if err := visit(found); err != nil {
			return err
		}

		last = found.key
	}

	return nil
}

// cut takes a key and a value out of a page. Positions count from their element.
func cut(data []byte, at int, position, keySize, valueSize uint32) (entry, error) {
	start := uint64(at) + uint64(position)
	middle := start + uint64(keySize)
	end := middle + uint64(valueSize)

	if position < elementSize || end > uint64(len(data)) {
		return entry{}, damaged("an entry ends at byte %d, after the end of its page at %d", end, len(data))
	}

	return entry{key: data[start:middle], value: data[middle:end], both: data[start:end]}, nil
}
