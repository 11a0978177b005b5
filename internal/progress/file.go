package progress

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/safefile"
)

// The suffixes of the text file and of the page beside the JSON file.
const (
	forPeople = ".txt"
	asPage    = ".html"
)

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
	// Elapsed is the duration of a finished step, and Usual of a started one what such steps usually take, in seconds.
	Elapsed float64 `json:"elapsed,omitempty"`
	Usual   float64 `json:"usual,omitempty"`
}

// String is the line of the text file. It names the machine once.
func (l Line) String() string {
	var text strings.Builder

	fmt.Fprintf(&text, "%s %s", l.Time.Local().Format("15:04:05"), l.Cluster)

	if l.Machine != "" && !names(l.Step+" "+l.Reason, l.Machine) {
		text.WriteString(": " + l.Machine)
	}

	if l.Step != "" {
		text.WriteString(": " + l.Step)
	}

	if l.State != lifecycle.Note {
		text.WriteString(": " + string(l.State))
	}

	if l.Elapsed > 0 {
		text.WriteString(" after " + rounded(l.Elapsed))
	}

	if l.Usual > 0 {
		text.WriteString(", usually takes " + rounded(l.Usual))
	}

	if l.Reason != "" {
		text.WriteString(": " + strings.Join(strings.Fields(l.Reason), " "))
	}

	return text.String()
}

// names reports whether a text has a name, and not only as a part of another one. A name may have several words.
func names(text, name string) bool {
	const between = `[ :,();]`

	return regexp.MustCompile(`(^|` + between + `)` + regexp.QuoteMeta(name) + `($|` + between + `)`).MatchString(text)
}

// rounded is a number of seconds for people.
func rounded(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

// File is a JSON file and the text file beside it. Several processes, and several runs of one process, can append to
// it: each line is one write. Safe for concurrent use.
type File struct {
	path    string
	mu      sync.Mutex
	history history
}

// CheckFile reports why a file at this path cannot be written. It creates nothing.
func CheckFile(path string) error {
	switch folder, err := os.Stat(filepath.Dir(path)); {
	case err != nil:
		return err
	case !folder.IsDir():
		return fmt.Errorf("%s is not a directory", filepath.Dir(path))
	}

	return errors.Join(safefile.CheckAppend(path), safefile.CheckAppend(path+forPeople),
		safefile.CheckAppend(path+asPage))
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
