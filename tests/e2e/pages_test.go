package e2e

import (
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/heliostat-dev/heliostat/tests/live"
	"github.com/heliostat-dev/heliostat/tests/pages"
)

// The blocks of our pages that are marked to run, as a reader types them.
var _ = Describe("a reader", Label(live.PagesLabel, live.AcceptLabel, localkubeLabel), func() {
	for _, walk := range pages.Walks {
		It("runs what stands in "+strings.Join(walk.Pages, ", "), func(ctx SpecContext) {
			r := newReader(ctx, walk.Namespace)
			for _, page := range walk.Pages {
				begin := time.Now()
				r.walk(ctx, page)
				told(page, begin)
			}
		}, SpecTimeout(3*limit))
	}
})

// blocksOf reads a page.
func blocksOf(page string) []pages.Block {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, page))
	Expect(err).NotTo(HaveOccurred())
	blocks, err := pages.Blocks(string(text))
	Expect(err).NotTo(HaveOccurred(), page)
	return blocks
}

// reader has the programs that pages name, a kubeconfig, and a directory with what pages say that it has.
type reader struct {
	namespace, directory, programs string
}

// newReader makes one in a fresh namespace, or in one of a name.
func newReader(ctx context.Context, namespace string) *reader {
	GinkgoHelper()
	r := &reader{namespace: namespace, directory: GinkgoT().TempDir(), programs: GinkgoT().TempDir()}
	if namespace == "" {
		r.namespace = fresh(ctx)
	} else {
		r.given(ctx, namespace)
	}
	out, err := osexec.CommandContext(ctx, "make", "-C", root, "bin/heliostat", "bin/helm").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	for name, program := range map[string]string{
		"kubectl": kubectl(ctx).Path, "heliostat": root + "/bin/heliostat", "helm": root + "/bin/helm",
	} {
		link(program, filepath.Join(r.programs, name))
	}
	for _, name := range []string{"examples", "helm-chart", "ray-operator"} {
		link(filepath.Join(root, name), filepath.Join(r.directory, name))
	}
	Expect(os.CopyFS(r.directory, os.DirFS("testdata/pages"))).To(Succeed())
	r.knowsServer(ctx)
	DeferCleanup(r.leave, NodeTimeout(limit))
	return r
}

// given makes a namespace that pages name.
func (r *reader) given(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(leaving.untilTerminating(ctx)).To(Succeed())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(kubernetes.Create(ctx, namespace)).To(Succeed())
	DeferCleanup(leaving.drop, name)
	eventually(ctx, "the service account of "+name, kubernetes.HasAccount(name))
}

// leave removes what pages put elsewhere than into the reader's namespace.
func (r *reader) leave(ctx SpecContext) {
	for _, object := range [][]string{{"namespace", "monitoring"}, {"configmap", "small", "--namespace", live.ReleaseNamespace}} {
		out, err := kubectl(ctx, append([]string{"delete", "--ignore-not-found"}, object...)...).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
	}
}

// link makes a link to a file, which may be named from here.
func link(to, at string) {
	GinkgoHelper()
	to, err := filepath.Abs(to)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.Symlink(to, at)).To(Succeed())
}

// knowsServer writes the reader's own /etc/hosts, with the server's name as pods know it.
func (r *reader) knowsServer(ctx context.Context) {
	GinkgoHelper()
	serverPod(ctx)
	hosts, err := os.ReadFile("/etc/hosts")
	Expect(err).NotTo(HaveOccurred())
	hosts = fmt.Appendf(hosts, "%s %s.%s.svc\n", clusterIP(ctx, serverName), serverName, live.ReleaseNamespace)
	Expect(os.WriteFile(filepath.Join(r.programs, "hosts"), hosts, 0o600)).To(Succeed())
}

// walk runs the blocks of a page in one shell, and compares what it prints with what the page shows.
func (r *reader) walk(ctx context.Context, page string) {
	GinkgoHelper()
	blocks, shown := blocksOf(page), GinkgoT().TempDir()
	script := filepath.Join(shown, "page")
	Expect(os.WriteFile(script, []byte(pages.Script(blocks)), 0o600)).To(Succeed())
	// What is left running has a file and no pipe, so that nobody waits for its end.
	log, err := os.Create(filepath.Join(shown, "log"))
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = log.Close() }() // all was read
	// A namespace of mounts has the reader's own /etc/hosts.
	shell := osexec.CommandContext(ctx, "unshare", "--mount", "sh", "-c", `mount --bind "$0" /etc/hosts && exec bash "$1"`,
		filepath.Join(r.programs, "hosts"), script)
	shell.Dir, shell.Stdout, shell.Stderr = r.directory, log, log
	shell.Env = append(os.Environ(), "PATH="+r.programs+":"+os.Getenv("PATH"), "HOME="+r.directory,
		"KUBECONFIG="+r.kubeconfig(), "SHOWN="+shown)
	// What a page leaves running ends with its shell.
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	Expect(shell.Start()).To(Succeed())
	ended := shell.Wait()
	_ = shell.Cancel() // mostly there is nothing left
	said, err := os.ReadFile(log.Name())
	Expect(err).NotTo(HaveOccurred())
	GinkgoWriter.Printf("%s\n%s\n", page, said)
	Expect(ended).NotTo(HaveOccurred(), "%s, at the last line that it traced:\n%s", page, said)
	for _, output := range pages.Outputs(blocks) {
		real, err := os.ReadFile(filepath.Join(shown, fmt.Sprint(output.Line)))
		Expect(err).NotTo(HaveOccurred())
		Expect(output.Missing(string(real))).To(BeEmpty(), "%s, line %d printed:\n%s", page, output.Line, real)
	}
}

// kubeconfig writes one of an administrator for a page, which may change it.
func (r *reader) kubeconfig() string {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(os.Getenv("KUBECONFIG"))
	Expect(err).NotTo(HaveOccurred())
	config.Contexts[config.CurrentContext].Namespace = r.namespace
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}
