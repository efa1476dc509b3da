package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// queuedFor is for longer than Ray keeps an upload that nobody uses.
const queuedFor = 12 * time.Minute

var _ = Describe("a directory whose job waits in the queue of a cluster", Label(live.QueuedUploadLabel, live.AcceptLabel, localkubeLabel), func() {
	It("is there when the job runs", func(ctx SpecContext) {
		queue := made(ctx, "queue", "clusters/head.yaml", values{"MaxConcurrentJobs": 1})
		d := deskOf(ctx, queue.Namespace)
		d.does(ctx, "job submit --cluster queue --name first --detach -- sleep 100000")
		code := filesOf(map[string]string{"train.py": "print(open('words').read())", "words": "brought along"})
		begin, printed := time.Now(), &output{}
		second := d.command(ctx, "job", "submit", "--cluster", "queue", "--name", "second", "--working-dir", code, "--", "python", "train.py")
		second.Stdout, second.Stderr = printed, GinkgoWriter
		Expect(second.Start()).To(Succeed())
		(&office{namespace: queue.Namespace}).job("second").says(ctx, reason.JobQueued.Code)
		Eventually(ctx, func() time.Duration { return time.Since(begin) }, queuedFor+time.Minute, "1s").Should(BeNumerically(">", queuedFor))
		d.does(ctx, "job stop first")
		Expect(second.Wait()).To(Succeed())
		Expect(printed.text()).To(ContainSubstring("\nbrought along\n"))
	}, SpecTimeout(queuedFor+2*limit))
})

// rayTools are Ray's own programs of a release on this machine, which find clusters by python/heliostat.py.
type rayTools struct {
	*desk
	program string
	environ []string
}

// newRayTools installs a release from PyPI.
func newRayTools(ctx context.Context, d *desk, release string) *rayTools {
	GinkgoHelper()
	module, err := filepath.Abs(root + "/python")
	Expect(err).NotTo(HaveOccurred())
	bin := (&guest{directory: GinkgoT().TempDir()}).python(ctx, "ray[default]=="+release)
	return &rayTools{desk: d, program: filepath.Join(bin, "ray"), environ: append([]string{"PYTHONPATH=" + module, "NO_COLOR=1",
		"KUBECONFIG=" + d.kubeconfig, "PATH=" + filepath.Dir(d.program) + ":" + os.Getenv("PATH")}, d.environ...)}
}

// job runs ray job with arguments, and returns what it printed and whether it succeeded.
func (r *rayTools) job(ctx context.Context, args ...string) (said string, isDone bool) {
	GinkgoHelper()
	c := osexec.CommandContext(ctx, r.program, append([]string{"job"}, args...)...)
	c.Env = append(os.Environ(), r.environ...)
	out, err := c.CombinedOutput()
	GinkgoWriter.Printf("$ ray job %s\n%s%v\n", strings.Join(args, " "), out, err)
	return string(out), err == nil
}

var _ = Describe("Ray's own client with heliostat://", Ordered, Label(live.RayAddressLabel, live.AcceptLabel, localkubeLabel), func() {
	var d *desk
	var address string

	BeforeAll(func(ctx SpecContext) {
		api, dashboards := door(ctx, "https"), door(ctx, "dashboards")
		withDashboards(ctx, "--set", "server.url=https://"+api+",server.dashboards.host="+dashboards)
		serverPods(ctx, 1)
		demo := made(ctx, "demo", "clusters/head.yaml", nil)
		d = deskOf(ctx, demo.Namespace)
		authority := filepath.Join(GinkgoT().TempDir(), "ca.crt")
		Expect(os.WriteFile(authority, serverAuthority(ctx), 0o600)).To(Succeed())
		d.environ = []string{"HELIOSTAT_SERVER=https://" + api, "HELIOSTAT_SERVER_CA=" + authority, "REQUESTS_CA_BUNDLE=" + authority, "SSL_CERT_FILE=" + authority}
		address = "heliostat://" + demo.Namespace + "/demo"
	}, NodeTimeout(limit))

	for _, release := range []string{release, "2.52.0"} {
		It("wakes a cluster, submits, follows, lists and stops: "+release, func(ctx SpecContext) {
			r := newRayTools(ctx, d, release)
			if release != "2.60.0" { // the other one gets its token from heliostat env
				r.environ = append(r.environ, "HELIOSTAT_TOKEN="+tokenIn(d.kubeconfig))
			}
			d.does(ctx, "suspend cluster/demo")
			d.does(ctx, "wait cluster/demo --for suspended")
			said, isDone := r.job(ctx, "list", "--address", address)
			Expect(isDone).To(BeFalse())
			Expect(said).To(ContainSubstring("is suspended; resume it: heliostat resume cluster/demo -n " + d.namespace))

			all := said
			watched := watchArguments(ctx, tokenIn(d.kubeconfig))
			for _, one := range []struct {
				want string
				args []string
			}{
				{"\nwoken\n", []string{"submit", "--address", address, "--submission-id", "woken-" + release, "--", "echo", "woken"}},
				{"\nwoken\n", []string{"logs", "--address", address, "woken-" + release}},
				{"", []string{"submit", "--address", address, "--no-wait", "--submission-id", "endless-" + release, "--", "sleep", "1000"}},
				{"was stopped", []string{"stop", "--address", address, "endless-" + release}},
				{"endless-" + release, []string{"list", "--address", address}},
			} {
				said, isDone := r.job(ctx, one.args...)
				Expect(isDone).To(BeTrue(), said)
				Expect("\n" + said).To(ContainSubstring(one.want))
				all += said
			}
			Expect(watched()).To(BeEmpty(), "programs had the token among their arguments")
			Expect(all).To(ContainSubstring("is suspended; resuming it"))
			Expect(all).NotTo(ContainSubstring(tokenIn(d.kubeconfig)))
		}, SpecTimeout(3*limit))
	}

	It("is not needed to compare versions and to upload a directory through the server", func(ctx SpecContext) {
		directory := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(directory, "words.txt"), []byte("by the server\n"), 0o600)).To(Succeed())
		d.does(ctx, "wait cluster/demo")
		Expect(d.does(ctx, "connect demo")).To(And(ContainSubstring("Ray "+release+", Python 3."), ContainSubstring("heliostat env demo --server")))
		for range 2 { // the second one finds the files there
			Expect(d.does(ctx, "job submit --cluster demo --working-dir "+directory+" -- cat words.txt")).To(ContainSubstring("by the server\n"))
		}
	}, SpecTimeout(limit))
})

// watchArguments looks for a text among the arguments of all programs of this machine, until it is asked for what it found.
func watchArguments(ctx context.Context, text string) (found func() []string) {
	ctx, end := context.WithCancel(ctx)
	all, done := []string{}, make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, file := range files {
				if words, err := os.ReadFile(file); err == nil && strings.Contains(string(words), text) {
					all = append(all, file)
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	return func() []string {
		end()
		<-done
		return all
	}
}

const (
	// largeLines of as many bytes are followed for about 25 s.
	largeLines, lineBytes = 100_000, 1000
	firstLine             = "the first line"
)

// large writes an output of 100 MB.
var large = fmt.Sprintf(`import sys, time
line = 'x' * %d + '\n'
for _ in range(100):
    sys.stdout.write(line * %d)
    time.sleep(0.25)
`, lineBytes-1, largeLines/100)

var _ = Describe("the command line beside kubectl and Ray's client", Label(live.CommandsBesideLabel, live.AcceptLabel, localkubeLabel), func() {
	It("prints a first line sooner, and follows a large output with less", func(ctx SpecContext) {
		demo := made(ctx, "demo", "clusters/head.yaml", nil)
		r := newRayTools(ctx, deskOf(ctx, demo.Namespace), release)
		r.environ = append(r.environ, "RAY_AUTH_MODE=token", "RAY_AUTH_TOKEN="+demo.token(ctx))
		seen := live.CommandsBeside{}
		for i := range *rounds {
			seen.FirstLine = append(seen.FirstLine, untilFirst(r.command(ctx, "job", "submit", "--cluster", "demo", "--", "echo "+firstLine)))
			begin := time.Now()
			port, end := r.portForward(ctx)
			submit := osexec.CommandContext(ctx, r.program, "job", "submit", "--address", "http://"+port, "--", "echo", firstLine)
			submit.Env = append(os.Environ(), r.environ...)
			before := time.Since(begin).Seconds()
			seen.FirstLineThere = append(seen.FirstLineThere, before+untilFirst(submit))

			name := fmt.Sprint("large-", i)
			code, _, said := r.pipe(ctx, "job", "submit", "--cluster", "demo", "--name", name, "--detach", "--", "python", "-c", large)
			Expect(code).To(BeZero(), said)
			id := r.submission(ctx, demo, name)
			ours := r.command(ctx, "logs", "job/"+name, "-f")
			theirs := osexec.CommandContext(ctx, r.program, "job", "logs", "--address", "http://"+port, "-f", id)
			theirs.Env = append(os.Environ(), r.environ...)
			size := &byteCount{}
			ours.Stdout = size
			Expect(ours.Start()).To(Succeed())
			Expect(theirs.Start()).To(Succeed())
			Expect(ours.Wait()).To(Succeed())
			Expect(theirs.Wait()).To(Succeed())
			seen.Bytes = size.bytes
			seen.FollowCPU, seen.FollowCPUThere = append(seen.FollowCPU, used(ours)), append(seen.FollowCPUThere, used(theirs))
			end()
		}
		GinkgoWriter.Println(seen)
		AddReportEntry(live.CommandsBesideEntry, seen, ReportEntryVisibilityAlways)
		Expect(seen.Bytes).To(BeNumerically(">=", largeLines*lineBytes))
	}, SpecTimeout(6*limit))
})

// byteCount counts what is written.
type byteCount struct{ bytes int }

// Write implements io.Writer.
func (b *byteCount) Write(part []byte) (int, error) {
	b.bytes += len(part)
	return len(part), nil
}

// used returns the processor time of a program that has ended.
func used(c *osexec.Cmd) float64 {
	return (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
}

// untilFirst runs a program, and returns after how many seconds it printed the line of its job.
func untilFirst(c *osexec.Cmd) float64 {
	GinkgoHelper()
	begin := time.Now()
	out, err := c.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(c.Start()).To(Succeed())
	lines, took := bufio.NewScanner(out), 0.0
	for lines.Scan() {
		if took == 0 && lines.Text() == firstLine {
			took = time.Since(begin).Seconds()
		}
	}
	Expect(c.Wait()).To(Succeed())
	Expect(took).NotTo(BeZero(), "the line never came")
	return took
}

// portForward has kubectl lead to the head's dashboard, and returns where, and what ends it.
func (r *rayTools) portForward(ctx context.Context) (address string, end func()) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(ctx)
	c := kubectl(ctx, "--kubeconfig", r.kubeconfig, "port-forward", "service/demo-head", ":8265")
	out, err := c.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(c.Start()).To(Succeed())
	first, err := bufio.NewReader(out).ReadString('\n')
	Expect(err).NotTo(HaveOccurred())
	go func() { _, _ = io.Copy(io.Discard, out) }() // it says each connection
	return regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(first), func() {
		cancel()
		_ = c.Wait() // it was told to end
	}
}

// submission waits until a job runs, and returns the ID that Ray knows it by.
func (r *rayTools) submission(ctx context.Context, e *env, name string) (id string) {
	GinkgoHelper()
	eventually(ctx, "the job "+name+" to run", func(ctx context.Context) error {
		job, err := kubernetes.FindJob(ctx, types.NamespacedName{Namespace: e.Namespace, Name: name})
		if err == nil && job.Status.StartTime == nil {
			err = fmt.Errorf("it is %s", job.Status.Phase)
		}
		if err == nil {
			id = job.Status.SubmissionID
		}
		return err
	})
	return id
}
