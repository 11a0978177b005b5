package client

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/validation"
)

// freshness is how old the list of kinds may be when a kind is not in it: another addon may
// have brought it in the meantime.
const freshness = time.Second

// getter gives Helm and kubectl's libraries their clients. No file and no environment is read.
type getter struct {
	config    *rest.Config
	namespace string
	kinds     *kinds
	mapper    *restmapper.DeferredDiscoveryRESTMapper
}

func newGetter(config *rest.Config, namespace string) (*getter, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}

	asked := &asked{DiscoveryClient: client}
	k := &kinds{CachedDiscoveryInterface: memory.NewMemCacheClient(asked), asked: asked}

	return &getter{config: config, namespace: namespace, kinds: k, mapper: restmapper.NewDeferredDiscoveryRESTMapper(k)},
		nil
}

// ToRESTConfig implements genericclioptions.RESTClientGetter.
func (g *getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

// ToDiscoveryClient implements genericclioptions.RESTClientGetter.
func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) { return g.kinds, nil }

// ToRESTMapper implements genericclioptions.RESTClientGetter. It is the same one each time: when
// Helm forgets what it knows after it brought definitions (action.Install, installCRDs), what
// builds objects forgets it too.
func (g *getter) ToRESTMapper() (meta.RESTMapper, error) { return g.mapper, nil }

// ToRawKubeConfigLoader implements genericclioptions.RESTClientGetter; Helm asks it for the namespace.
func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), &clientcmd.ConfigOverrides{
		Context: clientcmdapi.Context{Namespace: g.namespace},
	})
}

// kinds are the kinds that the API serves. They are cached until a caller drops them or misses a kind.
type kinds struct {
	discovery.CachedDiscoveryInterface

	asked *asked
}

// Fresh is asked by the mapper when it does not find a kind, to ask again if it is not.
func (k *kinds) Fresh() bool { return k.asked.since() < freshness }

// asked remembers when the API last returned its kinds.
type asked struct {
	*discovery.DiscoveryClient

	mu sync.Mutex
	at time.Time
}

// GroupsAndMaybeResourcesWithContext implements discovery.AggregatedDiscoveryInterfaceWithContext.
func (a *asked) GroupsAndMaybeResourcesWithContext(ctx context.Context) (
	*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error,
) {
	groups, resources, failed, err := a.DiscoveryClient.GroupsAndMaybeResourcesWithContext(ctx)

	a.mu.Lock()
	defer a.mu.Unlock()

	a.at = time.Now()

	return groups, resources, failed, err
}

func (a *asked) since() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()

	return time.Since(a.at)
}

// factory is kubectl's without its validation.
type factory struct{ cmdutil.Factory }

// Validator checks nothing. kubectl's validator would list every definition of the cluster and read the OpenAPI
// document of each group in a manifest, some ten MiB each once decoded. It does that only to learn whether the API
// server validates requests itself (kubectl 0.36, validation.paramVerifyingSchema). Every server since Kubernetes
// 1.25 does, and then kubectl validates nothing either. What the server finds comes back as a warning.
func (factory) Validator(string) (validation.Schema, error) { return validation.NullSchema{}, nil }
