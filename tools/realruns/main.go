// Command realruns prints the page of the scenarios that ran on real Talos, from the runs that `make e2e` recorded.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/e2e"
)

const head = `---
page_title: "Runs on real Talos"
subcategory: "Reference"
description: |-
  Which acceptance scenarios passed on which versions of Talos, and when.
---

# Runs on real Talos

Every change runs its tests on simulated machines, with real CLIs, etcd and kube-apiserver. These scenarios ran on real
Talos as well. A scenario without a row for your version did not run on it.

- **metal** are machines with disks, **containers** are Talos without disks, and **pods** are machines on a host.
- **Talos** and **Kubernetes** are the versions that the cluster began with. Upgrades go on from there.
- **Passed** is the last day on which the scenario passed.

| scenario | machines | Talos | Kubernetes | passed | minutes |
|---|---|---|---|---|---|
`

func main() {
	log.SetFlags(0)

	runs, err := e2e.Runs()
	if err != nil {
		log.Fatal(err)
	}

	if err := write(os.Stdout, runs); err != nil {
		log.Fatal(err)
	}
}

func write(w io.Writer, runs []e2e.Run) error {
	var page strings.Builder

	page.WriteString(head)

	for _, r := range runs {
		fmt.Fprintf(&page, "| %s | %s | %s | %s | %s | %.0f |\n", r.Scenario, r.Machines, r.Talos, r.Kubernetes, r.Passed,
			float64(r.Seconds)/60)
	}

	_, err := io.WriteString(w, page.String())

	return err
}
