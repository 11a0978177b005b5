// Package migration is the command `migrate` of the provider's program: it reads the files of another tool, and writes
// Terraform configuration that imports its cluster.
//
// What it writes is what an import of the machines puts into state, because the same code makes both. So the plan has
// imports and no changes, if the machines have the configuration that the files describe. It contacts no machine.
package migration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/migrate"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines"
)

const usage = `Usage: %s migrate talhelper|topf [options]

Reads the files of another tool, and writes Terraform configuration that imports its cluster. It contacts no machine.

`

// Run runs the command with the arguments after its name, and returns the exit code of the program.
func Run(ctx context.Context, program string, args []string, out, problems io.Writer) int {
	err := run(ctx, program, args, out, problems)

	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	default:
		_, _ = fmt.Fprintf(problems, "migrate: %s\n", err) // the exit code says it, too

		return 1
	}
}

var errUsage = errors.New("wrong arguments")

func run(ctx context.Context, program string, args []string, out, problems io.Writer) error {
	options := migrate.Options{Lookup: os.LookupEnv}

	flags := flag.NewFlagSet("migrate", flag.ContinueOnError)
	flags.SetOutput(problems)
	flags.StringVar(&options.Folder, "dir", ".", "folder with the files of the tool")
	flags.StringVar(&options.Secrets, "secrets", "", "decrypted file with the secrets of the cluster (default: the usual "+
		"name of the tool in -dir)")
	flags.StringVar(&options.Configurations, "configs", "", "folder with machine configurations that the tool wrote, to "+
		"use in place of the patches in -dir")
	flags.StringVar(&options.TalosVersion, "talos-version", "", "Talos version of the machines, where the files name none")
	target := flags.String("out", "talosop", "folder for the Terraform configuration; existing files are kept")

	flags.Usage = func() {
		_, _ = fmt.Fprintf(problems, usage, program)
		flags.PrintDefaults()
	}

	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		flags.Usage()

		return errUsage
	}

	read := migrate.Readers[args[0]]

	switch err := flags.Parse(args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return errUsage
	case read == nil || flags.NArg() > 0:
		flags.Usage()

		return errUsage
	}

	found, err := read(options)
	if err != nil {
		return err
	}

	written, err := configuration(ctx, args[0], &found)
	if err != nil {
		return err
	}

	if err := place(*target, written); err != nil {
		return err
	}

	return report(out, *target, written, found.Omitted)
}

// poolOfWorkers is the pool of all workers: the tools have none.
const poolOfWorkers = "workers"

// configuration is the files to write.
func configuration(ctx context.Context, tool string, c *migrate.Cluster) ([]file, error) {
	planes, workers := map[string]clusterimport.Recognized{}, map[string]clusterimport.Recognized{}

	for _, m := range c.Machines {
		into, role := workers, step.Worker
		if m.ControlPlane {
			into, role = planes, step.ControlPlane
		}

		into[m.Name] = clusterimport.Recognized{Address: m.Address, Config: m.Config,
			State: step.MachineState{Role: role, TalosVersion: m.TalosVersion}}
	}

	pools := map[string]map[string]clusterimport.Recognized{}
	if len(workers) > 0 {
		pools[poolOfWorkers] = workers
	}

	secrets, err := c.Bundle.YAML()
	if err != nil {
		return nil, err
	}

	described, diags := machines.Describe(ctx, c.Name, string(secrets), planes, pools)
	if diags.HasError() {
		return nil, problemsOf(diags)
	}

	for name, places := range described.Differs {
		for _, at := range places {
			c.Omitted = append(c.Omitted, migrate.Omission{Field: name + ": " + at.String(),
				Reason: "no patch makes this value; the plan shows the difference"})
		}
	}

	slices.SortFunc(c.Omitted, func(a, b migrate.Omission) int { return strings.Compare(a.Field, b.Field) })

	return files(ctx, tool, *c, string(secrets), described)
}

func problemsOf(diags diag.Diagnostics) error {
	var all []error
	for _, d := range diags.Errors() {
		all = append(all, errors.New(d.Summary()+": "+d.Detail()))
	}

	return errors.Join(all...)
}

// report says what was written, and lists what was not.
func report(out io.Writer, target string, written []file, omitted []migrate.Omission) error {
	var text strings.Builder

	fmt.Fprintf(&text, "Wrote to %s:\n", target)

	for _, f := range written {
		fmt.Fprintf(&text, "  %s%s\n", f.name, map[bool]string{true: " (secret: keep it out of version control)"}[f.secret])
	}

	if len(omitted) > 0 {
		text.WriteString("\nNot translated:\n")
	}

	for _, o := range omitted {
		fmt.Fprintf(&text, "  %s: %s\n", o.Field, o.Reason)
	}

	fmt.Fprintf(&text, "\nNext, in %s: run `terraform init` and `terraform plan`. Apply the plan when it says `1 to "+
		"import, 0 to add, 0 to change`.\n", target)

	_, err := io.WriteString(out, text.String())

	return err
}
