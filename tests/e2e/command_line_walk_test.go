package e2e

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// alike are commands that change nothing, which a terminal and a pipe show alike.
var alike = []string{
	"top", "top -o wide", "top clusters -o name", "top clusters -o jsonpath={.items[*].status.phase}", "top --idle", "top -l a=b", "why dev", "why job/typed",
	"why cluster/dve", "problems", "job list", "whoami", "version --client", "wait cluster/dev", "wait job/typed", "env dev -o yaml", "job stop typed",
	"suspend cluster/dev --dry-run=server", "scale dev cpu=2 --dry-run=client", "delete cluster/dev --dry-run=server --yes", "top -A", "top -v 9", "keep dev --for 8h --dry-run=server",
}

// The daily work with the program alone, on one cluster that is a head.
var _ = Describe("the command line", Ordered, Label(localkubeLabel), func() {
	var d *desk
	dev := &env{}

	BeforeAll(func(ctx SpecContext) {
		d = deskOf(ctx, fresh(ctx))
		dev.NamespacedName = types.NamespacedName{Namespace: d.namespace, Name: "dev"}
		Expect(kubernetes.Apply(ctx, d.namespace, []byte(rendered("clusters/preset.yaml", nil)))).To(Succeed())
	}, NodeTimeout(limit))

	It("brings a cluster up from a preset, and Ctrl-C leaves it coming up", func(ctx SpecContext) {
		coming := d.terminal(ctx, "up", "dev", "--preset", "tiny", "--option", "cpu=400m")
		coming.until(ctx, "\r\x1b[K")
		code, said := coming.interrupt()
		Expect(code).To(Equal(outcome.Detached))
		Expect(said).To(ContainSubstring("heliostat wait cluster/dev -n " + d.namespace))
		code, said = d.interrupted(ctx, "cluster/dev", "wait", "cluster/dev")
		Expect(code).To(Equal(outcome.Detached))
		Expect(said).NotTo(ContainSubstring("\x1b"), "one line for each change, in a pipe")
		d.does(ctx, "wait cluster/dev")
		Expect(ptr.Deref(dev.ready(ctx).Spec.Suspend, false)).To(BeFalse())
		Expect(dev.head(ctx).Spec.Containers[0].Resources.Requests.Cpu().String()).To(Equal("400m"))
	}, SpecTimeout(limit))

	It("submits a job and follows it, and Ctrl-C in each phase leaves it as it was", func(ctx SpecContext) {
		// Ray writes lines of its own around those of the program, sometimes behind them.
		code, out, _ := d.pipe(ctx, "job", "submit", "--cluster", "dev", "--name", "typed", "--env", "A=a b", "--", "sh", "-c", `echo "typed $A"; exit 3`)
		Expect(code).To(Equal(outcome.Failed))
		Expect(out).To(ContainSubstring("\ntyped a b\n"))
		endless := "echo begun; sleep 1000"
		running := d.terminal(ctx, "job", "submit", "--cluster", "dev", "--name", "endless", "--", endless)
		running.until(ctx, "begun\r\n")
		code, said := running.interrupt()
		Expect(code).To(Equal(outcome.Detached))
		Expect(said).To(And(ContainSubstring("heliostat logs job/endless -f -n "+d.namespace), ContainSubstring("heliostat job stop endless -n "+d.namespace)))
		code, said = d.interrupted(ctx, "begun\n", "logs", "job/endless", "-f")
		Expect(code).To(Equal(outcome.Detached))
		Expect(said).To(ContainSubstring("heliostat logs job/endless -f -n " + d.namespace))
		code, _ = d.interrupted(ctx, "job/endless", "wait", "job/endless")
		Expect(code).To(Equal(outcome.Detached))
		eventually(ctx, "the job to run on", func(ctx context.Context) error {
			if phase := d.does(ctx, "top jobs -o jsonpath={.items[?(@.metadata.name=='endless')].status.phase}"); phase != v1beta1.PhaseRunning {
				return fmt.Errorf("it is %s", phase)
			}
			return nil
		})
		d.does(ctx, "job stop endless")
		code, _, _ = d.pipe(ctx, "wait", "job/endless")
		Expect(code).To(Equal(outcome.Stopped))
		again := strings.TrimSpace(d.does(ctx, "job retry typed -o name"))
		code, _, _ = d.pipe(ctx, "wait", again, "--timeout", "2m")
		Expect(code).To(Equal(outcome.Failed), "it fails as the first one did")
	}, SpecTimeout(limit))

	It("prints what the golden file has, in a terminal and in a pipe", func(ctx SpecContext) {
		var text strings.Builder
		for _, line := range alike {
			code, out, said := d.pipe(ctx, strings.Fields(line)...)
			shown := d.terminal(ctx, strings.Fields(line)...)
			codeThere, there := shown.end()
			Expect(codeThere).To(Equal(code), line)
			Expect(strings.Split(d.steady(there), "\n")).To(ConsistOf(strings.Split(d.steady(out+said), "\n")), line)
			fmt.Fprintf(&text, "$ heliostat %s\n%sexit code %d\n\n", line, d.steady(out+said), code)
		}
		const file = "testdata/command-line.golden"
		if *update {
			Expect(os.WriteFile(file, []byte(text.String()), 0o644)).To(Succeed())
		}
		want, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(text.String()).To(Equal(string(want)))
	}, SpecTimeout(limit))

	It("serves the dashboard to the browser that has its address, until Ctrl-C", func(ctx SpecContext) {
		opened := d.terminal(ctx, "open", "dev")
		opened.until(ctx, "until Ctrl-C")
		address := regexp.MustCompile(`http://\S+\?key=\S+`).FindString(opened.text())
		jar, err := cookiejar.New(nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(fetch(ctx, &http.Client{Jar: jar}, address, "")).To(ContainSubstring("Ray Dashboard"))
		before, _, _ := strings.Cut(address, "?")
		Expect(fetch(ctx, &http.Client{}, before, "")).NotTo(ContainSubstring("Ray Dashboard"))
		code, _ := opened.interrupt()
		Expect(code).To(BeZero())
	}, SpecTimeout(limit))

	It("reads outputs and submits through the server, with a token and the role view", func(ctx SpecContext) {
		through := []string{"HELIOSTAT_SERVER=https://" + door(ctx, "https"), "HELIOSTAT_SERVER_CA=" + filepath.Join(GinkgoT().TempDir(), "ca.crt")}
		Expect(os.WriteFile(strings.TrimPrefix(through[1], "HELIOSTAT_SERVER_CA="), serverAuthority(ctx), 0o600)).To(Succeed())
		reader := &desk{namespace: d.namespace, program: d.program, kubeconfig: kubeconfigOf(d.namespace, tokenOf(ctx, d.namespace, "reader", "view"))}
		code, _, said := reader.pipe(ctx, "logs", "job/typed")
		Expect(code).To(Equal(outcome.Refused))
		Expect(said).To(ContainSubstring(`role "edit"`))
		code, _, said = reader.pipe(ctx, "job", "submit", "--cluster", "dev", "--", "ls")
		Expect(code).To(Equal(outcome.Refused))
		Expect(said).To(ContainSubstring(`role "edit"`))
		reader.environ = through
		Expect(reader.does(ctx, "logs job/typed")).To(ContainSubstring("\ntyped a b\n"))

		mine := &desk{namespace: d.namespace, program: d.program, kubeconfig: d.kubeconfig, environ: through}
		Expect(mine.does(ctx, "job submit --cluster dev --name through -- echo by the server")).To(ContainSubstring("\nby the server\n"))
		address := fmt.Sprintf("https://%s.%s.svc:8444/%s/dev", serverName, live.ReleaseNamespace, d.namespace)
		Expect(mine.does(ctx, "env dev")).To(ContainSubstring("export RAY_API_SERVER_ADDRESS=" + address + "\n"))
		Expect(mine.does(ctx, "open dev")).To(Equal(address + "/\n"))
		mine.kubeconfig = os.Getenv("KUBECONFIG")
		code, _, said = mine.pipe(ctx, "logs", "job/typed", "-n", d.namespace)
		Expect(code).To(Equal(outcome.Refused))
		Expect(said).To(ContainSubstring("kubectl create token"), "that kubeconfig has a client certificate")
	}, SpecTimeout(limit))

	It("gives secrets away in env alone", func(ctx SpecContext) {
		planted := map[string]string{"the cluster's token": dev.token(ctx), "the user's token": tokenIn(d.kubeconfig)}
		args := []string{"job", "submit", "--cluster", "dev", "--name", "careless", "--retries", "0"}
		for i := range 10 {
			planted[fmt.Sprint("variable ", i)] = rand.Text()
			args = append(args, "--env", fmt.Sprintf("SECRET_%d=%s", i, planted[fmt.Sprint("variable ", i)]))
		}
		ofRay := map[string]string{}
		for i := range 8 {
			planted[fmt.Sprint("variable of Ray's ", i)] = rand.Text()
			ofRay[fmt.Sprint("HIDDEN_", i)] = planted[fmt.Sprint("variable of Ray's ", i)]
		}
		environment, err := json.Marshal(map[string]any{"env_vars": ofRay})
		Expect(err).NotTo(HaveOccurred())
		code, out, _ := d.pipe(ctx, append(args, "--runtime-env-json", string(environment), "--", "sh", "-c", "env | grep -E 'SECRET|HIDDEN'; exit 1")...)
		Expect(code).To(Equal(outcome.Failed))
		Expect(planted).To(HaveLen(20))
		Expect(out).To(And(ContainSubstring(planted["variable 3"]), ContainSubstring(planted["variable of Ray's 3"])), "the program printed them")

		var said strings.Builder
		for _, about := range []string{"job/careless", "cluster/dev"} {
			file := filepath.Join(GinkgoT().TempDir(), "bundle.tar.gz")
			d.does(ctx, "bundle "+about+" --file "+file)
			text, err := osexec.CommandContext(ctx, "tar", "-xzOf", file).Output()
			Expect(err).NotTo(HaveOccurred())
			Expect(string(text)).To(ContainSubstring("kind: "))
			said.Write(text)
		}
		for _, line := range []string{"why job/careless", "top -v 9", "problems", "wait job/careless", "logs job/careles", "job submit --cluster nowhere --env A=" + planted["variable 1"] + " -- ls"} {
			_, out, errors := d.pipe(ctx, strings.Fields(line)...)
			said.WriteString(out + errors)
		}
		Expect(leaked(said.String(), planted)).To(BeEmpty())
		Expect(leaked(d.does(ctx, "env dev"), planted)).To(Equal([]string{"the cluster's token"}))
	}, SpecTimeout(limit))
})

// leaked are the names of secrets that a text has, as they are or in base64.
func leaked(text string, secrets map[string]string) (names []string) {
	for name, secret := range secrets {
		if strings.Contains(text, secret) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(secret))) {
			names = append(names, name)
		}
	}
	return names
}

// tokenIn returns the token of a kubeconfig.
func tokenIn(kubeconfig string) string {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	return config.BearerToken
}

// fetch returns the body of an answer.
func fetch(ctx context.Context, by *http.Client, address, token string) string {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := by.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = answer.Body.Close() }() // it was read
	text, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}
