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

// forPeople is what the name of the file with the lines for people ends with, beside the one for programs.
const forPeople = ".txt"

// Line is one line of the file for programs.
type Line struct {
	Time    time.Time `json:"time"`
	Cluster string    `json:"cluster"`
	// Resource is what the run is for, such as "cluster prod" or "worker pool general".
	Resource string               `json:"resource"`
	Machine  string               `json:"machine,omitempty"`
	Step     string               `json:"step,omitempty"`
	State    lifecycle.EventState `json:"state"`
	Reason   string               `json:"reason,omitempty"`
	// Elapsed is how many seconds a step took that ended.
	Elapsed float64 `json:"elapsed,omitempty"`
}

// String is the line as people read it.
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

// File is a file to follow and the one for people beside it. Lines of several processes and of several runs of one
// follow each other in it: each is one write at its end. Safe for concurrent use.
type File struct {
	path string
	mu   sync.Mutex
}

// CheckFile reports why a file of this path could not be written to; it creates nothing.
func CheckFile(path string) error {
	switch folder, err := os.Stat(filepath.Dir(path)); {
	case err != nil:
		return err
	case !folder.IsDir():
		return fmt.Errorf("%s is no folder", filepath.Dir(path))
	}

	return errors.Join(safefile.CheckAppend(path), safefile.CheckAppend(path+forPeople))
}

// add writes a line to both files, for their owner alone: reasons may name what only the owner should know.
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
