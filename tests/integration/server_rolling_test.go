package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/bench/portals"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	// rollingStreams is how many streams there are while servers are replaced, unless portals.StreamsVariable gives another number.
	rollingStreams = 20
	// streamsOfCaller is how many of them a caller has, of the hundred that it may have, and streamsOpened how many are opened at
	// once.
	streamsOfCaller = 50
	streamsOpened   = 16
	writers         = 4
)

// rolling is an update of two servers, one after the other, under streams and writes.
type rolling struct {
	*testing.T
	namespace string
	editor    string
	// serving are the servers that requests go to: a Service leaves out one that ends.
	serving atomic.Pointer[[]*portal]
	streams []*follower
	// made are the names of clusters whose creation was answered.
	mutex sync.Mutex
	made  map[string]bool
	sent  int
}

// TestServer_IsReplacedUnderStreams: each stream of a server that ends says bye, and goes on at the other one without loss, without
// anything twice and without a full state. No write that was under way happens twice.
func TestServer_IsReplacedUnderStreams(t *testing.T) {
	t.Parallel()
	r := &rolling{T: t, namespace: newNamespace(t), made: map[string]bool{}}
	first, second := startServer(t), startServer(t)
	r.serving.Store(&[]*portal{first, second})
	r.editor = account(t, r.namespace, "editor", "edit")
	speaker{first, r.editor}.waits(t, r.namespace)
	r.touch("before", first, second)
	began := shared.audit.now(t)
	r.open(number(t, portals.StreamsVariable, rollingStreams))
	stop := r.write()

	r.replace(first, second)
	third := startServer(t)
	r.touch("between", second, third)
	r.serving.Store(&[]*portal{second, third})
	r.replace(second, third)
	stop()
	r.judge(began)
}

// replace ends a server, and waits until each of its streams has gone on at the other one, and something was written since.
func (r *rolling) replace(old, other *portal) {
	r.Helper()
	r.serving.Store(&[]*portal{other})
	r.mutex.Lock()
	had := len(r.made)
	r.mutex.Unlock()
	old.terminate(r.T)
	eventually(r.T, "all streams to be at the other server", func(context.Context) error {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		if len(r.made) < had+2*writers {
			return errors.New("too little was written")
		}
		for i, one := range r.streams {
			if at := one.at.Load(); at != other {
				return fmt.Errorf("stream %d is not, and: %q", i, one.faultsSoFar())
			}
		}
		return nil
	})
}

// touch makes one object of each kind that the servers read, so that both have seen as much of each: what happens in a quiet kind
// they learn from bookmarks, about one a minute. It waits until each server and each stream has seen them, the pod by its cluster's GPUs.
func (r *rolling) touch(name string, servers ...*portal) {
	r.Helper()
	at := metav1.ObjectMeta{Namespace: r.namespace, Name: name}
	cluster := newCluster(r.namespace, name, 0)
	cluster.Spec.ManagedBy = "example.com/nobody" // an operator would delete the pod
	must(r.T, shared.Create(r.Context(), cluster))
	owned := at
	owned.Labels = map[string]string{v1beta1.LabelCluster: name}
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cluster, v1beta1.GroupVersion.WithKind("ComputeCluster"))}
	job := &v1beta1.ClusterJob{ObjectMeta: at, Spec: v1beta1.ClusterJobSpec{Entrypoint: "true", ClusterRef: &v1beta1.ClusterReference{Name: name}}}
	for _, object := range []client.Object{
		job, newSchedule(r.namespace, name, job),
		&v1beta1.ClusterService{ObjectMeta: at, Spec: v1beta1.ClusterServiceSpec{
			ClusterRef: &v1beta1.ClusterReference{Name: name}, ServeConfig: runtime.RawExtension{Raw: []byte(`{"applications":[{"name":"a","import_path":"a:b"}]}`)},
		}},
		&corev1.Pod{ObjectMeta: owned, Spec: corev1.PodSpec{SchedulerName: "none", Containers: []corev1.Container{{
			Name: "ray", Image: "ray", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}},
		}}}},
	} {
		must(r.T, shared.Create(r.Context(), object))
	}
	for _, one := range servers {
		eventually(r.T, "a server to know of all kinds", func(ctx context.Context) error {
			_, answer, err := speaker{one, r.editor}.says(ctx, http.MethodGet, "/v1/objects?namespaces="+r.namespace+"&text="+name, "")
			if lines, _ := answer["lines"].([]any); err == nil && (len(lines) != 4 || !strings.Contains(fmt.Sprint(lines), "gpus:1")) {
				err = fmt.Errorf("it shows %v", lines)
			}
			return err
		})
	}
	eventually(r.T, "all streams to know of all kinds", func(context.Context) error {
		for i, one := range r.streams {
			if !one.knows(name) {
				return fmt.Errorf("stream %d does not", i)
			}
		}
		return nil
	})
}

// open opens streams, of several callers, at both servers in turn.
func (r *rolling) open(count int) {
	r.Helper()
	var tokens []string
	for i := range (count + streamsOfCaller - 1) / streamsOfCaller {
		tokens = append(tokens, account(r.T, r.namespace, fmt.Sprintf("viewer-%d", i), "view"))
		speaker{(*r.serving.Load())[0], tokens[i]}.waits(r.T, r.namespace)
	}
	opening := make(chan struct{}, streamsOpened)
	for i := range count {
		one := &follower{token: tokens[i/streamsOfCaller], path: "/v1/objects/watch?namespaces=" + r.namespace, serving: &r.serving, turn: i}
		r.streams = append(r.streams, one)
		opening <- struct{}{}
		go one.follow(r.Context(), func() { <-opening })
	}
	eventually(r.T, "all streams to be ready", func(context.Context) error {
		for i, one := range r.streams {
			if !one.isReady.Load() {
				return fmt.Errorf("stream %d is not", i)
			}
		}
		return nil
	})
}

// write has clusters created by both halves of the servers, and every third one deleted again, until the function that it returns
// is called. Each name is used once: what fails is not tried again.
func (r *rolling) write() (stop func()) {
	ctx, cancel := context.WithCancel(r.Context())
	var group errgroup.Group
	for writer := range writers {
		group.Go(func() error {
			for n := 0; ctx.Err() == nil; n++ {
				r.writeOne(fmt.Sprintf("w%d-%d", writer, n), n)
			}
			return nil
		})
	}
	return func() {
		cancel()
		_ = group.Wait() // it is always nil
	}
}

func (r *rolling) writeOne(name string, n int) {
	serving := *r.serving.Load()
	p := serving[n%len(serving)]
	cluster := newCluster(r.namespace, name, 0)
	cluster.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ComputeCluster"))
	object, err := json.Marshal(cluster)
	if err != nil {
		r.Errorf("write down a cluster: %v", err)
		return
	}
	m := mixture{method: http.MethodPost, path: "/apis/heliostat.dev/v1beta1/namespaces/" + r.namespace + "/computeclusters", body: object}
	if n%2 == 1 {
		m.path, m.body = "/v1/namespaces/"+r.namespace+"/objects", fmt.Appendf(nil, `{"object":%s}`, object)
	}
	came, err := p.asks(r.Context(), r.editor, m)
	r.mutex.Lock()
	r.sent++
	if err == nil && came.code == http.StatusCreated {
		r.made[name] = true
	}
	r.mutex.Unlock()
	switch {
	case err == nil && came.code != http.StatusCreated && came.code != http.StatusServiceUnavailable:
		r.Errorf("the creation of %s is answered with %d: %s", name, came.code, came.text)
	case err == nil && n%3 == 2:
		m = mixture{method: http.MethodDelete, path: "/apis/heliostat.dev/v1beta1/namespaces/" + r.namespace + "/computeclusters/" + name}
		_, _ = p.asks(r.Context(), r.editor, m) // what is there in the end is compared
	}
}

// judge compares each stream with what is there, and the API server's log with what was answered.
func (r *rolling) judge(began live.Mark) {
	r.Helper()
	want := map[string]string{}
	eventually(r.T, "all streams to have what is there", func(ctx context.Context) error {
		clear(want)
		var clusters v1beta1.ComputeClusterList
		if err := shared.List(ctx, &clusters, client.InNamespace(r.namespace)); err != nil {
			return err
		}
		for i := range clusters.Items {
			want[clusters.Items[i].Name] = clusters.Items[i].ResourceVersion
		}
		for i, one := range r.streams {
			if diff := one.differs(want); diff != "" {
				return fmt.Errorf("stream %d: %s", i, diff)
			}
		}
		return nil
	})
	byes := 0
	for i, one := range r.streams {
		one.mutex.Lock()
		byes += one.byes
		if len(one.syncs) != 1 || len(one.faults) > 0 {
			r.Errorf("stream %d has got full states because of %q, and: %q", i, one.syncs, one.faults)
		}
		one.mutex.Unlock()
	}
	creates := r.creates(began)
	twice := 0
	for name, count := range creates {
		if count > 1 {
			twice++
			r.Errorf("cluster %s was created %d times", name, count)
		}
	}
	for name := range r.made {
		if creates[name] != 1 {
			r.Errorf("the creation of %s was answered, and reached the API server %d times", name, creates[name])
		}
	}
	r.Logf("%d streams said bye %d times and went on, with %d writes under way, %d of them answered, %d of them twice", len(r.streams), byes, r.sent, len(r.made), twice)
}

// creates counts the requests to create a cluster that reached the API server, by name; those that were refused too.
func (r *rolling) creates(began live.Mark) map[string]int {
	r.Helper()
	counts, editor := map[string]int{}, "system:serviceaccount:"+r.namespace+":editor"
	must(r.T, shared.audit.Since(began, func(line []byte) error {
		if !bytes.Contains(line, []byte(r.namespace)) || !bytes.Contains(line, []byte(`"verb":"create"`)) {
			return nil
		}
		var one request
		err := json.Unmarshal(line, &one)
		if one.ObjectRef.Namespace == r.namespace && one.ObjectRef.Resource == "computeclusters" && one.User.Username == editor {
			counts[one.ObjectRef.Name]++
		}
		return err
	}))
	return counts
}

// differs says how the clusters that a stream has differ from those that are there.
func (f *follower) differs(want map[string]string) string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var all []string
	for name, version := range want {
		if has := f.has["clusters/"+name].ResourceVersion; has != version {
			all = append(all, fmt.Sprintf("%s is at %q, not at %s", name, has, version))
		}
	}
	for key := range f.has {
		if name, is := strings.CutPrefix(key, "clusters/"); is && want[name] == "" {
			all = append(all, name+" is gone")
		}
	}
	return strings.Join(all, ", ")
}
