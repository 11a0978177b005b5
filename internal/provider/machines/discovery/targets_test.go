package discovery

import (
	"slices"
	"strings"
	"testing"
)

func TestTargets_ofNetworks(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		addresses, networks []string
		want                []string
		refused             string
	}{
		"named first, each once": {
			addresses: []string{"10.0.0.2", "cp-1.example.org"}, networks: []string{"10.0.0.0/29"},
			want: []string{"10.0.0.2!", "cp-1.example.org!", "10.0.0.1", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"},
		},
		"in order, whatever is before the mask": {
			networks: []string{"10.0.1.9/30", "10.0.0.1/31"}, want: []string{"10.0.0.0", "10.0.0.1", "10.0.1.9", "10.0.1.10"},
		},
		"one address":           {networks: []string{"10.0.0.7/32"}, want: []string{"10.0.0.7"}},
		"version 6":             {networks: []string{"fd00::/126"}, want: []string{"fd00::", "fd00::1", "fd00::2", "fd00::3"}},
		"the last of all":       {networks: []string{"255.255.255.254/31"}, want: []string{"255.255.255.254", "255.255.255.255"}},
		"as many as allowed":    {networks: []string{"10.0.0.0/28"}, want: strings.Fields(fourteen)},
		"one more":              {networks: []string{"10.0.0.0/28", "10.0.1.0/32"}, refused: "Found 15 addresses"},
		"more than are counted": {networks: []string{"::/0"}, refused: "Found 340282366920938463463374607431768211456 addresses"},
		"no network":            {networks: []string{"10.0.0.0"}, refused: "CIDR notation"},
		"no address":            {addresses: []string{"https://10.0.0.1"}, refused: "leave out the scheme"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			targets, diags := targetsOf(test.addresses, test.networks, 14)

			var details, got []string
			for _, d := range diags {
				details = append(details, d.Detail())
			}

			if text := strings.Join(details, "\n"); !strings.Contains(text, test.refused) || (text == "") != (test.refused == "") {
				t.Fatalf("it says %q", text)
			}

			for _, one := range targets {
				if one.named {
					one.address += "!"
				}

				got = append(got, one.address)
			}

			if test.refused == "" && !slices.Equal(got, test.want) {
				t.Errorf("the targets are %v, want %v", got, test.want)
			}
		})
	}
}

const fourteen = "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6 10.0.0.7 10.0.0.8 10.0.0.9 10.0.0.10 10.0.0.11 " +
	"10.0.0.12 10.0.0.13 10.0.0.14"
