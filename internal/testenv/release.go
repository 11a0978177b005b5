// Package testenv says which tests run on every change (make test), and which only before a release (make
// test-all).
//
// Every behavior has a test that runs on every change, in the lowest layer that can show it. What runs only before
// a release is what that test leaves out: the other CLI, every call of a matrix where a change takes samples, a
// long walk through several behaviors that each have a shorter test.
package testenv

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/environ"
)

// setting is the variable with which nothing is left out.
const setting = "TALOSOP_TEST_EVERY_CALL"

// Everything reports whether this run leaves nothing out, as make test-all asks for.
func Everything() bool { return on(setting) }

// AssetsRequired reports whether a test fails, instead of skipping, that finds a program missing (make test).
func AssetsRequired() bool { return on("TALOSOP_REQUIRE_ASSETS") }

// UpdateGolden reports whether tests write the files that they compare with.
func UpdateGolden() bool { return on("UPDATE_GOLDEN") }

// on is whether a variable switches something on; another value ends the test, which would check less than was asked.
func on(variable string) bool {
	on, err := environ.Switch(variable)
	if err != nil {
		panic(err)
	}

	return on
}

// BeforeRelease skips a test unless everything runs. heldBy are the tests that run on every change and fail when what
// this one is about breaks; TestBeforeRelease_isHeldElsewhere looks for them.
func BeforeRelease(tb testing.TB, heldBy ...string) {
	tb.Helper()

	if !Everything() {
		tb.Skipf("runs before a release (%s, make test-all); on every change: %s", setting, strings.Join(heldBy, ", "))
	}
}
