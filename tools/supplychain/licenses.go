package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// allowed are the licenses that go with MPL-2.0, each by words that only its text has.
var allowed = []struct{ name, words string }{
	{"MPL-2.0", "mozilla public license version 2.0"},
	{"Apache-2.0", "apache license version 2.0"},
	{"MIT", "permission is hereby granted free of charge to any person obtaining a copy"},
	{"BSD", "redistribution and use in source and binary forms with or without modification are permitted"},
	{"ISC", "permission to use copy modify and or distribute this software for any purpose with or without fee"},
	{"ISC", "permission to use copy modify and distribute this software for any purpose with or without fee"},
	{"Unlicense", "this is free and unencumbered software released into the public domain"},
}

// refused are words of licenses that ask more of a distributor of the provider, even beside an allowed license.
// The text of MPL-2.0 names those of GNU as possible further licenses.
var refused = []string{
	"gnu general public license", "gnu lesser general public license", "gnu library general public license",
	"gnu affero general public license", "business source license", "server side public license", "commons clause",
	"elastic license", "noncommercial", "all rights reserved no part",
}

func allowedNames() []string {
	var names []string
	for _, license := range allowed {
		names = append(names, license.name)
	}

	return slices.Compact(names)
}

// classify returns the license of a text.
func classify(text string) (string, error) {
	words := plainWords(text)
	name := ""

	for _, license := range allowed {
		if strings.Contains(words, license.words) {
			name = license.name
			break
		}
	}

	for _, other := range refused {
		if strings.Contains(words, other) && (name != "MPL-2.0" || !strings.HasPrefix(other, "gnu")) {
			return "", fmt.Errorf("it says %q", other)
		}
	}

	if name == "" {
		return "", errors.New("it is none that is known here")
	}

	return name, nil
}

// plainWords is a text in lower case, with one blank between words and nothing else.
func plainWords(text string) string {
	kept := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}

		return ' '
	}

	words := strings.Fields(strings.Map(kept, strings.ToLower(text)))

	return strings.Join(words, " ")
}
