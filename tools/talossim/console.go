package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// commands are what a user can do to a machine while the simulator runs, as at its power button or its disk.
var commands = map[string]func(*sim.Machine){
	"off":  (*sim.Machine).PowerOff,
	"on":   (*sim.Machine).PowerOn,
	"wipe": func(m *sim.Machine) { m.Wipe(); m.PowerOn() },
}

// console executes the commands on its input until that ends. It skips comments (#). Input that is no command is
// answered with what is possible, and changes nothing.
func console(in io.Reader, simulator *sim.Simulator, p *printer) {
	lines := bufio.NewScanner(in)

	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" && line[0] != '#' {
			p.printf("%s: %s\n", line, execute(line, simulator))
		}
	}
}

// execute executes a command such as "off worker-2", and returns its result as text.
func execute(line string, simulator *sim.Simulator) string {
	name, machine, _ := strings.Cut(line, " ")

	command, known := commands[name]
	if !known {
		return "unknown command; commands are off, on and wipe, followed by the name of a machine"
	}

	m := simulator.Machine(strings.TrimSpace(machine))
	if m == nil {
		return fmt.Sprintf("machine %q does not exist", machine)
	}

	command(m)

	return "done"
}
