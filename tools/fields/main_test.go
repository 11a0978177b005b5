package main

import (
	"reflect"
	"testing"
)

func TestIntroduced_namesTheFirstVersion(t *testing.T) {
	got := introduced([]int{10, 11, 12}, [][]string{
		{"A", "A a", "A m", "A m.*.k"},
		{"A", "A a", "A b", "A b.c", "B", "B a", "A m", "A m.*.k"},
		{"A", "A b", "A b.c", "A b.d", "B", "B a", "B b", "A m", "A m.*.k", "A m.*.l"},
	})

	want := []string{"10 A", "11 A b", "11 B", "12 A b.d", "12 A m.*.l", "12 B b"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
