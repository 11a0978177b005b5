package netboot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Boot is the network boot of a machine.
type Boot struct {
	// Kernel is the URL of the kernel. For Secure Boot it is the whole signed image (UKI), which contains the
	// initramfs: Initramfs is empty then.
	Kernel, Initramfs string
	// Cmdline are the arguments of the kernel.
	Cmdline string
}

// IPXE is the script of iPXE, as the factory writes it (internal/frontend/http, standard.ipxe and secureboot.ipxe,
// v1.5.0).
func (b Boot) IPXE() string {
	script := "#!ipxe\n\nimgfree\nkernel " + b.Kernel + " " + b.Cmdline + "\n"
	if b.Initramfs != "" {
		script += "initrd " + b.Initramfs + "\n"
	}

	return script + "boot\n"
}

// netBoot, profile and group are as Matchbox reads them (matchbox/storage/storagepb, v0.11.0).
type netBoot struct {
	Kernel string   `json:"kernel"`
	Initrd []string `json:"initrd,omitempty"`
	Args   []string `json:"args"`
}

type profile struct {
	ID   string  `json:"id"`
	Name string  `json:"name"`
	Boot netBoot `json:"boot"`
}

type group struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Profile  string            `json:"profile"`
	Selector map[string]string `json:"selector"`
}

// Profile is the file profiles/<id>.json of Matchbox.
func (b Boot) Profile(id string) (string, error) {
	p := profile{ID: id, Name: "Talos on " + id, Boot: netBoot{Kernel: b.Kernel, Args: strings.Fields(b.Cmdline)}}
	if b.Initramfs != "" {
		p.Boot.Initrd = []string{b.Initramfs}
	}

	return encode(p)
}

// Group is the file groups/<id>.json of Matchbox: the machine with a MAC address boots the profile of the same id.
func Group(id, mac string) (string, error) {
	return encode(group{ID: id, Name: id, Profile: id, Selector: map[string]string{"mac": mac}})
}

// encode writes JSON without escapes for HTML: an argument of the kernel may have & and < in it.
func encode(value any) (string, error) {
	var text bytes.Buffer

	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")

	if err := encoder.Encode(value); err != nil {
		return "", fmt.Errorf("encode for Matchbox: %w", err)
	}

	return text.String(), nil
}

var macPattern = regexp.MustCompile(`^([0-9a-f]{2}(:[0-9a-f]{2}){5}|[0-9a-f]{2}(-[0-9a-f]{2}){5}|` +
	`[0-9a-f]{4}(\.[0-9a-f]{4}){2})$`)

// CanonicalMAC is a MAC address of 48 bits as Matchbox compares them, of any usual spelling.
func CanonicalMAC(text string) (string, error) {
	lower := strings.ToLower(text)
	if !macPattern.MatchString(lower) {
		return "", fmt.Errorf("%q is not a MAC address such as 52:54:00:12:34:56", text)
	}

	digits := strings.NewReplacer(":", "", "-", "", ".", "").Replace(lower)

	var pairs []string
	for i := 0; i < len(digits); i += 2 {
		pairs = append(pairs, digits[i:i+2])
	}

	return strings.Join(pairs, ":"), nil
}
