package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// change is a way from one version to another. It makes the edits, and gives the version that
// must answer in the end.
type change struct {
	name string
	// surges tells that it takes a second cluster.
	surges bool
	// inTest reports whether make test plays the change too, with the operator killed in its only round. Stories and the API
	// server's tests show the sequences of the others, which make accept alone plays.
	inTest bool
	make   func(ctx context.Context, s *service, now, next string) string
}

// changes of each sort. Each has all pods, or none, follow the version of before.
var changes = []change{
	{name: live.ChangeConfig, make: func(ctx context.Context, s *service, _, next string) string {
		s.edit(ctx, tells(next))
		return next
	}},
	{name: live.ChangeCode, make: func(ctx context.Context, s *service, _, next string) string {
		s.edit(ctx, toOtherCode, tells(next))
		return next
	}},
	{name: live.ChangeImage, surges: true, make: otherImage},
	{name: live.ChangeRollback, surges: true, make: func(ctx context.Context, s *service, now, _ string) string {
		former := s.now(ctx).Spec.DeepCopy()
		s.edit(ctx, shaped, codeOf("/code/a", "nowhere"))
		s.becomes(ctx, "have the version taken back", has(v1beta1.ConditionRolledBack, metav1.ConditionTrue, ""))
		s.edit(ctx, to(former))
		return now
	}},
	{name: live.ChangeReturn, surges: true, make: func(ctx context.Context, s *service, now, next string) string {
		former := s.now(ctx).Spec.DeepCopy()
		s.edit(ctx, tells(next), shaped)
		s.becomes(ctx, "have some requests go to the new version", func(service *v1beta1.ClusterService) error {
			if candidate := service.Status.Candidate; candidate == nil || candidate.TrafficPercent == 0 {
				return errors.New("none do")
			}
			return nil
		})
		s.edit(ctx, to(former))
		return now
	}},
	{name: live.ChangeNothing, make: func(ctx context.Context, s *service, now, _ string) string {
		beside := &env{types.NamespacedName{Namespace: s.Namespace, Name: "beside"}}
		cluster := &v1beta1.ComputeCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: beside.Namespace, Name: beside.Name}, Spec: *s.now(ctx).Spec.ClusterTemplate.Spec.DeepCopy(),
		}
		Expect(kubernetes.Create(ctx, cluster)).To(Succeed())
		beside.ready(ctx)
		Expect(kubernetes.Delete(ctx, cluster)).To(Succeed())
		Expect(kubernetes.UntilGone(ctx, beside.NamespacedName, limit)).To(Succeed())
		return now
	}},
	{name: live.ChangeThree, surges: true, make: func(ctx context.Context, s *service, _, next string) string {
		s.edit(ctx, tells(next+" on its way"), shaped)
		s.becomes(ctx, "have a second cluster", func(service *v1beta1.ClusterService) error {
			if candidate := service.Status.Candidate; candidate == nil || candidate.ClusterName == "" {
				return errors.New("it has none")
			}
			return nil
		})
		s.edit(ctx, tells(next), moved(next))
		return next
	}},
	// The last one, as it leaves the proxies others where it is made once.
	{name: live.ChangeShape, surges: true, inTest: true, make: func(ctx context.Context, s *service, _, next string) string {
		s.edit(ctx, tells(next), shaped, surging, otherProxy)
		return next
	}},
}

// toOtherCode asks for the code of the other one of two directories.
func toOtherCode(spec *v1beta1.ClusterServiceSpec) error {
	directory := "/code/a"
	if strings.Contains(string(spec.ServeConfig.Raw), directory) {
		directory = "/code/b"
	}
	return codeOf(directory, "echo")(spec)
}

// toOtherImage asks for the other one of two names of one image: there is no other that nodes without a registry
// could have.
func toOtherImage(spec *v1beta1.ClusterServiceSpec) error {
	other := "docker.io/" + rayImage
	if spec.ClusterTemplate.Spec.Image == other {
		other = rayImage
	}
	spec.ClusterTemplate.Spec.Image = other
	return nil
}

// otherImage has the service go to another image.
func otherImage(ctx context.Context, s *service, _, next string) string {
	s.edit(ctx, tells(next), toOtherImage)
	return next
}

// to has the service be as it was.
func to(former *v1beta1.ClusterServiceSpec) func(*v1beta1.ClusterServiceSpec) error {
	return func(spec *v1beta1.ClusterServiceSpec) error {
		former.DeepCopyInto(spec)
		return nil
	}
}

// shaped gives the workers another size.
func shaped(spec *v1beta1.ClusterServiceSpec) error {
	size := spec.ClusterTemplate.Spec.WorkerGroups[0].Size
	cpu := resource.MustParse("400m")
	if size.Cpu().Cmp(cpu) == 0 {
		cpu = resource.MustParse("500m")
	}
	size["cpu"] = cpu
	return nil
}

// haProxy is the variable with which Serve's proxies are HAProxy.
const haProxy = "RAY_SERVE_ENABLE_HA_PROXY"

// otherProxy gives Serve's proxies another program: HAProxy, or their own again.
var otherProxy = configured(func(config map[string]any) {
	const options = "controller_options"
	if config[options] != nil {
		delete(config, options)
		return
	}
	config[options] = map[string]any{"runtime_env": map[string]any{"env_vars": map[string]any{haProxy: "1"}}}
})

// hasItsProxies expects the workers of the service's only cluster to have the proxies that its spec asks for.
func (s *service) hasItsProxies(ctx context.Context) {
	GinkgoHelper()
	workers := s.alone(ctx).workers(ctx, 2)
	asked := strings.Contains(string(s.now(ctx).Spec.ServeConfig.Raw), haProxy)
	for i := range workers {
		said := exec(ctx, &workers[i], "sh", "-c", "test -e /tmp/haproxy-serve && echo HAProxy || echo Serve")
		Expect(strings.TrimSpace(said) == "HAProxy").To(Equal(asked), "the proxy of %s is %s", workers[i].Name, said)
	}
}

// surging gives half the room for a second cluster where there was all, and all where there was half.
func surging(spec *v1beta1.ClusterServiceSpec) error {
	percent := int32(50)
	if given := spec.UpgradeStrategy.Surge.MaxSurgePercent; given != nil && *given == percent {
		percent = 100
	}
	spec.UpgradeStrategy.Surge.MaxSurgePercent = &percent
	return nil
}

// A service on a cluster of its own, with requests of all sorts all the time, through
// upgrades. Every second round the operator is killed again and again, and in make test in the only one.
var _ = Describe("a service under load", Ordered, Label(serviceLabel, localkubeLabel), func() {
	var s *service
	var clients *crowd
	version := 1

	BeforeAll(func(ctx SpecContext) {
		t := serviced(ctx)
		begin := time.Now()
		rates := fewOfAll
		if *full {
			rates = moreOfAll
		}
		s = t.begins(ctx, "echo", "services/own.yaml", nil)
		told("service applied to Ready", begin)
		clients = s.crowd(ctx, rates...)
	}, NodeTimeout(servingTime))

	It("keeps its version where the next one cannot serve: "+missingInPlace.name, func(ctx SpecContext) {
		s.expectRollback(ctx, clients, missingInPlace)
	}, Label(live.ServeBadLabel), SpecTimeout(2*servingTime))

	for _, c := range changes {
		labels := Label(live.ServeUpgradesLabel(c.name))
		if !c.inTest {
			labels = append(labels, live.AcceptLabel)
		}
		if c.name == live.ChangeImage { // with HAProxy, Ray has its proxies listen to IPv4 alone
			labels = append(labels, live.IPv6Label)
		}
		It("loses no request through a change of sort "+c.name, func(ctx SpecContext) {
			first := 0
			if *rounds == 1 && c.inTest {
				first = 1
			}
			for round := range *rounds {
				version++
				u := upgrade{service: s, clients: clients, change: c, round: first + round}
				u.losesNone(ctx, fmt.Sprint(version))
			}
		}, labels, SpecTimeout(time.Duration(*rounds)*2*servingTime))
	}

	It("has answered all that it was ever asked", func(SpecContext) {
		reports, err := clients.end()
		Expect(err).NotTo(HaveOccurred())
		for i := range reports {
			sent, answered, failed := reports[i].Total()
			GinkgoWriter.Printf("%s: %d sent, %d answered, %d failed, at most %.0f ms late\n", clients.clients[i].Node, sent, answered, failed, reports[i].LateMs)
			Expect(sent).To(BeNumerically(">", 0))
			Expect(answered).To(Equal(sent))
		}
	}, SpecTimeout(limit))
})

// What an upgrade itself costs requests in time shows where no pod takes CPU that it did not ask
// for from those that answer: a machine of its own for each would be the same. Pods take twice as long to start.
var _ = Describe("a service with limits of CPU under load", Label(serviceLabel, localkubeLabel, live.AcceptLabel), func() {
	losesNoneByImages(live.ChangeLimited, "services/limited.yaml", nil, allSorts...)
})

// HAProxy, which Serve can have as its proxy, ends connections in a way of its own. A change of sort shape leads
// there too.
var _ = Describe("a service behind HAProxy under load", Label(serviceLabel, localkubeLabel, live.AcceptLabel), func() {
	losesNoneByImages(live.ChangeHAProxy, "services/own.yaml", values{"HAProxy": true}, allSorts...)
})

// The way from one certificate authority to another: a service whose clusters encrypt gets one with each of them.
var _ = Describe("a service with encryption under load", Label(serviceLabel, localkubeLabel, live.AcceptLabel), func() {
	losesNoneByImages(live.ChangeEncrypted, "services/own.yaml", values{"Encrypted": true}, allSorts...)
})

// A client of gRPC learns of the end of its channel by a GOAWAY, and a call that is in flight goes on.
var _ = Describe("a service under gRPC calls", Label(serviceLabel, localkubeLabel, live.AcceptLabel), func() {
	losesNoneByImages(live.ChangeGRPC, "services/own.yaml", values{"GRPC": true, "Module": "calls"},
		"-fresh", "2", "-grpc", "5", "-grpc-stream", "0.2", "-connections", "4")
})

// losesNoneByImages is a spec in which the image of a service changes again and again, under a load.
func losesNoneByImages(name, file string, v values, load ...string) {
	It("loses no request through a change of image", func(ctx SpecContext) {
		s := serviced(ctx).begins(ctx, "echo", file, v)
		if name == live.ChangeGRPC {
			load = append(load, "-grpc-address", s.grpcAddress())
		}
		clients := s.crowd(ctx, load...)
		for round := range *rounds {
			u := upgrade{service: s, clients: clients, change: change{name: name, surges: true, make: otherImage}, round: round}
			former := s.alone(ctx).authority(ctx).Data[v1beta1.AuthorityCertificateKey]
			u.losesNone(ctx, fmt.Sprint(2+round))
			now := s.alone(ctx).authority(ctx).Data[v1beta1.AuthorityCertificateKey]
			Expect(bytes.Equal(former, now)).To(Equal(name != live.ChangeEncrypted), "the certificate authority")
		}
	}, Label(live.ServeUpgradesLabel(name)), SpecTimeout(time.Duration(1+*rounds)*2*servingTime))
}

// upgrade is one change, one time.
type upgrade struct {
	service *service
	clients *crowd
	change  change
	round   int
}

// calmTime is how long requests are measured before a change: for a minute before the first one
// of a sort, and for a moment before the others.
func (u *upgrade) calmTime() time.Duration {
	switch {
	case !*full:
		return 2 * time.Second
	case u.round == 0:
		return time.Minute
	default:
		return 5 * time.Second
	}
}

// losesNone goes through the change to a version, reports it, and fails where a request did.
func (u *upgrade) losesNone(ctx context.Context, next string) {
	GinkgoHelper()
	upgraded := u.through(ctx, next)
	GinkgoWriter.Println(upgraded)
	AddReportEntry(live.ServeUpgradesEntry, upgraded, ReportEntryVisibilityAlways)
	_, _, said := counted(upgraded.Loads)
	Expect(upgraded.Broken()).To(BeEmpty(), "%s: %+v", upgraded, said)
}

// through makes the change to a version, and waits until the service is as it should be.
func (u *upgrade) through(ctx context.Context, next string) live.Upgraded {
	GinkgoHelper()
	s, name := u.service, fmt.Sprintf("%s %d", u.change.name, u.round)
	before := s.serves(ctx)
	former, pids := before.Status.Active.ClusterName, s.processes(ctx, "/")
	s.alone(ctx)
	u.clients.phase("calm " + name)
	Consistently(ctx, func(ctx context.Context) error { return live.IsServing(s.now(ctx)) }, u.calmTime(), "1s").Should(Succeed())

	watching, stop := context.WithCancel(ctx)
	defer stop()
	count := s.census(watching)
	u.clients.phase(name)
	kills := u.haunt(watching)
	begin := time.Now()
	was, err := s.ask(ctx, "/")
	Expect(err).NotTo(HaveOccurred())
	version := u.change.make(ctx, s, was.Version, next)
	switched := watch(watching, s.Namespace, &v1beta1.ClusterServiceList{}, func(object client.Object) bool {
		service, ok := object.(*v1beta1.ClusterService)
		return ok && service.Name == s.Name && service.Status.ObservedGeneration == service.Generation && hasAll(service, former, version == was.Version)
	})
	after := s.serves(ctx)
	s.alone(ctx)
	upgraded := live.Upgraded{Change: u.change.name, Round: u.round, Began: begin, Seconds: time.Since(begin).Seconds(), Kills: kills()}
	seen := count()
	upgraded.Clusters = seen.most
	if u.change.surges {
		at, err := switched(ctx, limit, "one version to have all requests")
		Expect(err).NotTo(HaveOccurred())
		upgraded.Switch, upgraded.Both = at.At.Sub(seen.doubled).Seconds(), seen.single.Sub(seen.doubled).Seconds()
	}
	u.clients.phase("after " + name)
	upgraded.Loads = u.clients.settled(ctx, "calm "+name, name)
	u.holds(ctx, after, former, pids, version)
	s.hasItsProxies(ctx)
	return upgraded
}

// hasAll reports whether the version that is to win has all requests: that on the former cluster
// where the change was taken back, or one on another.
func hasAll(service *v1beta1.ClusterService, former string, back bool) bool {
	for _, version := range []*v1beta1.ServiceVersion{service.Status.Active, service.Status.Candidate} {
		if version != nil && (version.ClusterName == former) == back && version.TrafficPercent == 100 {
			return true
		}
	}
	return false
}

// holds checks who answers after a change.
func (u *upgrade) holds(ctx context.Context, after *v1beta1.ClusterService, former string, pids []string, version string) {
	GinkgoHelper()
	now := u.service.processes(ctx, "/")
	for _, process := range now {
		Expect(process).To(HaveSuffix(" "+version), "of %v", now)
	}
	taken := slices.Contains([]string{live.ChangeRollback, live.ChangeReturn, live.ChangeNothing}, u.change.name)
	moves := u.change.surges && !taken
	Expect(after.Status.Active.ClusterName == former).To(Equal(!moves), "on %s after %s", after.Status.Active.ClusterName, former)
	stays := u.change.name == live.ChangeConfig || taken
	for _, process := range pids {
		pid, _, _ := strings.Cut(process, " ")
		if stays {
			Expect(now).To(ContainElement(HavePrefix(pid+" ")), "the processes stay")
		} else {
			Expect(now).NotTo(ContainElement(HavePrefix(pid+" ")), "the processes are others")
		}
	}
}

// haunt kills the operator at random moments of its work in every second round, until the context
// ends or it is asked how often it did: the first time while the shortest change is under way, a few
// seconds without another cluster, and then 1 to 21 s after the next one began to lead.
func (u *upgrade) haunt(ctx context.Context) func() int {
	random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), uint64(u.round)))
	within := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
	next := within(2 * time.Second)
	if u.change.surges {
		next = within(10 * time.Second)
	}
	ctx, stop := context.WithCancel(ctx)
	var kills atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer GinkgoRecover()
		for live.Haunted(u.round) {
			err := leads(ctx)
			if ctx.Err() != nil {
				return
			}
			Expect(err).NotTo(HaveOccurred())
			select {
			case <-time.After(next):
				kills.Add(int64(killOperator(context.WithoutCancel(ctx))))
			case <-ctx.Done():
				return
			}
			next = time.Second + within(20*time.Second)
		}
	}()
	return func() int {
		stop()
		<-done
		return int(kills.Load())
	}
}
