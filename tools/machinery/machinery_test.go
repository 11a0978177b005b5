package machinery

import (
	"os"
	"strings"
	"testing"
)

func TestReleases_newestIsPinned(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil || !strings.Contains(string(mod), module+" "+pinned+"\n") {
		t.Errorf("go.mod requires another release than %s: %v", pinned, err)
	}
}
