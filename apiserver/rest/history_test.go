package rest

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/history/client/clienttest"
	historyv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// UIDs of objects of which something is kept: cluster and job in team-a, and the same names in a former namespace.
const (
	spaceUID, formerSpaceUID   = "0000000a-0000-0000-0000-000000000000", "0000000b-0000-0000-0000-000000000000"
	clusterUID, formerCluster  = "00000001-0000-0000-0000-000000000000", "00000002-0000-0000-0000-000000000000"
	jobUID, formerJob          = "00000003-0000-0000-0000-000000000000", "00000004-0000-0000-0000-000000000000"
	expiredCluster, unknownUID = "00000005-0000-0000-0000-000000000000", "00000009-0000-0000-0000-000000000000"
)

// kept gives a bed archivers with a history.
func (b *bed) kept(t *testing.T) *clienttest.Archivers {
	t.Helper()
	archivers, reads := clienttest.Start(t)
	b.api.portal.History = reads
	b.namespaces = map[string]types.UID{"team-a": spaceUID, "team-b": "0000000c-0000-0000-0000-000000000000"}
	put := func(space, kind, name, uid string, ended int64, object any, more func(*historyv1.GetRecordResponse)) {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		one := &historyv1.GetRecordResponse{Object: text, Record: &historyv1.Record{
			Kind: kind, Namespace: "team-a", NamespaceUid: space, Name: name, Uid: uid, Created: ended - 10, Ended: ended, Deleted: ended, Phase: "Failed",
		}}
		if more != nil {
			more(one)
		}
		archivers.Put(one)
	}
	put(spaceUID, "ComputeCluster", "old", clusterUID, 5000, map[string]any{"kind": "ComputeCluster"}, func(one *historyv1.GetRecordResponse) {
		one.Record.ArchiveState, one.Events = "Complete", []*historyv1.Event{{Reason: "Started"}}
		one.Pods = []*historyv1.Pod{{Name: "old-head"}}
	})
	put(spaceUID, "ClusterJob", "gone", jobUID, 6000, pastJob(jobUID), func(one *historyv1.GetRecordResponse) { one.Record.ClusterUids = []string{clusterUID} })
	put(spaceUID, "ComputeCluster", "over", expiredCluster, 3000, nil, func(one *historyv1.GetRecordResponse) {
		one.Record.ArchiveState, one.Record.Marked, one.Object = "Expired", 1_700_000_000_000, nil
	})
	put(formerSpaceUID, "ComputeCluster", "old", formerCluster, 2000, map[string]any{}, nil)
	put(formerSpaceUID, "ClusterJob", "gone", formerJob, 1000, map[string]any{}, nil)
	write := func(pod, path string, number int, parts ...clienttest.Part) {
		archivers.Write(clusterUID, clienttest.File{Pod: pod, PodUID: "uid-" + pod, ID: clienttest.ID(number, 0), Path: path, Ended: true, Parts: parts})
	}
	write("old-head", "job-driver-"+naming.Submission("gone", jobUID, 1)+".log", 2, clienttest.Part{Data: "one\ntwo\nthree\n"})
	write("old-head", "job-driver-"+naming.Submission("other", jobUID, 1)+".log", 3, clienttest.Part{Data: "of another job"})
	write("old-head", "raylet.out", 4, clienttest.Part{Data: "head"})
	write("old-worker", "raylet.out", 5, clienttest.Part{Data: "work"}, clienttest.Part{Offset: 4, Length: 3, Reason: "RotatedAway"}, clienttest.Part{Offset: 7, Data: "er"})
	write("old-worker", "dir/odd name\n.err", 6, clienttest.Part{Data: "odd"})
	return archivers
}

// pastJob is a job with an attempt that failed on the first cluster.
func pastJob(uid string) *v1beta1.ClusterJob {
	at := metav1.Unix(6, 0)
	job := &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "gone", UID: types.UID(uid)}}
	job.Status.Attempts = []v1beta1.JobAttempt{{
		Number: 1, SubmissionID: naming.Submission("gone", types.UID(uid), 1), ClusterName: "old", ClusterUID: clusterUID, EndTime: &at,
		Reason: reason.JobFailed.Code, Message: "the entrypoint failed",
	}}
	return job
}

const everythingKept = "/v1/namespaces/team-a/"

// TestHistory_AnswersByRight has the exact code of each route for each caller.
func TestHistory_AnswersByRight(t *testing.T) {
	callers := map[string][]string{
		"nobody":        nil,
		"view":          {"list computeclusters team-a", "list clusterjobs team-a"},
		"edit":          {"list computeclusters team-a", "list clusterjobs team-a", "get clusterjobs/log team-a", "get computeclusters/proxy team-a"},
		"admin":         {"list computeclusters team-a", "get clusterjobs/log team-a", "get computeclusters/proxy team-a", "delete computeclusters/history team-a"},
		"log":           {"get clusterjobs/log team-a"},
		"other":         {"list computeclusters team-b", "get computeclusters/proxy team-b", "delete computeclusters/history team-b"},
		"history-admin": {"get histories", "delete histories"},
	}
	for path, want := range map[string]string{
		"GET clusters/old/history":                       "view:200 edit:200 admin:200",
		"GET clusters/old/history/" + clusterUID:         "view:200 edit:200 admin:200",
		"GET clusters/old/history/" + unknownUID:         "",
		"GET clusters/old/history/" + jobUID:             "",
		"GET clusters/old/history/" + formerCluster:      "history-admin:200",
		"GET clusters/over/history":                      "view:410 edit:410 admin:410",
		"GET clusters/never/history":                     "view:404 edit:404 admin:404",
		"GET clusters/old/files":                         "edit:200 admin:200",
		"GET clusters/old/files/raylet.out?pod=old-head": "edit:200 admin:200",
		"GET clusters/old/files/none":                    "edit:404 admin:404",
		"GET clusters/over/files":                        "edit:410 admin:410",
		"GET clusters/over/files:download":               "edit:410 admin:410",
		"GET jobs/gone/files":                            "edit:200 admin:200 log:200",
		"GET jobs/gone/files/raylet.out":                 "edit:404 admin:404 log:404",
		"GET jobs/gone/log":                              "edit:200 admin:200 log:200",
		"GET jobs/gone/log?uid=" + jobUID:                "edit:200 admin:200 log:200",
		"GET jobs/gone/log?uid=" + unknownUID:            "",
		"GET jobs/gone/log?uid=" + formerJob:             "history-admin:404",
		"GET schedules/gone/history":                     "nobody:404 view:404 edit:404 admin:404 log:404 other:404 history-admin:404",
		"DELETE clusters/old/history/" + clusterUID:      "admin:200",
		"DELETE clusters/old/history/" + formerCluster:   "history-admin:200",
		"DELETE clusters/old/history/" + unknownUID:      "",
	} {
		for caller, may := range callers {
			b := newBed(t, may...)
			archivers := b.kept(t)
			method, path, _ := strings.Cut(path, " ")
			code := b.codeOf(t, method, everythingKept+path)
			expected := http.StatusForbidden
			for _, one := range strings.Fields(want) {
				if who, number, _ := strings.Cut(one, ":"); who == caller {
					_, _ = fmt.Sscan(number, &expected)
				}
			}
			if code != expected || len(archivers.Deleted()) > 0 != (method == http.MethodDelete && expected == http.StatusOK) {
				t.Errorf("%s: %s %s is %d, want %d; deleted is %v", caller, method, path, code, expected, archivers.Deleted())
			}
		}
	}
}

// codeOf returns the code of an answer of any form.
func (b *bed) codeOf(t *testing.T, method, path string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, b.serve(t).URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	return answer.StatusCode
}

func TestHistory_RefusesWhatNeverWasAsWhatIsHidden(t *testing.T) {
	rich, poor := newBed(t, "list computeclusters team-a"), newBed(t)
	rich.kept(t)
	poor.kept(t)
	_, never := rich.send(t, "GET", everythingKept+"clusters/old/history/"+unknownUID, "")
	_, hidden := poor.send(t, "GET", everythingKept+"clusters/old/history/"+clusterUID, "")
	if fmt.Sprint(never) != fmt.Sprint(hidden) {
		t.Errorf("a UID that never was is %v, and one that is hidden %v", never, hidden)
	}
	_, expired := rich.send(t, "GET", everythingKept+"clusters/over/history", "")
	if !strings.Contains(fmt.Sprint(expired["detail"]), "2023-11-14T22:13:20Z") {
		t.Errorf("what expired is %v", expired)
	}
}

func TestGetHistory_HidesEventsAndPods(t *testing.T) {
	for may, want := range map[string]string{"": "0 0 [pods events]", "list pods team-a": "0 1 [events]", "list events team-a": "1 0 [pods]"} {
		b := newBed(t, "list computeclusters team-a", may)
		b.kept(t)
		_, answer := b.send(t, "GET", everythingKept+"clusters/old/history", "")
		events, _ := answer["events"].([]any)
		pods, _ := answer["pods"].([]any)
		if got := fmt.Sprint(len(events), len(pods), answer["hidden"]); got != want || answer["object"] == nil {
			t.Errorf("with %q it is %s, want %s", may, got, want)
		}
	}
}

func TestListHistory_ShowsWhatMayBeListed(t *testing.T) {
	for name, c := range map[string]struct {
		may   []string
		query string
		want  string
	}{
		"kinds of one namespace":     {[]string{"list computeclusters team-a"}, "?namespaces=team-a", "clusters/old clusters/over"},
		"in small pages":             {[]string{"list computeclusters team-a", "list clusterjobs team-a"}, "?namespaces=team-a&limit=1", "jobs/gone"},
		"since":                      {[]string{"*"}, "?since=1970-01-01T00:00:04Z", "jobs/gone clusters/old"},
		"everywhere":                 {[]string{"list computeclusters", "list clusterjobs"}, "", "jobs/gone clusters/old clusters/over"},
		"namespaces that are gone":   {[]string{"get histories"}, "?gone=true", "clusters/old jobs/gone"},
		"another one of them":        {[]string{"get histories"}, "?gone=true&namespaces=team-b", ""},
		"nothing":                    {nil, "", ""},
		"gone without the right":     {[]string{"list computeclusters"}, "?gone=true", "403"},
		"a namespace that is hidden": {[]string{"list computeclusters team-b"}, "?namespaces=team-a", "403"},
		"mistakes":                   {[]string{"*"}, "?kinds=schedules&since=yesterday&limit=501", "400"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, c.may...)
			b.kept(t)
			code, answer := b.send(t, "GET", "/v1/history"+c.query, "")
			var got []string
			if code != http.StatusOK {
				got = []string{fmt.Sprint(code)}
			}
			records, _ := answer["records"].([]any)
			for _, one := range records {
				record, _ := one.(map[string]any)
				got = append(got, fmt.Sprint(record["kind"], "/", record["name"]))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("it is %q, want %q: %v", got, c.want, answer)
			}
		})
	}
}

func TestFiles_AreListedReadAndDownloaded(t *testing.T) {
	b := newBed(t, "get computeclusters/proxy team-a")
	b.kept(t)
	_, answer := b.send(t, "GET", everythingKept+"clusters/old/files?paths=dir/*.err&paths=raylet.*", "")
	var paths []string
	for _, one := range answer["files"].([]any) {
		file, _ := one.(map[string]any)
		paths = append(paths, fmt.Sprint(file["pod"], ":", file["path"]))
	}
	if got := strings.Join(paths, " "); got != "old-head:raylet.out old-worker:dir/odd%20name%0A.err old-worker:raylet.out" {
		t.Errorf("the files are %s", got)
	}
	server := b.serve(t)
	for path, want := range map[string]string{
		"raylet.out?pod=old-head": "head", "raylet.out?pod=old-worker": "worker", "raylet.out?pod=old-worker&offset=5": "er",
		"raylet.out?pod=old-head&offset=2": "ad", "dir/odd%20name%0A.err": "odd",
	} {
		body, header := get(t, server, everythingKept+"clusters/old/files/"+path)
		text, err := io.ReadAll(body)
		if err != nil || string(text) != want || header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
			t.Errorf("%s is %q, %v, %v", path, text, header, err)
		}
	}
	if code, answer := b.send(t, "GET", everythingKept+"clusters/old/files/raylet.out", ""); code != 400 || !strings.Contains(fmt.Sprint(answer["remedy"]), "old-head, old-worker") {
		t.Errorf("a file of two pods is %d, %v", code, answer)
	}
	events, _ := get(t, server, everythingKept+"clusters/old/files/raylet.out?pod=old-worker", "Accept", eventStreamType)
	text, err := io.ReadAll(events)
	if err != nil || !strings.Contains(string(text), "id: 7\nevent: notice\ndata: {\"code\":\"RotatedAway\"") {
		t.Errorf("the events are %s, %v", text, err)
	}
	body, _ := get(t, server, everythingKept+"clusters/old/files:download?paths=raylet.out&paths=dir/*")
	checkTar(t, body)
}

func checkTar(t *testing.T, body io.Reader) {
	t.Helper()
	entries := map[string]string{}
	for reader := tar.NewReader(body); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		entries[strings.TrimPrefix(header.Name, clusterUID+"/")] = string(text)
	}
	want := map[string]string{
		"old-head/raylet.out": "head", "old-worker/raylet.out": "worker", "old-worker/dir/odd%20name%0A.err": "odd",
		"missing.txt": clusterUID + "/old-worker/raylet.out\t4\t3\tRotatedAway\n",
	}
	if fmt.Sprint(entries) != fmt.Sprint(want) {
		t.Errorf("the tar has %q, want %q", entries, want)
	}
}

func TestReadLog_OfAJobThatIsGone(t *testing.T) {
	b := newBed(t, "get clusterjobs/log team-a")
	archivers := b.kept(t)
	for query, want := range map[string]string{"": "one\ntwo\nthree\n", "?offset=4": "two\nthree\n", "?tail=1": "three\n", "?follow=true&attempt=1": "one\ntwo\nthree\n"} {
		if code, text := b.text(t, everythingKept+"jobs/gone/log"+query); code != 200 || text != want {
			t.Errorf("%q is %d, %q", query, code, text)
		}
	}
	w := b.get(t, everythingKept+"jobs/gone/log")
	if got := w.Result().Trailer.Get(trailerOutcome); got != "Failed" {
		t.Errorf("it ends with %s", got)
	}
	_, answer := b.send(t, "GET", everythingKept+"jobs/gone/files", "")
	if files, _ := answer["files"].([]any); len(files) != 1 {
		t.Errorf("the files of a job are %v", answer)
	}
	archivers.SetAway(clienttest.Order(clusterUID)[0], true)
	archivers.SetAway(clienttest.Order(clusterUID)[1], true)
	if code, answer := b.send(t, "GET", everythingKept+"jobs/gone/log", ""); code != 503 || answer["reason"] != "HistoryAway" {
		t.Errorf("while no archiver answers it is %d, %v", code, answer)
	}
}

func TestHistory_IsTheSameByGRPC(t *testing.T) {
	b := newBed(t, "get computeclusters/proxy team-a", "list computeclusters team-a")
	b.kept(t)
	portal := b.dial(t, func(ctx context.Context, _ *Call, answer func(context.Context) error) error { return answer(ctx) })
	found, err := portal.GetHistory(t.Context(), &heliostatv1.GetHistoryRequest{Namespace: "team-a", Kind: "clusters", Name: "old"})
	if err != nil || found.GetRecord().GetUid() != clusterUID {
		t.Errorf("the record is %v, %v", found, err)
	}
	stream, err := portal.DownloadFiles(t.Context(), &heliostatv1.DownloadFilesRequest{
		Namespace: "team-a", Kind: "clusters", Name: "old", Paths: []string{"raylet.out", "dir/*"}})
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all.Write(part.GetData())
	}
	checkTar(t, &all)
}
