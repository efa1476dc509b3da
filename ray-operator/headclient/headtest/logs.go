package headtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// logCases are what is true of the outputs of jobs. They leave no job that runs.
func logCases() []Case {
	return []Case{
		{"an output of text is its file, from any offset", plain},
		{"an output of any bytes is its file, where Ray gives bytes", bytewise},
		{"an output of nothing has Ray's lines alone, or is emptied, or removed", nothing},
		{"a job that waits has no output, and is followed to its end", waitsSilently},
		{"a large output is its file", large},
		{"the logs of all nodes are found by a glob", found},
		{"an output that grows is followed, and again from where it was left", grows},
	}
}

// file is what a job's file holds.
func file(t testing.TB, head Head, id string) []byte {
	t.Helper()
	whole, err := head.Output(id)
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// logged reads the output of a job.
func logged(t testing.TB, jobs *headclient.Jobs, id string, offset int64) []byte {
	t.Helper()
	var said bytes.Buffer
	n, err := jobs.Log(t.Context(), id, offset, &said)
	if err != nil || n != int64(said.Len()) {
		t.Fatalf("from %d it is %d bytes, said to be %d: %v", offset, said.Len(), n, err)
	}
	return said.Bytes()
}

func found(t testing.TB, head Head) {
	if strings.HasPrefix(head.Version, "2.52.") {
		return // its dashboard cannot list files where there is a token
	}
	jobs := converse(t, head)
	id := submit(t, jobs, headclient.Submission{Entrypoint: "echo a"})
	over(t, head, id)
	search, err := jobs.FindLogs(t.Context(), "job-driver-"+id+"*.log*")
	logs := search.Logs
	if err != nil || len(logs) != 1 || logs[0].File != "job-driver-"+id+".log" {
		t.Fatalf("it finds %v: %v", logs, err)
	}
	var whole bytes.Buffer
	if _, err := jobs.LogFile(t.Context(), logs[0], 0, &whole); err != nil || !bytes.Equal(whole.Bytes(), file(t, head, id)) {
		t.Errorf("it reads %q: %v", whole.String(), err)
	}
	if none, err := jobs.FindLogs(t.Context(), "job-driver-"+id+"-worker-0-r*.log*"); err != nil || len(none.Logs) > 0 {
		t.Errorf("of no process it finds %v: %v", none, err)
	}
}

func plain(t testing.TB, head Head) {
	isItsFile(t, head, `printf 'one\ngrün 漢字 🌞\n\n\t\033[31mred\033[0m "x" no end'`, "one\ngrün 漢字 🌞\n\n\t\x1b[31mred\x1b[0m \"x\" no end")
}

func bytewise(t testing.TB, head Head) {
	const entrypoint = `printf 'one\rtwo\r\nthree\n\377\376\000 \303\n\n\tno end'`
	if !strings.HasPrefix(head.Version, "2.52.") {
		isItsFile(t, head, entrypoint, "one\rtwo\r\nthree\n\377\376\000 \303\n\n\tno end")
		return
	}
	// Its dashboard gives texts alone to who has a token.
	jobs := converse(t, head)
	id := submit(t, jobs, headclient.Submission{Entrypoint: entrypoint})
	over(t, head, id)
	if n, err := jobs.Log(t.Context(), id, 0, io.Discard); n != 0 || headclient.KindOf(err) != headclient.Unsupported {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := jobs.Follow(t.Context(), id, 0, io.Discard); headclient.KindOf(err) != headclient.Unsupported {
		t.Errorf("followed: %v", err)
	}
}

// isItsFile runs a job that prints something, and reads its output from here and there.
func isItsFile(t testing.TB, head Head, entrypoint, said string) {
	t.Helper()
	jobs := converse(t, head)
	id := submit(t, jobs, headclient.Submission{Entrypoint: entrypoint})
	over(t, head, id)
	whole := file(t, head, id)
	if !bytes.Contains(whole, []byte(said)) {
		t.Fatalf("its file is %q", whole)
	}
	for _, offset := range []int{0, 1, bytes.Index(whole, []byte(said)) + 3, len(whole) - 1, len(whole)} {
		if got := logged(t, jobs, id, int64(offset)); !bytes.Equal(got, whole[offset:]) {
			t.Errorf("from %d it is %q, want %q", offset, got, whole[offset:])
		}
		var followed bytes.Buffer
		job, err := jobs.Follow(t.Context(), id, int64(offset), &followed)
		if err != nil || job.Status != headclient.JobSucceeded || !bytes.Equal(followed.Bytes(), whole[offset:]) {
			t.Errorf("followed from %d it is %q of %+v, %v", offset, followed.Bytes(), job, err)
		}
	}
	beyond(t, jobs, id, int64(len(whole))+1)
}

// beyond fails unless an offset is beyond the end of an output.
func beyond(t testing.TB, jobs *headclient.Jobs, id string, offset int64) {
	t.Helper()
	if n, err := jobs.Log(t.Context(), id, offset, io.Discard); n != 0 || headclient.KindOf(err) != headclient.Gone {
		t.Errorf("from %d it has %d bytes, %v", offset, n, err)
	}
	if _, err := jobs.Follow(t.Context(), id, offset, io.Discard); headclient.KindOf(err) != headclient.Gone {
		t.Errorf("followed from %d: %v", offset, err)
	}
}

func nothing(t testing.TB, head Head) {
	jobs := converse(t, head)
	id := submit(t, jobs, headclient.Submission{Entrypoint: "exit 0"})
	over(t, head, id)
	got := logged(t, jobs, id, 0)
	if whole := file(t, head, id); !bytes.Equal(got, whole) || !bytes.Contains(whole, []byte("Running entrypoint for job "+id+": exit 0\n")) {
		t.Errorf("it is %q, and its file %q", got, whole)
	}
	if err := head.Empty(id); err != nil {
		t.Fatal(err)
	}
	if got := logged(t, jobs, id, 0); len(got) != 0 {
		t.Errorf("emptied it is %q", got)
	}
	beyond(t, jobs, id, 1)
	if err := head.Remove(id); err != nil {
		t.Fatal(err)
	}
	beyond(t, jobs, id, 0)
}

func waitsSilently(t testing.TB, head Head) {
	jobs, gcs := converse(t, head), with(t, head)
	id := submit(t, jobs, headclient.Submission{Entrypoint: "echo x", CPUs: 1000})
	if got := logged(t, jobs, id, 0); len(got) != 0 {
		t.Errorf("it is %q", got)
	}
	beyond(t, jobs, id, 1)
	type end struct {
		job headclient.Job
		err error
	}
	var said bytes.Buffer
	over := make(chan end, 1)
	follower := converse(t, head)
	go func() {
		job, err := follower.Follow(t.Context(), id, 0, &said)
		over <- end{job, err}
	}()
	eventually(t, head, "its death", func(ctx context.Context) error {
		killed, err := gcs.KillSubmission(ctx, id)
		if err == nil && !killed {
			err = errors.New("there is nothing to kill")
		}
		return err
	})
	if got := <-over; got.err != nil || got.job.Status != headclient.JobFailed || said.Len() != 0 {
		t.Errorf("followed, it is %q of %+v, %v", said.Bytes(), got.job, got.err)
	}
	ended(t, head, id)
}

func large(t testing.TB, head Head) {
	jobs := converse(t, head)
	id := submit(t, jobs, headclient.Submission{Entrypoint: "seq 400000"})
	over(t, head, id)
	whole := file(t, head, id)
	if at := len(whole) - 5; len(whole) < 2<<20 || !bytes.Equal(logged(t, jobs, id, 0), whole) || !bytes.Equal(logged(t, jobs, id, int64(at)), whole[at:]) {
		t.Errorf("of %d bytes it is another", len(whole))
	}
}

// limited takes so many bytes, and then refuses.
type limited struct {
	bytes.Buffer
	room int
}

var errFull = errors.New("it is full")

func (l *limited) Write(part []byte) (int, error) {
	n := min(len(part), l.room-l.Len())
	_, _ = l.Buffer.Write(part[:n]) // which never fails
	if n < len(part) {
		return n, errFull
	}
	return n, nil
}

func grows(t testing.TB, head Head) {
	jobs := converse(t, head)
	id := submit(t, jobs, headclient.Submission{Entrypoint: "echo first; sleep 1; echo second; sleep 1; echo third"})
	running(t, head, id)
	// It refuses most of what it is first given, so that a second one goes on from there.
	taken := &limited{room: 10}
	if job, err := converse(t, head).Follow(t.Context(), id, 0, taken); !errors.Is(err, errFull) || job.Status.Over() {
		t.Fatalf("of a writer that refuses it is %+v, %v", job, err)
	}
	job, err := jobs.Follow(t.Context(), id, int64(taken.Len()), &taken.Buffer)
	if err != nil || job.Status != headclient.JobSucceeded {
		t.Fatalf("it ends as %+v, %v", job, err)
	}
	if whole := file(t, head, id); !bytes.Equal(taken.Bytes(), whole) || !bytes.HasSuffix(whole, []byte("second\nthird\n")) {
		t.Errorf("it is %q, and its file %q", taken.Bytes(), whole)
	}
}
