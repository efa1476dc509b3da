package rest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
)

// gathers starts a head with the logs of a gang's processes, and puts the gang into the view.
func (b *bed) gathers(t *testing.T) {
	t.Helper()
	cluster := b.site.PutCluster("demo", nil)
	b.site.PutPod(headstest.Head(cluster, 1, "10.1.0.1"))
	fake := fakehead.StartOn(clock.RealClock{}, b.network.Listen("gcs:1"), b.network.Listen("10.1.0.1:8265"))
	fake.SetToken(headstest.Token)
	t.Cleanup(func() {
		b.network.Break()
		fake.Close()
	})
	fake.Join(fakehead.Member{Instance: "a", Head: true})
	fake.Join(fakehead.Member{Instance: "b"})
	fake.SetLog("a", "job-driver-s-worker-3-r1.log", "first")
	fake.SetLog("b", "job-driver-s-worker-3-r10.log.1", "older", headstest.Token)
	fake.SetLog("b", "job-driver-s-worker-3-r10.log", "younger")
	fake.SetLog("b", "job-driver-s-worker-30-r11.log", "of another")
	job := &v1beta1.ClusterJob{ObjectMeta: meta(headstest.Namespace, "train")}
	job.Spec.Gang = &v1beta1.Gang{Roles: []v1beta1.GangRole{{Name: "master"}, {Name: "worker", Replicas: 2, ProcessesPerReplica: 2}}}
	job.Status.Attempts = []v1beta1.JobAttempt{
		{Number: 1, SubmissionID: "former", ClusterName: "demo", ClusterUID: cluster.UID},
		{Number: 2, SubmissionID: "s", ClusterName: "demo", ClusterUID: cluster.UID},
	}
	cluster.ResourceVersion = "5"
	b.put(t, view.Clusters, cluster)
	b.put(t, view.Jobs, job, &v1beta1.ClusterJob{ObjectMeta: meta(headstest.Namespace, "plain"), Status: job.Status})
	b.site.PutJob("train", job.Status)
}

func TestRounds_AreThoseOfOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "get clusterjobs/log "+headstest.Namespace)
		b.gathers(t)
		const path = "/v1/namespaces/" + headstest.Namespace + "/jobs/train/"
		code, answer := b.send(t, "GET", path+"rounds?process=worker/3", "")
		const want = "map[rounds:[map[hasOlder:false number:1] map[hasOlder:true number:10]] silentNodes:0 unaskedNodes:0]"
		if code != 200 || fmt.Sprint(answer) != want {
			t.Errorf("the rounds are %d, %v", code, answer)
		}
		for query, want := range map[string]string{
			"process=worker/3": "younger\n", "process=worker/3&round=1&attempt=2": "first\n", "process=worker/3&round=10&offset=2": "unger\n",
			"process=worker/3&older=true": "older\n" + masked() + "\n",
		} {
			if code, text := b.text(t, path+"log?"+query); code != 200 || text != want {
				t.Errorf("%s: the log is %d, %q", query, code, text)
			}
		}
		for query, want := range map[string]string{"process=worker/3": "10", "process=worker/3&round=1": "1"} {
			if got := b.get(t, path+"log?"+query).Header().Get("Heliostat-Round"); got != want {
				t.Errorf("%s: the log is of round %q", query, got)
			}
		}
		code, answer = b.send(t, "GET", path+"log?process=worker/3", "", "Accept", "text/event-stream", "Last-Event-ID", "3")
		if code != 400 || !strings.Contains(fmt.Sprint(answer["detail"]), "query.round must be given with server-sent events") {
			t.Errorf("events without a round are %d, %v", code, answer)
		}
		for query, want := range map[string]string{
			"log?process=worker/3&round=2":                 "404 OutputGone",
			"log?process=worker/3&attempt=1":               "404 OutputGone",
			"log?process=worker/3&attempt=3":               "404 NotFound",
			"log?process=worker/3&round=1&older=true":      "404 OutputGone",
			"log?process=worker/3&round=1&offset=900":      "409 OutputShorter",
			"log?process=worker/3&offset=1":                "400 BadRequest",
			"log?process=worker/../../x":                   "400 BadRequest",
			"log?round=1":                                  "400 BadRequest",
			"rounds?process=*/0":                           "400 BadRequest",
			"rounds?process=worker/4":                      "400 BadRequest",
			"rounds?process=wroker/0":                      "400 BadRequest",
			"log?process=master/1":                         "400 BadRequest",
			"../plain/rounds?process=worker/0":             "400 BadRequest",
			"log?process=worker/3&offset=1&tail=1&round=1": "400 BadRequest",
			"rounds": "400 BadRequest",
		} {
			if code, answer := b.send(t, "GET", strings.Replace(path+query, "train/../", "", 1), ""); fmt.Sprint(code, " ", answer["reason"]) != want {
				t.Errorf("%s is %d, %v; want %s", query, code, answer, want)
			}
		}
	})
}

// masked is what takes the place of the token.
func masked() string {
	text := make([]byte, len(headstest.Token))
	for i := range text {
		text[i] = '*'
	}
	return string(text)
}

// TestCheckProcess: only a process of a gang that runs once has a log of its own by its name.
func TestCheckProcess(t *testing.T) {
	gang := &v1beta1.Gang{Roles: []v1beta1.GangRole{{Name: "worker", Replicas: 2}}}
	for name, c := range map[string]struct {
		spec v1beta1.ClusterJobSpec
		want string
	}{
		"a process of the gang": {v1beta1.ClusterJobSpec{Gang: gang}, ""},
		"no gang":               {v1beta1.ClusterJobSpec{}, "is not a gang"},
		"trials of a gang":      {v1beta1.ClusterJobSpec{Gang: gang, Tune: &v1beta1.Tune{}}, "has trials, whose lines are in its output"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkProcess(&v1beta1.ClusterJob{Spec: c.spec}, "worker", 1)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("have %v, want %q", err, c.want)
			}
		})
	}
}
