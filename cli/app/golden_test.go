package app_test

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

var update = flag.Bool("update", false, "write the golden files")

// pages has the commands of each golden file. A line that begins with ! is of bob, who has no right,
// and one with ? of carl, who has none to schedules.
var pages = map[string][]string{
	"overview": {
		"top", "top -A --ended", "top clusters -o wide", "top --idle -A", "top -l team=a -o name", "top jobs -l team=none",
		"top schedules", "top cluster -l team=a -o jsonpath={.items[*].status.resources}", "! top", "? top", "problems -A", "problems",
		"problems -A -o json", "top clustrs", "top -l a=(", "top -o jsn",
	},
	"why": {
		"why cluster/dev", "why job/train", "why service/translate", "why cluster/dev -o json", "why idle", "why job/done",
		"why cluster/deev", "why nothing", "why pod/x", "why", "! why cluster/dev", "why cluster/asleep",
		"? why idle", "? why nothing", "? why nightly", "! why idle", "? why schedule/nightly",
	},
	"verbs": {
		"suspend cluster/idle", "suspend cluster/asleep", "suspend job/done", "suspend cluster/dev job/train --dry-run=server",
		"resume cluster/asleep", "resume cluster/dev", "resume asleep -o yaml --dry-run=client", "suspend cluster/idle cluster/none",
		"scale dev 4", "scale dev cpu=1", "scale dev gpu=1 --dry-run=client", "scale dev cpu=x", "scale dev -1", "scale job/train 2",
		"keep idle --for 8h", "keep idle --for 0s", "keep dev --for 8h", "keep idle --for 200h", "keep idle", "keep job/train --for 1h",
		"scale dev cpu=2 --dry-run=maybe", "! suspend cluster/idle",
		"suspend schedule/nightly", "resume cjs/nightly", "scale schedule/nightly 2", "why schedule/nightly", "why nightly", "wait schedule/nightly", "logs schedule/nightly",
	},
	"delete": {
		"delete cluster/idle", "delete cluster/idle --yes --dry-run=server", "delete cluster/dev --yes", "delete service/translate -y",
		"delete job/nix --yes", "delete schedule/nightly --yes", "! delete cluster/idle --yes",
	},
	"job": {
		"job list", "job list -A -o wide", "job stop train", "job stop done", "job retry done", "job retry train", "job retry done -o name --dry-run=client",
		"job stopp", "job stop", "job list x", "! job list",
	},
	"submit": {
		"job submit --cluster idle --env A=b --entrypoint-num-cpus 0.5 --dry-run=client -o yaml -- python x.py --a b",
		"job submit --workers 2 --gpu 1 --retries 2 --name a --runtime-env-json {} --dry-run=client -o yaml -- ls",
		"job submit --cluster idle --detach --name a -- ls", "job submit --cluster idle --name train --detach -- ls",
		"job submit --cluster idle --dry-run=server --name a -- ls", "job submit -f - --name b --dry-run=client -o name",
		"job submit --cluster idle --gang pytorch --replicas 4 --gpus 1 --max-restarts 3 --name g --dry-run=client -o yaml -- python train.py",
		"job submit --gang pytorch --replicas 2 --processes 8 --gpus 8 --name g --dry-run=client -o yaml -- torchrun train.py",
		"job submit --gang torch -- ls", "job submit --cluster idle --replicas 4 -- ls", "job submit --cluster idle --gang mpi --gpus x -- mpirun a",
		"job submit --cluster idel -- ls", "job submit", "job submit ls", "job submit ls -- ls", "job submit --cluster a --workers 2 -- ls",
		"job submit --idle 1h -- ls", "job submit --env A -- ls", "job submit --preset none -- ls",
		"job submit --option a=1 -- ls", "job submit --preset a -f - -- ls", "job submit --retries -1 -- ls", "job submit --entrypoint-num-gpus -1 -- ls",
		"job submit --working-dir testdata/code --dry-run=client -o jsonpath={.spec.runtimeEnv} -- python train.py",
		"job submit --cluster idle --working-dir testdata/code --dry-run=client -o jsonpath={.spec.runtimeEnv} -- ls",
		"job submit --cluster idle --working-dir s3://bucket/code.zip --dry-run=client -o jsonpath={.spec.runtimeEnv} -- ls",
		"job submit --name a --detach --working-dir testdata/code -- ls", "job submit --working-dir testdata/nowhere -- ls",
		"job submit --cluster idle --retries 1 --working-dir testdata/code -- ls", "job submit --cluster idle --working-dir testdata/code -- ls",
		"! job submit --name a --working-dir testdata/code -- ls",
		"job submit --runtime-env-json [] -- ls", "job submit -f none.yaml", "job submit -f testdata", "job submit --no-wait -- ls",
		"job submit --address http://x -- ls", "job submit --runtime-env env.yaml -- ls", "job submit --entrypoint-resources [] -- ls", "! job submit --name a -- ls",
	},
	"service": {
		"service rollout history translate", "service rollout history translate -o wide", "service rollout undo translate --dry-run=client -o jsonpath={.metadata.name}",
		"service rollout undo translate", "service rollout undo translate --to 9", "service rollout history translat",
		"! service rollout history translate",
	},
	"about": {"whoami", "! whoami -o json", "version --client -o jsonpath={.verifiedRay}", "whoami -o name"},
	"up": {
		"up new --workers 2 --cpu 4 --memory 16Gi --gpu 1 --idle 1h --dry-run=client -o yaml",
		"up new --autoscale 0:8 --detach", "up new --autoscale 8:1", "up new --workers 2 --autoscale 0:1", "up new --cpu much",
		"up new --idle 1s", "up dev --workers 3", "up dev --detach", "up asleep --detach", "up new --dry-run=server", "up job/x",
		"up new --preset none", "up new --preset a --gpu 1", "up dev --option a=1",
		"! up new", "up new --workerss 3",
	},
}

// manifest is what standard input has.
const manifest = "apiVersion: heliostat.dev/v1beta1\nkind: ClusterJob\nmetadata: {name: a}\nspec: {clusterRef: {name: idle}, entrypoint: ls}\n"

// TestCommands_PrintGolden runs commands in a pipe, each on the same objects.
func TestCommands_PrintGolden(t *testing.T) {
	for name, commands := range pages {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			for _, line := range commands {
				b := newBed(t)
				command := line
				for mark, user := range map[string]string{"! ": "bob", "? ": "carl"} {
					if rest, is := strings.CutPrefix(line, mark); is {
						command, b.user = rest, user
					}
				}
				text.WriteString(page(line, b.run(t.Context(), false, manifest, strings.Fields(command)...)))
			}
			golden(t, name, text.String())
		})
	}
}

// page is a command with what it printed: data as it is, and the rest behind a bar.
func page(line string, r result) string {
	text := fmt.Sprintf("$ heliostat %s\n%s", line, r.out)
	if r.out != "" && !strings.HasSuffix(r.out, "\n") {
		text += "\n"
	}
	said := strings.ReplaceAll(r.said, "\r\x1b[K", "\n<clear>")
	for line := range strings.SplitSeq(strings.Trim(said, "\n"), "\n") {
		if line != "" {
			text += "| " + line + "\n"
		}
	}
	return text + fmt.Sprintf("exit code %d\n\n", r.code)
}

// change edits a cluster while a command waits for it.
func change(name string, edit func(*v1beta1.ComputeCluster)) func(context.Context, client.Client) {
	return func(ctx context.Context, c client.Client) {
		found := &v1beta1.ComputeCluster{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "team-a", Name: name}, found); err != nil {
			panic(err)
		}
		edit(found)
		if err := c.Update(ctx, found); err != nil {
			panic(err)
		}
	}
}

func ready(c *v1beta1.ComputeCluster) {
	c.Status.Phase, c.Status.ObservedGeneration = v1beta1.PhaseReady, c.Generation
	c.Status.Workers = v1beta1.WorkerCounts{Desired: 1, Ready: 1}
	c.Status.Conditions = []metav1.Condition{condition(v1beta1.ConditionReady, metav1.ConditionTrue, reason.AllReady.Of(1, 1), 60)}
}

func headReady(c *v1beta1.ComputeCluster) {
	c.Status.Conditions = []metav1.Condition{
		condition(v1beta1.ConditionReady, metav1.ConditionFalse, reason.WorkersStarting.Of(0, 1), 60),
		condition(v1beta1.ConditionHeadReady, metav1.ConditionTrue, reason.HeadReady.Of("dev-head-1"), 60),
	}
}

// TestWait_SaysHowFarItIs waits on a terminal and in a pipe, and is interrupted, too late, and without an answer.
func TestWait_SaysHowFarItIs(t *testing.T) {
	comesUp := map[int]func(context.Context, client.Client){2: change("dev", headReady), 5: change("dev", ready)}
	var text strings.Builder
	for _, c := range []struct {
		line, name string
		script     map[int]func(context.Context, client.Client)
	}{
		{"wait cluster/dev", "comes up", comesUp},
		{"wait cluster/dev -q", "quietly", comesUp},
		{"wait cluster/dev --timeout 5s", "too late", map[int]func(context.Context, client.Client){9: nil}},
		{"wait cluster/dev", "is deleted", map[int]func(context.Context, client.Client){2: func(ctx context.Context, c client.Client) {
			if err := c.DeleteAllOf(ctx, &v1beta1.ComputeCluster{}, client.InNamespace("team-a")); err != nil {
				panic(err)
			}
		}}},
		{"wait cluster/asleep", "is suspended", nil},
		{"wait cluster/asleep --for suspended", "as wanted", nil},
		{"wait cluster/refused -n team-b", "is refused", nil},
		{"wait job/done", "has failed", nil},
		{"wait cluster/dev --for redy", "misspelt", nil},
		{"up dev", "comes up", comesUp},
		{"service rollout status translate --timeout 3s", "goes on", map[int]func(context.Context, client.Client){9: nil}},
	} {
		for _, isTerminal := range []bool{false, true} {
			b := newBed(t)
			if b.script = c.script; strings.HasSuffix(c.line, "team-b") {
				b.objects.Namespace = "team-b"
			}
			where := map[bool]string{false: "pipe", true: "terminal"}[isTerminal]
			text.WriteString(page(fmt.Sprintf("%s   # %s, %s", c.line, c.name, where),
				b.run(t.Context(), isTerminal, "", strings.Fields(c.line)...)))
		}
	}
	golden(t, "wait", text.String())
}

// TestWait_DetachesOnInterrupt has Ctrl-C in the midst of a wait: the object stays, and the text says what next.
func TestWait_DetachesOnInterrupt(t *testing.T) {
	for target, stop := range map[string]string{"cluster/dev": "suspend cluster/dev -n team-a", "job/train": "job stop train -n team-a"} {
		b := newBed(t)
		ctx, interrupt := context.WithCancel(t.Context())
		b.script[2] = func(context.Context, client.Client) { interrupt() }
		r := b.run(ctx, true, "", "wait", target)
		for _, says := range []string{"detached", "wait " + target, stop} {
			if !strings.Contains(r.said, says) {
				t.Errorf("it does not say %q: %s", says, r.said)
			}
		}
		if r.code != outcome.Detached {
			t.Errorf("exit code %d, want %d", r.code, outcome.Detached)
		}
		if r := b.run(t.Context(), false, "", "why", target); r.code != outcome.Done {
			t.Errorf("%s is not there any more: %s", target, r.said)
		}
	}
}

// TestWait_AsksASilentServerForFiveMinutes has an API server that does not answer, for a minute or for good.
func TestWait_AsksASilentServerForFiveMinutes(t *testing.T) {
	for name, c := range map[string]struct {
		until time.Duration
		code  int
		says  string
	}{
		"it answers after a minute": {time.Minute, outcome.Done, "cluster/idle is ready"},
		"it never answers":          {time.Hour, outcome.Failed, "wait again: heliostat wait cluster/idle -n team-a"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.script[1] = func(context.Context, client.Client) {} // makes each read take two seconds
			b.silentFrom, b.silentUntil = began.Add(time.Second), began.Add(c.until)
			r := b.run(t.Context(), false, "", "wait", "cluster/idle")
			if r.code != c.code || !strings.Contains(r.said, c.says) || !strings.Contains(r.said, "does not answer") {
				t.Errorf("exit code %d, want %d and %q: %s", r.code, c.code, c.says, r.said)
			}
		})
	}
}

func TestDelete_AsksOnATerminal(t *testing.T) {
	for answer, code := range map[string]int{"y\n": outcome.Done, "yes\n": outcome.Done, "n\n": outcome.Stopped, "": outcome.Stopped} {
		b := newBed(t)
		r := b.run(t.Context(), true, answer, "delete", "cluster/idle")
		if r.code != code || !strings.Contains(r.said, "lose their cluster: job/train") {
			t.Errorf("answer %q: exit code %d, want %d: %s", answer, r.code, code, r.said)
		}
		again := b.run(t.Context(), false, "", "why", "cluster/idle")
		if isThere := again.code == outcome.Done; isThere != (code == outcome.Stopped) {
			t.Errorf("answer %q: the cluster is there: %v", answer, isThere)
		}
	}
}
