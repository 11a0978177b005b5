package machineconfig

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// ownQuotes are the places where Talos 1.14.1 and builds with its YAML library (v4.0.0-rc.6) write other quotes: around
// words and numbers that other readers of YAML take for booleans, times or merges.
var ownQuotes = regexp.MustCompile(`"([A-Za-z]{1,3}|1:20|<<)"`)

// TestDigest_ofFormerBuilds reads the recorded configurations as these wrote them: machines and states have those, and
// a plan must find no difference.
func TestDigest_ofFormerBuilds(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}

	changed := 0

	for _, file := range files {
		recorded, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		former := ownQuotes.ReplaceAll(recorded, []byte(`'$1'`))
		if !bytes.Equal(former, recorded) {
			changed++
		}

		now, err := Digest(recorded)
		if err != nil {
			t.Fatal(err)
		}

		then, err := Digest(former)
		if err != nil {
			t.Fatal(err)
		}

		if now != then {
			t.Errorf("%s: digest %s, with the former quotes %s", file, now, then)
		}

		changes, err := Diff(former, recorded)
		if err != nil {
			t.Fatal(err)
		}

		for _, change := range changes {
			t.Errorf("%s: %s", file, change)
		}
	}

	if changed < 10 {
		t.Errorf("only %d files have quotes that changed", changed)
	}
}
