// Package support makes a support bundle of a cluster: one file with what a bug report needs, as talosctl support
// collects it, without secrets.
//
// Three measures keep secrets out. First, machines are asked with a role to which Talos shows no sensitive
// resource; the machine configuration is added, redacted as in plans. Second, resources that Talos does not mark
// as sensitive and that hold secrets lose their content when they are read. Third, every text loses the secrets of
// the cluster and of the configurations of its machines, in every form, and everything that looks like a key, a
// token or a password.
package support

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// Machine is the Talos API of one machine.
type Machine interface {
	// Configuration is the active configuration with all of its secrets.
	Configuration(ctx context.Context) ([]byte, error)
	// SupportFiles hands over one file after the other, side by side with those of other machines; missing says of each
	// file that could not be had why. The error is that the machine does not answer, or that file ended it.
	SupportFiles(ctx context.Context, file func(name string, content []byte) error) (missing map[string]error, err error)
}

// Request is the input for a bundle.
type Request struct {
	// Path of the file, and whether it may take the place of one that is there.
	Path      string
	Overwrite bool
	// Cluster by its name.
	Cluster string
	// Secrets of the cluster.
	Secrets []string
	// Machines by their names.
	Machines map[string]Machine
	// Kubernetes are files of the cluster itself.
	Kubernetes func(context.Context) (map[string][]byte, error)
	// Missing is what is known to be missing before anything is collected.
	Missing []Missing
	// Patience is how long one machine may take; 5 min by default.
	Patience time.Duration
	// Tell receives a line for each machine that is done.
	Tell func(line string)
}

// Missing is a part that a bundle lacks.
type Missing struct {
	// From is a machine or a part of the cluster, and What is its missing part; empty when all is missing.
	From, What string
	Cause      error
}

// String is a line for people.
func (m Missing) String() string {
	if m.What == "" {
		return fmt.Sprintf("%s: %s", m.From, cause(m.Cause))
	}

	return fmt.Sprintf("%s: %s: %s", m.From, m.What, cause(m.Cause))
}

func cause(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// ErrNothing is that nothing answered.
var ErrNothing = errors.New("nothing was collected, and no file was written")

// atOnce is how many machines are asked at a time.
const atOnce = 8

// Collect makes a bundle, and says what is missing in it. What does not answer stops nothing; an error is that there is
// no file.
func Collect(ctx context.Context, r Request) (missing []Missing, err error) {
	if err := Vacant(ctx, r.Path, r.Overwrite); err != nil {
		return nil, fmt.Errorf("write %s: %w", r.Path, err)
	}

	a, err := create(ctx, r.Path)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", r.Path, err)
	}

	defer func() { err = errors.Join(err, a.discard(ctx)) }()

	c := collection{Request: r, archive: a, missing: slices.Clone(r.Missing)}
	if err := c.run(ctx); err != nil {
		return nil, err
	}

	if err := a.commit(ctx, r.Path, r.Overwrite); err != nil {
		return nil, fmt.Errorf("write %s: %w", r.Path, err)
	}

	return c.missing, nil
}

// collection is a bundle that is being made.
type collection struct {
	Request

	archive *archive

	mu      sync.Mutex
	missing []Missing
}

func (c *collection) miss(m Missing) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.missing = append(c.missing, m)
}

// missAll replaces the missing parts of the same machine.
func (c *collection) missAll(m Missing) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.missing = append(slices.DeleteFunc(c.missing, func(one Missing) bool { return one.From == m.From }), m)
}

func (c *collection) run(ctx context.Context) error {
	// All secrets are known before the first text is written: one machine may show those of another.
	configurations, err := c.configurations(ctx)
	if err != nil {
		return err
	}

	for name, redacted := range configurations {
		if err := c.write(name, "machineconfig.yaml", name, []byte(redacted)); err != nil {
			return err
		}
	}

	if err := c.fromKubernetes(ctx); err != nil {
		return err
	}

	if err := c.fromMachines(ctx); err != nil {
		return err
	}

	slices.SortFunc(c.missing, func(a, b Missing) int {
		return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.What, b.What))
	})

	if len(c.archive.names) == 0 {
		return fmt.Errorf("%w: %s", ErrNothing, lines(c.missing, "; "))
	}

	return c.archive.write(".", "README.txt", []byte(c.about()))
}

// write adds a file to the bundle. One whose name it cannot have is missing in it.
func (c *collection) write(folder, name, from string, content []byte) error {
	err := c.archive.write(folder, name, content)
	if errors.Is(err, errName) {
		c.miss(Missing{from, strconv.Quote(name), err})

		return nil
	}

	return err
}

// each calls a function for every machine, some of them at a time and each within its time.
func (c *collection) each(ctx context.Context, call func(ctx context.Context, name string, m Machine) error) error {
	var calls errgroup.Group

	calls.SetLimit(atOnce)

	patience := cmp.Or(c.Patience, 5*time.Minute)

	for _, name := range slices.Sorted(maps.Keys(c.Machines)) {
		calls.Go(func() error {
			within, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("timed out after %s", patience))
			defer cancel()

			return panics.Do(func() error { return call(within, name, c.Machines[name]) })
		})
	}

	// What ended with the context of all is no fault of a machine.
	return errors.Join(calls.Wait(), context.Cause(ctx))
}

// configurations are the redacted configurations of the machines; from then on, their secrets are removed from
// texts.
func (c *collection) configurations(ctx context.Context) (map[string]string, error) {
	secrets, all := slices.Clone(c.Secrets), map[string]string{}

	err := c.each(ctx, func(ctx context.Context, name string, m Machine) error {
		configuration, err := m.Configuration(ctx)

		redacted := ""
		if err == nil {
			redacted, err = machineconfig.Redacted(configuration)
		}

		if err != nil {
			c.miss(Missing{name, "machineconfig.yaml", err})

			return nil
		}

		c.mu.Lock()
		defer c.mu.Unlock()

		all[name] = redacted
		secrets = append(secrets, secretsIn(configuration, redacted)...)

		return nil
	})

	c.archive.redactor = newRedactor(secrets)

	return all, err
}

func (c *collection) fromKubernetes(ctx context.Context) error {
	if c.Kubernetes == nil {
		return nil
	}

	files, err := c.Kubernetes(ctx)
	if err != nil {
		c.miss(Missing{From: "Kubernetes", Cause: err})
	}

	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := c.write("kubernetesResources", name, "Kubernetes", files[name]); err != nil {
			return err
		}
	}

	return context.Cause(ctx)
}

func (c *collection) fromMachines(ctx context.Context) error {
	return c.each(ctx, func(ctx context.Context, name string, m Machine) error {
		var unwritten error

		missing, err := m.SupportFiles(ctx, func(file string, content []byte) error {
			unwritten = c.write(name, file, name, content)

			return unwritten
		})

		for _, file := range slices.Sorted(maps.Keys(missing)) {
			c.miss(Missing{name, file, missing[file]})
		}

		switch {
		case unwritten != nil:
			return unwritten
		case err != nil:
			c.missAll(Missing{From: name, Cause: err})
			c.tell("missing: " + name)
		default:
			c.tell("collected: " + name)
		}

		return nil
	})
}

func (c *collection) tell(line string) {
	if c.Tell != nil {
		c.Tell(line)
	}
}

// about describes what the bundle contains, and what it lacks.
func (c *collection) about() string {
	out := fmt.Sprintf("Support bundle of cluster %q, created by talosop at %s.\n\n"+
		"Known secrets are replaced by %q. Logs can still contain secrets:\n"+
		"look at them before you share this file.\n\n", c.Cluster,
		c.archive.made.UTC().Format(time.RFC3339), hidden)

	if len(c.missing) == 0 {
		return out + "Nothing is missing.\n"
	}

	return out + "Missing:\n- " + lines(c.missing, "\n- ") + "\n"
}

func lines(missing []Missing, separator string) string {
	var out []string
	for _, m := range missing {
		out = append(out, m.String())
	}

	return strings.Join(out, separator)
}
