package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	// rayReplicas is how many servers there are: the client goes on at the other one while one is replaced.
	rayReplicas = 2
	// uploadBytes is the size of a working directory, and maxUpload and tooLarge are around the largest one that is taken.
	uploadBytes = 100_000_000
	maxUpload   = "105Mi"
	tooLarge    = 120_000_000
	// followLines are written by the job that is followed, ten a second.
	followLines = 1000
)

// beating is a program that writes numbered lines, slowly enough for servers to be replaced meanwhile.
var beating = fmt.Sprintf(`
import time
for i in range(%d):
    print('line', i)
    time.sleep(0.1)
`, followLines)

// rayClient is a release of Ray's own client.
type rayClient struct {
	*guest
	program, address string
}

// newRayClient installs a release of Ray's client, which asks the proxy.
func (v *guest) newRayClient(ctx context.Context, release string) *rayClient {
	GinkgoHelper()
	own := *v
	own.directory = filepath.Join(v.directory, release)
	Expect(os.MkdirAll(own.directory, 0o755)).To(Succeed())
	own.find(ctx)
	return &rayClient{guest: &own, program: filepath.Join(own.python(ctx, "ray[default]=="+release), "ray"), address: "https://" + door(ctx, "dashboards")}
}

// job prepares ray job with arguments, for a cluster.
func (c *rayClient) job(ctx context.Context, cluster, verb string, args ...string) *osexec.Cmd {
	all := append([]string{"job", verb, "--verify", c.authority()}, args...)
	command := c.command(ctx, c.url(), c.program, all...)
	command.Env = append(command.Env, "RAY_API_SERVER_ADDRESS="+c.address+"/"+c.namespace+"/"+cluster, "RAY_JOB_HEADERS={}", "NO_COLOR=1")
	if c.token != "" {
		command.Env = append(command.Env, `RAY_JOB_HEADERS={"Authorization": "Bearer `+c.token+`"}`)
	}
	return command
}

// says runs ray job, and returns all that it printed.
func (c *rayClient) says(ctx context.Context, cluster, verb string, args ...string) string {
	GinkgoHelper()
	command := c.job(ctx, cluster, verb, args...)
	command.Stderr = nil
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return string(out)
}

// refused runs ray job, which must fail, and returns what it printed last.
func (c *rayClient) refused(ctx context.Context, cluster, verb string, args ...string) string {
	GinkgoHelper()
	command := c.job(ctx, cluster, verb, args...)
	command.Stderr = nil
	out, err := command.CombinedOutput()
	Expect(err).To(HaveOccurred(), string(out))
	GinkgoWriter.Printf("%s %s: %s\n", cluster, verb, out)
	return string(out)
}

// folder makes a working directory of a size.
func (c *rayClient) folder(size int64) string {
	GinkgoHelper()
	directory, err := os.MkdirTemp(c.directory, "folder")
	Expect(err).NotTo(HaveOccurred())
	noise := make([]byte, size)
	_, _ = rand.Read(noise) // it never fails
	Expect(os.WriteFile(filepath.Join(directory, "noise.bin"), noise, 0o600)).To(Succeed())
	return directory
}

// swelling returns by how many MiB the memory of a server grew at most while something was done.
func swelling(ctx context.Context, do func()) float64 {
	GinkgoHelper()
	var processes []int
	for _, pod := range serverPods(ctx, rayReplicas) {
		process, err := live.Process("server", string(pod.UID))
		Expect(err).NotTo(HaveOccurred())
		processes = append(processes, process)
	}
	before, most := make([]float64, len(processes)), make([]float64, len(processes))
	look := func(into []float64) {
		for i, process := range processes {
			if memory, err := live.MemoryOf(process); err == nil {
				into[i] = max(into[i], memory.Anonymous)
			}
		}
	}
	look(before)
	var watching sync.WaitGroup
	done := make(chan struct{})
	watching.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				look(most)
			}
		}
	})
	do()
	close(done)
	watching.Wait()
	for i := range most {
		most[i] -= before[i]
	}
	return slices.Max(most)
}

var submissionID = regexp.MustCompile(`raysubmit_\w+`)

// Ray's own client, as a user has it.
var _ = Describe("Ray's own client through the dashboard proxy", Ordered, Label(live.RayClientLabel, live.AcceptLabel, localkubeLabel), func() {
	var v *guest

	BeforeAll(func(ctx SpecContext) {
		withDashboards(ctx, "--set", fmt.Sprintf("server.replicas=%d", rayReplicas), "--set-string", "server.dashboards.maxUpload="+maxUpload)
		serverPods(ctx, rayReplicas)
		demo := made(ctx, "demo", "clusters/head.yaml", values{"CPU": "1", "Memory": "3Gi"})
		v = &guest{namespace: demo.Namespace, token: editor(ctx, demo.Namespace), directory: GinkgoT().TempDir()}
		asleep := &env{types.NamespacedName{Namespace: demo.Namespace, Name: "asleep"}}
		asleep.apply(ctx, "clusters/head.yaml", values{"Suspend": true})
	}, NodeTimeout(limit))

	for _, release := range []string{release, "2.52.0"} {
		It("uploads, follows through an upgrade, stops and lists, and prints each refusal: "+release, func(ctx SpecContext) {
			c := v.newRayClient(ctx, release)
			seen := live.RayClient{Release: release, UploadMB: uploadBytes / 1e6, Refusals: c.refusals(ctx)}
			c.says(ctx, "demo", "list")
			for range *rounds {
				folder := c.folder(uploadBytes)
				seen.GrewMiB = append(seen.GrewMiB, swelling(ctx, func() {
					Expect(c.says(ctx, "demo", "submit", "--working-dir", folder, "--", "ls", "-l", "noise.bin")).To(ContainSubstring(fmt.Sprint(uploadBytes)))
				}))
			}
			seen.Lines, seen.IsWhole = c.follow(ctx)
			GinkgoWriter.Println(seen)
			AddReportEntry(live.RayClientEntry, seen, ReportEntryVisibilityAlways)
			Expect(seen.IsWhole).To(BeTrue())
			if *judge {
				Expect(seen.Grew()).To(BeNumerically("<", live.PromisedUploadMemory))
			}

			endless := submissionID.FindString(c.says(ctx, "demo", "submit", "--no-wait", "--", "sleep", "1000"))
			Expect(c.says(ctx, "demo", "stop", endless)).To(ContainSubstring("was stopped"))
			Expect(c.says(ctx, "demo", "status", endless)).To(ContainSubstring("was stopped"))
			Expect(c.says(ctx, "demo", "list")).To(ContainSubstring(endless))
		}, SpecTimeout(3*limit))
	}
})

// follow follows a job while each server is replaced, and returns how many of its lines came, and whether each came once.
func (c *rayClient) follow(ctx context.Context) (lines int, isWhole bool) {
	GinkgoHelper()
	id := submissionID.FindString(c.says(ctx, "demo", "submit", "--no-wait", "--", "python", "-u", "-c", beating))
	var printed output
	follower := c.job(ctx, "demo", "logs", "--follow", id)
	follower.Stdout = &printed
	Expect(follower.Start()).To(Succeed())
	Eventually(ctx, printed.lines, limit, "100ms").Should(BeNumerically(">", 5))
	replaceServers(ctx, rayReplicas)
	Expect(printed.lines()).To(BeNumerically("<", followLines), "the job has ended before the servers were replaced")
	Expect(follower.Wait()).To(Succeed(), printed.text())
	text := printed.text()
	want := &bytes.Buffer{}
	for i := range followLines {
		fmt.Fprintf(want, "line %d\n", i)
	}
	return strings.Count(text, "line "), strings.Contains(text, want.String()) && strings.Contains(text, "succeeded")
}

// refusals returns what the client prints where it is refused, and fails where that is not what the proxy has said.
func (c *rayClient) refusals(ctx context.Context) map[string]string {
	GinkgoHelper()
	said := map[string]string{}
	none, stranger := *c, *c
	noToken, noRight := *c.guest, *c.guest
	noToken.token, noRight.token = "", c.stranger(ctx)
	none.guest, stranger.guest = &noToken, &noRight
	for name, one := range map[string]struct {
		said string
		want string
	}{
		"no token":          {none.refused(ctx, "demo", "list"), "export RAY_JOB_HEADERS="},
		"no permission":     {stranger.refused(ctx, "demo", "list"), "kubectl auth can-i get computeclusters/demo --subresource=proxy -n " + c.namespace},
		"unknown cluster":   {c.refused(ctx, "none", "list"), "there is no ComputeCluster " + c.namespace + "/none"},
		"suspended cluster": {c.refused(ctx, "asleep", "list"), `kubectl patch computecluster asleep -n ` + c.namespace + ` --type merge -p '{"spec":{"suspend":false}}'`},
		"too large an upload": {c.refused(ctx, "demo", "submit", "--working-dir", c.folder(tooLarge), "--", "true"),
			"the body of the request has more than 110100480 bytes"},
	} {
		Expect(one.said).To(ContainSubstring("Heliostat dashboard proxy: "), name)
		Expect(one.said).To(ContainSubstring(one.want), name)
		at := strings.Index(one.said, "Heliostat dashboard proxy: ")
		said[name], _, _ = strings.Cut(one.said[at:], "\n")
	}
	return said
}

// stranger returns a token of an account that may do nothing in the namespace.
func (c *rayClient) stranger(ctx context.Context) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, GenerateName: "stranger-"}}
	Expect(kubernetes.Create(ctx, account)).To(Succeed())
	request := &authenticationv1.TokenRequest{}
	Expect(kubernetes.SubResource("token").Create(ctx, account, request)).To(Succeed())
	return request.Status.Token
}
