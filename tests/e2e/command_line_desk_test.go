package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/creack/pty"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// desk is a machine with the program heliostat and a kubeconfig that holds a token, and without Ray.
type desk struct {
	namespace, program, kubeconfig string
	// environ are further variables, such as those that name the server.
	environ []string
}

// deskOf makes one for an account that may edit in a namespace.
func deskOf(ctx context.Context, namespace string) *desk {
	GinkgoHelper()
	out, err := osexec.CommandContext(ctx, "make", "-C", root, "bin/heliostat").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	program, err := filepath.Abs(filepath.Join(root, "bin", "heliostat"))
	Expect(err).NotTo(HaveOccurred())
	return &desk{namespace: namespace, program: program, kubeconfig: kubeconfigOf(namespace, editor(ctx, namespace))}
}

// kubeconfigOf writes a kubeconfig that signs in with a token.
func kubeconfigOf(namespace, token string) string {
	GinkgoHelper()
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{Server: kubernetes.Config.Host,
		CertificateAuthority: kubernetes.Config.CAFile, CertificateAuthorityData: kubernetes.Config.CAData}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: "user", Namespace: namespace}
	config.CurrentContext = "local"
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}

// command prepares the program.
func (d *desk) command(ctx context.Context, args ...string) *osexec.Cmd {
	c := osexec.CommandContext(ctx, d.program, args...)
	c.Env = append(append(os.Environ(), "KUBECONFIG="+d.kubeconfig, "HELIOSTAT_SERVER=", "HELIOSTAT_TOKEN=", "NO_COLOR=1"), d.environ...)
	return c
}

// pipe runs the program with its streams in pipes.
func (d *desk) pipe(ctx context.Context, args ...string) (code int, out, said string) {
	GinkgoHelper()
	c := d.command(ctx, args...)
	var printed, errors bytes.Buffer
	c.Stdout, c.Stderr = &printed, &errors
	code = exitCodeOf(c.Run())
	GinkgoWriter.Printf("$ heliostat %s\n%.2000s%sexit code %d\n", strings.Join(args, " "), printed.String(), errors.String(), code)
	return code, printed.String(), errors.String()
}

// does runs the program in a pipe, which must succeed, and returns its data.
func (d *desk) does(ctx context.Context, line string) string {
	GinkgoHelper()
	code, out, said := d.pipe(ctx, strings.Fields(line)...)
	Expect(code).To(BeZero(), "heliostat %s: %s", line, said)
	return out
}

// exitCodeOf returns the exit code of a program that has ended.
func exitCodeOf(err error) int {
	GinkgoHelper()
	var ended *osexec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode()
	}
	Expect(err).NotTo(HaveOccurred())
	return 0
}

// screen is the program in a terminal, and what is on it.
type screen struct {
	output
	terminal *os.File
	command  *osexec.Cmd
	read     chan struct{}
}

// terminal starts the program in a terminal of 100 columns.
func (d *desk) terminal(ctx context.Context, args ...string) *screen {
	GinkgoHelper()
	s := &screen{command: d.command(ctx, args...), read: make(chan struct{})}
	var err error
	s.terminal, err = pty.StartWithSize(s.command, &pty.Winsize{Rows: 50, Cols: 100})
	Expect(err).NotTo(HaveOccurred())
	go func() {
		defer close(s.read)
		_, _ = io.Copy(&s.output, s.terminal) // the terminal ends with an error once the program has ended
	}()
	return s
}

// until waits until a text was written.
func (s *screen) until(ctx context.Context, text string) {
	GinkgoHelper()
	eventually(ctx, fmt.Sprintf("%s to write %q", s.command, text), func(context.Context) error {
		if !strings.Contains(s.text(), text) {
			return fmt.Errorf("it wrote %q", s.text())
		}
		return nil
	})
}

// interrupt types Ctrl-C, and returns the exit code with what was written.
func (s *screen) interrupt() (code int, text string) {
	GinkgoHelper()
	_, err := s.terminal.Write([]byte{3})
	Expect(err).NotTo(HaveOccurred())
	return s.end()
}

// end waits for the end, and returns the exit code with what was written.
func (s *screen) end() (code int, text string) {
	GinkgoHelper()
	code = exitCodeOf(s.command.Wait())
	<-s.read
	_ = s.terminal.Close() // all was read
	GinkgoWriter.Printf("$ %s   # in a terminal\n%q\nexit code %d\n", s.command, s.text(), code)
	return code, s.text()
}

// interrupted runs the program in a pipe until it says something, and interrupts it then.
func (d *desk) interrupted(ctx context.Context, text string, args ...string) (code int, said string) {
	GinkgoHelper()
	c, heard := d.command(ctx, args...), &output{}
	c.Stdout, c.Stderr = heard, heard
	Expect(c.Start()).To(Succeed())
	Eventually(ctx, heard.text, limit, "50ms").Should(ContainSubstring(text))
	Expect(c.Process.Signal(syscall.SIGINT)).To(Succeed())
	return exitCodeOf(c.Wait()), heard.text()
}

// varying is what differs from one run to the next in what the program prints: times, and names that Kubernetes makes.
var varying = []struct {
	pattern *regexp.Regexp
	same    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+`), "<time>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "<time>"},
	{regexp.MustCompile(`\b(\d+[dhms])+\b`), "<age>"},
	{regexp.MustCompile(`(-head|-cpu-\d+)-[a-z0-9]{5}\b`), "$1-<id>"},
	{regexp.MustCompile(`\btyped(-\d+)?-[a-z0-9]{13}\b`), "typed$1-<id>"},
	{regexp.MustCompile(` {2,}`), "  "},
	{regexp.MustCompile(`sha256:[0-9a-f]+|\bv0\.0\.0-\S+|\(?\bdevel\b\S*`), "<build>"},
}

// steady returns a text without what varies.
func (d *desk) steady(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), d.namespace, "<namespace>")
	for _, one := range varying {
		text = one.pattern.ReplaceAllString(text, one.same)
	}
	return text
}
