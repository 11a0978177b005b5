// Command terraform-provider-talosop is the Terraform and OpenTofu provider for Talos Linux clusters. The CLI starts
// it; with -debug it waits for a debugger and prints the TF_REATTACH_PROVIDERS line to start the CLI with.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/talosop/terraform-provider-talosop/internal/provider"
)

// version is set by the release build through -ldflags.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "serve for a debugger instead of a CLI")
	flag.Parse()

	// The CLIs store what a provider writes to its standard error in their logs. Helm writes values there, which may be
	// secret: those of a table that meets something else (Helm 3.21, chartutil.coalesceTablesFullKey). Our own log is
	// tflog's.
	log.SetOutput(io.Discard)

	err := providerserver.Serve(context.Background(), provider.New(version), providerserver.ServeOpts{
		Address: "registry.terraform.io/talosop/talosop",
		Debug:   *debug,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
