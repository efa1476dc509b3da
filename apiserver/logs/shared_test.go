package logs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/portal/limits"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

func TestShared_ManyReadersAreOneRequest(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("a", "seq 20000; sleep 20; seq 20000")
		pass(2 * time.Second)
		alone := b.submission(t.Context(), "a", Options{Follow: true})
		pass(5 * time.Second)
		before := b.fake.Calls(fileCall)
		var readers []*told
		for i := range 100 {
			options := Options{Follow: true, Offset: int64(i) * 100}
			if i%4 == 0 {
				options = Options{Follow: true, Tail: i}
			}
			readers = append(readers, b.submission(t.Context(), "a", options))
		}
		alone.ends(t, Succeeded, "JobSucceeded")
		whole := b.file("a")
		for i, r := range readers {
			r.ends(t, Succeeded, "JobSucceeded")
			if i%4 != 0 && r.text() != whole[i*100:] || !strings.HasSuffix(whole, r.text()) {
				t.Errorf("reader %d has %d bytes", i, len(r.text()))
			}
		}
		// A look each 2 s, and one at once for those who want the last lines.
		if looks := b.fake.Calls(fileCall) - before; looks > 12 {
			t.Errorf("100 readers are %d requests in 16 s", looks)
		}
		if dials := b.network.Dials(firstIP + ":8265"); dials != 2 { // the submission's was another
			t.Errorf("100 readers are %d connections", dials)
		}
	})
}

func TestShared_OneRequestAtATime(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("a", "echo first; sleep 5; echo last")
		pass(2 * time.Second)
		b.fake.Delay(700 * time.Millisecond)
		dials := b.network.Dials(firstIP + ":8265")
		var readers []*told
		for i := range 20 {
			readers = append(readers, b.submission(t.Context(), "a", Options{Follow: i%2 == 0}))
		}
		for i, r := range readers {
			outcome, code := Succeeded, "JobSucceeded"
			if i%2 == 1 {
				outcome, code = Running, "JobRunning"
			}
			r.ends(t, outcome, code)
		}
		// One connection carries one request at a time.
		if more := b.network.Dials(firstIP+":8265") - dials; more != 1 {
			t.Errorf("20 readers are %d connections", more)
		}
	})
}

// TestShared_SilentHeadIsNotAskedByAll: readers that wait for a head do not each dial it.
func TestShared_SilentHeadIsNotAskedByAll(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("a", "echo first; sleep 30; echo last")
		pass(2 * time.Second)
		var readers []*told
		for range 50 {
			readers = append(readers, b.submission(t.Context(), "a", Options{Follow: true}))
			pass(10 * time.Millisecond)
		}
		b.network.Lead(firstIP+":8265", nil)
		b.network.Break()
		before := b.network.Dials(firstIP + ":8265")
		pass(10 * time.Second)
		if dials := b.network.Dials(firstIP+":8265") - before; dials > 11 {
			t.Errorf("50 readers dial %d times in 10 s", dials)
		}
		b.network.Lead(firstIP+":8265", b.listener)
		for _, r := range readers {
			if r.ends(t, Succeeded, "JobSucceeded"); r.text() != b.file("a") {
				t.Errorf("it is %q", r.text())
			}
		}
	})
}

func TestShared_SlowReaderDelaysNobody(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("a", "seq 400000")
		pass(3 * time.Second)
		gate := make(chan struct{})
		slow := &told{done: make(chan struct{}), before: func(Event) error { <-gate; return nil }}
		b.goRead(slow, func() error { return b.logs.ReadSubmission(t.Context(), b.on, "a", Options{}, slow.take) })
		began := time.Now()
		fast := b.submission(t.Context(), "a", Options{})
		fast.ends(t, Succeeded, "JobSucceeded")
		if took := time.Since(began); took > time.Second || fast.text() != b.file("a") {
			t.Errorf("it took %s", took)
		}
		close(gate)
		if slow.ends(t, Succeeded, "JobSucceeded"); slow.text() != b.file("a") {
			t.Errorf("the slow one has %d bytes", len(slow.text()))
		}
		if calls := b.fake.Calls(fileCall); calls != 1 {
			t.Errorf("both are %d requests", calls)
		}
	})
}

// TestShared_LoneSlowReaderHoldsTheHead: nobody waits for more than it reads, so no more is kept.
func TestShared_LoneSlowReaderHoldsTheHead(t *testing.T) {
	runWith(t, 8*blockSize, nil, func(t *testing.T, b *bed) {
		b.submit("a", "seq 1500000") // 10.9 MB, in a spool of 8 MiB
		pass(3 * time.Second)
		slow := &told{done: make(chan struct{})}
		var taken atomic.Int64
		slow.before = func(e Event) error {
			taken.Add(int64(len(e.Data)))
			<-time.After(time.Millisecond)
			return nil
		}
		b.goRead(slow, func() error { return b.logs.ReadSubmission(t.Context(), b.on, "a", Options{}, slow.take) })
		if slow.ends(t, Succeeded, "JobSucceeded"); slow.text() != b.file("a") {
			t.Errorf("it has %d bytes", taken.Load())
		}
		if b.logs.spool.made > 8 {
			t.Errorf("%d MiB were kept", b.logs.spool.made)
		}
	})
}

// TestShared_SlowestGivesWay: where there is no room, who is furthest behind is sent away, and can go on from its offset.
func TestShared_SlowestGivesWay(t *testing.T) {
	runWith(t, 8*blockSize, nil, func(t *testing.T, b *bed) {
		b.submit("a", "seq 1500000")
		pass(3 * time.Second)
		gate := make(chan struct{})
		open := sync.OnceFunc(func() { close(gate) })
		defer open() // also where the test fails
		slow := &told{done: make(chan struct{}), before: func(Event) error { <-gate; return nil }}
		b.goRead(slow, func() error {
			return b.logs.ReadSubmission(t.Context(), b.on, "a", Options{Follow: true}, slow.take)
		})
		fast := b.submission(t.Context(), "a", Options{Follow: true})
		if fast.ends(t, Succeeded, "JobSucceeded"); fast.text() != b.file("a") {
			t.Errorf("the fast one has %d bytes", len(fast.text()))
		}
		open()
		end := slow.ends(t, Broken, "ReaderBehind")
		if !strings.HasPrefix(b.file("a"), slow.text()) || slow.offset != int64(len(slow.text())) || end.Remedy == "" {
			t.Errorf("the slow one has %d bytes to %d", len(slow.text()), slow.offset)
		}
		rest := b.submission(t.Context(), "a", Options{Follow: true, Offset: slow.offset})
		if rest.ends(t, Succeeded, "JobSucceeded"); slow.text()+rest.text() != b.file("a") {
			t.Errorf("the rest has %d bytes", len(rest.text()))
		}
	})
}

// TestAdmit_LeavesOutputsToOthers has so many outputs open of one holder on one cluster.
func TestAdmit_LeavesOutputsToOthers(t *testing.T) {
	for name, c := range map[string]struct {
		open        int
		opens, asks limits.Holder
		on          types.UID
		want        string
	}{
		"one more of a user":               {63, limits.Holder{User: "a"}, limits.Holder{User: "a"}, "c", ""},
		"as many as one user may":          {64, limits.Holder{User: "a"}, limits.Holder{User: "a"}, "d", "the caller has"},
		"another user":                     {64, limits.Holder{User: "a"}, limits.Holder{User: "b"}, "c", ""},
		"as many as one cluster may":       {128, limits.Holder{User: "a"}, limits.Holder{User: "b"}, "c", "the same cluster"},
		"another cluster":                  {128, limits.Holder{User: "a"}, limits.Holder{User: "b"}, "d", ""},
		"as many as one namespace may":     {128, limits.Holder{User: "a", Namespace: "n"}, limits.Holder{User: "b", Namespace: "n"}, "d", "service accounts"},
		"a service account of another one": {128, limits.Holder{User: "a", Namespace: "n"}, limits.Holder{User: "b", Namespace: "m"}, "d", ""},
	} {
		l := New(Settings{})
		for i := range c.open {
			k := key{source: source{id: fmt.Sprint(i)}}
			k.head.Cluster.UID = "c"
			l.outputs[k] = []*output{{readers: map[*reader]bool{{who: c.opens}: true}}}
		}
		if err := l.admit(c.asks, c.on); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestShared_ComesLateWhereTheBeginIsGone: it gets all the same, by a request of its own.
func TestShared_ComesLateWhereTheBeginIsGone(t *testing.T) {
	runWith(t, 8*blockSize, nil, func(t *testing.T, b *bed) {
		b.submit("a", "seq 1500000; hang")
		pass(3 * time.Second)
		first := b.submission(t.Context(), "a", Options{Follow: true})
		pass(time.Minute)
		late := b.submission(t.Context(), "a", Options{Reader: limits.Holder{User: "another"}})
		if late.ends(t, Running, "JobRunning"); late.text() != b.file("a") || first.text() != b.file("a") {
			t.Errorf("it has %d bytes, and the first %d", len(late.text()), len(first.text()))
		}
		tail := b.submission(t.Context(), "a", Options{Tail: 1 << 30})
		if tail.ends(t, Running, "JobRunning"); tail.codes() != "TailShort" || !strings.HasSuffix(b.file("a"), tail.text()) || tail.text() == "" {
			t.Errorf("the last lines have %d bytes, %s", len(tail.text()), tail.codes())
		}
	})
}

func TestShared_ThereAreOnlySoMany(t *testing.T) {
	runWith(t, 16*blockSize, nil, func(t *testing.T, b *bed) {
		for i := range 5 {
			b.submit(fmt.Sprint("job-", i), "echo first; sleep 30")
		}
		pass(2 * time.Second)
		var readers []*told
		read := func(i int, who string) *told {
			return b.submission(t.Context(), fmt.Sprint("job-", i), Options{Follow: true, Reader: limits.Holder{User: who}})
		}
		readers = append(readers, read(0, "mallory"), read(1, "mallory"))
		pass(time.Second)
		if r := b.submission(t.Context(), "job-2", Options{Reader: limits.Holder{User: "mallory"}}); true {
			if <-r.done; r.err == nil || !strings.Contains(r.err.Error(), "4 outputs are being read") {
				t.Errorf("the third of one user is %v, while two are free for others", r.err)
			}
		}
		readers = append(readers, read(2, "alice"), read(3, "bob"))
		pass(time.Second)
		r := b.submission(t.Context(), "job-4", Options{})
		if <-r.done; r.err == nil || !strings.Contains(r.err.Error(), "4 outputs are being read") {
			t.Errorf("the fifth is %v", r.err)
		}
		last := read(4, "carol")
		for _, r := range append(readers, last) {
			r.ends(t, Succeeded, "JobSucceeded")
		}
		if last.codes() != "OutputsCrowded" {
			t.Errorf("who waits is told %q", last.codes())
		}
		synctest.Wait()
		if s := b.logs.spool; s.outputs != 0 || s.extra != 0 || s.made != 0 {
			t.Errorf("%d outputs with %d blocks are left", s.outputs, s.made)
		}
	})
}

// TestOutput_FindsLinesAcrossParts: in text of any shape.
func TestOutput_FindsLinesAcrossParts(t *testing.T) {
	for name, said := range map[string]string{
		"nothing":        "",
		"one line":       "a\n",
		"no end":         "a",
		"empty lines":    "\n\n\n\n",
		"long lines":     strings.Repeat(strings.Repeat("x", partSize-1)+"\n", 5),
		"longer lines":   strings.Repeat(strings.Repeat("x", partSize+1)+"\n", 40) + "end",
		"short lines":    strings.Repeat("ab\n", blockSize/2),
		"ends at blocks": strings.Repeat("x", blockSize-1) + "\n" + strings.Repeat("y", blockSize-1) + "\n",
	} {
		for _, tail := range []int{1, 2, 3, 100} {
			l := &Logs{spool: newSpool(t.TempDir(), 64)}
			output := &output{logs: l, changed: make(chan struct{}), readers: map[*reader]bool{}, moved: make(chan struct{}, 1)}
			if !l.spool.admit(1) {
				t.Fatal("there is no room")
			}
			if err := output.write(t.Context(), []byte(said)); err != nil {
				t.Fatal(err)
			}
			at, _, err := output.backwards(0, output.end, tail)
			lines := strings.SplitAfter(strings.TrimSuffix(said, "\n"), "\n")
			want := strings.Join(lines[max(0, len(lines)-tail):], "")
			if got := strings.TrimSuffix(said[at:], "\n"); err != nil || got != want {
				t.Errorf("%s: the last %d lines begin at %d: %v", name, tail, at, err)
			}
			if err := l.spool.close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestMask_HidesWhatComesInParts(t *testing.T) {
	const token = "abcabd"
	for _, said := range []string{"", "x", "abcabd", "xabcabdx", "abcabcabd", "abcab", "ababcabdabcabd", "abcabdbcabd"} {
		want := strings.ReplaceAll(said, token, "******")
		for size := 1; size <= len(said)+1; size++ {
			m := mask{token: []byte(token)}
			var got []byte
			for rest := said; rest != ""; {
				n := min(size, len(rest))
				got = append(got, m.pass([]byte(rest[:n]))...)
				rest = rest[n:]
			}
			if got = append(got, m.rest()...); string(got) != want {
				t.Errorf("%q in parts of %d is %q, want %q", said, size, got, want)
			}
		}
	}
}

func TestJudge_NamesEachEnd(t *testing.T) {
	for name, c := range map[string]struct {
		job  headclient.Job
		want End
	}{
		"success":          {headclient.Job{Status: headclient.JobSucceeded, ExitCode: exit(0)}, End{Outcome: Succeeded, Code: "JobSucceeded", ExitCode: exit(0)}},
		"stopped":          {headclient.Job{Status: headclient.JobStopped}, End{Outcome: Stopped, Code: "StoppedInRay"}},
		"failed":           {headclient.Job{Status: headclient.JobFailed, ExitCode: exit(7)}, End{Outcome: Failed, Code: "EntrypointFailed", ExitCode: exit(7)}},
		"killed":           {headclient.Job{Status: headclient.JobFailed, ExitCode: exit(-9)}, End{Outcome: Failed, Code: "EntrypointFailed", ExitCode: exit(137)}},
		"environment":      {headclient.Job{Status: headclient.JobFailed, ErrorType: "RUNTIME_ENV_SETUP_FAILURE", Message: "x"}, End{Outcome: Failed, Code: "RuntimeEnvFailed"}},
		"its node is lost": {headclient.Job{Status: headclient.JobFailed, ErrorType: "JOB_SUPERVISOR_ACTOR_DIED"}, End{Outcome: Failed, Code: "DriverLost"}},
		"no place":         {headclient.Job{Status: headclient.JobFailed, ErrorType: "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE"}, End{Outcome: Failed, Code: "DriverNotStarted"}},
		"anything else":    {headclient.Job{Status: headclient.JobFailed, ErrorType: "NEW"}, End{Outcome: Failed, Code: "JobFailed"}},
	} {
		got := judge(c.job)
		code := func(of *int32) int32 {
			if of == nil {
				return -1
			}
			return *of
		}
		if got.Outcome != c.want.Outcome || got.Code != c.want.Code || code(got.ExitCode) != code(c.want.ExitCode) || got.Message == "" {
			t.Errorf("%s is %+v", name, got)
		}
	}
}

// TestShared_WhoComesAtTheEndIsToldOfIt: also where Ray may still write why the job failed.
func TestShared_WhoComesAtTheEndIsToldOfIt(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.submit("a", "echo first; hang")
		pass(2 * time.Second)
		first := b.submission(t.Context(), "a", Options{Follow: true})
		pass(5 * time.Second)
		client, err := headclient.Dial("gcs:1", headclient.Options{
			Connect: b.network.Connect, Token: func(context.Context) (string, error) { return headstest.Token, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		if killed, err := client.KillSubmission(t.Context(), "a"); !killed || err != nil {
			t.Fatalf("it is not killed: %v", err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		b.submission(t.Context(), "a", Options{}).ends(t, Failed, "DriverLost")
		b.submission(t.Context(), "a", Options{Tail: 1}).ends(t, Failed, "DriverLost")
		first.ends(t, Failed, "DriverLost")
	})
}
