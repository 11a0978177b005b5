package record

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
)

// States before schema version 1 recorded everything in the attribute observed, and drift as sentences. This file
// reads them. Remove it in the first release that no longer reads such states.

// formerMachine is an element of that attribute, where it differs from Machine.
type formerMachine struct {
	Machine

	Drift      []string                       `json:"drift"`
	Kubernetes map[kubenames.Component]string `json:"kubernetes"`
	RestoredAt string                         `json:"etcd_restored_at"`
}

// DecodeFormer reads the value of observed of a former state: a map of machines by name.
func DecodeFormer(observed []byte) (Machines, error) {
	var former map[string]formerMachine
	if err := json.Unmarshal(observed, &former); err != nil {
		return nil, fmt.Errorf("read observed machines: %w", err)
	}

	machines := Machines{}

	for name, f := range former {
		m := f.Machine
		m.Running = f.Kubernetes

		if f.RestoredAt != "" {
			at, err := time.Parse(time.RFC3339Nano, f.RestoredAt)
			if err != nil {
				return nil, fmt.Errorf("read etcd_restored_at of %s: %w", name, err)
			}

			m.RestoredAt = at
		}

		for _, sentence := range f.Drift {
			m.Drift = append(m.Drift, readSentence(sentence))
		}

		// The reason for replacing a pod was the last difference of the host cluster, and the pod then had no digest.
		if of := m.Drift.Of(HostDiffers); m.PodDigest == "" && len(of) > 0 {
			m.Drift = append(m.Drift.Without(HostDiffers), of...)
			m.Drift[len(m.Drift)-1].Kind = HostReplaces
		}

		machines[name] = m
	}

	return machines, nil
}

// formerSentences are the sentences without an argument, by kind.
var formerSentences = map[Kind]string{
	Wiped:           "it waits in maintenance mode, without a configuration",
	Unproven:        "it waits in maintenance mode, and nothing proves that it is the machine that joined",
	NoMember:        "it has no member in etcd",
	LeftEtcd:        "it left etcd, and its etcd does not run",
	NoNode:          "it has no node in Kubernetes",
	OwnedByAnother:  "another resource, or another state, has marked its node as its own",
	OthersWork:      "control planes of other resources work",
	NotOnHost:       "the host cluster has neither a pod nor volumes of it",
	HostVolumesLost: "host cluster: its volumes can never be used again, and its data is lost",
}

// formerBeginnings are the prefixes of sentences with an argument, by kind. None is a prefix of another.
var formerBeginnings = map[Kind]string{
	ConfigurationDiffers: "configuration: ",
	ImageDiffers:         "image of ",
	EtcdGoesBack:         "etcd was told to take its data back to version ",
	MetaDiffers:          "META: not what `clusters` of the provider has: ",
	HostDiffers:          "host cluster: ",
	HostStays:            "host cluster, left as it is: ",
	NotReady:             "not ready: ",
	EtcdNotHealthy:       "etcd is not healthy: ",
	MarkUnproven:         "the owner mark on its node is not authentic and does not count, it names ",
}

// readSentence reads a difference of a former state. A sentence that no plan reads stays a sentence.
func readSentence(text string) Difference {
	for kind, sentence := range formerSentences {
		if text == sentence {
			return Difference{Kind: kind}
		}
	}

	for kind, beginning := range formerBeginnings {
		if rest, begins := strings.CutPrefix(text, beginning); begins {
			return formerArguments(kind, rest)
		}
	}

	return Difference{Kind: Former, Found: text}
}

func formerArguments(kind Kind, rest string) Difference {
	d := Difference{Kind: kind}

	switch kind {
	case ConfigurationDiffers:
		if place, err := fieldpath.ParsePlace(rest); err == nil {
			d.Place = &place
		} else {
			d.Found = rest
		}
	case ImageDiffers:
		component, images, _ := strings.Cut(rest, ": ")
		d.Component = kubenames.Component(component)
		d.Found, d.Wanted, _ = strings.Cut(images, ", not ")
		d.Found = strings.TrimPrefix(d.Found, "that of Talos")
	case MetaDiffers:
		var keys metakey.Keys
		if err := keys.UnmarshalText([]byte(rest)); err != nil {
			return Difference{Kind: Former, Found: formerBeginnings[kind] + rest}
		}

		d.Keys = keys
	case EtcdGoesBack:
		d.Wanted = rest
	case MarkUnproven:
		d.Found = strings.Trim(rest, `"`)
	default:
		d.Found = rest
	}

	return d
}
