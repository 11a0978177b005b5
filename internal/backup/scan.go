package backup

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// scan is an io.Writer that follows a database page by page as it arrives. It writes what the final check needs to
// a file of notes, some percent of the database. So the check needs no copy of the database, and memory grows only
// by 8 bytes for each page. bbolt's own Tx.Check trusts what it follows: a damaged page ends the process from a
// goroutine of bbolt's, where no caller can recover.
//
// Only at the end is it known whether a page is in use, and free pages still have their old content. So scan notes
// each page that claims to be one, and may be wrong without harm.
type scan struct {
	file   *scratch
	notes  *bufio.Writer
	end    int64   // of the notes
	index  []int64 // where the note of a page ends; 0 for none
	length int64   // of what was written
	size   int     // of a page in bytes; 0 is not known yet
	metas  [2]meta

	body    []byte // of the note that is written, kept for its memory
	partial []byte // of a page that is not complete yet
	spans   []span // pages whose overflow is not complete yet
	held    int    // bytes that spans will have

	objects *objects // nil if they are not counted

	bad    error // about the first pages: nothing can be read
	failed error // about the notes
}

// span is a page with its overflow pages.
type span struct {
	id     uint64
	data   []byte
	length int
}

func newScan(folder string) (*scan, error) {
	file, err := unnamed(folder)
	if err != nil {
		return nil, err
	}

	return &scan{file: file, notes: bufio.NewWriterSize(file, 64<<10)}, nil
}

// Close removes the notes.
func (s *scan) Close() error { return s.file.Close() }

// Write follows the database. It fails when the notes cannot be written, and not for what is
// wrong with the database: a stream that is not whole is no damaged database.
func (s *scan) Write(p []byte) (int, error) {
	n := len(p)
	s.length += int64(n)

	for len(p) > 0 && s.bad == nil && s.failed == nil {
		if s.size > 0 && len(s.partial) == 0 && len(p) >= s.size {
			s.page(p[:s.size])
			p = p[s.size:]

			continue
		}

		want := max(s.size, headerSize+metaSize)
		missing := min(want-len(s.partial), len(p))
		s.partial = append(s.partial, p[:missing]...)
		p = p[missing:]

		switch {
		case len(s.partial) < want:
		case s.size == 0:
			first, err := parseMeta(0, s.partial)
			s.size, s.bad = int(first.size), err
		default:
			s.page(s.partial)
			s.partial = s.partial[:0]
		}
	}

	return n, s.failed
}

// page adds the next page.
func (s *scan) page(data []byte) {
	id := uint64(len(s.index))
	s.index = append(s.index, 0)

	if id < 2 {
		s.metas[id], s.bad = parseMeta(id, data)
		return
	}

	s.overflow(data)

	// The sum at the end is no page, and a page that is none may be what another overflows into.
	if binary.LittleEndian.Uint64(data) != id {
		return
	}

	switch length := (int(binary.LittleEndian.Uint32(data[12:])) + 1) * s.size; {
	case length == s.size:
		s.note(id, data)
	case s.held+length <= maxSpan:
		s.held += length
		s.spans = append(s.spans, span{id: id, data: bytes.Clone(data), length: length})
	}
}

// overflow assigns a page to the earlier ones that overflow into it.
func (s *scan) overflow(data []byte) {
	waiting := s.spans[:0]

	for _, span := range s.spans {
		span.data = append(span.data, data...)

		if len(span.data) < span.length {
			waiting = append(waiting, span)
			continue
		}

		s.held -= span.length
		s.note(span.id, span.data)
	}

	clear(s.spans[len(waiting):])
	s.spans = waiting
}

// Kinds of notes.
const (
	wholeNote   = 'w' // the page as it is
	leafNote    = 'l' // what matters of a leaf without buckets
	damagedNote = 'd' // why the page is none
	noteHead    = 9   // kind, bytes of the page, bytes that follow
	// mostNotes limits the bytes of notes for one byte of the database. A used page is noted once, with its first
	// and last key beside each other, and a free one may still claim to overflow.
	mostNotes = 4
)

// note writes down a page.
func (s *scan) note(id uint64, data []byte) {
	kind, body := noted(data, s.body[:0], s.objects)
	if kind == leafNote {
		s.body = body
	}

	var head [noteHead]byte

	head[0] = kind
	binary.LittleEndian.PutUint32(head[1:], uint32(len(data)))
	binary.LittleEndian.PutUint32(head[5:], uint32(len(body)))

	for _, piece := range [][]byte{head[:], body} {
		if _, err := s.notes.Write(piece); err != nil && s.failed == nil {
			s.failed = fmt.Errorf("write the page index of the database: %w", err)
		}
	}

	s.index[id] = s.end + 1

	// Pages that say to overflow into each other would fill the disk.
	if s.end += int64(noteHead + len(body)); s.end > mostNotes*(s.length+maxSpan) && s.bad == nil {
		s.bad = damaged("overflow pages overlap")
	}
}

// noted is the note of a page; a summary goes to the buffer.
func noted(data, buffer []byte, o *objects) (kind byte, body []byte) {
	switch flags := binary.LittleEndian.Uint16(data[8:]); flags {
	case branchPage, freelistPage:
		return wholeNote, data
	case leafPage:
		summary, err := summarized(data, o)
		if err != nil {
			return damagedNote, []byte(err.Error())
		}

		if summary == nil {
			return wholeNote, data
		}

		return leafNote, summary.appended(buffer)
	default:
		return damagedNote, fmt.Appendf(nil, "unknown page type %#x", flags)
	}
}

// summary is what matters of a leaf page that has no buckets.
type summary struct {
	count       uint32
	sum         uint32 // CRC-32C over keys and values
	bytes       uint64 // of keys and values
	revisions   bool   // all keys are revisions of etcd
	first, last []byte
	version     []byte // the value of versionKey
	objects     []byte // as objects notes them
}

// summarized is nil for a page with buckets, whose entries matter. It is valid until the next call with these objects.
func summarized(data []byte, o *objects) (*summary, error) {
	var (
		s       = summary{revisions: true}
		buckets bool
	)

	if o != nil {
		o.entries = o.entries[:0]
	}

	err := leaf(data, bounds{}, func(e entry) error {
		if s.count == 0 {
			s.first = e.key
		}

		buckets = buckets || e.bucket
		s.last = e.key
		s.count++
		s.sum = crc32.Update(s.sum, castagnoli, e.both)
		s.bytes += uint64(len(e.both))
		s.revisions = s.revisions && isRevision(e.key)

		if bytes.Equal(e.key, versionKey) {
			s.version = e.value
		}

		if o != nil {
			o.note(e)
		}

		return nil
	})
	if err != nil || buckets {
		return nil, err
	}

	if o != nil {
		s.objects = o.entries
	}

	return &s, nil
}

func (s *summary) appended(data []byte) []byte {
	data = binary.LittleEndian.AppendUint32(data, s.count)
	data = binary.LittleEndian.AppendUint32(data, s.sum)
	data = binary.LittleEndian.AppendUint64(data, s.bytes)

	if s.revisions {
		data = append(data, 1)
	} else {
		data = append(data, 0)
	}

	for _, field := range [][]byte{s.first, s.last, s.version, s.objects} {
		data = binary.LittleEndian.AppendUint32(data, uint32(len(field)))
		data = append(data, field...)
	}

	return data
}

// decodedSummary decodes what this process encoded.
func decodedSummary(data []byte) summary {
	s := summary{
		count: binary.LittleEndian.Uint32(data), sum: binary.LittleEndian.Uint32(data[4:]),
		bytes:     binary.LittleEndian.Uint64(data[8:]),
		revisions: data[16] == 1,
	}
	data = data[17:]

	for _, field := range []*[]byte{&s.first, &s.last, &s.version, &s.objects} {
		length := binary.LittleEndian.Uint32(data)
		*field = data[4 : 4+length]
		data = data[4+length:]
	}

	return s
}

// database is what the database holds whose last byte was written, with or without the sum
// at the end of a snapshot. What is wrong with it is ErrDamaged.
func (s *scan) database(ctx context.Context) (Database, error) {
	if s.failed == nil {
		s.failed = s.notes.Flush()
	}

	switch {
	case s.failed != nil:
		return Database{}, s.failed
	case s.bad != nil:
		return Database{}, s.bad
	case len(s.index) < 2:
		return Database{}, damaged("truncated after %d bytes", s.length)
	case s.metas[0].size != s.metas[1].size:
		return Database{}, damaged("its meta pages have different page sizes, %d and %d", s.metas[0].size, s.metas[1].size)
	}

	// Both descriptions must be sound, because a snapshot has written both (bbolt 1.4,
	// Tx.WriteTo); the newer one counts.
	newer := s.metas[0]
	if s.metas[1].txid > newer.txid {
		newer = s.metas[1]
	}

	size := int64(newer.high) * int64(s.size)
	if surplus := s.length - size; surplus != 0 && surplus != sumSize {
		return Database{}, damaged("it has %d bytes, expected %d pages of %d", s.length, newer.high, s.size)
	}

	w := &walk{ctx: ctx, notes: s.file, index: s.index, size: s.size, high: newer.high,
		seen: make([]uint64, newer.high/64+1), shift: top, objects: s.objects}
	w.found.Size = size

	if err := w.buckets(newer.root); err != nil {
		return Database{}, err
	}

	return w.found, w.rest(newer.freelist)
}

var _ io.Writer = (*scan)(nil)
