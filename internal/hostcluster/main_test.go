package hostcluster_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

func TestMain(m *testing.M) { kubetest.Run(m) }
