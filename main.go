// Command terraform-provider-talosop is the Terraform and OpenTofu provider for Talos Linux clusters. The CLI starts
// it; with -debug it waits for a debugger and prints the TF_REATTACH_PROVIDERS line to start the CLI with, and with
// -version it prints its version.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/debug"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/talosop/terraform-provider-talosop/internal/provider"
)

// version is set by the release build through -ldflags.
var version = "dev"

func main() {
	debugged := flag.Bool("debug", false, "serve for a debugger instead of a CLI; it logs when TF_LOG is set")
	asked := flag.Bool("version", false, "print the version and end")
	flag.Parse()

	if *asked {
		fmt.Println(version)

		return
	}

	// The CLIs store what a provider writes to its standard error in their logs. Helm writes values there, which may be
	// secret: those of a table that meets something else (Helm 3.21, chartutil.coalesceTablesFullKey). Our own log is
	// tflog's.
	log.SetOutput(io.Discard)

	if !provider.Logged(os.Environ()) {
		quiet()
	}

	// A plan of many machines makes many values and keeps few: with half as many collections it takes an eighth less time,
	// and 40 MiB more at 300 machines.
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

// grace is how long operations may go on after their CLI has ended, to release a lock or to remove a job.
const grace = 10 * time.Second

// endWithCLI ends the process after the CLI that started it. No state is written any more by then: what the operations
// did is found by the next plan, as after a provider that was killed.
func endWithCLI(requests *provider.Requests) {
	requests.EndWithCLI(grace)
	os.Exit(1)
}

// quiet ends the logs of the libraries, which write a line for each step of each value, down to the level trace, unless
// they are told another one (terraform-plugin-log 0.11, NewRootSDKLogger), and the CLI reads them all to drop them.
func quiet() {
	for _, logs := range []string{"TF_LOG_SDK", "TF_LOG_PROVIDER_TALOSOP"} {
		if err := os.Setenv(logs, "OFF"); err != nil {
			fmt.Fprintln(os.Stderr, err) // and they are written
		}
	}
}
