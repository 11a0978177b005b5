package upgrade

import (
	"context"
	"fmt"
	"path"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// The system extensions that objects need on nodes: handlers of RuntimeClasses, and CSI drivers. They are in the pages
// of the extensions (siderolabs/extensions, container-runtime) and of Longhorn (Talos Linux Support).
var (
	handlerExtensions = map[string][]string{
		"runsc": {"siderolabs/gvisor"}, "kata": {"siderolabs/kata-containers"}, "kata-qemu": {"siderolabs/kata-containers"},
	}
	driverExtensions = map[string][]string{"driver.longhorn.io": {"siderolabs/iscsi-tools", "siderolabs/util-linux-tools"}}
)

// MissingExtensions finds objects that need system extensions which an image does not have. The image has the official
// extensions of these names, such as siderolabs/gvisor.
func (u *Upgrade) MissingExtensions(ctx context.Context, official []string) ([]Problem, error) {
	has := map[string]bool{}
	for _, name := range official {
		has[path.Base(name)] = true
	}

	var problems []Problem

	lacks := func(object string, needs []string) {
		for _, name := range needs {
			if !has[path.Base(name)] {
				problems = append(problems, Problem{ExtensionCode, object, fmt.Sprintf("it needs the extension %s", name)})
			}
		}
	}

	classes, err := u.api.NodeV1().RuntimeClasses().List(ctx, metav1.ListOptions{})
	if err = served(err); err != nil {
		return nil, fmt.Errorf("list RuntimeClasses: %w", api.WithoutURL(err))
	}

	for _, c := range classes.Items {
		lacks("RuntimeClass "+c.Name, handlerExtensions[c.Handler])
	}

	drivers, err := u.api.StorageV1().CSIDrivers().List(ctx, metav1.ListOptions{})
	if err = served(err); err != nil {
		return problems, fmt.Errorf("list CSIDrivers: %w", api.WithoutURL(err))
	}

	for _, d := range drivers.Items {
		lacks("CSIDriver "+d.Name, driverExtensions[d.Name])
	}

	return slices.Compact(problems), nil
}
