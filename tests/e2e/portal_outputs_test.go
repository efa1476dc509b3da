package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// How many MB a large output has, and how many readers read it at once.
const (
	largeOutput   = 100
	outputReaders = 100
)

// printing writes so many MB.
const printing = `python -c "
import sys
part = (b'x' * 99 + b'\n') * 10000
for _ in range(%d):
    sys.stdout.buffer.write(part)
"`

// countLogRequests has how often the head was asked for files of logs.
const countLogRequests = `
import re, urllib.request
text = urllib.request.urlopen("http://localhost:44227/metrics").read().decode()
found = re.findall(r'^ray_dashboard_api_requests_count_requests_total\{.*endpoint="get_logs".*\} (\S+)$', text, re.M)
print("ANSWER", sum(int(float(one)) for one in found))`

var _ = Describe("a large output", Label(live.PortalOutputsLabel, live.AcceptLabel, localkubeLabel), func() {
	It("comes through the server about as fast as from its head, which many readers cost no more than one", func(ctx SpecContext) {
		o := opened(ctx)
		shared := &env{o.named("shared")}
		shared.apply(ctx, "clusters/ledger.yaml", values{"DashboardFrom": outside(ctx)})
		large := o.shares(ctx, "large", fmt.Sprintf(printing, largeOutput)).is(ctx, v1beta1.PhaseSucceeded)
		s := newScale(ctx, shared, large)

		outputs := live.Outputs{Readers: outputReaders}
		for range *rounds {
			var rate float64
			outputs.Bytes, rate = s.itself.rate(ctx)
			outputs.Head = append(outputs.Head, rate)
			size, rate := s.through.rate(ctx)
			Expect(size).To(Equal(outputs.Bytes))
			outputs.Server = append(outputs.Server, rate)
		}
		for range *rounds {
			before := s.requests(ctx)
			many, took := s.cost(ctx, outputReaders, 0)
			outputs.Requests = append(outputs.Requests, s.requests(ctx)-before)
			one, _ := s.cost(ctx, 1, took)
			outputs.Many, outputs.One = append(outputs.Many, many), append(outputs.One, one)
		}
		GinkgoWriter.Println(outputs)
		AddReportEntry(live.OutputsEntry, outputs, ReportEntryVisibilityAlways)
		for _, count := range outputs.Requests {
			Expect(count).To(Equal(1), "requests to the head for %d readers", outputReaders)
		}
		if *judge {
			Expect(outputs.Rate()).To(BeNumerically(">=", live.PromisedRate))
			Expect(outputs.Load()).To(BeNumerically("<=", live.PromisedCPU))
		}
	}, SpecTimeout(6*limit))
})

// scale measures reads of one output.
type scale struct {
	head corev1.Pod
	// itself and through are the same output, at the head itself and through the server.
	itself, through source
}

// source is where an output is asked for.
type source struct {
	client     *http.Client
	url, token string
}

// newScale reaches the head and the server without a way through Kubernetes, which would be slower than both.
func newScale(ctx context.Context, cluster *env, job *v1beta1.ClusterJob) *scale {
	GinkgoHelper()
	authority := x509.NewCertPool()
	Expect(authority.AppendCertsFromPEM(serverAuthority(ctx))).To(BeTrue())
	server := serverPod(ctx)
	s := &scale{head: cluster.head(ctx)}
	s.through = source{
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority, ServerName: "localhost", MinVersion: tls.VersionTLS12}}},
		url:    "https://" + net.JoinHostPort(server.Status.PodIP, "8443") + "/v1/namespaces/" + job.Namespace + "/jobs/" + job.Name + "/log",
		token:  editor(ctx, job.Namespace),
	}
	base := "http://" + net.JoinHostPort(s.head.Status.PodIP, fmt.Sprint(dashboard))
	s.itself = source{client: &http.Client{Transport: &http.Transport{}}, url: base + "/api/jobs/" + job.Status.SubmissionID, token: cluster.token(ctx)}
	var text strings.Builder
	_, err := s.itself.read(ctx, &text)
	Expect(err).NotTo(HaveOccurred())
	var said struct {
		Node string `json:"driver_node_id"`
	}
	Expect(json.Unmarshal([]byte(text.String()), &said)).To(Succeed())
	s.itself.url = base + "/api/v0/logs/file?lines=-1&timeout=600&node_id=" + said.Node + "&filename=job-driver-" + job.Status.SubmissionID + ".log"
	return s
}

// read reads all of an answer, and returns its size.
func (s *source) read(ctx context.Context, into io.Writer) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := s.client.Do(request)
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(into, answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return size, errors.Join(err, answer.Body.Close())
}

// rate returns the size of the output, and with how many MB per second it came.
func (s *source) rate(ctx context.Context) (size int64, rate float64) {
	GinkgoHelper()
	begin := time.Now()
	size, err := s.read(ctx, io.Discard)
	Expect(err).NotTo(HaveOccurred())
	return size, float64(size) / 1e6 / time.Since(begin).Seconds()
}

// cost has so many readers read at once, and returns how many CPU-seconds the head used meanwhile, and how long that took: at
// least a while, as an idle head uses some as well.
func (s *scale) cost(ctx context.Context, readers int, least time.Duration) (seconds float64, took time.Duration) {
	GinkgoHelper()
	begin := time.Now()
	before, err := live.PodCPU(string(s.head.UID))
	Expect(err).NotTo(HaveOccurred())
	var all errgroup.Group
	for range readers {
		all.Go(func() error {
			_, err := s.through.read(ctx, io.Discard)
			return err
		})
	}
	Expect(all.Wait()).To(Succeed())
	Eventually(ctx, time.Since, least+time.Minute, "100ms").WithArguments(begin).Should(BeNumerically(">=", least))
	took = time.Since(begin)
	after, err := live.PodCPU(string(s.head.UID))
	Expect(err).NotTo(HaveOccurred())
	return after - before, took
}

// requests returns for how many files of logs the head has been asked.
func (s *scale) requests(ctx context.Context) int {
	GinkgoHelper()
	var count int
	Expect(decoded(exec(ctx, &s.head, "python3", "-c", countLogRequests), &count)).To(Succeed())
	return count
}
