package documents_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/documents"
)

// Six lines of aliases stand for ten million scalars.
func TestParse_aliasesThatMultiply(t *testing.T) {
	text := &strings.Builder{}
	text.WriteString("machine: {}\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")

	for n := 1; n < 7; n++ {
		fmt.Fprintf(text, "a%d: &a%d [%s]\n", n, n, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", n-1), 10), ", "))
	}

	var before, after runtime.MemStats

	runtime.ReadMemStats(&before)

	_, err := documents.Parse(text.String())

	runtime.ReadMemStats(&after)

	if taken := after.TotalAlloc - before.TotalAlloc; err == nil || taken > 64<<20 {
		t.Errorf("%d MiB of heap, %v", taken>>20, err)
	}
}
