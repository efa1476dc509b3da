package logs

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// gather makes the job a gang, with Ray nodes a and b.
func (b *bed) gather() {
	b.t.Helper()
	b.fake.Join(fakehead.Member{Instance: "a", Head: true})
	b.fake.Join(fakehead.Member{Instance: "b"})
	job := &v1beta1.ClusterJob{}
	if err := b.objects.Get(b.t.Context(), client.ObjectKey{Namespace: headstest.Namespace, Name: "train"}, job); err != nil {
		b.t.Fatal(err)
	}
	job.Spec.Gang = &v1beta1.Gang{Roles: []v1beta1.GangRole{
		{Name: "master"}, {Name: "worker", Replicas: 2, ProcessesPerReplica: 2},
		{Name: "torch", Replicas: 2, ProcessesPerReplica: 2, Start: v1beta1.StartPerReplica},
	}}
	if err := b.objects.Update(b.t.Context(), job); err != nil {
		b.t.Fatal(err)
	}
}

func TestLogs_ShowWhatAGangWaitsFor(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.gather()
		attempt := b.submit(1, "echo hello")
		attempt.StartTime = new(metav1.Now())
		job := &v1beta1.ClusterJob{}
		if err := b.objects.Get(t.Context(), client.ObjectKey{Namespace: headstest.Namespace, Name: "train"}, job); err != nil {
			t.Fatal(err)
		}
		waits := reason.GangGathering.Of(1, "demo", "1 of 4 × {GPU: 1} missing")
		job.Status.Phase, job.Status.Attempts = v1beta1.PhaseGathering, []v1beta1.JobAttempt{attempt}
		job.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: waits.Code, Message: waits.Text}}
		if err := b.objects.Status().Update(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		done := b.begin(t.Context())
		if said := b.said.String(); b.out.String() != "" || !strings.Contains(said, "1 of 4 × {GPU: 1} missing") {
			t.Errorf("while it gathers it prints %q and says %q", b.out.String(), said)
		}
		b.tell(true, ended(attempt))
		if err := <-done; err != nil || !strings.Contains(b.out.String(), "hello") {
			t.Errorf("it prints %q: %v", b.out.String(), err)
		}
	})
}

func TestProcess_PrintsARound(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.gather()
		b.tell(false, b.submit(1, "sleep 1000"))
		b.fake.SetLog("a", "job-driver-train-1-worker-3-r1.log", "first")
		b.fake.SetLog("b", "job-driver-train-1-worker-3-r10.log.1", "older")
		b.fake.SetLog("b", "job-driver-train-1-worker-3-r10.log", "younger")
		b.fake.SetLog("b", "job-driver-train-1-worker-30-r11.log", "of another")
		for args, want := range map[string]string{
			"--process worker/3": "older\nyounger\n", "--process worker/3 --round 1": "first\n",
		} {
			before := len(b.out.String())
			if err := b.follow(t.Context(), strings.Fields(args)...); err != nil || b.out.String()[before:] != want {
				t.Errorf("%s prints %q: %v", args, b.out.String()[before:], err)
			}
		}
		for args, want := range map[string]string{
			"--process worker/3 --round 2": "has no log of round 2 of worker/3 of attempt 1: it did not start, or its Ray node is gone",
			"--process worker/0":           "has no log of worker/0",
		} {
			if err := b.follow(t.Context(), strings.Fields(args)...); outcome.Code(err) != outcome.Failed || !strings.Contains(err.Error(), want) {
				t.Errorf("%s ends with %v", args, err)
			}
		}
	})
}

func TestProcess_FollowsRoundsAndRotation(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.gather()
		attempt := b.submit(1, "sleep 1000")
		b.tell(false, attempt)
		const log = "job-driver-train-1-worker-3-r1.log"
		b.fake.SetLog("a", log, "one")
		done := make(chan error, 1)
		go func() { done <- b.follow(t.Context(), "-f", "--process", "worker/3") }()
		pass(10 * time.Second)
		b.fake.SetLog("a", log+".1", "one", "two", "three")
		b.fake.SetLog("a", log, "3½", "and more than was printed before")
		pass(10 * time.Second)
		b.fake.SetLog("a", log+".1", "rotated twice") // which is less than was printed
		b.fake.SetLog("a", log, "")
		pass(10 * time.Second)
		b.fake.SetLog("a", log, "", "four")
		b.network.Break()
		pass(10 * time.Second)
		b.fake.SetLog("b", strings.Replace(log, "r1", "r2", 1), "five")
		pass(10 * time.Second)
		b.tell(true, ended(attempt))
		const want = "one\ntwo\nthree\n3½\nand more than was printed before\nrotated twice\n\nfour\nfive\n"
		if err := <-done; err != nil || b.out.String() != want {
			t.Errorf("it prints %q: %v", b.out.String(), err)
		}
		said := b.said.String()
		if !strings.Contains(said, "round 2 of worker/3") || strings.Count(said, "was rotated; lines may be missing") != 2 {
			t.Errorf("it says %q", said)
		}
	})
}

func TestProcess_DetachesWithTheCommandThatGoesOn(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.gather()
		b.tell(false, b.submit(1, "sleep 1000"))
		ctx, interrupt := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.follow(ctx, "-f", "--process", "worker/3") }()
		pass(10 * time.Second)
		interrupt()
		if err := <-done; outcome.Code(err) != outcome.Detached || !strings.Contains(err.Error(), "logs job/train -f --process worker/3") {
			t.Errorf("it ends with %v", err)
		}
	})
}

func TestProcess_RefusesJobsWithTrials(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.gather()
		job := &v1beta1.ClusterJob{}
		if err := b.objects.Get(t.Context(), client.ObjectKey{Namespace: headstest.Namespace, Name: "train"}, job); err != nil {
			t.Fatal(err)
		}
		job.Spec.Tune = &v1beta1.Tune{}
		if err := b.objects.Update(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		if err := b.follow(t.Context(), "--process", "worker/0"); outcome.Code(err) != outcome.Usage || !strings.Contains(err.Error(), "set gang.output to All") {
			t.Errorf("it ends with %v", err)
		}
	})
}

func TestProcess_RefusesWhatTheGangHasNot(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		if err := b.follow(t.Context(), "--process", "worker/0"); outcome.Code(err) != outcome.Usage || !strings.Contains(err.Error(), "is not a gang") {
			t.Errorf("of a job that is no gang: %v", err)
		}
		b.gather()
		for args, want := range map[string]string{
			"--process worker":              "write ROLE/NUMBER",
			"--process worker/03":           "write ROLE/NUMBER",
			"--process wroker/0":            `no role "wroker"; write "worker"`,
			"--process worker/4":            "has 4 processes of role worker; give worker/0 to worker/3",
			"--process torch/2":             "give torch/0 to torch/1",
			"--process master/1":            "give master/0 to master/0",
			"--process worker/0 --round -1": "--round must not be negative",
			"--round 1":                     "give --process ROLE/NUMBER too",
		} {
			if err := b.follow(t.Context(), strings.Fields(args)...); outcome.Code(err) != outcome.Usage || !strings.Contains(err.Error(), want) {
				t.Errorf("%s ends with %v", args, err)
			}
		}
		if err := b.follow(t.Context(), "--process", "worker/0"); outcome.Code(err) != outcome.Failed || !strings.Contains(err.Error(), "has no log of worker/0: it is Pending") {
			t.Errorf("before an attempt: %v", err)
		}
		b.tell(false, b.submit(1, "sleep 1000"))
		cluster := b.cluster()
		cluster.Spec.Network = &v1beta1.Network{Encryption: v1beta1.Enabled}
		if err := b.objects.Update(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		if err := b.follow(t.Context(), "--process", "worker/0"); outcome.Code(err) != outcome.Refused || !strings.Contains(err.Error(), "encrypts its traffic") {
			t.Errorf("with encryption: %v", err)
		}
	})
}

// tune makes the job one with trials.
func (b *bed) tune() {
	b.t.Helper()
	job := &v1beta1.ClusterJob{}
	if err := b.objects.Get(b.t.Context(), client.ObjectKey{Namespace: headstest.Namespace, Name: "train"}, job); err != nil {
		b.t.Fatal(err)
	}
	job.Spec.Tune = &v1beta1.Tune{}
	if err := b.objects.Update(b.t.Context(), job); err != nil {
		b.t.Fatal(err)
	}
}

// TestTrial_HasItsLinesAlone: those of its processes, and those of the launcher.
func TestTrial_HasItsLinesAlone(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.tune()
		b.tell(true, ended(b.submit(1, "echo '[1] a'; echo '[12] b'; echo '[1 worker/1] c'; echo 'gang: trial 1: succeeded'; echo 'gang: trial 12: failed'; echo '1 Succeeded'")))
		pass(time.Second)
		if err := b.follow(t.Context(), "--trial", "1"); err != nil || b.out.String() != "[1] a\n[1 worker/1] c\ngang: trial 1: succeeded\n" {
			t.Errorf("it prints %q: %v", b.out.String(), err)
		}
	})
}

// TestTrialLines_JoinParts: however the output is divided.
func TestTrialLines_JoinParts(t *testing.T) {
	const text = "[1] first\n[2] other\n[1] second\n"
	for size := 1; size < len(text); size++ {
		var out strings.Builder
		lines := linesOfTrial(&out, "1")
		for at := 0; at < len(text); at += size {
			if count, err := lines.Write([]byte(text[at:min(at+size, len(text))])); err != nil || count != min(size, len(text)-at) {
				t.Fatalf("wrote %d bytes of %d: %v", count, size, err)
			}
		}
		if out.String() != "[1] first\n[1] second\n" {
			t.Errorf("in parts of %d bytes it prints %q", size, out.String())
		}
	}
}

func TestTrial_RefusesWhatTheJobHasNot(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		if err := b.follow(t.Context(), "--trial", "1"); outcome.Code(err) != outcome.Usage || !strings.Contains(err.Error(), "has no trials") {
			t.Errorf("without trials it ends with %v", err)
		}
		b.tune()
		for _, trial := range []string{"-1", "one", "01"} {
			if err := b.follow(t.Context(), "--trial", trial); outcome.Code(err) != outcome.Usage || !strings.Contains(err.Error(), "names no trial") {
				t.Errorf("--trial %s ends with %v", trial, err)
			}
		}
	})
}
