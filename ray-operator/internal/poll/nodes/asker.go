package nodes

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll"
)

// How often a head is asked.
const (
	// shortest is Ray's own: it gathers what it answers with once a second.
	shortest = time.Second
	// afterDrain is when a node that was told to leave is looked at: an idle one was seen
	// dead after 20 ms, a busy one draining after 500 ms.
	afterDrain = 250 * time.Millisecond
	// longest is the most that failures in a row put off the next try, unless the head is
	// asked less often anyway.
	longest = 30 * time.Second
	// kept is up to which pause a connection is kept: it costs 50 KiB, a new one 1 ms.
	kept = 15 * time.Second
)

// endpoint is a head, as poll has it.
type endpoint = poll.Endpoint[types.NamespacedName, place, Target, Answer]

// asker asks the head of one cluster. It is its goroutine's own.
type asker struct {
	*endpoint
	watch    *Watch
	answer   Answer
	head     Head
	failures int
	// told are the nodes that were told to leave, so that it is logged once.
	told map[headclient.NodeID]bool
}

// run asks until its context ends.
func (a *asker) run(ctx context.Context, news <-chan struct{}) {
	defer a.hangUp(ctx)
	pause := time.Duration(0)
	if len(a.Latest().Drains) == 0 {
		pause = a.Spread(shortest)
	}
	for {
		if _, err := a.Pause(ctx, pause, news); err != nil {
			return
		}
		target := a.Latest()
		answer := a.ask(ctx, target)
		if ctx.Err() != nil {
			return
		}
		a.answer = answer
		a.Publish(func(types.NamespacedName, Target, Answer) Answer { return answer })
		if pause = a.pause(target, answer); pause > kept {
			a.hangUp(ctx)
		}
	}
}

// pause is how long to wait before the next call.
func (a *asker) pause(target Target, answer Answer) time.Duration {
	every := max(target.Every, shortest)
	switch {
	case answer.Failure != "":
		every = poll.Double(shortest, a.failures, max(longest, every))
	case len(outstanding(target, answer)) > 0 || unequal(target, answer):
		every = shortest
		if a.justTold(target, answer) {
			every = afterDrain
		}
	}
	return poll.Jitter(every)
}

// outstanding are the drains whose nodes have not begun to leave, or not ended.
func outstanding(target Target, answer Answer) []Drain {
	var open []Drain
	for _, drain := range target.Drains {
		if node, listed := answer.Nodes[drain.Pod]; listed && node.State != headclient.Dead {
			open = append(open, drain)
		}
	}
	return open
}

// justTold reports whether a node has taken its leave and is not seen to go yet.
func (a *asker) justTold(target Target, answer Answer) bool {
	for _, drain := range outstanding(target, answer) {
		if node := answer.Nodes[drain.Pod]; alive(node.State) && node.Refused == "" {
			return true
		}
	}
	return false
}

// unequal reports whether a node has not what it must have.
func unequal(target Target, answer Answer) bool {
	for _, resize := range target.Resizes {
		node, listed := answer.Nodes[resize.Pod]
		if listed && alive(node.State) && node.Refused == "" && !Has(node.Total, resize.Resources) {
			return true
		}
	}
	return false
}

// Has reports whether a node's total has of each resource what is wanted.
func Has(total, wanted map[string]float64) bool {
	for name, amount := range wanted {
		if total[name] != amount {
			return false
		}
	}
	return true
}

// ask asks the head once for all that is wanted. What it did not answer stays as it was.
func (a *asker) ask(ctx context.Context, target Target) Answer {
	answer := a.answer
	err := a.connect(target)
	if err == nil {
		err = a.fill(ctx, target, &answer)
	}
	if err == nil {
		answer.Failure, answer.Err, answer.FailingSince = "", nil, time.Time{}
		a.failures = 0
		return answer
	}
	if a.failures++; answer.Failure == "" {
		answer.FailingSince = a.watch.clock.Now()
	}
	answer.Failure, answer.Err = headclient.KindOf(err), err
	a.Token.Heard(err)
	a.hangUp(ctx) // a connection may be dead without knowing; the next try makes another
	return answer
}

// fill asks for what is wanted, and sends what must be done.
func (a *asker) fill(ctx context.Context, target Target, answer *Answer) error {
	state, err := a.head.State(ctx)
	if err != nil {
		return err
	}
	now := a.watch.clock.Now()
	refused, failure := a.act(ctx, target, state)
	answer.At, answer.Nodes = now, nodes(target, state, refused, now)
	if failure != nil || !target.Activity {
		return failure
	}
	activity, err := a.head.Activity(ctx)
	if err != nil {
		return err
	}
	answer.Use = use(answer.Use, state, activity, now)
	return nil
}

// act tells nodes to leave and to change their size, those that have not. It gives what
// Ray refused by pod, and the first failure, which may hold for all.
func (a *asker) act(ctx context.Context, target Target, state headclient.State) (map[types.UID]string, error) {
	refused := map[types.UID]string{}
	told := map[headclient.NodeID]bool{}
	for _, node := range state.Nodes {
		if !alive(node.State) {
			continue
		}
		pod := types.UID(node.Instance)
		for _, drain := range target.Drains {
			if drain.Pod != pod {
				continue
			}
			if !a.told[node.ID] {
				log.FromContext(ctx).Info("Draining a node", "cluster", a.Key.cluster, "pod", pod, "node", node.ID.String(), "reason", drain.Reason, "deadline", drain.Deadline)
			}
			told[node.ID] = true
			verdict, err := a.head.Drain(ctx, headclient.Drain{Node: node.ID, Reason: drain.Reason, Message: drain.Message, Deadline: drain.Deadline})
			if err := note(refused, pod, verdict.Why, err); err != nil {
				return refused, err
			}
		}
		for _, resize := range target.Resizes {
			if resize.Pod != pod || Has(node.Total, resize.Resources) {
				continue
			}
			_, err := a.head.Resize(ctx, node.ID, resize.Resources)
			if err := note(refused, pod, "", err); err != nil {
				return refused, err
			}
		}
	}
	a.told = told
	return refused, nil
}

// note keeps why a pod's node would not. Other errors than a refusal are not the node's.
func note(refused map[types.UID]string, pod types.UID, why string, err error) error {
	var failure *headclient.Error
	switch {
	case err == nil && why == "":
	case err == nil:
		refused[pod] = why
	case errors.As(err, &failure) && (failure.Kind == headclient.Refused || failure.Kind == headclient.Unsupported || failure.Kind == headclient.Invalid):
		refused[pod] = failure.Err.Error()
	default:
		return err
	}
	return nil
}

func (a *asker) connect(target Target) error {
	if a.head != nil {
		return nil
	}
	head, err := a.watch.dial(target.Address, a.Token.Token(), target.Trust)
	if err == nil {
		a.head = head
	}
	return err
}

func (a *asker) hangUp(ctx context.Context) {
	if a.head == nil {
		return
	}
	if err := a.head.Close(); err != nil {
		log.FromContext(ctx).Error(err, "Closing the connection to a head failed", "cluster", a.Key.cluster)
	}
	a.head = nil
}
