package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestClassify_knowsTexts(t *testing.T) {
	t.Parallel()

	own, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct{ text, want, problem string }{
		"ours":            {text: string(own), want: "MPL-2.0"},
		"in a comment":    {text: "/*\n * Permission is hereby granted, free of charge, to any person\n * obtaining a copy\n */", want: "MIT"},
		"two at once":     {text: "Apache License\n Version 2.0, January 2004 … Permission is hereby granted, free of charge,", want: "Apache-2.0"},
		"of GNU":          {text: "GNU GENERAL PUBLIC LICENSE\nVersion 3", problem: "gnu general public license"},
		"with conditions": {text: "“Commons Clause” License Condition v1.0\nApache License, Version 2.0", problem: "commons clause"},
		"unknown":         {text: "You may look at it.", problem: "none that is known"},
		"empty":           {problem: "none that is known"},
	} {
		got, err := classify(test.text)
		if got != test.want || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: %q, %v; want %q, %q", name, got, err, test.want, test.problem)
		}
	}
}

func TestLicenses_ofAModule(t *testing.T) {
	t.Parallel()

	const mit, gnu = "Permission is hereby granted, free of charge, to any person obtaining a copy", "GNU General Public License"

	for name, test := range map[string]struct {
		files   map[string]string
		want    string
		problem string
	}{
		"one":                     {files: map[string]string{"LICENSE": mit}, want: "MIT"},
		"of a folder in it":       {files: map[string]string{"LICENCE.md": mit, "a/COPYING": "Mozilla Public License Version 2.0"}, want: "MIT MPL-2.0"},
		"around a package":        {files: map[string]string{"LICENSE": mit, "a/LICENSE": gnu}, problem: "gnu general public license"},
		"of what is not linked":   {files: map[string]string{"LICENSE": mit, "other/LICENSE": gnu}, want: "MIT"},
		"of the documentation":    {files: map[string]string{"LICENSE": mit, "LICENSE.docs": "CC"}, want: "MIT"},
		"code with such a name":   {files: map[string]string{"LICENSE": mit, "license.go": "package x"}, want: "MIT"},
		"none at all":             {problem: "no file with a license"},
		"none but of what is not": {files: map[string]string{"other/LICENSE": mit}, problem: "no file with a license"},
	} {
		dir := t.TempDir()
		linked := filepath.Join(dir, "a", "b")

		if err := os.MkdirAll(linked, 0o700); err != nil {
			t.Fatal(err)
		}

		for file, text := range test.files {
			path := filepath.Join(dir, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}

			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}

		m := module{name: "x v1", dir: dir, folders: map[string]bool{linked: true}}

		got, err := m.licenses()
		if strings.Join(got, " ") != test.want && test.problem == "" || (err == nil) != (test.problem == "") ||
			err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: %q, %v; want %q, %q", name, got, err, test.want, test.problem)
		}
	}
}

// Another system would add modules that were not checked.
func TestReleased_asGoreleaserBuilds(t *testing.T) {
	t.Parallel()

	var config struct {
		Builds []struct {
			Goos []string `yaml:"goos"`
		} `yaml:"builds"`
	}

	read(t, ".goreleaser.yml", &config)

	if len(config.Builds) != 1 || strings.Join(config.Builds[0].Goos, " ") != strings.Join(released, " ") {
		t.Errorf("released are %v, looked at are %v", config.Builds, released)
	}
}
