package upgrade

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// ExpiredSecrets finds TLS Secrets whose certificate has expired. Pods that are started again, as in an upgrade, serve
// it.
func (u *Upgrade) ExpiredSecrets(ctx context.Context) ([]Problem, error) {
	list, err := u.api.CoreV1().Secrets(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeTLS)})
	if err != nil {
		if err = served(err); err != nil {
			err = fmt.Errorf("list Secrets of TLS: %w", api.WithoutURL(err))
		}

		return nil, err
	}

	var problems []Problem

	for _, s := range list.Items {
		if reason := expired(s.Data[corev1.TLSCertKey], time.Now()); reason != "" {
			problems = append(problems, Problem{CertificateCode, "Secret " + s.Namespace + "/" + s.Name,
				"its certificate " + reason})
		}
	}

	return problems, nil
}

// expiredBundle is [expired] for a field of a configuration.
func expiredBundle(encoded string, now time.Time) string {
	bundle, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return ""
	}

	return expired(bundle, now)
}

// expired says when the last certificate of a PEM file expired; empty while one is valid, and where there is none.
func expired(file []byte, now time.Time) string {
	var last time.Time

	for block, rest := pem.Decode(file); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && certificate.NotAfter.After(last) {
			last = certificate.NotAfter
		}
	}

	if last.IsZero() || last.After(now) {
		return ""
	}

	return "expired at " + last.UTC().Format(time.RFC3339)
}
