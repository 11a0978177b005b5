package backup

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// walk goes through the trees of a database by the notes of its pages, in the order of their
// keys: pages are what they say to be, in order, and used once.
type walk struct {
	ctx   context.Context //nolint:containedctx // it lives for one call of scan.database
	notes io.ReaderAt
	index []int64
	size  int      // of a page in bytes
	high  uint64   // the page after the last
	seen  []uint64 // one bit for each page that is in use
	read  [][]byte // buffers by depth

	length uint64 // for which shift is
	shift  uint32
	found  Database
	keys   bool // there is the bucket of etcd's keys

	objects *objects // nil if they are not counted
}

// page is a note that was read.
type page struct {
	id   uint64
	kind byte
	body []byte
}

// flags of a page that was noted whole.
func (p page) flags() uint16 { return binary.LittleEndian.Uint16(p.body[8:]) }

// take marks a page as being in use, which it must not have been.
func (w *walk) take(id uint64) error {
	if id < 2 || id >= w.high {
		return damaged("page %d is referenced but does not exist", id)
	}

	if w.used(id) {
		return damaged("page %d is referenced twice", id)
	}

	w.seen[id/64] |= 1 << (id % 64)

	return nil
}

func (w *walk) used(id uint64) bool { return w.seen[id/64]&(1<<(id%64)) != 0 }

// page reads what was noted of one and marks it with what it overflows into. It is valid
// until the next call of that depth.
func (w *walk) page(id uint64, depth int) (page, error) {
	if w.ctx.Err() != nil {
		return page{}, context.Cause(w.ctx)
	}

	if err := w.take(id); err != nil {
		return page{}, err
	}

	if depth > maxDepth {
		return page{}, damaged("a tree has more than %d levels", maxDepth)
	}

	if w.index[id] == 0 {
		return page{}, damaged("page %d has another ID or is incomplete", id)
	}

	found, length, err := w.note(id, depth)
	if err != nil {
		return page{}, fmt.Errorf("read the index of page %d: %w", id, err)
	}

	for next := id + 1; next < id+uint64(length/w.size); next++ {
		if err := w.take(next); err != nil {
			return page{}, err
		}
	}

	if found.kind == damagedNote {
		return page{}, damaged("page %d: %s", id, found.body)
	}

	return found, nil
}

// note reads a note and how long its page is.
func (w *walk) note(id uint64, depth int) (_ page, length int, err error) {
	for len(w.read) <= depth {
		w.read = append(w.read, make([]byte, 256))
	}

	at := w.index[id] - 1

	// Most notes are short: one call reads one of these.
	n, err := w.notes.ReadAt(w.read[depth], at)
	if n < noteHead {
		return page{}, 0, err
	}

	head := w.read[depth]
	kind, length, size := head[0], int(binary.LittleEndian.Uint32(head[1:])), int(binary.LittleEndian.Uint32(head[5:]))

	if noteHead+size > n {
		w.read[depth] = append(head[:n], make([]byte, noteHead+size-n)...)
		if _, err := w.notes.ReadAt(w.read[depth][n:noteHead+size], at+int64(n)); err != nil {
			return page{}, 0, err
		}
	}

	return page{id: id, kind: kind, body: w.read[depth][noteHead : noteHead+size]}, length, nil
}

// tree visits all leaves below a page, in the order of their keys.
func (w *walk) tree(id uint64, within bounds, depth int, visit func(page, bounds, int) error) error {
	found, err := w.page(id, depth)

	switch {
	case err != nil:
		return err
	case found.kind == leafNote || found.flags() == leafPage:
		return visit(found, within, depth)
	case found.flags() == branchPage:
		return w.branch(found, within, depth, visit)
	default:
		return damaged("page %d has type %#x, expected a branch or a leaf", id, found.flags())
	}
}

func (w *walk) branch(found page, within bounds, depth int, visit func(page, bounds, int) error) error {
	count := int(binary.LittleEndian.Uint16(found.body[10:]))
	if count == 0 {
		return damaged("branch page %d is empty", found.id)
	}

	key, child, err := fork(found.body, 0)
	if err != nil {
		return err
	}

	for i := range count {
		if !within.admit(key) {
			return damaged("keys of page %d are out of order", found.id)
		}

		var (
			below     = bounds{least: key, limit: within.limit}
			next      []byte
			nextChild uint64
		)

		if i+1 < count {
			if next, nextChild, err = fork(found.body, i+1); err != nil {
				return err
			}

			if bytes.Compare(key, next) >= 0 {
				return damaged("keys of page %d are out of order", found.id)
			}

			below.limit = next
		}

		if err := w.tree(child, below, depth+1, visit); err != nil {
			return err
		}

		key, child = next, nextChild
	}

	return nil
}

// buckets walks all buckets; the root has nothing else.
func (w *walk) buckets(root uint64) error {
	err := w.tree(root, bounds{}, 0, func(found page, within bounds, depth int) error {
		if found.kind == leafNote {
			if s := decodedSummary(found.body); s.count > 0 {
				return damaged("%q is not a bucket", s.first)
			}

			return nil
		}

		return leaf(found.body, within, func(e entry) error {
			if !e.bucket {
				return damaged("%q is not a bucket", e.key)
			}

			return w.bucket(e, depth+1)
		})
	})
	if err != nil {
		return err
	}

	if !w.keys {
		return damaged("the bucket of etcd keys is missing")
	}

	return nil
}

// bucket goes through the entries of one. A small one is a page inside its entry.
func (w *walk) bucket(e entry, depth int) error {
	w.keys = w.keys || bytes.Equal(e.key, keyBucket)
	w.found.Hash = crc32.Update(w.found.Hash, castagnoli, e.key)

	if len(e.value) < bucketSize {
		return damaged("the bucket %q has no root page", e.key)
	}

	if root := binary.LittleEndian.Uint64(e.value); root != 0 {
		return w.tree(root, bounds{}, depth, func(found page, within bounds, _ int) error {
			if found.kind != leafNote {
				return damaged("page %d of the bucket %q contains buckets", found.id, e.key)
			}

			return w.follow(e.key, decodedSummary(found.body), within)
		})
	}

	inline := e.value[bucketSize:]
	if len(inline) < headerSize || binary.LittleEndian.Uint16(inline[8:]) != leafPage {
		return damaged("the bucket %q has no leaf page", e.key)
	}

	s, err := summarized(inline, w.objects)
	if err != nil {
		return err
	}

	if s == nil {
		return damaged("the bucket %q contains buckets", e.key)
	}

	return w.follow(e.key, *s, bounds{})
}

// follow takes a leaf of a bucket into account.
func (w *walk) follow(bucket []byte, s summary, within bounds) error {
	if s.count == 0 {
		return nil
	}

	if !within.admit(s.first) || !within.admit(s.last) {
		return damaged("keys of the bucket %q are out of order", bucket)
	}

	// Most leaves are of one length.
	if w.length != s.bytes {
		w.length, w.shift = s.bytes, shift(s.bytes)
	}

	w.found.Hash = joined(w.found.Hash, s.sum, w.shift)

	switch {
	case bytes.Equal(bucket, keyBucket) && !s.revisions:
		return damaged("a key between %x and %x is not an etcd revision", s.first, s.last)
	case bytes.Equal(bucket, keyBucket):
		w.found.Revision = int64(binary.BigEndian.Uint64(s.last))

		if w.objects != nil {
			w.objects.follow(s.objects)
		}
	case bytes.Equal(bucket, metaBucket) && s.version != nil:
		w.found.Version = string(s.version)
	}

	return nil
}

// rest checks that all other pages are free, where the database says which are.
func (w *walk) rest(freelist uint64) error {
	if freelist == noFreelist {
		return nil
	}

	found, err := w.page(freelist, 0)
	if err != nil {
		return err
	}

	if found.kind != wholeNote || found.flags() != freelistPage {
		return damaged("page %d is not a freelist", freelist)
	}

	ids, count := found.body[headerSize:], uint64(binary.LittleEndian.Uint16(found.body[10:]))
	if count == manyFree {
		ids, count = ids[8:], binary.LittleEndian.Uint64(ids)
	}

	if count > uint64(len(ids)/8) {
		return damaged("the freelist has %d entries, more than its page holds", count)
	}

	for i := range count {
		if err := w.take(binary.LittleEndian.Uint64(ids[8*i:])); err != nil {
			return err
		}
	}

	for id := uint64(2); id < w.high; id++ {
		if !w.used(id) {
			return damaged("page %d is neither used nor free", id)
		}
	}

	return nil
}
