package hostcluster_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/addon/addontest"
)

func TestMain(m *testing.M) { addontest.Run(m) }
