package main

import (
	"os"
	"testing"
)

func TestTable_isCurrent(t *testing.T) {
	rows, err := table("../../internal")
	if err != nil {
		t.Fatal(err)
	}

	page, err := os.ReadFile("../../internal/README.md")
	if err != nil || string(page) != head+rows {
		t.Errorf("internal/README.md is not current, run make generate: %v", err)
	}
}
