package sim

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/talosop/terraform-provider-talosop/internal/sim/certs"
)

// Kubeconfig sends an administrator's kubeconfig in a compressed archive. It is made
// from the configuration, so it works before the cluster is bootstrapped.
func (a *api) Kubeconfig(_ *emptypb.Empty, stream machine.MachineService_KubeconfigServer) error {
	if err := a.b.onControlPlane("kubeconfig"); err != nil {
		return err
	}

	content, err := a.b.adminKubeconfig()
	if err != nil {
		return err
	}

	var archive bytes.Buffer

	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)

	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: "kubeconfig", Size: int64(len(content)), ModTime: time.Now(), Mode: 0o600,
	}
	if err := files.WriteHeader(header); err != nil {
		return err
	}

	if _, err := files.Write(content); err != nil {
		return err
	}

	if err := errors.Join(files.Close(), zipped.Close()); err != nil {
		return err
	}

	return stream.Send(&common.Data{Bytes: archive.Bytes()})
}

// adminKubeconfig mints a client certificate of the Kubernetes CA.
func (b *boot) adminKubeconfig() ([]byte, error) {
	cluster, authority := b.Config().K8sClusterConfig(), b.Config().K8sAPIServerCAConfig().IssuingCA()

	ca, err := certs.LoadAuthority(authority)
	if err != nil {
		return nil, fmt.Errorf("load Kubernetes CA: %w", err)
	}

	admin := b.Config().Cluster().AdminKubeconfig()

	cert, err := ca.Issue(certs.Leaf{
		CommonName: admin.CommonName(), Organization: []string{admin.CertOrganization()},
		Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, Validity: admin.CertLifetime(), Ecdsa: true,
	})
	if err != nil {
		return nil, err
	}

	certPEM, keyPEM, err := certs.PemPair(cert)
	if err != nil {
		return nil, err
	}

	name := cluster.ClusterName()
	user := "admin@" + name

	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			name: {Server: cluster.ClusterEndpoint().String(), CertificateAuthorityData: authority.Crt},
		},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: {ClientCertificateData: certPEM, ClientKeyData: keyPEM}},
		Contexts:       map[string]*clientcmdapi.Context{user: {Cluster: name, Namespace: "default", AuthInfo: user}},
		CurrentContext: user,
	})
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig: %w", err)
	}

	return content, nil
}

// GenerateClientConfiguration issues a Talos client certificate and a talosconfig
// without endpoints.
func (a *api) GenerateClientConfiguration(
	_ context.Context, req *machine.GenerateClientConfigurationRequest,
) (*machine.GenerateClientConfigurationResponse, error) {
	if err := a.b.onControlPlane("generate client configuration"); err != nil {
		return nil, err
	}

	ttl := req.GetCrtTtl().AsDuration()
	if ttl <= 0 {
		return nil, status.Error(codes.InvalidArgument, "crt_ttl should be positive")
	}

	cfg := a.b.Config()
	roles, _ := role.Parse(req.GetRoles())

	bundle, err := secrets.NewBundleFromConfig(secrets.NewFixedClock(time.Now()), cfg)
	if err != nil {
		return nil, err
	}

	cert, err := bundle.GenerateTalosAPIClientCertificateWithTTL(roles, ttl)
	if err != nil {
		return nil, err
	}

	name := cfg.K8sClusterConfig().ClusterName()
	if names := roles.Strings(); len(names) == 1 {
		name = strings.TrimPrefix(names[0], role.Prefix) + "@" + name
	}

	talosconfig, err := clientconfig.NewConfig(name, nil, bundle.Certs.OS.Crt, cert).Bytes()
	if err != nil {
		return nil, err
	}

	return &machine.GenerateClientConfigurationResponse{Messages: []*machine.GenerateClientConfiguration{{
		Ca: bundle.Certs.OS.Crt, Crt: cert.Crt, Key: cert.Key, Talosconfig: talosconfig,
	}}}, nil
}
