package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
)

// What specs of services report and make accept reads: labels of specs, names of entries, and
// what is promised of them.
const (
	// ServeUpgradesEntry is of Upgraded, which specs with the labels of ServeUpgradesLabel report;
	// ServeBadLabel is of those whose entries are TakenBack.
	ServeUpgradesEntry           = "requests through an upgrade"
	ServeBadLabel, ServeBadEntry = "serve-bad", "a version taken back"
	// ServeSickLabel and ServeCutLabel are of specs that report seconds.
	ServeSickLabel, ServeSickEntry = "serve-sick", "a version sick at half of the requests to all of them back"
	ServeCutLabel, ServeCutEntry   = "serve-cut-off", "a worker's node cut off to no requests sent to it"
	// ServeInPlaceLabel is of the specs of which one reports seconds.
	ServeInPlaceLabel, ServeInPlaceEntry = "serve-in-place", "other workers asked for to all replaced and good"

	// ServeGatewayLabel is of the spec whose entries are Divided.
	ServeGatewayLabel, ServeGatewayEntry = "serve-gateway", "requests through a gateway"

	// ServeExamplesLabel is of the specs that apply the examples.
	ServeExamplesLabel = "serve-examples"

	// ServeAutoscaledLabel is of the spec of a service that Serve scales. Its entries are Upgraded.
	ServeAutoscaledLabel = "serve-autoscaled"

	// ServeNeighboursLabel is of the specs of a service beside a broken one on its cluster.
	ServeNeighboursLabel = "serve-neighbours"

	// ServeUnattendedLabel is of the spec of a service that Serve scales down while no operator runs.
	ServeUnattendedLabel = "serve-unattended"
	// ServeGroupsLabel is of the spec of a service whose cluster gets a group of workers and gives it up.
	ServeGroupsLabel = "serve-groups"

	// PromisedTwoClusters is for how long two clusters are alive beyond what the switch needs,
	// PromisedServeTold until a cause that can be seen is in the status.
	PromisedTwoClusters = time.Minute
	PromisedServeTold   = 10 * time.Second
	// PromisedMedianRatio is how much longer half of the requests take in a change than in the calm time before.
	PromisedMedianRatio = 1.5
	// PromisedLatencyRatio is how much longer the longest answer takes than in the calm time
	// before.
	PromisedLatencyRatio = 2
)

// Sorts of changes that a service goes through under load.
const (
	// ChangeConfig has the same processes answer otherwise, ChangeCode has others run on the same
	// pods.
	ChangeConfig = "config"
	ChangeCode   = "code"
	// ChangeImage and ChangeShape need other pods, so a second cluster.
	ChangeImage = "image"
	ChangeShape = "shape"
	// ChangeRollback fails on its second cluster and is taken back by the operator, ChangeReturn
	// is taken back by who made it when it has some of the requests: A, B, and A again.
	ChangeRollback = "rollback"
	ChangeReturn   = "return"
	// ChangeNothing leaves the service alone while another cluster of the same pods comes and goes:
	// what the machine makes of that.
	ChangeNothing = "nothing"
	// ChangeThree is followed by a third version before it has ended.
	ChangeThree = "three-deep"
	// ChangeLimited is ChangeImage where no pod may use more CPU than it asks for, so that starting
	// ones take none from those that answer.
	ChangeLimited = "limited"
	// ChangeHAProxy is ChangeImage where Serve's proxies are HAProxy.
	ChangeHAProxy = "haproxy"
	// ChangeEncrypted is ChangeImage where the pods of each cluster encrypt what they say, by an authority of its own.
	ChangeEncrypted = "encrypted"
	// ChangeGRPC is ChangeImage under gRPC calls and streams.
	ChangeGRPC = "grpc"
	// ChangeScaled is, in turn, of the code, the image and the shape of a service that Serve scales by its load.
	ChangeScaled = "scaled"
)

// ServeChanges are all sorts of changes behind Serve's own proxy.
func ServeChanges() []string {
	return []string{ChangeConfig, ChangeCode, ChangeImage, ChangeShape, ChangeRollback, ChangeReturn, ChangeThree, ChangeLimited, ChangeNothing}
}

// ServeUpgradesLabel is the label of the spec of a sort of change.
func ServeUpgradesLabel(change string) string { return "serve-upgrades-" + change }

// Upgraded is what became of requests while a service went from one version to another.
type Upgraded struct {
	// Change is what was changed, in a word; Round counts from 0. Kills is how often the
	// operator was killed meanwhile.
	Change string `json:"change"`
	Round  int    `json:"round"`
	Kills  int    `json:"kills"`
	// Began is when the edit was made, Seconds is from then to a service that is as it should be.
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
	// Clusters is how many there were at most at a time.
	Clusters int `json:"clusters"`
	// Switch is the seconds from the second cluster's creation until the version that won had
	// all requests, Both until there was one cluster again; 0 where there was but one.
	Switch float64 `json:"switch,omitempty"`
	Both   float64 `json:"both,omitempty"`
	// Loads are what clients on each node saw.
	Loads []NodeLoad `json:"loads"`
}

// NodeLoad is what a client on a node saw in the calm time before a change, and from the
// change on.
type NodeLoad struct {
	Node   string        `json:"node"`
	Calm   loadgen.Phase `json:"calm"`
	During loadgen.Phase `json:"during"`
}

// Count is how many requests were sent during the change, and how many of them failed.
func (u Upgraded) Count() (sent, failed int) {
	for _, node := range u.Loads {
		for _, count := range node.During.Sorts {
			sent, failed = sent+count.Sent, failed+count.Failed
		}
	}
	return sent, failed
}

// Longest are the longest latencies of a sort in milliseconds, in the calm time and during the
// change; 0 where there was nothing of that sort.
func (u Upgraded) Longest(sort loadgen.Sort) (calm, during float64) {
	for _, node := range u.Loads {
		calm, during = max(calm, node.Calm.Sorts[sort].Latency.Max), max(during, node.During.Sorts[sort].Latency.Max)
	}
	return calm, during
}

// String is the count in one line.
func (u Upgraded) String() string {
	sent, failed := u.Count()
	text := fmt.Sprintf("%s %d: %.1f s, the operator killed %d times, at most %d clusters, two for %.1f s of which the switch took %.1f s, %d of %d requests failed; the longest, calm and then:",
		u.Change, u.Round, u.Seconds, u.Kills, u.Clusters, u.Both, u.Switch, failed, sent)
	for _, sort := range u.sorts() {
		calm, during := u.Longest(sort)
		if during == 0 {
			continue // none has had its answer
		}
		text += fmt.Sprintf(" %s %.0f and %.0f ms (after %.0f s)", sort, calm, during, u.longestAt(sort).Sub(u.Began).Seconds())
	}
	return text
}

// MedianRatios are how many times as long half of the requests took in the change as in the calm time before: one number
// for each node and sort of request.
func (u Upgraded) MedianRatios() []float64 {
	var ratios []float64
	for _, node := range u.Loads {
		for sort, during := range node.During.Sorts {
			if calm := node.Calm.Sorts[sort].Latency.P50; calm > 0 && during.Latency.P50 > 0 {
				ratios = append(ratios, during.Latency.P50/calm)
			}
		}
	}
	return ratios
}

// longestAt is when the longest request of a sort had its answer during the change.
func (u Upgraded) longestAt(sort loadgen.Sort) (at time.Time) {
	longest := -1.0
	for _, node := range u.Loads {
		if latency := node.During.Sorts[sort].Latency; latency.Max > longest {
			longest, at = latency.Max, latency.MaxAt
		}
	}
	return at
}

// sorts of requests that there were.
func (u Upgraded) sorts() []loadgen.Sort {
	all := map[loadgen.Sort]bool{}
	for _, node := range u.Loads {
		for sort := range node.During.Sorts {
			all[sort] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Haunted reports whether the operator is killed at random moments of a round of changes.
func Haunted(round int) bool { return round%2 == 1 }

// Broken says what of the promises was not kept, times apart.
func (u Upgraded) Broken() []string {
	var broken []string
	sent, failed := u.Count()
	if sent == 0 {
		broken = append(broken, "no request was sent")
	}
	if failed > 0 {
		broken = append(broken, "a request failed")
	}
	if u.Clusters > 2 {
		broken = append(broken, "there were more than two clusters")
	}
	if Haunted(u.Round) && u.Kills == 0 {
		broken = append(broken, "the operator was not killed")
	}
	return broken
}

// Late says what of the promised times of one change was not kept.
func (u Upgraded) Late() []string {
	if beyond := u.Both - u.Switch; beyond > PromisedTwoClusters.Seconds() {
		return []string{fmt.Sprintf("two clusters were alive for %.1f s after the switch", beyond)}
	}
	return nil
}

// Latency is how long the longest requests of a sort took, in milliseconds.
type Latency struct {
	Sort   loadgen.Sort `json:"sort"`
	Calm   float64      `json:"calm"`
	During float64      `json:"during"`
}

// IsSlow reports whether a request took longer in the changes than was promised.
func (l Latency) IsSlow() bool {
	ratio := l.During / l.Calm
	return math.IsNaN(ratio) || ratio > PromisedLatencyRatio
}

// Latencies returns those of each sort of requests that was sent: the longest of all calm times and of all changes.
func Latencies(all []Upgraded) []Latency {
	sorts := map[loadgen.Sort]bool{}
	for _, one := range all {
		for _, sort := range one.sorts() {
			sorts[sort] = true
		}
	}
	var latencies []Latency
	for _, sort := range slices.Sorted(maps.Keys(sorts)) {
		latency := Latency{Sort: sort}
		for _, one := range all {
			calm, during := one.Longest(sort)
			latency.Calm, latency.During = max(latency.Calm, calm), max(latency.During, during)
		}
		latencies = append(latencies, latency)
	}
	return latencies
}

// TakenBack is how a version that cannot serve was taken back.
type TakenBack struct {
	// Cause is what was wrong with it, in words.
	Cause string `json:"cause"`
	// Told is how many seconds after the cause could be seen the status had it.
	Told float64 `json:"told"`
	// Seconds from the edit to one cluster and the condition RolledBack.
	Seconds float64 `json:"seconds"`
	// Reason and Message are those of the upgrade's outcome.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Same reports whether the processes that answer are those of before.
	Same   bool `json:"same"`
	Sent   int  `json:"sent"`
	Failed int  `json:"failed"`
}

// String is the measure in one line.
func (t TakenBack) String() string {
	return fmt.Sprintf("%s: told after %.1f s, taken back after %.1f s, %d of %d requests failed, the same processes: %v: %s: %s",
		t.Cause, t.Told, t.Seconds, t.Failed, t.Sent, t.Same, t.Reason, t.Message)
}

// Broken reports whether a promise was not kept, times apart.
func (t TakenBack) Broken() bool { return !t.Same || t.Failed > 0 || t.Sent == 0 }

// Late reports whether the status named the cause later than promised.
func (t TakenBack) Late() bool { return t.Told > PromisedServeTold.Seconds() }

// Divided is how a gateway divided requests while a service went from one version to another.
type Divided struct {
	// Gateway is the program's name.
	Gateway string `json:"gateway"`
	// Percent is the share that the status told of the new version when it was measured, and New
	// how many of the Asked requests it answered then.
	Percent int `json:"percent"`
	Asked   int `json:"asked"`
	New     int `json:"new"`
	// Sent is how many requests were sent through the whole upgrade, Failed how many of them
	// failed; Seconds is how long it took.
	Sent    int     `json:"sent"`
	Failed  int     `json:"failed"`
	Seconds float64 `json:"seconds"`
}

// Share is the new version's measured share, in percent.
func (d Divided) Share() float64 { return 100 * float64(d.New) / float64(max(1, d.Asked)) }

// Near is how far a measured share may be from the one that was told, in percentage points: other
// clients have their part of it.
const Near = 3

// Broken says what of the promises was not kept.
func (d Divided) Broken() []string {
	var broken []string
	if d.Failed > 0 || d.Sent == 0 {
		broken = append(broken, fmt.Sprintf("%d of %d requests failed", d.Failed, d.Sent))
	}
	if math.Abs(d.Share()-float64(d.Percent)) > Near || d.Percent == 0 || d.Percent == 100 {
		broken = append(broken, fmt.Sprintf("the new version had %.1f %%, and the status told %d %%", d.Share(), d.Percent))
	}
	return broken
}

// String is the measure in one line.
func (d Divided) String() string {
	return fmt.Sprintf("%s: %d of %d requests went to the new version (%.1f %%) where the status told %d %%; %d of %d failed in an upgrade of %.1f s",
		d.Gateway, d.New, d.Asked, d.Share(), d.Percent, d.Failed, d.Sent, d.Seconds)
}

// FindService reads a ClusterService.
func (c *Cluster) FindService(ctx context.Context, name types.NamespacedName) (*v1beta1.ClusterService, error) {
	service := &v1beta1.ClusterService{}
	if err := c.Get(ctx, name, service); err != nil {
		return nil, fmt.Errorf("read ClusterService %s: %w", name, err)
	}
	return service, nil
}

// IsServing tells by nil that a service is Ready with the spec it has, has nothing under way
// and nothing left over, and else what is not so.
func IsServing(service *v1beta1.ClusterService) error {
	conditions := service.Status.Conditions
	ready := meta.FindStatusCondition(conditions, v1beta1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != service.Generation {
		return fmt.Errorf("it is %s", SaysOfService(service))
	}
	for _, other := range []string{v1beta1.ConditionReconciling, v1beta1.ConditionUpgrading, v1beta1.ConditionRolledBack, v1beta1.ConditionStalled} {
		if meta.IsStatusConditionTrue(conditions, other) {
			return fmt.Errorf("%s is True: %s", other, SaysOfService(service))
		}
	}
	if service.Status.Candidate != nil || len(service.Status.Retiring) > 0 {
		return fmt.Errorf("another version or cluster is there: %s", SaysOfService(service))
	}
	return nil
}

// SaysOfService is what a service's status says, in one line.
func SaysOfService(service *v1beta1.ClusterService) string {
	text := fmt.Sprintf("%s, %s, generation %d of %d", service.Status.Phase, service.Status.Summary.Traffic, service.Status.ObservedGeneration, service.Generation)
	for _, condition := range service.Status.Conditions {
		text += fmt.Sprintf("; %s is %s: %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	return text
}

// UntilServing waits until a service is as its spec asks, with nothing under way, and gives it. It fails at once where
// that was taken back, as it is not tried again.
func (c *Cluster) UntilServing(ctx context.Context, name types.NamespacedName, limit time.Duration) (*v1beta1.ClusterService, error) {
	var service *v1beta1.ClusterService
	var back error
	err := Until(ctx, limit, "ClusterService "+name.String()+" to serve", func(ctx context.Context) (err error) {
		if service, err = c.FindService(ctx, name); err != nil {
			return err
		}
		rolled := meta.FindStatusCondition(service.Status.Conditions, v1beta1.ConditionRolledBack)
		if rolled != nil && rolled.Status == metav1.ConditionTrue && rolled.ObservedGeneration == service.Generation {
			back = IsServing(service)
			return nil
		}
		return IsServing(service)
	})
	return service, errors.Join(err, back)
}

// EditService changes the spec of a service, as kubectl edit does. It fails where the change
// does.
func (c *Cluster) EditService(ctx context.Context, name types.NamespacedName, change func(*v1beta1.ClusterServiceSpec) error) error {
	service, err := c.FindService(ctx, name)
	if err != nil {
		return err
	}
	seen := service.DeepCopy()
	if err := errors.Join(change(&service.Spec), c.Patch(ctx, service, client.MergeFrom(seen))); err != nil {
		return fmt.Errorf("edit ClusterService %s: %w", name, err)
	}
	return nil
}

// DropServices deletes the services of a namespace and waits until they are gone.
func (c *Cluster) DropServices(ctx context.Context, namespace string, limit time.Duration) error {
	if err := c.DeleteAllOf(ctx, &v1beta1.ClusterService{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("delete the services of namespace %s: %w", namespace, err)
	}
	return Until(ctx, limit, "the services of namespace "+namespace+" to be gone", func(ctx context.Context) error {
		var services v1beta1.ClusterServiceList
		err := c.List(ctx, &services, client.InNamespace(namespace))
		if err == nil && len(services.Items) > 0 {
			err = fmt.Errorf("%d are there: %s", len(services.Items), SaysOfService(&services.Items[0]))
		}
		return err
	})
}
