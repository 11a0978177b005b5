package backup

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
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
	maxSpan = 256 << 20
)

// pages reads a database of bbolt page by page, in constant memory, and doubts everything.
// bbolt's own Tx.Check trusts what it follows: a damaged page ends the process from a
// goroutine of bbolt's, where no caller can recover, and it maps the whole file.
type pages struct {
	ctx   context.Context //nolint:containedctx // it lives for one call of Inspect
	file  io.ReaderAt
	size  int64    // of a page in bytes
	high  uint64   // the page after the last
	seen  []uint64 // one bit for each page that is in use
	spans [][]byte // buffers by depth
}

// meta is what one of the two first pages says.
type meta struct {
	size                       uint32
	root, freelist, high, txid uint64
}

// damaged is an ErrDamaged.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// openPages reads the newer of the two descriptions that a database begins with. Both must
// be sound: a snapshot has written both (bbolt 1.4, Tx.WriteTo). The file has that length,
// with or without a sum at its end.
func openPages(ctx context.Context, file io.ReaderAt, length int64) (*pages, meta, error) {
	p := &pages{ctx: ctx, file: file}

	first, err := p.meta(0, 0)
	if err != nil {
		return nil, meta{}, err
	}

	second, err := p.meta(1, int64(first.size))
	if err != nil {
		return nil, meta{}, err
	}

	if first.size != second.size {
		return nil, meta{}, damaged("its pages have %d or %d bytes", first.size, second.size)
	}

	if second.txid > first.txid {
		first = second
	}

	p.size, p.high = int64(first.size), first.high

	if surplus := length - int64(p.high)*p.size; surplus != 0 && surplus != sumSize {
		return nil, meta{}, damaged("it has %d bytes and says %d pages of %d", length, p.high, p.size)
	}

	p.seen = make([]uint64, p.high/64+1)

	return p, first, nil
}

// meta reads one description.
func (p *pages) meta(id uint64, at int64) (meta, error) {
	var data [headerSize + metaSize]byte
	if err := p.read(data[:], at); err != nil {
		return meta{}, err
	}

	m := data[headerSize:]
	sum := fnv.New64a()
	sum.Write(m[:metaSize-8])

	found := meta{
		size: binary.LittleEndian.Uint32(m[8:]), root: binary.LittleEndian.Uint64(m[16:]), freelist: binary.LittleEndian.Uint64(m[32:]),
		high: binary.LittleEndian.Uint64(m[40:]), txid: binary.LittleEndian.Uint64(m[48:]),
	}

	switch {
	case binary.LittleEndian.Uint32(m) != metaMagic || binary.LittleEndian.Uint32(m[4:]) != metaVersion:
		return meta{}, damaged("page %d is no beginning of a database", id)
	case binary.LittleEndian.Uint64(m[metaSize-8:]) != sum.Sum64():
		return meta{}, damaged("the sum of page %d is wrong", id)
	case binary.LittleEndian.Uint64(data[:]) != id || binary.LittleEndian.Uint16(data[8:]) != metaPage:
		return meta{}, damaged("page %d says to be page %d", id, binary.LittleEndian.Uint64(data[:]))
	case found.size < minPageSize || found.size > maxPageSize || found.size&(found.size-1) != 0:
		return meta{}, damaged("its pages have %d bytes", found.size)
	case found.high < 3 || found.high > 1<<40:
		return meta{}, damaged("it has %d pages", found.high)
	default:
		return found, nil
	}
}

// read reads bytes that must be there.
func (p *pages) read(data []byte, at int64) error {
	if _, err := p.file.ReadAt(data, at); errors.Is(err, io.EOF) {
		return damaged("it ends before byte %d", at+int64(len(data)))
	} else if err != nil {
		return fmt.Errorf("read the database: %w", err)
	}

	return nil
}

// take marks a page as being in use, which it must not have been.
func (p *pages) take(id uint64) error {
	if id < 2 || id >= p.high {
		return damaged("page %d is used and does not exist", id)
	}

	if p.used(id) {
		return damaged("page %d is used twice", id)
	}

	p.seen[id/64] |= 1 << (id % 64)

	return nil
}

func (p *pages) used(id uint64) bool { return p.seen[id/64]&(1<<(id%64)) != 0 }

// span reads a page with what it overflows into, valid until the next call of that depth.
func (p *pages) span(id uint64, depth int) ([]byte, error) {
	if p.ctx.Err() != nil {
		return nil, context.Cause(p.ctx)
	}

	if err := p.take(id); err != nil {
		return nil, err
	}

	var header [headerSize]byte
	if err := p.read(header[:], int64(id)*p.size); err != nil {
		return nil, err
	}

	if found := binary.LittleEndian.Uint64(header[:]); found != id {
		return nil, damaged("page %d says to be page %d", id, found)
	}

	more := uint64(binary.LittleEndian.Uint32(header[12:]))
	if more >= p.high-id || int64(more+1)*p.size > maxSpan {
		return nil, damaged("page %d is %d pages long", id, more+1)
	}

	for next := id + 1; next <= id+more; next++ {
		if err := p.take(next); err != nil {
			return nil, err
		}
	}

	for len(p.spans) <= depth {
		p.spans = append(p.spans, nil)
	}

	length := int(int64(more+1) * p.size)
	if cap(p.spans[depth]) < length {
		p.spans[depth] = make([]byte, length)
	}

	data := p.spans[depth][:length]

	return data, p.read(data, int64(id)*p.size)
}

// entry is what a leaf page holds.
type entry struct {
	key, value []byte
	bucket     bool
}

// bounds are the keys that a page may hold: from least on, and below the limit unless that
// is nil.
type bounds struct{ least, limit []byte }

// tree visits all entries below a page, in the order of their keys.
func (p *pages) tree(id uint64, within bounds, depth int, visit func(entry, int) error) error {
	data, err := p.span(id, depth)
	if err != nil {
		return err
	}

	switch flags := binary.LittleEndian.Uint16(data[8:]); flags {
	case leafPage:
		return leaf(data, within, func(e entry) error { return visit(e, depth+1) })
	case branchPage:
		return p.branch(id, data, within, depth, visit)
	default:
		return damaged("page %d is of the kind %#x in a tree", id, flags)
	}
}

func (p *pages) branch(id uint64, data []byte, within bounds, depth int, visit func(entry, int) error) error {
	count := int(binary.LittleEndian.Uint16(data[10:]))
	if count == 0 {
		return damaged("page %d leads nowhere", id)
	}

	key, child, err := fork(data, 0)
	if err != nil {
		return err
	}

	for i := range count {
		if bytes.Compare(key, within.least) < 0 || within.limit != nil && bytes.Compare(key, within.limit) >= 0 {
			return damaged("keys of page %d are out of order", id)
		}

		var (
			below     = bounds{least: key, limit: within.limit}
			next      []byte
			nextChild uint64
		)

		if i+1 < count {
			if next, nextChild, err = fork(data, i+1); err != nil {
				return err
			}

			if bytes.Compare(key, next) >= 0 {
				return damaged("keys of page %d are out of order", id)
			}

			below.limit = next
		}

		if err := p.tree(child, below, depth+1, visit); err != nil {
			return err
		}

		key, child = next, nextChild
	}

	return nil
}

// fork is an element of a branch page: the least key of a child.
func fork(data []byte, i int) (key []byte, child uint64, err error) {
	at := headerSize + i*elementSize
	if at+elementSize > len(data) {
		return nil, 0, damaged("a branch has %d elements, more than its page", i+1)
	}

	key, _, err = cut(data, at, binary.LittleEndian.Uint32(data[at:]), binary.LittleEndian.Uint32(data[at+4:]), 0)

	return key, binary.LittleEndian.Uint64(data[at+8:]), err
}

// leaf visits the entries of a leaf page, which may be one inside a value.
func leaf(data []byte, within bounds, visit func(entry) error) error {
	var last []byte

	for i := range int(binary.LittleEndian.Uint16(data[10:])) {
		at := headerSize + i*elementSize
		if at+elementSize > len(data) {
			return damaged("a leaf has %d elements, more than its page", i+1)
		}

		flags := binary.LittleEndian.Uint32(data[at:])
		if flags&^bucketEntry != 0 {
			return damaged("an entry is of the kind %#x", flags)
		}

		key, value, err := cut(data, at, binary.LittleEndian.Uint32(data[at+4:]), binary.LittleEndian.Uint32(data[at+8:]), binary.LittleEndian.Uint32(data[at+12:]))
		if err != nil {
			return err
		}

		if bytes.Compare(key, within.least) < 0 || within.limit != nil && bytes.Compare(key, within.limit) >= 0 || i > 0 && bytes.Compare(last, key) >= 0 {
			return damaged("keys of a leaf are out of order")
		}

		if err := visit(entry{key: key, value: value, bucket: flags == bucketEntry}); err != nil {
			return err
		}

		last = key
	}

	return nil
}

// cut takes a key and a value out of a page. Positions count from their element.
func cut(data []byte, at int, position, keySize, valueSize uint32) (key, value []byte, err error) {
	start := uint64(at) + uint64(position)
	middle := start + uint64(keySize)
	end := middle + uint64(valueSize)

	if position < elementSize || end > uint64(len(data)) {
		return nil, nil, damaged("an entry reaches to byte %d of %d", end, len(data))
	}

	return data[start:middle], data[middle:end], nil
}

// bucket visits the entries of a bucket, which is an entry of the root. A small one is a
// page inside the entry.
func (p *pages) bucket(e entry, depth int, visit func(entry) error) error {
	if len(e.value) < bucketSize {
		return damaged("the bucket %q has no root", e.key)
	}

	if root := binary.LittleEndian.Uint64(e.value); root != 0 {
		return p.tree(root, bounds{}, depth, func(e entry, _ int) error { return visit(e) })
	}

	inline := e.value[bucketSize:]
	if len(inline) < headerSize || binary.LittleEndian.Uint16(inline[8:]) != leafPage {
		return damaged("the bucket %q has no page", e.key)
	}

	return leaf(inline, bounds{}, visit)
}

// rest checks that all other pages are free, where the database says which are.
func (p *pages) rest(m meta) error {
	if m.freelist == noFreelist {
		return nil
	}

	data, err := p.span(m.freelist, 0)
	if err != nil {
		return err
	}

	if flags := binary.LittleEndian.Uint16(data[8:]); flags != freelistPage {
		return damaged("the list of free pages is of the kind %#x", flags)
	}

	ids, count := data[headerSize:], uint64(binary.LittleEndian.Uint16(data[10:]))
	if count == manyFree {
		ids, count = ids[8:], binary.LittleEndian.Uint64(ids)
	}

	if count > uint64(len(ids)/8) {
		return damaged("the list of free pages has %d entries, more than its page", count)
	}

	for i := range count {
		if err := p.take(binary.LittleEndian.Uint64(ids[8*i:])); err != nil {
			return err
		}
	}

	for id := uint64(2); id < p.high; id++ {
		if !p.used(id) {
			return damaged("page %d is neither used nor free", id)
		}
	}

	return nil
}
