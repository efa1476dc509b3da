// Package headtest holds what is true of every head, so that the fake one and real ones
// are judged by the same cases.
//
// In: a head with two idle workers, and ways to use it. Out: cases, each with a name, in
// the order in which they must run: the last ones take the workers away. It must never
// depend on how long a head takes, beyond the limit that the head itself names.
package headtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// Head is a head under test, with its own node, two workers of one CPU each, and nothing
// that runs. Its functions start something and give the way to end it.
type Head struct {
	// Address is the host:port of its GCS, Jobs that of its job API; Token is what it asks
	// for and is not empty.
	Address, Jobs, Token string
	// Version is its Ray's.
	Version string
	// First and Second are the RAY_CLOUD_INSTANCE_ID of the workers, Type the
	// RAY_NODE_TYPE_NAME of both.
	First, Second, Type string
	// Occupy runs a task on the second worker.
	Occupy func() (end func(), err error)
	// Connect connects a driver, Detach makes a detached actor without a resource and
	// leaves no driver behind, Submit runs a job.
	Connect, Detach, Submit func() (end func(), err error)
	// Want makes something want room.
	Want func(Wish) (end func(), err error)
	// Processes is how many processes of the head's node have a text in their command line.
	Processes func(text string) (int, error)
	// Output is what the file holds, on the head, that the driver of a job writes to.
	Output func(job string) ([]byte, error)
	// Empty empties that file, and Remove removes it.
	Empty, Remove func(job string) error
	// Now is the time.
	Now func() time.Time
	// Within is how long a change may take to show.
	Within time.Duration
}

// Case is one thing that is true of a head.
type Case struct {
	Name string
	Run  func(t testing.TB, head Head)
}

// Cases are all, in the order in which they must run on one head.
func Cases() []Case {
	return slices.Concat(quiet(), demandCases(), jobCases(), logCases(), leaving())
}

// quiet are cases that leave a head as it was.
func quiet() []Case {
	return []Case{
		{"it says its version", version},
		{"it lists its nodes", nodes},
		{"it knows its token", token},
		{"it keeps a value until that is deleted", value},
		{"a driver is activity until it leaves", driver},
		{"a detached actor is activity until it dies", actor},
		{"a job is activity until it is over", job},
	}
}

// leaving are cases that change the workers, and take them away.
func leaving() []Case {
	return []Case{
		{"a node is resized where Ray can", resize},
		{"a busy node refuses to leave as idle", busy},
		{"a busy node that is preempted drains until it is idle", preempted},
		{"an idle node leaves at once", idle},
		{"an unknown node may leave", unknown},
		{"it is the same head as before", version},
	}
}

// with dials a head with its right token.
func with(t testing.TB, head Head) *headclient.Client {
	t.Helper()
	return dial(t, head, func(context.Context) (string, error) { return head.Token, nil })
}

func dial(t testing.TB, head Head, token headclient.Token) *headclient.Client {
	t.Helper()
	client, err := headclient.Dial(head.Address, headclient.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// eventually waits until a condition gives nil.
func eventually(t testing.TB, head Head, what string, condition func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, head.Within, true, func(ctx context.Context) (bool, error) {
		err := condition(ctx)
		if last == nil || headclient.KindOf(err) != headclient.Timeout { // at the end of the time there is nothing to be learnt
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("%s did not come within %s: %v", what, head.Within, last)
	}
}

// started runs one of the head's functions, whose end the case may hasten.
func started(t testing.TB, start func() (func(), error)) (end func()) {
	t.Helper()
	stop, err := start()
	if err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			stop()
		}
	}
	t.Cleanup(end)
	return end
}

// worker finds the node of an instance.
func worker(ctx context.Context, client *headclient.Client, instance string) (headclient.Node, error) {
	listed, err := client.Nodes(ctx)
	if err != nil {
		return headclient.Node{}, err
	}
	at := slices.IndexFunc(listed, func(node headclient.Node) bool { return node.Instance == instance })
	if at < 0 {
		return headclient.Node{}, fmt.Errorf("no node is of instance %s", instance)
	}
	return listed[at], nil
}

func find(t testing.TB, client *headclient.Client, instance string) headclient.Node {
	t.Helper()
	node, err := worker(t.Context(), client, instance)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// becomes waits until a worker is in a state.
func becomes(t testing.TB, head Head, instance string, state headclient.NodeState) headclient.Node {
	t.Helper()
	client := with(t, head)
	var node headclient.Node
	eventually(t, head, instance+" in state "+string(state), func(ctx context.Context) (err error) {
		if node, err = worker(ctx, client, instance); err == nil && node.State != state {
			err = fmt.Errorf("it is %s", node.State)
		}
		return err
	})
	return node
}

func version(t testing.TB, head Head) {
	if got, err := with(t, head).Alive(t.Context()); err != nil || got != head.Version {
		t.Errorf("it says %q, %v, want %s", got, err, head.Version)
	}
}

func nodes(t testing.TB, head Head) {
	client := with(t, head)
	state, err := client.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if state.Pending != 0 || state.Gangs != 0 {
		t.Errorf("%d requests and %d gangs wait on a quiet head", state.Pending, state.Gangs)
	}
	workers := slices.DeleteFunc(state.Nodes, func(node headclient.Node) bool { return node.Head })
	if heads := len(state.Nodes) - len(workers); heads != 1 {
		t.Errorf("%d nodes are the head's", heads)
	}
	for _, instance := range []string{head.First, head.Second} {
		node := becomes(t, head, instance, headclient.Idle)
		if node.Type != head.Type || node.Head || node.Total["CPU"] != 1 || node.Idle <= 0 || node.Death != (headclient.Death{}) {
			t.Errorf("a worker is listed as %+v", node)
		}
	}
}

func token(t testing.TB, head Head) {
	for name, token := range map[string]headclient.Token{
		"none":                nil,
		"another":             func(context.Context) (string, error) { return "another", nil },
		"with a space behind": func(context.Context) (string, error) { return head.Token + " ", nil },
		"unreadable":          func(context.Context) (string, error) { return "", errors.New("the Secret is gone") },
	} {
		client := dial(t, head, token)
		_, alive := client.Alive(t.Context())
		_, state := client.State(t.Context())
		_, activity := client.Activity(t.Context())
		_, kept := client.Value(t.Context(), "contract", "key", 1)
		for _, err := range []error{alive, state, activity, kept, client.DeleteValue(t.Context(), "contract", "key")} {
			if headclient.KindOf(err) != headclient.Unauthenticated {
				t.Errorf("token %s: %v", name, err)
			}
			if err != nil && strings.Contains(err.Error(), head.Token) {
				t.Errorf("token %s: the error holds the token", name)
			}
		}
	}
}

func value(t testing.TB, head Head) {
	client, namespace, key, said := with(t, head), "contract", "gang/"+rand.Text(), strings.Repeat("ü\x00\xff", 1000)
	gone := func(when string) {
		t.Helper()
		if _, err := client.Value(t.Context(), namespace, key, len(said)); headclient.KindOf(err) != headclient.NotFound {
			t.Errorf("%s: %v", when, err)
		}
	}
	gone("before it was written")
	_, store, ctx := raw(t, head)
	for _, overwritten := range []string{"former", said} {
		request := &rpc.InternalKVPutRequest{Namespace: []byte(namespace), Key: []byte(key), Value: []byte(overwritten), Overwrite: true}
		if _, err := store.InternalKVPut(ctx, request); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := client.Value(t.Context(), namespace, key, len(said)); err != nil || string(got) != said {
		t.Errorf("it has %d bytes, %v", len(got), err)
	}
	if _, err := client.Value(t.Context(), namespace, key, len(said)-1); headclient.KindOf(err) != headclient.Protocol {
		t.Errorf("with a limit of one byte less: %v", err)
	}
	for _, other := range [][2]string{{namespace, key + "x"}, {"another", key}, {namespace, key}, {namespace, key}} {
		if err := client.DeleteValue(t.Context(), other[0], other[1]); err != nil {
			t.Errorf("delete %v: %v", other, err)
		}
		if _, err := client.Value(t.Context(), namespace, key, len(said)); err != nil && other != [2]string{namespace, key} {
			t.Errorf("after %v was deleted: %v", other, err)
		}
	}
	gone("after it was deleted")
}

// counted makes a case of something that is counted while it lasts.
func counted(t testing.TB, head Head, start func() (func(), error), count func(headclient.Activity) int) headclient.Activity {
	t.Helper()
	client := with(t, head)
	var seen headclient.Activity
	reaches := func(want int) func(context.Context) error {
		return func(ctx context.Context) (err error) {
			if seen, err = client.Activity(ctx); err == nil && count(seen) != want {
				err = fmt.Errorf("%d instead of %d: %+v", count(seen), want, seen)
			}
			return err
		}
	}
	eventually(t, head, "a quiet head", reaches(0))
	end := started(t, start)
	eventually(t, head, "one that is counted", reaches(1))
	if !seen.Any() {
		t.Errorf("%+v is no activity", seen)
	}
	end()
	eventually(t, head, "its end", reaches(0))
	return seen
}

func driver(t testing.TB, head Head) {
	if after := counted(t, head, head.Connect, func(a headclient.Activity) int { return a.Drivers }); after.LastEnded.IsZero() || after.Any() {
		t.Errorf("after a driver left: %+v", after)
	}
}

func actor(t testing.TB, head Head) {
	counted(t, head, head.Detach, func(a headclient.Activity) int { return a.Actors })
}

func job(t testing.TB, head Head) {
	counted(t, head, head.Submit, func(a headclient.Activity) int { return a.Jobs })
}

func resize(t testing.TB, head Head) {
	client := with(t, head)
	node := becomes(t, head, head.First, headclient.Idle)
	total, err := client.Resize(t.Context(), node.ID, map[string]float64{"CPU": 2})
	if err != nil || total["CPU"] != 2 {
		t.Errorf("to two CPUs: %v, %v", total, err)
	}
	eventually(t, head, "two CPUs in the list", func(ctx context.Context) error {
		node, err := worker(ctx, client, head.First)
		if err == nil && node.Total["CPU"] != 2 {
			err = fmt.Errorf("it has %v", node.Total)
		}
		return err
	})
	if _, err := client.Resize(t.Context(), node.ID, map[string]float64{"GPU": 1}); headclient.KindOf(err) != headclient.Refused {
		t.Errorf("a GPU more: %v", err)
	}
	node.ID[0] ^= 0xff
	if _, err := client.Resize(t.Context(), node.ID, map[string]float64{"CPU": 1}); headclient.KindOf(err) != headclient.Refused {
		t.Errorf("a node that is not there: %v", err)
	}
}

func busy(t testing.TB, head Head) {
	end := started(t, head.Occupy)
	defer end()
	client := with(t, head)
	node := becomes(t, head, head.Second, headclient.Running)
	if len(node.Activity) == 0 || node.Idle != 0 {
		t.Errorf("a busy worker is listed as %+v", node)
	}
	verdict, err := client.Drain(t.Context(), headclient.Drain{Node: node.ID, Reason: headclient.IdleTermination})
	if err != nil || verdict.Accepted || verdict.Why == "" {
		t.Errorf("the verdict is %+v, %v", verdict, err)
	}
	end()
	becomes(t, head, head.Second, headclient.Idle)
}

func preempted(t testing.TB, head Head) {
	end := started(t, head.Occupy)
	client := with(t, head)
	node := becomes(t, head, head.Second, headclient.Running)
	for range 2 { // asking twice is the same as asking once
		wish := headclient.Drain{Node: node.ID, Reason: headclient.Preemption, Message: "a test", Deadline: time.Unix(4e9, 0)}
		if verdict, err := client.Drain(t.Context(), wish); err != nil || !verdict.Accepted {
			t.Fatalf("the verdict is %+v, %v", verdict, err)
		}
		becomes(t, head, head.Second, headclient.Draining)
	}
	end()
	if dead := becomes(t, head, head.Second, headclient.Dead); dead.Death.Reason != headclient.Preempted || dead.ID != node.ID || dead.Death.At.IsZero() {
		t.Errorf("it died as %+v", dead)
	}
	if verdict, err := client.Drain(t.Context(), headclient.Drain{Node: node.ID, Reason: headclient.Preemption}); err != nil || !verdict.Accepted {
		t.Errorf("dead, it may not leave: %+v, %v", verdict, err)
	}
}

func idle(t testing.TB, head Head) {
	client := with(t, head)
	node := becomes(t, head, head.First, headclient.Idle)
	if verdict, err := client.Drain(t.Context(), headclient.Drain{Node: node.ID, Reason: headclient.IdleTermination}); err != nil || !verdict.Accepted {
		t.Fatalf("the verdict is %+v, %v", verdict, err)
	}
	if dead := becomes(t, head, head.First, headclient.Dead); dead.Death.Reason != headclient.DrainedIdle {
		t.Errorf("it died as %+v", dead)
	}
}

func unknown(t testing.TB, head Head) {
	client := with(t, head)
	id := find(t, client, head.First).ID
	id[0] ^= 0xff
	if verdict, err := client.Drain(t.Context(), headclient.Drain{Node: id, Reason: headclient.IdleTermination}); err != nil || !verdict.Accepted {
		t.Errorf("the verdict is %+v, %v", verdict, err)
	}
}
