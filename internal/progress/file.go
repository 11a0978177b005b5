package progress

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/safefile"
)

// forPeople is the suffix of the text file beside the JSON file.
const forPeople = ".txt"

// Line is one line of the JSON file.
type Line struct {
	Time    time.Time `json:"time"`
	Cluster string    `json:"cluster"`
	// Resource is the resource of the run, such as "cluster prod" or "worker pool general".
	Resource string               `json:"resource"`
	Machine  string               `json:"machine,omitempty"`
	Step     string               `json:"step,omitempty"`
	State    lifecycle.EventState `json:"state"`
	Reason   string               `json:"reason,omitempty"`
	// Elapsed is the duration of a finished step in seconds.
	Elapsed float64 `json:"elapsed,omitempty"`
}

// String is the line of the text file.
func (l Line) String() string {
	var text strings.Builder

	fmt.Fprintf(&text, "%s %s", l.Time.Local().Format("15:04:05"), l.Cluster)

	for _, part := range []string{l.Machine, l.Step} {
		if part != "" {
			text.WriteString(": " + part)
		}
	}

	if l.State != lifecycle.Note {
		text.WriteString(": " + string(l.State))
	}

	if l.Elapsed > 0 {
		text.WriteString(" after " + time.Duration(l.Elapsed*float64(time.Second)).Round(time.Second).String())
	}

	if l.Reason != "" {
		text.WriteString(": " + strings.Join(strings.Fields(l.Reason), " "))
	}

	return text.String()
}

// File is a JSON file and the text file beside it. Several processes, and several runs of one process, can append to
// it: each line is one write. Safe for concurrent use.
type File struct {
	path string
	mu   sync.Mutex
}

// CheckFile reports why a file at this path cannot be written. It creates nothing.
func CheckFile(path string) error {
	switch folder, err := os.Stat(filepath.Dir(path)); {
	case err != nil:
		return err
	case !folder.IsDir():
		return fmt.Errorf("%s is not a directory", filepath.Dir(path))
	}

	return errors.Join(safefile.CheckAppend(path), safefile.CheckAppend(path+forPeople))
}

// add writes a line to both files. Only the owner can read them, because reasons may contain private names.
func (f *File) add(line Line) error {
	encoded, err := json.Marshal(line)
	if err != nil {
		return err
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	return errors.Join(appendTo(f.path, string(encoded)), appendTo(f.path+forPeople, line.String()))
}

func appendTo(path, line string) error {
	file, err := safefile.Append(path)
	if err != nil {
		return err
	}

	_, err = file.WriteString(line + "\n")

	return errors.Join(err, file.Close())
}
