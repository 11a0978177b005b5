package cluster_test

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// key identifies a state. What differs only in names of boots, members and runs is the same one.
func (w *world) key(seed maphash.Seed) uint64 {
	var h maphash.Hash

	h.SetSeed(seed)
	put := func(values ...any) {
		for _, v := range values {
			w.hash(&h, reflect.ValueOf(v))
		}
	}

	index := make(map[*box]int, len(w.boxes))
	for i, b := range w.boxes {
		index[b] = i
		w.hashBox(&h, b)
	}

	for _, m := range w.members {
		put("member", index[m.box], m.id == m.box.member, m.learner, m.peer == m.box.peer())
	}

	for _, n := range w.nodes {
		put("node", n.name, index[n.box], n.ours, n.foreign, n.soak, n.soak.Since.IsZero(), n.marked,
			n.keys.String())
	}

	put(w.etcd.cluster, w.etcd.target, w.manifests, w.madeFrom, w.proxy, w.watch.manifests, w.left, w.idle, w.end,
		slices.Sorted(maps.Keys(w.succeeded)), slices.Sorted(maps.Keys(w.unsoaked)), w.pulled, w.downAtFirst, w.settled,
		w.watch.apiUp, w.watch.apiSince, w.watch.owners == nil)

	for _, m := range w.watch.machines() {
		w.hashState(&h, m, w.watch.states[m.Name])
	}

	for _, r := range w.running {
		put("running", fmt.Sprintf("%#v", r.step), r.phase)

		for name, boot := range w.soaking.boots {
			if step.Soaks(r.step) && w.meant[name].boot != boot {
				put("rebooted", name)
			}
		}
	}

	for op, times := range w.vain {
		put(op.Machine, string(op.Component), times)
	}

	return h.Sum64()
}

// hashBox is a machine as it is.
func (w *world) hashBox(h *maphash.Hash, b *box) {
	hashTexts(h, string(b.life), string(b.next), b.addr, b.version, b.schematic, b.digest, b.staged, b.repair, b.dataOf, b.hop)
	hashFlags(h, b.foreign, b.impostor, b.wiped, b.controlPlane, b.needsReboot, b.sick, b.etcdBroken, b.stuck, b.data, b.left,
		b.asked, b.member != "" && w.memberOf(b) == nil, !b.restored.IsZero(), b.disrupted, b.inRun == w.judge.run)
	h.WriteByte(byte(b.timer))

	for _, c := range inOrder {
		p, shown := b.kube.runs[c], b.kube.shown[c]
		hashTexts(h, b.kube.images[c], b.kube.faulty[c], p.image, shown.Image)
		hashFlags(h, p.ready, shown.Ready)
		h.WriteByte(byte(p.timer))

		if w.want.Rotates {
			hashTexts(h, p.keys.String(), shown.Stamp)
		}
	}

	if w.want.Rotates {
		hashTexts(h, b.keys.String(), b.noted.String(), b.kube.keys.String(), string(b.signed), b.client)
	}

	if b.pod != nil {
		hashFlags(h, b.pod.outdated, b.pod.lost)
		hashTexts(h, fmt.Sprint(b.pod.bad), b.pod.ran)
	}
}

func hashTexts(h *maphash.Hash, values ...string) {
	for _, v := range values {
		h.WriteString(v)
		h.WriteByte(0)
	}
}

func hashFlags(h *maphash.Hash, values ...bool) {
	for _, v := range values {
		if v {
			h.WriteByte(1)
		} else {
			h.WriteByte(0)
		}
	}
}

// hashState is a machine as the run remembers it. Boots have no names there, only whether they are the same.
func (w *world) hashState(h *maphash.Hash, m cluster.Machine, s step.MachineState) {
	now := ""
	if b := w.meant[m.Name]; b != nil {
		now = b.bootID()
	}

	same := func(boot string) string {
		switch boot {
		case "", "nothing":
			return boot
		case now:
			return "this"
		case s.BootID:
			return "observed"
		default:
			return "another"
		}
	}

	from, upgraded, seen := same(s.RebootedFrom), same(s.Upgraded.BootID), s.BootID != "" && s.BootID == now
	s.RebootedFrom, s.Upgraded.BootID, s.BootID = from, upgraded, fmt.Sprint(seen)

	h.WriteString(m.Name)
	w.hash(h, reflect.ValueOf(s))
}

// hash adds a value. Times are ages of up to an hour.
func (w *world) hash(h *maphash.Hash, v reflect.Value) {
	number := func(n uint64) {
		var b [8]byte

		binary.LittleEndian.PutUint64(b[:], n)
		h.Write(b[:])
	}

	switch v.Kind() {
	case reflect.String:
		number(uint64(v.Len()))
		h.WriteString(v.String())
	case reflect.Bool:
		if v.Bool() {
			h.WriteByte(1)
		} else {
			h.WriteByte(0)
		}
	case reflect.Int, reflect.Int64:
		number(uint64(v.Int()))
	case reflect.Uint8, reflect.Uint64:
		number(v.Uint())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			h.WriteByte(0)
		} else {
			w.hash(h, v.Elem())
		}
	case reflect.Slice, reflect.Array:
		number(uint64(v.Len()))

		for i := range v.Len() {
			w.hash(h, v.Index(i))
		}
	case reflect.Map:
		w.hashMap(h, v)
	case reflect.Struct:
		if at, ok := reflect.TypeAssert[time.Time](v); ok {
			w.hash(h, reflect.ValueOf(!at.IsZero() && w.now.Sub(at) >= time.Hour))

			return
		}

		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				number(uint64(i) + 1)
				w.hash(h, f)
			}
		}

		number(0)
	default:
		panic("an exploration has no key for a " + v.Kind().String())
	}
}

// hashMap adds the entries of a map in any order.
func (w *world) hashMap(h *maphash.Hash, v reflect.Value) {
	var sum uint64

	for entries := v.MapRange(); entries.Next(); {
		var one maphash.Hash

		one.SetSeed(h.Seed())
		w.hash(&one, entries.Key())
		w.hash(&one, entries.Value())
		sum += one.Sum64()
	}

	w.hash(h, reflect.ValueOf(sum))
	w.hash(h, reflect.ValueOf(v.Len()))
}
