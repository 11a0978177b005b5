package kubelet

import (
	_ "embed"
	"slices"
	"strings"
)

// flagNames are the flags of the kubelet of Kubernetes 1.36, which are those of 1.35 (cmd/kubelet/app/options).
//
//go:embed flags.txt
var flagNames string

// unknownFlag is an argument that the kubelet does not know; empty where there is none. The kubelet exits then, before
// it does anything (cmd/kubelet/app/server.go: failed to parse kubelet flag).
func unknownFlag(args []string) string {
	known := strings.Fields(flagNames)

	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !slices.Contains(known, name) {
			return name
		}
	}

	return ""
}
