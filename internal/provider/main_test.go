package provider_test

import (
	"os"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/hosttest"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(provider.ParentRole); role != "" {
		provider.BeParentOrChild(role)

		return
	}

	hosttest.Run(m)
}
