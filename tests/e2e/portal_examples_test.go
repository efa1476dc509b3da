package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	portalExamples = root + "/examples/portal"
	// followedLines is how many lines of a job are followed, and atOnceLines how many of them it writes at once.
	followedLines, atOnceLines = 100_000, 1_000
)

// counting writes lines with all that an output may hold, for half a minute.
var counting = rendered("programs/counting.sh", values{"Lines": followedLines, "AtOnce": atOnceLines})

// The programs of examples/portal, as a user runs them.
var _ = Describe("an example of a client of the server for portals", Ordered, ContinueOnFailure, Label(live.PortalExamplesLabel, live.AcceptLabel, localkubeLabel), func() {
	var v *guest

	BeforeAll(func(ctx SpecContext) { v = visit(ctx, fresh(ctx)) }, NodeTimeout(limit))

	It("spends a cluster's day with curl", func(ctx SpecContext) {
		c := v.command(ctx, v.url(), portalExamples+"/portal.sh")
		out, err := c.Output()
		Expect(err).NotTo(HaveOccurred(), string(out))
		for _, want := range []string{`"method":"Token"`, `"isCreated":true`, `"isChanged":true`, `"status": "Success"`} {
			Expect(string(out)).To(ContainSubstring(want))
		}
		eventually(ctx, "the cluster of curl to be gone", func(ctx context.Context) error {
			cluster := &v1beta1.ComputeCluster{}
			err := kubernetes.Get(ctx, types.NamespacedName{Namespace: v.namespace, Name: "curl"}, cluster)
			if err == nil {
				err = fmt.Errorf("it is %s", cluster.Status.Phase)
			}
			if apierrors.IsNotFound(err) {
				err = nil
			}
			return err
		})
	}, SpecTimeout(limit))

	It("submits a job over gRPC, which Node watches from its first line to its last", func(ctx SpecContext) {
		watched := gbytes.NewBuffer()
		c := v.command(ctx, v.url(), "node", portalExamples+"/watch.mjs", "kinds=jobs&namespaces="+v.namespace)
		c.Stdout = watched
		Expect(c.Start()).To(Succeed(), "node is needed (Debian: nodejs)")
		DeferCleanup(func() {
			_ = c.Process.Kill() // it goes on for ever
			_ = c.Wait()
		})
		Eventually(ctx, watched, limit).Should(gbytes.Say(`ready: 0 objects`))
		out, err := v.command(ctx, v.grpc, "go", "run", portalExamples+"/gosubmit").Output()
		Expect(err).NotTo(HaveOccurred(), string(out))
		Expect(string(out)).To(ContainSubstring("\nhello from Ray\n"))
		Eventually(ctx, watched, limit).Should(gbytes.Say(`put jobs/` + v.namespace + `/gosubmit-\S+ Provisioning`))
		Eventually(ctx, watched, limit).Should(gbytes.Say(`put jobs/` + v.namespace + `/gosubmit-\S+ Succeeded JobSucceeded`))
	}, SpecTimeout(2*limit))

	It("follows a job on a cluster of a preset with Python, byte for byte, whenever the server is killed", func(ctx SpecContext) {
		v.offer(ctx)
		bin := v.generate(ctx)
		c := v.command(ctx, v.url(), filepath.Join(bin, "python"), "job.py", counting)
		c.Dir = v.directory
		copied := &output{}
		c.Stdout = copied
		Expect(c.Start()).To(Succeed())
		followed := live.Followed{}
		for _, share := range []int{followedLines / 4, followedLines / 2} {
			Eventually(ctx, copied.lines, 2*limit, "100ms").Should(BeNumerically(">", share))
			Expect(copied.lines()).To(BeNumerically("<", followedLines), "it is killed in between")
			killServer(ctx)
			followed.Kills++
		}
		Expect(c.Wait()).To(Succeed())

		var jobs v1beta1.ClusterJobList
		Expect(kubernetes.List(ctx, &jobs, client.InNamespace(v.namespace))).To(Succeed())
		var file string
		for i := range jobs.Items {
			if job := &jobs.Items[i]; job.Spec.Entrypoint == counting {
				Expect(job.Spec.ClusterRef.Name).To(Equal("job-py"), "an option of the preset is its name")
				head := (&env{types.NamespacedName{Namespace: v.namespace, Name: job.Spec.ClusterRef.Name}}).head(ctx)
				file = exec(ctx, &head, "cat", "/tmp/ray/session_latest/logs/job-driver-"+job.Status.SubmissionID+".log")
			}
		}
		followed.Lines, followed.Bytes, followed.IsSame = strings.Count(file, "\nline "), len(file), copied.text() == file
		GinkgoWriter.Println(followed)
		AddReportEntry(live.FollowedEntry, followed, ReportEntryVisibilityAlways)
		Expect(followed).To(Equal(live.Followed{Lines: followedLines, Bytes: len(file), Kills: 2, IsSame: true}))
	}, SpecTimeout(3*limit))
})

// offer applies the preset of the examples for everybody.
func (v *guest) offer(ctx context.Context) {
	GinkgoHelper()
	text, err := os.ReadFile(portalExamples + "/preset.yaml")
	Expect(err).NotTo(HaveOccurred())
	Expect(kubernetes.Apply(ctx, live.ReleaseNamespace, text)).To(Succeed())
	preset := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: live.ReleaseNamespace, Name: "small"}}
	DeferCleanup(func(ctx SpecContext) { Expect(kubernetes.Delete(ctx, preset)).To(Succeed()) }, NodeTimeout(limit))
}

// generate makes the Python client from the document of the API as the example's page says, and returns the directory of its
// programs.
func (v *guest) generate(ctx context.Context) string {
	GinkgoHelper()
	bin := v.python(ctx, "-r", portalExamples+"/python/requirements.txt")
	document, err := filepath.Abs(root + "/apiserver/rest/openapi.json")
	Expect(err).NotTo(HaveOccurred())
	c := osexec.CommandContext(ctx, filepath.Join(bin, "openapi-python-client"), "generate", "--meta", "none", "--overwrite",
		"--path", document, "--output-path", "heliostat_client")
	c.Dir, c.Env = v.directory, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	Expect(string(out)).NotTo(ContainSubstring("Warning"))
	program, err := os.ReadFile(portalExamples + "/python/job.py")
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(v.directory, "job.py"), program, 0o600)).To(Succeed())
	return bin
}

// output is what a program has written so far.
type output struct {
	mutex sync.Mutex
	all   bytes.Buffer
	count int
}

// Write implements io.Writer.
func (o *output) Write(part []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.count += bytes.Count(part, []byte("\n"))
	return o.all.Write(part)
}

func (o *output) lines() int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.count
}

func (o *output) text() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.all.String()
}
