// Command terraform-provider-talosop is the Terraform and OpenTofu provider for Talos Linux clusters. The CLI starts it; with -debug it
// waits for a debugger and prints the TF_REATTACH_PROVIDERS line to start the CLI with.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/talosop/terraform-provider-talosop/internal/provider"
)

// version is set by the release build through -ldflags.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "serve for a debugger instead of a CLI")
	flag.Parse()

	err := providerserver.Serve(context.Background(), provider.New(version), providerserver.ServeOpts{
		Address: "registry.terraform.io/talosop/talosop",
		Debug:   *debug,
	})
	if err != nil {
		log.Fatal(err)
	}
}
