package pod

import (
	"fmt"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Connect returns the lines by which a shell inside the Kubernetes cluster reaches a cluster. They depend on its name,
// namespace, authentication and encryption alone.
func Connect(cluster *v1beta1.ComputeCluster) *v1beta1.ConnectSummary {
	lines := &v1beta1.ConnectSummary{Jobs: "export RAY_API_SERVER_ADDRESS=" + DashboardURL(cluster)}
	if secret := TokenSecret(cluster); secret != "" {
		lines.Token = fmt.Sprintf("export RAY_AUTH_MODE=token RAY_AUTH_TOKEN=$(%s)", readSecret(cluster.Namespace, secret, v1beta1.TokenKey))
	}
	if naming.EncryptionRequired(cluster) {
		lines.Certificate = readSecret(cluster.Namespace, naming.AuthoritySecret(cluster.Name), v1beta1.AuthorityCertificateKey) + " >ca.crt"
	} else {
		lines.Client = fmt.Sprintf("export RAY_ADDRESS=ray://%s:%d", headHost(cluster), naming.PortClient)
	}
	return lines
}

// readSecret returns the command that prints what a Secret has under a key.
func readSecret(namespace, name, key string) string {
	return fmt.Sprintf("kubectl -n %s get secret %s -o jsonpath='{.data.%s}' | base64 -d", namespace, name, strings.ReplaceAll(key, ".", `\.`))
}
