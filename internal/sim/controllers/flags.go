package controllers

import (
	"fmt"
	"maps"
	"slices"
)

// flags are arguments of a configuration on a command line.
func flags(args map[string][]string) []string {
	var line []string

	for _, name := range slices.Sorted(maps.Keys(args)) {
		for _, value := range args[name] {
			line = append(line, fmt.Sprintf("--%s=%s", name, value))
		}
	}

	return line
}
