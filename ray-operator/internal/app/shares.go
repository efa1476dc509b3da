package app

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
)

// queue is what a controller takes its requests from.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// sharedQueue is the queue of a controller whose workers are shared among namespaces. Each pass waits for the API server, and a
// webhook of a namespace may let it wait for half a minute.
//
// A namespace has up to most of the workers, and beyond its first at most twice as many as it leaves free. So one alone has all
// that it may use, and each that takes much leaves some to others. A request that finds no place waits in a line of its
// namespace, without a worker.
type sharedQueue struct {
	// The queue holds those that have a place: they wait for a worker, or one works on them.
	workqueue.TypedInterface[reconcile.Request]

	workers, most int

	mu sync.Mutex
	// busy are the places that are taken, held those of each namespace.
	busy int
	held map[string]int
	// lines are the requests that wait for a place, by namespace.
	lines  map[string][]reconcile.Request
	states map[reconcile.Request]requestState
	// waiting is how many requests are in lines, and tell is told so.
	waiting int
	tell    func(waiting int)
}

// requestState is where a request is; one that is nowhere has none.
type requestState int

const (
	requestInLine requestState = iota + 1
	requestPlaced
	requestRuns
	// requestRunsAgain is of a request that was added while a worker works on it.
	requestRunsAgain
)

// workers are those of a controller: how many a namespace has at most, and what tells of those that wait.
type workers struct {
	most     int
	measured *telemetry.Metrics
}

// sharedWorkers returns how many workers there are where a namespace has so many at most.
func sharedWorkers(most int) int { return 2 * most }

// newSharedQueue returns a queue for sharedWorkers. It takes the name of its controller for metrics, and what is told how many
// requests are in lines.
func newSharedQueue(name string, most int, tell func(waiting int)) *sharedQueue {
	return &sharedQueue{
		tell:           tell,
		TypedInterface: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name}),
		workers:        sharedWorkers(most), most: most,
		held: map[string]int{}, lines: map[string][]reconcile.Request{}, states: map[reconcile.Request]requestState{},
	}
}

// queueOf returns what makes the queue of a controller.
func queueOf(with workers) func(string, workqueue.TypedRateLimiter[reconcile.Request]) queue {
	return func(name string, pauses workqueue.TypedRateLimiter[reconcile.Request]) queue {
		shared := newSharedQueue(name, with.most, with.measured.Waiting(name))
		delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{Name: name, Queue: shared})
		return workqueue.NewTypedRateLimitingQueueWithConfig(pauses, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{DelayingQueue: delaying})
	}
}

// Add gives a request a place, or puts it into the line of its namespace. One that is there already is not added twice.
func (q *sharedQueue) Add(request reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch q.states[request] {
	case requestInLine, requestPlaced, requestRunsAgain:
	case requestRuns:
		q.states[request] = requestRunsAgain
	default:
		q.admit(request)
	}
}

// Get returns the next request that has a place, once there is one.
func (q *sharedQueue) Get() (reconcile.Request, bool) {
	request, isShutDown := q.TypedInterface.Get()
	if !isShutDown {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.states[request] = requestRuns
	}
	return request, isShutDown
}

// Done gives the place of a request back. Those that wait come first, even where the request was added again meanwhile.
func (q *sharedQueue) Done(request reconcile.Request) {
	q.TypedInterface.Done(request)
	q.mu.Lock()
	defer q.mu.Unlock()
	isAgain := q.states[request] == requestRunsAgain
	delete(q.states, request)
	q.count(request.Namespace, -1)
	q.callWaiting()
	if isAgain {
		q.admit(request)
	}
}

// Len is how many requests wait, for a worker or for a place.
func (q *sharedQueue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.TypedInterface.Len() + q.waiting
}

// admit gives a place to a request that is nowhere, or puts it into the line of its namespace.
func (q *sharedQueue) admit(request reconcile.Request) {
	namespace := request.Namespace
	if len(q.lines[namespace]) > 0 || !q.mayTake(namespace) {
		q.states[request] = requestInLine
		q.lines[namespace] = append(q.lines[namespace], request)
		q.wait(1)
		return
	}
	q.place(request)
}

func (q *sharedQueue) wait(requests int) {
	q.waiting += requests
	q.tell(q.waiting)
}

func (q *sharedQueue) place(request reconcile.Request) {
	q.states[request] = requestPlaced
	q.count(request.Namespace, 1)
	q.TypedInterface.Add(request)
}

// mayTake reports whether a namespace may have one place more.
func (q *sharedQueue) mayTake(namespace string) bool {
	free, held := q.workers-q.busy, q.held[namespace]
	return free > 0 && held < q.most && (held == 0 || held+1 <= 2*(free-1))
}

func (q *sharedQueue) count(namespace string, places int) {
	q.busy += places
	if q.held[namespace] += places; q.held[namespace] == 0 {
		delete(q.held, namespace)
	}
}

// callWaiting gives places to the first of each line, while there are some. Lines come in no order.
func (q *sharedQueue) callWaiting() {
	for namespace, line := range q.lines {
		if q.busy == q.workers {
			return
		}
		for len(line) > 0 && q.mayTake(namespace) {
			q.place(line[0])
			line = line[1:]
			q.wait(-1)
		}
		if q.lines[namespace] = line; len(line) == 0 {
			delete(q.lines, namespace)
		}
	}
}
