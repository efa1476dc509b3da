package live

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// What happens to clusters with a control store: labels of specs, and the names under which
// they report a Memory, a StoreFault, or seconds.
const (
	// StoreKillsLabel is followed by a dash and the store.
	StoreKillsLabel, StoreKillsEntry   = "store-kills", "heads that come back"
	StoreFaultsLabel, StoreFaultsEntry = "store-faults", "control store in trouble"
	StoreGoneLabel, StoreGoneEntry     = "store-gone", "cluster with keys deleted to gone"
	AwayGoneEntry                      = "cluster deleted without its Redis to gone"
	KeysGoneEntry                      = "Redis back to keys gone"
	StoreLostLabel, StoreLostEntry     = "store-lost-node", "head's node lost to Ready elsewhere"

	// What is promised.
	PromisedCreated   = 2 * time.Second
	PromisedStoreBack = 20 * time.Second
	PromisedStoreGone = 10 * time.Second
	PromisedAwayGone  = time.Minute
	PromisedKeysGone  = time.Minute
	// PromisedAnewRatio is how much longer than by hand a head that was force-deleted takes to
	// be back.
	PromisedAnewRatio = 1.2
)

// Ways in which a head ends.
const (
	InPlace = "container killed"
	NewPod  = "pod deleted"
)

// Recovery is how a head came back: seconds from its end.
type Recovery struct {
	How string `json:"how"`
	// Created is when there was another pod; 0 where the pod stays.
	Created float64 `json:"created,omitempty"`
	// Listed is when the head listed all workers as alive.
	Listed float64 `json:"listed"`
	// Ready is when the cluster was Ready again, or by hand the pod.
	Ready float64 `json:"ready"`
	// Answered is when an actor had answered a driver that was started meanwhile.
	Answered float64 `json:"answered"`
}

// Memory is what became of a cluster's work while its head ended and came back, again and
// again.
type Memory struct {
	Store      string     `json:"store"`
	Recoveries []Recovery `json:"recoveries"`
	// ByHand are those of the same pod, made again by the test without the operator.
	ByHand []Recovery `json:"byHand,omitempty"`
	// Recorded are the recoveries that status and events tell of.
	Recorded int `json:"recorded"`
	// Touched are worker pods that were replaced, or a container of which was restarted.
	Touched int `json:"touched"`
	// Asked is how often actors were asked after a recovery, and Changed how many answers
	// came from another process or with another count than had to be expected.
	Asked   int `json:"asked"`
	Changed int `json:"changed"`
	// Tasks that a driver on a worker submitted, and how many of them were lost.
	Tasks     int `json:"tasks"`
	TasksLost int `json:"tasksLost"`
	// Requests to Serve's proxies on workers, and how many of them failed.
	Requests int `json:"requests"`
	Failed   int `json:"failed"`
	// Said is what some of those that were lost or failed said.
	Said []string `json:"said,omitempty"`
}

// String is the count in one line.
func (m Memory) String() string {
	return fmt.Sprintf("%d recoveries of which %d are recorded, %d worker pods touched, %d of %d answers of actors changed, %d of %d tasks lost, %d of %d requests failed",
		len(m.Recoveries), m.Recorded, m.Touched, m.Changed, m.Asked, m.TasksLost, m.Tasks, m.Failed, m.Requests)
}

// Broken says what of the promises was not kept, times apart.
func (m Memory) Broken() []string {
	var broken []string
	for _, c := range []struct {
		broken bool
		what   string
	}{
		{len(m.Recoveries) == 0 || m.Asked == 0 || m.Tasks == 0 || m.Requests == 0, "something was not tried at all"},
		{m.Recorded != len(m.Recoveries), "a recovery is not recorded"},
		{m.Touched > 0, "a worker pod was touched"},
		{m.Changed > 0, "an actor is another"},
		{m.TasksLost > 0, "a task was lost"},
		{m.Failed > 0, "a request failed"},
	} {
		if c.broken {
			broken = append(broken, c.what)
		}
	}
	return broken
}

// Late says what of the promised times was not kept. Ratios are of medians.
func (m Memory) Late() []string {
	var late []string
	for _, r := range m.Recoveries {
		if r.Created > PromisedCreated.Seconds() {
			late = append(late, fmt.Sprintf("a pod came after %.1f s", r.Created))
		}
	}
	for what, ratio := range map[string]float64{"listed": m.Ratio(Recovery.listed), "answered": m.Ratio(Recovery.answered)} {
		if math.IsNaN(ratio) || ratio > PromisedAnewRatio {
			late = append(late, fmt.Sprintf("%s after %.2f times as long as by hand", what, ratio))
		}
	}
	slices.Sort(late)
	return late
}

func (r Recovery) listed() float64   { return r.Listed }
func (r Recovery) answered() float64 { return r.Answered }

// Ratio compares the median of deleted pods with that by hand; it is not a number where one
// of them is missing.
func (m Memory) Ratio(of func(Recovery) float64) float64 {
	return m.Median(NewPod, of) / median(m.ByHand, of)
}

// Median is that of the recoveries of a sort; not a number where there is none.
func (m Memory) Median(how string, of func(Recovery) float64) float64 {
	return median(slices.DeleteFunc(slices.Clone(m.Recoveries), func(r Recovery) bool { return r.How != how }), of)
}

func median(all []Recovery, of func(Recovery) float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	sorted := slices.SortedFunc(slices.Values(all), func(a, b Recovery) int { return cmp.Compare(of(a), of(b)) })
	return of(sorted[len(sorted)/2])
}

// StoreFault is what a cluster did while its store was in trouble.
type StoreFault struct {
	// Fault is what was done, in words.
	Fault string `json:"fault"`
	// Reason and Message are those of the condition ControlStoreReady, Told the seconds until
	// it said so.
	Reason  string  `json:"reason"`
	Message string  `json:"message"`
	Told    float64 `json:"told"`
	// Lasted is for how many seconds the trouble lasted.
	Lasted float64 `json:"lasted"`
	// Back is how many seconds after its end the cluster was Ready on it again; 0 where
	// another trouble followed at once.
	Back float64 `json:"back,omitempty"`
	// Head reports whether the head's pod stayed.
	Head bool `json:"headStayed"`
	// Touched are worker pods that were replaced, or a container of which was restarted.
	Touched int `json:"touched"`
	// NewSession reports whether the memory was lost, and head and workers are new.
	NewSession bool `json:"anew,omitempty"`
}

// String is the fault in one line.
func (f StoreFault) String() string {
	return fmt.Sprintf("%s: %s after %.1f s, lasted %.0f s, back after %.1f s, %d worker pods touched", f.Fault, f.Reason, f.Told, f.Lasted, f.Back, f.Touched)
}

// Broken reports whether a promise was not kept.
func (f StoreFault) Broken() bool {
	return f.Touched > 0 && !f.NewSession || f.Back > PromisedStoreBack.Seconds()
}
