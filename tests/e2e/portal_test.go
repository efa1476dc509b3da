package e2e

import (
	"context"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// guest is somebody outside of Kubernetes with programs that ask the server by its Service.
type guest struct {
	namespace, token string
	// rest and grpc are where the server is asked. They stay when a server is killed.
	rest, grpc string
	// directory holds ca.crt, and what the programs need.
	directory string
}

// visit makes a guest who may edit in a namespace.
func visit(ctx context.Context, namespace string) *guest {
	GinkgoHelper()
	serverPod(ctx)
	v := &guest{namespace: namespace, token: editor(ctx, namespace), directory: GinkgoT().TempDir()}
	v.find(ctx)
	return v
}

// find leads to the server, and keeps its authority.
func (v *guest) find(ctx context.Context) {
	GinkgoHelper()
	v.rest, v.grpc = door(ctx, "https"), door(ctx, "grpc")
	Expect(os.WriteFile(v.authority(), serverAuthority(ctx), 0o600)).To(Succeed())
}

// door leads from a port of this machine, whose name localhost is in the server's certificate, to a port of the server's Service.
func door(ctx context.Context, name string) string {
	GinkgoHelper()
	var service corev1.Service
	Expect(kubernetes.Get(ctx, types.NamespacedName{Namespace: live.ReleaseNamespace, Name: serverName}, &service)).To(Succeed())
	for _, port := range service.Spec.Ports {
		if port.Name != name {
			continue
		}
		address, end, err := live.Lead(net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(port.Port))))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(end)
		_, local, err := net.SplitHostPort(address)
		Expect(err).NotTo(HaveOccurred())
		return net.JoinHostPort("localhost", local)
	}
	Fail("the server's Service has no port " + name)
	return ""
}

func (v *guest) authority() string { return filepath.Join(v.directory, "ca.crt") }

// command prepares a program with the environment that the examples ask for. server is v.rest with its scheme, or v.grpc.
func (v *guest) command(ctx context.Context, server, program string, args ...string) *osexec.Cmd {
	c := osexec.CommandContext(ctx, program, args...)
	c.Env = append(os.Environ(), "SERVER="+server, "TOKEN="+v.token, "CA="+v.authority(), "NODE_EXTRA_CA_CERTS="+v.authority(), "NAMESPACE="+v.namespace)
	c.Stderr = GinkgoWriter
	return c
}

// url is where REST is asked.
func (v *guest) url() string { return "https://" + v.rest }

// kubectl prepares a kubectl that asks the server and nobody else, in the guest's namespace.
func (v *guest) kubectl(ctx context.Context, args ...string) *osexec.Cmd {
	GinkgoHelper()
	c := kubectl(ctx, append([]string{"--kubeconfig", os.DevNull, "--server", v.url(), "--certificate-authority", v.authority(), "--token", v.token,
		"--namespace", v.namespace}, args...)...)
	c.Stderr = GinkgoWriter
	return c
}

// python makes an environment of Python with packages of PyPI, and returns the directory of its programs.
func (v *guest) python(ctx context.Context, packages ...string) string {
	GinkgoHelper()
	home := filepath.Join(v.directory, "venv")
	for _, words := range [][]string{
		{"python3", "-m", "venv", home}, append([]string{filepath.Join(home, "bin", "pip"), "install", "--quiet", "--no-compile", "--disable-pip-version-check"}, packages...),
	} {
		out, err := osexec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "python3 with its package venv (Debian: python3-venv), and PyPI, are needed: %s", out)
	}
	return filepath.Join(home, "bin")
}

// killServer ends the server's process at once. Its Deployment makes another pod.
func killServer(ctx context.Context) {
	GinkgoHelper()
	server := serverPod(ctx)
	kill(ctx, &server)
}
