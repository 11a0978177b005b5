package pki

import "testing"

// BenchmarkParse is what a run pays each time it reads its bundle, after the first.
func BenchmarkParse(b *testing.B) {
	data := testFile(b)

	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}
