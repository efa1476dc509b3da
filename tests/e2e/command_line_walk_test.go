package e2e

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/cli/app"
	cliaway "github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	// cutLines are followed while the connection to the head is cut so many times.
	cutLines, cuts = 100_000, 10
	// perSecond is how many of them are written each second, for about 20 s.
	perSecond = 5000
)

// tiny is a preset of a cluster that is a head alone.
const tiny = `apiVersion: v1
kind: ConfigMap
metadata: {name: tiny, labels: {heliostat.dev/preset: ""}}
data:
  title: A head alone
  schema.json: '{"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "cpu": {"type": "string", "default": "500m"}}}'
  manifest.yaml: |
    apiVersion: heliostat.dev/v1alpha1
    kind: ComputeCluster
    metadata: {name: "${name}"}
    spec: {rayVersion: ` + release + `, head: {size: {cpu: "${cpu}", memory: 2560Mi}}}
`

// rayBeside is a pod with Ray that runs nothing, a client from inside of Kubernetes.
const rayBeside = `apiVersion: v1
kind: Pod
metadata: {name: beside}
spec:
  serviceAccountName: ACCOUNT
  terminationGracePeriodSeconds: 0
  volumes: [{name: module, configMap: {name: module}}]
  containers:
  - name: ray
    image: rayproject/ray:` + release + `
    imagePullPolicy: IfNotPresent
    command: [sleep, "3600"]
    volumeMounts: [{name: module, mountPath: /module}]
    env:
    - {name: PYTHONPATH, value: /module}
    - {name: REQUESTS_CA_BUNDLE, value: /module/ca.crt}
    - {name: SSL_CERT_FILE, value: /module/ca.crt}
    - {name: HELIOSTAT_SERVER, value: "https://heliostat-server.heliostat-system.svc"}
`

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
		Expect(kubernetes.Apply(ctx, d.namespace, []byte(tiny))).To(Succeed())
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
		Expect(dev.ready(ctx).Spec.Suspend).To(BeFalse())
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
			if phase := d.does(ctx, "top jobs -o jsonpath={.items[?(@.metadata.name=='endless')].status.phase}"); phase != v1alpha1.PhaseRunning {
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

	It("follows an output while its connection is cut again and again, byte for byte", func(ctx SpecContext) {
		d.pipe(ctx, "job", "submit", "--cluster", "dev", "--name", "long", "--detach", "--", "python", "-u", "-c", longOutput)
		c := &cutter{}
		code := app.Run(ctx, []string{"logs", "job/long", "-f", "--kubeconfig", d.kubeconfig}, app.Settings{
			IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: c, ErrOut: GinkgoWriter},
			Clock:     clock.RealClock{}, Forward: c.forward(d.kubeconfig),
		})
		Expect(code).To(Equal(outcome.Done))
		Expect(c.cuts).To(Equal(cuts))
		Expect(c.lines()).To(BeNumerically(">=", cutLines))
		Expect(c.text() == dev.driverLog(ctx, "long")).To(BeTrue(), "byte for byte")
	}, SpecTimeout(limit))

	It("serves the dashboard to the browser that has its address, until Ctrl-C", func(ctx SpecContext) {
		opened := d.terminal(ctx, "open", "dev")
		opened.until(ctx, "until Ctrl-C")
		address := regexp.MustCompile(`http://127\S+`).FindString(opened.text())
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
		Expect(reader.does(ctx, "logs job/long -f") == dev.driverLog(ctx, "long")).To(BeTrue(), "byte for byte")

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

	It("is found by Ray's own client as heliostat://, which wakes it, and sessions go on", func(ctx SpecContext) {
		beside := d.beside(ctx)
		session := d.terminal(ctx, "session", "dev")
		session.until(ctx, "until Ctrl-C")
		api := regexp.MustCompile(`RAY_API_SERVER_ADDRESS=(http://\S+)`).FindStringSubmatch(session.text())[1]
		d.does(ctx, "suspend cluster/dev")
		d.does(ctx, "wait cluster/dev --for suspended")
		said := exec(ctx, beside, "sh", "-c", strings.ReplaceAll(asRaysClient, "ADDRESS", "heliostat://"+d.namespace+"/dev"))
		GinkgoWriter.Println(said)
		Expect(said).To(And(ContainSubstring("is suspended; resume it: heliostat resume cluster/dev"), ContainSubstring("is suspended; resuming it"),
			ContainSubstring("\nfrom beside\n"), ContainSubstring("logs: from beside\n"), ContainSubstring("was stopped")))

		head, token := dev.head(ctx), exec(ctx, beside, "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token")
		Expect(len(token)).To(BeNumerically(">", 100))
		for _, pod := range []*corev1.Pod{&head, beside} {
			seen := exec(ctx, pod, "sh", "-c", "cat /proc/[0-9]*/cmdline; find /tmp /home/ray -type f -size -2M -exec cat {} + 2>/dev/null || true")
			Expect(strings.Contains(seen, token)).To(BeFalse(), "the token is in an argument list or a file of "+pod.Name)
		}
		Expect(strings.Contains(said, token)).To(BeFalse())
		Expect(fetch(ctx, http.DefaultClient, api+"/api/version", dev.token(ctx))).To(ContainSubstring(release), "through the ports of before")
		code, _ := session.interrupt()
		Expect(code).To(BeZero())
		d.does(ctx, "delete cluster/dev --yes")
	}, SpecTimeout(limit))
})

// longOutput writes many lines, at a rate at which they are followed and not only read at the end.
var longOutput = fmt.Sprintf(`import sys, time
for second in range(%d):
    sys.stdout.write(''.join('line %%d grüße\n' %% (second * %d + i) for i in range(%d)))
    time.sleep(1)
`, cutLines/perSecond, perSecond, perSecond)

// asRaysClient is what a user types beside a suspended cluster.
const asRaysClient = `exec 2>&1
ray job list --address ADDRESS
ray job submit --address ADDRESS --submission-id woken -- echo from beside
ray job submit --address ADDRESS --no-wait --submission-id endless -- sleep 1000
ray job stop --address ADDRESS endless
ray job logs --address ADDRESS woken | sed 's/^/logs: /'
`

// cutter keeps an output, and cuts the connections to the head at each eleventh of it.
type cutter struct {
	output
	mu   sync.Mutex
	open []net.Conn
	cuts int
}

// Write implements io.Writer.
func (c *cutter) Write(part []byte) (int, error) {
	count, err := c.output.Write(part)
	if c.cuts < cuts && c.lines() > (c.cuts+1)*cutLines/(cuts+1) {
		c.cuts++
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, conn := range c.open {
			_ = conn.Close() // that is what it is for
		}
		c.open = nil
	}
	return count, err
}

// forward leads to ports of pods by a kubeconfig, as the program does.
func (c *cutter) forward(kubeconfig string) console.Forward {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	return func(ctx context.Context, pod types.NamespacedName, port int) (net.Conn, error) {
		conn, err := cliaway.Forward(config)(ctx, pod, port)
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.open = append(c.open, conn)
		}
		return conn, err
	}
}

// driverLog returns what a job has written, from the head's file.
func (e *env) driverLog(ctx context.Context, name string) string {
	GinkgoHelper()
	job, err := kubernetes.FindJob(ctx, types.NamespacedName{Namespace: e.Namespace, Name: name})
	Expect(err).NotTo(HaveOccurred())
	head := e.head(ctx)
	return exec(ctx, &head, "cat", "/tmp/ray/session_latest/logs/job-driver-"+job.Status.SubmissionID+".log")
}

// beside makes a pod with Ray's client that has the account of the desk, and the module of heliostat://.
func (d *desk) beside(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	return besideIn(ctx, d.namespace, "portal")
}

// besideIn makes a pod with Ray's client and the module of heliostat://, and waits for it.
func besideIn(ctx context.Context, namespace, account string) *corev1.Pod {
	GinkgoHelper()
	module, err := os.ReadFile(root + "/python/heliostat.py")
	Expect(err).NotTo(HaveOccurred())
	files := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "module"},
		Data: map[string]string{"heliostat.py": string(module), "ca.crt": string(serverAuthority(ctx))}}
	Expect(kubernetes.Create(ctx, files)).To(Succeed())
	Expect(kubernetes.Apply(ctx, namespace, []byte(strings.Replace(rayBeside, "ACCOUNT", account, 1)))).To(Succeed())
	pod := &corev1.Pod{}
	eventually(ctx, "the pod beside", func(ctx context.Context) error {
		err := kubernetes.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "beside"}, pod)
		if err == nil && !isReady(pod) {
			err = fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return err
	})
	return pod
}

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
