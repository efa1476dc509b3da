package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/internal/attackers"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// suite is what all tests share.
type suite struct {
	*live.Cluster
	audit auditLog
	// program is the operator's, and server the one for portals; kubeconfig has the operator's account's token.
	program, server, kubeconfig string
	kubelet                     *kubelet
	heads                       heads
}

var shared suite

// judging makes tests hold durations against what is promised, as make accept does on a machine that does nothing else.
var judging = flag.Bool("judge", false, "hold durations against what is promised, not against hanging alone")

// tooLong is how long anything may take where durations are not judged.
const tooLong = 90 * time.Second

// inTime checks a duration: against what is promised where that is judged, or else against hanging.
func inTime(t *testing.T, what string, took, promised time.Duration) {
	t.Helper()
	if !*judging {
		promised = tooLong
	}
	if took > promised {
		t.Errorf("%s took %v, want at most %v", what, rounded(took), promised)
	}
}

func TestMain(m *testing.M) {
	attacking := flag.Bool("attackers", false, "be the attackers of the server, as the orders on standard input say")
	if flag.Parse(); *attacking {
		if err := attackers.Obey(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "attackers:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	dir, err := os.MkdirTemp("", "integration")
	if err == nil {
		err = shared.setUp(ctx, dir)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func (s *suite) setUp(ctx context.Context, dir string) (err error) {
	if s.Cluster, err = live.Open(ctx); err != nil {
		return err
	}
	if s.audit = (auditLog{live.AuditLog(os.Getenv("LOCALKUBE_AUDIT_LOG"))}); s.audit.AuditLog == "" {
		return errors.New("find the audit log: LOCALKUBE_AUDIT_LOG is not set: run make integration, or export what localkube status prints")
	}
	if err := s.install(ctx); err != nil {
		return err
	}
	s.kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := s.build(ctx); err != nil {
		return err
	}
	if err := s.writeKubeconfig(ctx); err != nil {
		return err
	}
	s.kubelet, err = runKubelet(ctx, s.Cluster, &s.heads)
	return err
}

// build builds the programs where and as make does, so that they are linked again only when something has changed.
func (s *suite) build(ctx context.Context) (err error) {
	for _, one := range []struct {
		path         *string
		name, source string
	}{{&s.program, "operator", "ray-operator/cmd/operator"}, {&s.server, "server", "apiserver/cmd/server"}} {
		if *one.path, err = filepath.Abs("../../bin/" + one.name); err != nil {
			return fmt.Errorf("name the program %s: %w", one.name, err)
		}
		build := exec.CommandContext(ctx, "go", "build", "-tags=grpcnotrace", "-o", *one.path, "../../"+one.source)
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build the program %s: %w: %s", one.name, err, out)
		}
	}
	return nil
}

// install applies what the chart renders, all but the Deployment.
func (s *suite) install(ctx context.Context) error {
	out, err := live.Helm(ctx, "../..", "template", live.ReleaseName, "../../helm-chart/heliostat", "--namespace", live.ReleaseNamespace,
		"--values", "testdata/server.yaml")
	if err != nil {
		return err
	}
	namespace := fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n", live.ReleaseNamespace)
	objects, err := live.Decode([]byte(namespace + out))
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			continue
		}
		if err := s.ApplyObject(ctx, object); err != nil {
			return err
		}
	}
	return live.Until(ctx, 30*time.Second, "the kind ComputeCluster to be served", func(ctx context.Context) error {
		return s.List(ctx, &v1beta1.ComputeClusterList{})
	})
}

// writeKubeconfig gives the operator its own account's token and nothing of ours.
func (s *suite) writeKubeconfig(ctx context.Context) error {
	token, err := s.tokenOf(ctx, live.ReleaseNamespace, live.ReleaseName)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = clusterOf(s.Config)
	config.AuthInfos["operator"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: "operator"}
	config.CurrentContext = "local"
	if err := clientcmd.WriteToFile(*config, s.kubeconfig); err != nil {
		return fmt.Errorf("write the operator's kubeconfig: %w", err)
	}
	return nil
}

// tokenOf returns a token of an account, for some audiences, or for the API server.
func (s *suite) tokenOf(ctx context.Context, namespace, name string, audiences ...string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(2 * 60 * 60)), Audiences: audiences}}
	if err := s.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("ask for a token of the account %s of %s: %w", name, namespace, err)
	}
	return request.Status.Token, nil
}

func clusterOf(config *rest.Config) *clientcmdapi.Cluster {
	return &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData,
	}
}
