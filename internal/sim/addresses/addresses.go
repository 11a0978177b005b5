// Package addresses claims the block of loopback addresses that a simulated site uses, and hands its addresses out.
package addresses

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"sync"
)

// Block is a /21 of loopback addresses that belongs to one site as long as it
// holds a listener on the block's last host address. Two processes that pick the same
// block therefore notice, and the second picks another.
type Block struct {
	Prefix netip.Prefix
	claim  net.Listener

	mu               sync.Mutex
	next             netip.Addr
	nextEndpointAddr netip.Addr
	used             map[netip.Addr]bool
}

const (
	// Machines get addresses from the start of the block; Kubernetes endpoints get
	// those whose last byte is in this range of the block's first /24.
	firstEndpoint = 100
	lastEndpoint  = 119
	// FirstHidden is from where on a last byte is no machine's: servers behind listeners, and the claim.
	FirstHidden   = 230
	claimAttempts = 200
)

// Claim reserves the wanted block, or any free one.
func Claim(ctx context.Context, wanted netip.Prefix, port int) (*Block, error) {
	if wanted.IsValid() {
		return claimBlock(ctx, wanted.Masked(), port)
	}

	var last error

	for range claimAttempts {
		// 127.0.x.y is left to other programs on the machine.
		first := netip.AddrFrom4([4]byte{127, byte(1 + rand.IntN(254)), byte(rand.IntN(32) * 8), 0})

		block, err := claimBlock(ctx, netip.PrefixFrom(first, 21), port)
		if err == nil {
			return block, nil
		}

		last = err
	}

	return nil, fmt.Errorf("no free block of loopback addresses after %d attempts: %w", claimAttempts, last)
}

func claimBlock(ctx context.Context, prefix netip.Prefix, port int) (*Block, error) {
	if !prefix.Addr().Is4() || !prefix.Addr().IsLoopback() || prefix.Bits() > 24 || prefix.Bits() < 16 {
		return nil, fmt.Errorf("network %s: want a loopback network between /16 and /24", prefix)
	}

	first := prefix.Addr().As4()
	first[3] = 254
	marker := netip.AddrFrom4(first)

	claim, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort(marker.String(), strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("claim network %s: %w", prefix, err)
	}

	first[3] = firstEndpoint

	return &Block{
		Prefix:           prefix,
		claim:            claim,
		next:             prefix.Addr(),
		nextEndpointAddr: netip.AddrFrom4(first),
		used:             map[netip.Addr]bool{},
	}, nil
}

// ErrExhausted is that the site has no address left.
var ErrExhausted = errors.New("no address left in the site's network")

// Take reserves the given machine address, or the next free one when addr is not set.
func (b *Block) Take(addr netip.Addr) (netip.Addr, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if addr.IsValid() {
		if !b.Prefix.Contains(addr) || Reserved(b.Prefix, addr) {
			return addr, fmt.Errorf("address %s is not a machine address of %s", addr, b.Prefix)
		}

		if b.used[addr] {
			return addr, fmt.Errorf("address %s is taken", addr)
		}

		b.used[addr] = true

		return addr, nil
	}

	// Those that were given back come last, so that an address has an owner for as long as possible.
	for range 1 << (32 - b.Prefix.Bits()) {
		b.next = b.next.Next()
		if !b.Prefix.Contains(b.next) {
			b.next = b.Prefix.Addr()
		}

		if !Reserved(b.Prefix, b.next) && !b.used[b.next] {
			b.used[b.next] = true

			return b.next, nil
		}
	}

	return addr, ErrExhausted
}

// Free makes a machine's address available again, for a request of just that one, or when there is no other.
func (b *Block) Free(addr netip.Addr) {
	b.mu.Lock()
	defer b.mu.Unlock()

	delete(b.used, addr)
}

// NextEndpoint is an address for a Kubernetes endpoint, another one with each call.
func (b *Block) NextEndpoint() (netip.Addr, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	addr := b.nextEndpointAddr
	if addr.As4()[3] > lastEndpoint {
		return addr, ErrExhausted
	}

	b.nextEndpointAddr = addr.Next()

	return addr, nil
}

// Reserved distinguishes endpoint, claim, network and broadcast addresses from machine addresses.
func Reserved(prefix netip.Prefix, addr netip.Addr) bool {
	a, first := addr.As4(), prefix.Addr().As4()

	switch {
	case a[3] == 0 || a[3] >= FirstHidden:
		return true
	default:
		return a[2] == first[2] && a[3] >= firstEndpoint && a[3] <= lastEndpoint
	}
}

// Release releases the block.
func (b *Block) Release() error { return b.claim.Close() }
