package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// badVersion is one that cannot serve.
type badVersion struct {
	name string
	// change asks for it.
	change []func(*v1beta1.ClusterServiceSpec) error
	// prepare makes what has to be in the namespace first, nil for nothing.
	prepare func(ctx context.Context, namespace string) client.Object
	// seen waits until the cause can be seen, and returns when that was: zero where the status had it before the test.
	seen func(ctx context.Context, s *service, former string) time.Time
	// words are what the status must say.
	words string
}

// saidInServe returns a function that waits until Serve says the words, on the former cluster or on another one.
func saidInServe(another bool, words string) func(context.Context, *service, string) time.Time {
	return func(ctx context.Context, s *service, former string) time.Time {
		return s.inServe(ctx, former, another, words)
	}
}

// missing asks for an import path that does not exist.
var missing = codeOf("/code/a", "nowhere")

// missingInPlace is a version with that import path, which needs no second cluster.
var missingInPlace = badVersion{
	name: "an import path that does not exist, on the same cluster", change: []func(*v1beta1.ClusterServiceSpec) error{missing},
	seen: saidInServe(false, "No module named"), words: "No module named",
}

// badVersions returns the other versions that must never get a request.
func badVersions() []badVersion {
	return []badVersion{
		{
			name:   "an import path that does not exist, on a second cluster",
			change: []func(*v1beta1.ClusterServiceSpec) error{missing, moved("import")}, seen: saidInServe(true, "No module named"), words: "No module named",
		},
		{
			name:   "a replica that dies after 30 s, before it is ready",
			change: []func(*v1beta1.ClusterServiceSpec) error{codeOf("/code/a", "dies"), moved("dies"), within(120)},
			seen:   saidInServe(true, "failed to start"), words: "failed to start",
		},
		{
			name: "an image that cannot be pulled", words: "example.com/none:1",
			change: []func(*v1beta1.ClusterServiceSpec) error{within(30), func(spec *v1beta1.ClusterServiceSpec) error {
				spec.ClusterTemplate.Spec.Image = "example.com/none:1"
				return nil
			}},
			seen: func(ctx context.Context, s *service, _ string) time.Time {
				pulled := watch(ctx, s.Namespace, &corev1.PodList{}, waits("ErrImagePull", "ImagePullBackOff"))
				return sighted(ctx, pulled, "an image that is not there")
			},
		},
		{
			name: "no quota for a second cluster", words: "ResourceQuota tight",
			change:  []func(*v1beta1.ClusterServiceSpec) error{within(30), moved("quota")},
			prepare: tight,
			seen: func(ctx context.Context, s *service, former string) time.Time {
				refused := watch(ctx, s.Namespace, &v1beta1.ComputeClusterList{}, func(object client.Object) bool {
					cluster, ok := object.(*v1beta1.ComputeCluster)
					return ok && cluster.Name != former && slices.ContainsFunc(cluster.Status.Conditions, func(c metav1.Condition) bool {
						return c.Reason == reason.QuotaExceeded.Code
					})
				})
				return sighted(ctx, refused, "a quota that refuses")
			},
		},
	}
}

// within is how long a version may take to become healthy, in seconds.
func within(seconds int32) func(*v1beta1.ClusterServiceSpec) error {
	return func(spec *v1beta1.ClusterServiceSpec) error {
		spec.UpgradeStrategy.HealthyDeadlineSeconds = &seconds
		return nil
	}
}

// tight is a quota that is used up by the pods that are there.
func tight(ctx context.Context, namespace string) client.Object {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(kubernetes.List(ctx, &pods, client.InNamespace(namespace))).To(Succeed())
	hard := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(len(pods.Items)), resource.DecimalSI)}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tight"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	Expect(kubernetes.Create(ctx, quota)).To(Succeed())
	eventually(ctx, "the quota to be counted", func(ctx context.Context) error {
		err := kubernetes.Get(ctx, client.ObjectKeyFromObject(quota), quota)
		if used := quota.Status.Used[corev1.ResourcePods]; err == nil && used.Value() != int64(len(pods.Items)) {
			err = fmt.Errorf("%s pods are counted", used.String())
		}
		return err
	})
	return quota
}

func sighted(ctx context.Context, wait func(context.Context, time.Duration, string) (live.Sighting, error), what string) time.Time {
	GinkgoHelper()
	seen, err := wait(ctx, limit, what)
	Expect(err).NotTo(HaveOccurred())
	return seen.At
}

// inServe waits until Serve on a cluster of the service says some words, and returns when that was. It is the former
// cluster, or another one that comes. Serve forgets the words when the version is taken back, which may happen before
// the test reaches the head: the status says them then, and the time is zero.
func (s *service) inServe(ctx context.Context, former string, another bool, words string) time.Time {
	GinkgoHelper()
	e := &env{types.NamespacedName{Namespace: s.Namespace, Name: former}}
	var head corev1.Pod
	eventually(ctx, "the head where Serve is to say "+words, func(ctx context.Context) error {
		if clusters := s.clusters(ctx); another {
			i := slices.IndexFunc(clusters, func(cluster v1beta1.ComputeCluster) bool { return cluster.Name != former })
			if i < 0 {
				return errors.New("there is no other cluster")
			}
			e.Name = clusters[i].Name
		}
		heads := e.pods(ctx, v1beta1.RoleHead)
		if len(heads) != 1 || !isReady(&heads[0]) {
			return fmt.Errorf("%s has no head yet", e.Name)
		}
		head = heads[0]
		return nil
	})
	url, token := "http://"+forward(ctx, &head, dashboard)+"/api/serve/applications/?api_type=declarative", e.token(ctx)
	var seen time.Time
	eventually(ctx, "Serve on "+e.Name+" to say "+words, func(ctx context.Context) error {
		text, err := page(ctx, url, token)
		switch {
		case err == nil && strings.Contains(text, words):
			seen = time.Now()
			return nil
		case names(s.Name, words)(s.now(ctx)):
			return nil
		}
		return errors.Join(err, fmt.Errorf("it says %s", text))
	})
	return seen
}

// page asks for one with a token, and gives its text.
func page(ctx context.Context, url, token string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = reply.Body.Close() }() // it was read
	text, err := io.ReadAll(reply.Body)
	return string(text), err
}

// names reports whether a service's status says some words, in a condition or of an application.
func names(name, words string) func(client.Object) bool {
	return func(object client.Object) bool {
		service, ok := object.(*v1beta1.ClusterService)
		if !ok || service.Name != name {
			return false
		}
		text := live.SaysOfService(service)
		for _, version := range []*v1beta1.ServiceVersion{service.Status.Active, service.Status.Candidate} {
			for i := 0; version != nil && i < len(version.Applications); i++ {
				text += version.Applications[i].Message
			}
		}
		return strings.Contains(text, words)
	}
}

// expectRollback asks for a version that cannot serve, and expects the service to keep what it has: no request fails, and
// the status names the cause.
func (s *service) expectRollback(ctx context.Context, clients *crowd, bad badVersion) {
	GinkgoHelper()
	serving := s.serves(ctx)
	good, before, former, pids := serving.Spec.DeepCopy(), serving.Status, serving.Status.Active.ClusterName, s.processes(ctx, "/")
	if bad.prepare != nil {
		made := bad.prepare(ctx, s.Namespace)
		DeferCleanup(func(ctx SpecContext) { Expect(kubernetes.Delete(ctx, made)).To(Succeed()) }, NodeTimeout(limit))
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	clients.phase("calm")
	clients.phase(bad.name)
	said := watch(watching, s.Namespace, &v1beta1.ClusterServiceList{}, names(s.Name, bad.words))
	back, begin := live.TakenBack{Cause: bad.name}, time.Now()
	s.edit(ctx, bad.change...)
	shown := bad.seen(watching, s, former)
	if shown.IsZero() {
		shown = begin // so that it is no shorter than it was
	}
	back.Told = max(0, sighted(ctx, said, "the status to say "+bad.words).Sub(shown).Seconds())
	s.becomes(ctx, "have the version taken back", has(v1beta1.ConditionRolledBack, metav1.ConditionTrue, ""))
	Expect(s.alone(ctx).Name).To(Equal(former))
	back.Seconds = time.Since(begin).Seconds()
	// It was told that it is being taken back, and then how that ended.
	taken := s.becomes(ctx, "tell how the change ended", func(service *v1beta1.ClusterService) error {
		if last := service.Status.LastUpgrade; last == nil || before.LastUpgrade != nil && last.To == before.LastUpgrade.To {
			return errors.New("it tells of the one before")
		}
		return nil
	})
	back.Reason, back.Message = taken.Status.LastUpgrade.Reason, taken.Status.LastUpgrade.Message
	Expect(taken.Status.LastUpgrade.Result).To(Equal(v1beta1.UpgradeRolledBack))
	Expect(taken.Status.Active.ClusterName).To(Equal(former))
	Expect(has(v1beta1.ConditionReady, metav1.ConditionTrue, "")(taken)).To(Succeed(), "the good version serves")
	Consistently(ctx, func(ctx context.Context) int { return len(s.clusters(ctx)) }, "3s", "200ms").Should(Equal(1), "it is not tried again")
	back.Same = slices.Equal(s.processes(ctx, "/"), pids)
	clients.phase("after")
	var failures any
	back.Sent, back.Failed, failures = counted(clients.settled(ctx, "calm", bad.name))
	GinkgoWriter.Println(back)
	AddReportEntry(live.ServeBadEntry, back, ReportEntryVisibilityAlways)
	Expect(back.Message).To(ContainSubstring(bad.words))
	Expect(back.Broken()).To(BeFalse(), "%s: %+v", back, failures)

	s.edit(ctx, to(good))
	Expect(s.serves(ctx).Status.Active.ClusterName).To(Equal(former))
	Expect(s.processes(ctx, "/")).To(Equal(pids), "the good spec again changes nothing")
}

// Versions that cannot serve, one after another. The good one has all requests all the time.
var _ = Describe("a service whose next version cannot serve", Ordered, ContinueOnFailure, Label(serviceLabel, localkubeLabel, live.AcceptLabel), func() {
	var s *service
	var clients *crowd
	var pids []string
	var good *v1beta1.ClusterServiceSpec

	BeforeAll(func(ctx SpecContext) {
		s = serviced(ctx).begins(ctx, "steadfast", "services/own.yaml", nil)
		good = s.now(ctx).Spec.DeepCopy()
		pids = s.processes(ctx, "/")
		clients = s.crowd(ctx, quick...)
	}, NodeTimeout(servingTime))

	for _, bad := range badVersions() {
		It("keeps the one that does: "+bad.name, func(ctx SpecContext) {
			s.edit(ctx, to(good)) // where a spec before has failed
			s.expectRollback(ctx, clients, bad)
			Expect(s.processes(ctx, "/")).To(Equal(pids), "it serves by the processes that it had first")
		}, Label(live.ServeBadLabel), SpecTimeout(2*servingTime))
	}

	It("has its requests back when the next one sickens at half of them", func(ctx SpecContext) {
		s.edit(ctx, to(good)) // where a spec before has failed
		former := s.serves(ctx).Status.Active.ClusterName
		clients.phase("calm")
		clients.phase("sick")
		s.edit(ctx, codeOf("/code/a", "sickens"), moved("sick"), func(spec *v1beta1.ClusterServiceSpec) error {
			minute := int32(60)
			spec.UpgradeStrategy.Surge.IntervalSeconds = &minute
			return nil
		})
		half := s.becomes(ctx, "give half of the requests away", func(service *v1beta1.ClusterService) error {
			if candidate := service.Status.Candidate; candidate == nil || candidate.TrafficPercent != 50 {
				return errors.New("it does not")
			}
			return nil
		})
		sick := &env{types.NamespacedName{Namespace: s.Namespace, Name: half.Status.Candidate.ClusterName}}
		workers := sick.workers(ctx, 2)
		begin := time.Now()
		for i := range workers {
			exec(ctx, &workers[i], "touch", "/tmp/sick")
		}
		s.becomes(ctx, "have all requests back", func(service *v1beta1.ClusterService) error {
			if active := service.Status.Active; active.ClusterName != former || active.TrafficPercent != 100 {
				return errors.New("it has not")
			}
			return nil
		})
		told(live.ServeSickEntry, begin)
		// Nodes know of it a moment later.
		Consistently(ctx, func(ctx context.Context) error {
			return has(v1beta1.ConditionReady, metav1.ConditionTrue, "")(s.now(ctx))
		}, learned(3*time.Second), "1s").Should(Succeed())
		clients.phase("back")
		s.becomes(ctx, "have the version taken back", has(v1beta1.ConditionRolledBack, metav1.ConditionTrue, ""))
		Expect(s.alone(ctx).Name).To(Equal(former))
		Expect(s.processes(ctx, "/")).To(Equal(pids))
		s.edit(ctx, to(good))
		s.serves(ctx)
		clients.phase("after")
		_, failed, _ := counted(clients.settled(ctx, "calm", "sick"))
		GinkgoWriter.Printf("%d requests failed that the sick version had, or got before it was known to be sick\n", failed)
		_, failed, failures := counted(clients.settled(ctx, "calm", "back"))
		Expect(failed).To(BeZero(), "once it has no requests: %+v", failures)
	}, Label(live.ServeSickLabel), SpecTimeout(2*servingTime))
})
