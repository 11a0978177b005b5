package migration

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/migrate"
)

// A name with a line break in the files of the other tool does not end the comment.
func TestHead_staysAComment(t *testing.T) {
	t.Parallel()

	text := head("topf", []migrate.Omission{{Field: "nodes.a\nresource \"x\" \"y\" {}\rb", Reason: "no\nsuch field"}})

	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "# ") || strings.Contains(line, "\r") {
			t.Errorf("%q is no comment", line)
		}
	}
}
