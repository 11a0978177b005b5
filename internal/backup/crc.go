package backup

import (
	"hash/crc32"
	"math/bits"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// top is the polynomial 1: CRC-32C has its bits the other way round.
const top = 1 << 31

// squares are x to the power of 1, 2, 4, 8... modulo the polynomial of CRC-32C.
var squares = func() (powers [64]uint32) {
	powers[0] = top >> 1
	for i := 1; i < len(powers); i++ {
		powers[i] = times(powers[i-1], powers[i-1])
	}

	return powers
}()

// times multiplies modulo the polynomial of CRC-32C.
func times(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a&top != 0 {
			product ^= b
		}

		b = b>>1 ^ crc32.Castagnoli&-(b&1)
	}

	return product
}

// shift is what moves a sum over so many bytes: x to the power of their bits.
func shift(length uint64) uint32 {
	power := uint32(top)
	for bit := length * 8; bit != 0; bit &= bit - 1 {
		power = times(squares[bits.TrailingZeros64(bit)], power)
	}

	return power
}

// joined is the CRC-32C of two pieces of bytes after another, by the sums of both and the
// shift over the second (zlib, crc32_combine).
func joined(first, second, shift uint32) uint32 { return times(shift, first) ^ second }
