package rest

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/logs"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/history/client/clienttest"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	historyv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// TestReadLog_GoesOnInTheArchive: head and cluster go while the output is followed, and the archive gets the rest later.
func TestReadLog_GoesOnInTheArchive(t *testing.T) {
	for _, isDeleted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { goesOn(t, isDeleted) })
	}
}

// goesOn follows a job whose head and cluster go, and which is deleted too.
func goesOn(t *testing.T, isDeleted bool) {
	t.Helper()
	b := newBed(t, "get clusterjobs/log "+headstest.Namespace)
	archivers, reads := clienttest.Start(t)
	b.api.portal.History = reads
	b.namespaces = map[string]types.UID{headstest.Namespace: spaceUID}
	cluster := b.site.PutCluster("demo", nil)
	b.site.PutPod(headstest.Head(cluster, 1, "10.1.0.1"))
	fake := fakehead.StartOn(clock.RealClock{}, b.network.Listen("gcs:1"), b.network.Listen("10.1.0.1:8265"))
	fake.SetToken(headstest.Token)
	b.site.PutJob("train", v1beta1.ClusterJobStatus{})
	live, _ := b.site.FindJob(headstest.Namespace, "train")
	id := naming.Submission("train", live.UID, 1)
	on := heads.Reference{Namespace: headstest.Namespace, Name: "demo"}
	if _, _, err := b.api.portal.Heads.Submit(t.Context(), on, headclient.Submission{ID: id, Entrypoint: "echo one; sleep 600"}); err != nil {
		t.Fatal(err)
	}
	attempt := v1beta1.JobAttempt{Number: 1, SubmissionID: id, ClusterName: "demo", ClusterUID: cluster.UID, HeadName: "demo-head", HeadUID: "head-demo-1"}
	put := func() {
		status := v1beta1.ClusterJobStatus{Attempt: 1, Attempts: []v1beta1.JobAttempt{attempt}}
		b.site.PutJob("train", status)
		b.put(t, view.Jobs, &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{Namespace: headstest.Namespace, Name: "train", UID: live.UID, ResourceVersion: "5"}, Status: status})
	}
	put()
	<-time.After(5 * time.Second)
	said, done := &strings.Builder{}, make(chan error, 1)
	var end *logs.End
	go func() {
		ctx := withCaller(t.Context(), &access.Caller{})
		done <- b.api.portal.readLog(ctx, &heliostatv1.ReadLogRequest{Namespace: headstest.Namespace, Name: "train", Follow: true}, func(event logs.Event) error {
			said.Write(event.Data)
			if end = event.End; event.Offset != int64(said.Len()) {
				t.Errorf("after %q the offset is %d", said.String(), event.Offset)
			}
			return nil
		}, nil)
	}()
	<-time.After(10 * time.Second)
	synctest.Wait()
	before, _ := fake.Output(id)
	if said.String() != before || before == "" {
		t.Fatalf("%q was read of %q", said, before)
	}
	b.network.Break()
	fake.Close()
	b.site.RemovePod("demo-head")
	b.site.RemoveCluster("demo")
	at := metav1.Now()
	attempt.EndTime, attempt.Reason, attempt.LogState, attempt.LastLines = &at, reason.JobSucceeded.Code, v1beta1.LogLost, []string{"a line of the status"}
	if put(); isDeleted {
		b.site.RemoveJob("train")
		b.put(t, view.Jobs)
	}
	archivers.SetState(string(cluster.UID), "Collecting")
	archivers.Put(&historyv1.GetRecordResponse{Object: textOf(t, live, attempt), Record: &historyv1.Record{
		Kind: "ClusterJob", Namespace: headstest.Namespace, NamespaceUid: spaceUID, Name: "train", Uid: string(live.UID),
	}})
	write := func(text string, isEnded bool) {
		archivers.Write(string(cluster.UID), clienttest.File{Pod: "demo-head", PodUID: "p", ID: clienttest.ID(1, 0), Path: "job-driver-" + id + ".log", Ended: isEnded,
			Parts: []clienttest.Part{{Data: text}}})
	}
	<-time.After(20 * time.Second)
	write(before+"two\n", false)
	<-time.After(20 * time.Second)
	write(before+"two\nthree\n", true)
	if err := <-done; err != nil || said.String() != before+"two\nthree\n" || end == nil || end.Outcome != logs.Succeeded {
		t.Errorf("where it is deleted (%t) it is %q, %v, %v", isDeleted, said, end, err)
	}
}

// textOf returns a job with an attempt as a record has it.
func textOf(t *testing.T, job *v1beta1.ClusterJob, attempt v1beta1.JobAttempt) []byte {
	t.Helper()
	kept := &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name, UID: job.UID}}
	kept.Status.Attempts = []v1beta1.JobAttempt{attempt}
	text, err := json.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
