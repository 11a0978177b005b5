// Command terraform-provider-talosop is the Terraform and OpenTofu provider for Talos Linux clusters. The CLI starts
// it. With -debug it waits for a debugger and prints the TF_REATTACH_PROVIDERS line for the CLI. With -version it
// prints its version. With the argument migrate it reads the files of another tool, and writes Terraform configuration.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/debug"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/talosop/terraform-provider-talosop/internal/provider"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines/migration"
)

// version is set by the release build with -ldflags.
var version = "dev"

func main() {
	// No CLI starts a provider with arguments.
	if len(os.Args) > 1 && os.Args[1] == "migrate" {
		os.Exit(migration.Run(context.Background(), os.Args[0], os.Args[2:], os.Stdout, os.Stderr))
	}

	debugged := flag.Bool("debug", false, "serve for a debugger instead of a CLI; it logs when TF_LOG is set")
	asked := flag.Bool("version", false, "print the version and end")
	flag.Parse()

	if *asked {
		fmt.Println(version)

		return
	}

	// The CLIs store the standard error of a provider in their logs. Helm writes values there, which may be secret:
	// those of a table that conflicts with another value (Helm 3.21, chartutil.coalesceTablesFullKey). The provider
	// itself logs with tflog.
	log.SetOutput(io.Discard)

	if !provider.Logged(os.Environ()) {
		quiet()
	}

	// A plan of many machines allocates many values and keeps few. Half as many collections save an eighth of the time
	// and cost 40 MiB at 300 machines.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}

	requests := provider.NewRequests()

	var options []tf6server.ServeOpt
	if *debugged {
		options = append(options, tf6server.WithManagedDebug())
	} else {
		go endWithCLI(requests)
	}

	err := tf6server.Serve("registry.terraform.io/talosop/talosop", provider.NewServer(version, requests), options...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// grace is how long operations may continue after their CLI has ended, to release a lock or to remove a job.
const grace = 10 * time.Second

// endWithCLI ends the process after the CLI that started it. No state is written by then: the next plan finds what
// the operations did, as after a provider that was killed.
func endWithCLI(requests *provider.Requests) {
	requests.EndWithCLI(grace)
	os.Exit(1)
}

// quiet turns off the logs of the libraries. Unless a level is set, they log at TRACE (terraform-plugin-log 0.11,
// NewRootSDKLogger): a line for each step of each value, which the CLI reads and drops.
func quiet() {
	for _, logs := range []string{"TF_LOG_SDK", "TF_LOG_PROVIDER_TALOSOP"} {
		if err := os.Setenv(logs, "OFF"); err != nil {
			fmt.Fprintln(os.Stderr, err) // the logs stay on
		}
	}
}
