package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// auditPolicy logs what the contender asks for and nothing else, so that the log costs
// the others nothing; renewals of a lease follow the clock and not the clusters.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  resources: [{group: coordination.k8s.io}]
- level: Metadata
  users: ["system:serviceaccount:` + live.ReleaseNamespace + `:` + live.ReleaseName + `"]
- level: None
`

// controlPlane is a Kubernetes of real programs without any node, fresh for each run.
type controlPlane struct {
	*live.Cluster
	audit auditLog
	// dir holds its files, kubeconfig is an administrator's.
	dir, kubeconfig string
	// programs is the directory of Kubernetes' own programs.
	programs string
	fail     context.CancelCauseFunc
	children []*child
	// apiServer is that of the children.
	apiServer *child
}

// up starts etcd and the API server, and what makes a Kubernetes of them. etcd does not
// wait for a disk. The scheduler's own limit, by default 50 requests a second, would be
// all that is measured; the controller manager's is raised for a quick start.
func up(ctx context.Context, programs, dir string, fail context.CancelCauseFunc) (*controlPlane, error) {
	cp := &controlPlane{dir: dir, programs: programs, kubeconfig: filepath.Join(dir, "admin.kubeconfig"), fail: fail}
	cp.audit = auditLog{live.AuditLog(filepath.Join(dir, "audit.log"))}
	err := cp.startStore(ctx)
	if err == nil {
		err = cp.startControllers()
	}
	if err != nil {
		return nil, errors.Join(err, cp.down())
	}
	return cp, nil
}

// down ends everything; what it knew is not needed any more.
func (cp *controlPlane) down() error {
	var errs []error
	for _, c := range slices.Backward(cp.children) {
		errs = append(errs, c.stop(syscall.SIGKILL))
	}
	return errors.Join(errs...)
}

// untilChecked waits until the controller manager has checked the types of every admission policy. That takes some
// 20 s of processor time, once for each installation, which a fleet created meanwhile would have to wait for.
func (cp *controlPlane) untilChecked(ctx context.Context) error {
	return live.Until(ctx, limit, "the controller manager to check the admission policies", func(ctx context.Context) error {
		var policies admissionv1.ValidatingAdmissionPolicyList
		if err := cp.List(ctx, &policies); err != nil {
			return err
		}
		for i := range policies.Items {
			if policy := &policies.Items[i]; policy.Status.ObservedGeneration != policy.Generation {
				return fmt.Errorf("%s is not checked", policy.Name)
			}
		}
		return nil
	})
}

func (cp *controlPlane) run(name string, args ...string) (*child, error) {
	c, err := start(program{name: name, path: filepath.Join(cp.programs, name), args: args}, cp.dir, cp.fail)
	if err == nil {
		cp.children = append(cp.children, c)
	}
	return c, err
}

// startStore starts etcd and the API server, and waits until it answers.
func (cp *controlPlane) startStore(ctx context.Context) error {
	var addresses [3]string
	for i := range addresses {
		var err error
		if addresses[i], err = freeAddress(); err != nil {
			return err
		}
	}
	store, peer, api := "http://"+addresses[0], "http://"+addresses[1], addresses[2]
	_, err := cp.run("etcd", "--data-dir="+filepath.Join(cp.dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+store, "--advertise-client-urls="+store,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		"--quota-backend-bytes=8589934592", "--log-level=warn")
	if err != nil {
		return err
	}
	token, err := cp.writeSecrets()
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(api)
	if err != nil {
		return fmt.Errorf("choose the API server's address: %w", err)
	}
	at := func(file string) string { return filepath.Join(cp.dir, file) }
	cp.apiServer, err = cp.run("kube-apiserver", "--etcd-servers="+store,
		"--bind-address="+host, "--secure-port="+port, "--cert-dir="+cp.dir, "--token-auth-file="+at("tokens.csv"),
		"--advertise-address=192.0.2.1",   // which nobody uses: there may be no interface to find one
		"--endpoint-reconciler-type=none", // a Service cannot lead to a loopback address
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+at("accounts.key"),
		"--service-account-signing-key-file="+at("accounts.key"), "--service-cluster-ip-range=10.96.0.0/14",
		"--authorization-mode=RBAC",
		"--audit-policy-file="+at("audit.yaml"), "--audit-log-path="+string(cp.audit.AuditLog), "--audit-log-mode=blocking", "--audit-log-maxsize=4096")
	if err != nil {
		return err
	}
	return live.Until(ctx, time.Minute, "the API server", func(ctx context.Context) error { return cp.connect(ctx, api, token) })
}

// writeSecrets writes the files that the API server reads, and gives the administrator's
// token.
func (cp *controlPlane) writeSecrets() (string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", fmt.Errorf("make a key for service accounts: %w", err)
	}
	token := rand.Text()
	for name, text := range map[string][]byte{
		"accounts.key": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		"tokens.csv":   []byte(token + ",admin,admin,system:masters\n"),
		"audit.yaml":   []byte(auditPolicy),
	} {
		if err := os.WriteFile(filepath.Join(cp.dir, name), text, 0o600); err != nil {
			return "", fmt.Errorf("write a file of the API server: %w", err)
		}
	}
	return token, nil
}

// connect makes the clients, if the API server is ready.
func (cp *controlPlane) connect(ctx context.Context, address, token string) error {
	authority, err := os.ReadFile(filepath.Join(cp.dir, "apiserver.crt")) // it makes that itself
	if err != nil {
		return fmt.Errorf("read the API server's certificate: %w", err)
	}
	err = writeKubeconfig(cp.kubeconfig, &clientcmdapi.Cluster{Server: "https://" + address, CertificateAuthorityData: authority}, token)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", cp.kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS, config.UserAgent = -1, "heliostat-bench"
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("build a client: %w", err)
	}
	if _, err := clients.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		return fmt.Errorf("ask the API server at %s: %w", address, err)
	}
	cp.Cluster, err = connected(config, clients)
	return err
}

func connected(config *rest.Config, clients kubernetes.Interface) (*live.Cluster, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	watching, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("build a client: %w", err)
	}
	return &live.Cluster{WithWatch: watching, Config: config, Kubernetes: clients}, nil
}

// writeKubeconfig writes one of a cluster and a user with a token.
func writeKubeconfig(path string, cluster *clientcmdapi.Cluster, token string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["fleet"] = cluster
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["fleet"] = &clientcmdapi.Context{Cluster: "fleet", AuthInfo: "user"}
	config.CurrentContext = "fleet"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	return nil
}

func (cp *controlPlane) startControllers() error {
	config := "--kubeconfig=" + cp.kubeconfig
	_, err := cp.run("kube-controller-manager", config, "--leader-elect=false", "--secure-port=0",
		"--kube-api-qps=200", "--kube-api-burst=400", "--use-service-account-credentials",
		"--service-account-private-key-file="+filepath.Join(cp.dir, "accounts.key"), "--root-ca-file="+filepath.Join(cp.dir, "apiserver.crt"))
	if err != nil {
		return err
	}
	_, err = cp.run("kube-scheduler", config, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=5000", "--kube-api-burst=5000")
	return err
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
