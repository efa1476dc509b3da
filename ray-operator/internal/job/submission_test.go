package job

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/jobs"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// TestCommandsReachTheProgram has a shell run what is made of a command: its words arrive byte
// for byte.
func TestCommandsReachTheProgram(t *testing.T) {
	for _, words := range [][]string{
		{"a", "b c", ""},
		{"'", "''", `"`, `\`, `\'`, "`id`", "$HOME", "$(id)", "!!", "#", "*", "~", ";", "&", "|", ">", "<"},
		{"two\nlines", "\n", "tab\there", "\r", "\x01\x7f", "ends with \\"},
		{"Zürich", "日本語", "🚀", "\xff\xfe"},
		{"-n", "--", "-e"},
	} {
		spec := v1beta1.ClusterJobSpec{Command: append([]string{"printf", `%s\0`}, words...)}
		said, err := exec.Command("sh", "-c", entrypoint(&spec)).Output()
		if err != nil {
			t.Fatalf("run sh: %v; it is in the package dash", err)
		}
		if want := strings.Join(words, "\x00") + "\x00"; string(said) != want {
			t.Errorf("%q reached the program as %q", words, said)
		}
	}
	if line := entrypoint(&v1beta1.ClusterJobSpec{Entrypoint: "echo $HOME | cat"}); line != `eval "$HELIOSTAT_JOB_ENDS"; echo $HOME | cat` {
		t.Errorf("a shell line became %q", line)
	}
}

// driver runs an entrypoint as Ray does: by a shell that leads a process group of its own.
func driver(t *testing.T, spec v1beta1.ClusterJobSpec) *exec.Cmd {
	t.Helper()
	command := exec.Command("sh", "-c", entrypoint(&spec))
	command.Env = append(os.Environ(), v1beta1.EnvJobEnds+"="+endGroup(killAfter))
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return command
}

// TestEntrypoint_LeavesTheProgramAlone: its output, its end by exit code or signal, and its children are those of the
// user's line alone.
func TestEntrypoint_LeavesTheProgramAlone(t *testing.T) {
	const family = `c=$(cat /proc/$$/task/$$/children); echo "$c" | wc -w; jobs; echo "$! $0 $#"`
	for _, line := range []string{
		"exit 3", "sh -c 'exit 137'", "sh -c 'kill -SEGV $$'", "kill -KILL $$", "true; sh -c 'kill -TERM $$'", "exec sh -c 'kill -TERM $$'",
		"echo (", "\n# a comment\necho a; false", "no-such-program", family, "exec sh -c '" + family + "'", "(sh -c 'echo late' & wait); wait; true",
	} {
		alone := driver(t, v1beta1.ClusterJobSpec{Entrypoint: line})
		alone.Args[2] = line
		want, wanted := alone.CombinedOutput()
		have, ended := driver(t, v1beta1.ClusterJobSpec{Entrypoint: line}).CombinedOutput()
		if fmt.Sprint(ended) != fmt.Sprint(wanted) || string(have) != string(want) {
			t.Errorf("%q ends with %v and says %q, want %v and %q", line, ended, have, wanted, want)
		}
	}
}

// TestEntrypoint_EndsItsProcessGroup: what a driver leaves behind ends with it, also what heeds no SIGTERM. A program's output
// is complete once nobody holds it, and what is left would say so after a minute.
func TestEntrypoint_EndsItsProcessGroup(t *testing.T) {
	const left = `(sh -c 'sleep 60; echo survived' &); `
	traps := filepath.Join(t.TempDir(), "traps") // the driver must not end before its process traps the signal
	for name, line := range map[string]string{
		"a driver that succeeds":          left + "exit 0",
		"a driver that is stopped":        left + "kill -TERM $$; sleep 60",
		"a process that heeds no SIGTERM": `(trap "" TERM; sh -c 'sleep 60; echo survived' &); exit 0`,
		"a group that the driver signals": `trap "" TERM; ` + left + "kill -TERM -$$; exit 0",
		"a process that says what it does": `(trap 'echo ends; exit' TERM; : >"` + traps + `"; sleep 60 & wait; echo survived) &
			until [ -e "` + traps + `" ]; do sleep 0.01; done; exit 0`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _ := driver(t, v1beta1.ClusterJobSpec{Entrypoint: line}).CombinedOutput() // some end by a signal
			if want := map[bool]string{true: "ends\n"}[strings.Contains(line, "ends")]; string(out) != want {
				t.Errorf("it says %q, want %q", out, want)
			}
		})
	}
}

// TestEntrypoint_EndsGroupOfUnreapedDriver: a driver whose parent does not wait for it stays as a zombie, and what it left
// behind ends all the same.
func TestEntrypoint_EndsGroupOfUnreapedDriver(t *testing.T) {
	command := driver(t, v1beta1.ClusterJobSpec{Entrypoint: "(sh -c 'sleep 60; echo survived' &); exit 0"})
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(out) // to the end of all that may write, while the driver is a zombie
	if len(said) > 0 || err != nil {
		t.Errorf("what the driver left behind says %q, %v", said, err)
	}
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
}

// numbered is the record of a job whose attempt has a number.
func numbered(attempt int32) Record {
	record := newRecord()
	record.Attempt = attempt
	return record
}

// submitted is a job's submission, its runtime environment apart.
func submitted(t *testing.T, job *v1beta1.ClusterJob, attempt int32) (payload string, environment map[string]any, vars map[string]any) {
	t.Helper()
	s, _, err := submission(job, numbered(attempt), target{})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(s.RuntimeEnv, &environment); err != nil {
		t.Fatal(err)
	}
	vars, _ = environment["env_vars"].(map[string]any)
	return s.Metadata[jobs.MetadataPayload], environment, vars
}

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

// TestEnvironment: variables come from the runtime environment, over them those of env, over
// them the operator's own. Secrets stay with the pods.
func TestEnvironment(t *testing.T) {
	_, environment, vars := submitted(t, train(func(j *v1beta1.ClusterJob) {
		j.Spec.RuntimeEnv = raw(`{"pip":["a"],"env_vars":{"A":"env","B":"env","HELIOSTAT_JOB_NAME":"mine"},"config":{"x":1e3}}`)
		j.Spec.Env = []corev1.EnvVar{
			{Name: "B", Value: "spec"}, {Name: "C", Value: ""},
			{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "a"}}},
		}
		j.Annotations = map[string]string{v1beta1.AnnotationScheduledAt: "2026-05-08T02:30:00+02:00"}
	}), 3)
	want := map[string]any{
		"A": "env", "B": "spec", "C": "", v1beta1.EnvJobName: "train", v1beta1.EnvJobAttempt: "3", v1beta1.EnvJobEnds: endGroup(killAfter),
		v1beta1.EnvScheduledAt: "2026-05-08T02:30:00+02:00",
	}
	if !reflect.DeepEqual(vars, want) {
		t.Errorf("variables %v, want %v", vars, want)
	}
	if !reflect.DeepEqual(environment["pip"], []any{"a"}) || environment["config"] == nil {
		t.Errorf("the rest of the runtime environment: %v", environment)
	}
	_, _, vars = submitted(t, train(), 1)
	if want := map[string]any{v1beta1.EnvJobName: "train", v1beta1.EnvJobAttempt: "1", v1beta1.EnvJobEnds: endGroup(killAfter)}; !reflect.DeepEqual(vars, want) {
		t.Errorf("variables %v, want %v", vars, want)
	}
	for _, bad := range []string{`[]`, `{`, `{"env_vars":[]}`, `{"env_vars":{"A":1}}`} {
		if s, _, err := submission(train(func(j *v1beta1.ClusterJob) { j.Spec.RuntimeEnv = raw(bad) }), numbered(1), target{}); err == nil {
			t.Errorf("the runtime environment %s is submitted as %s", bad, s.RuntimeEnv)
		}
	}
}

func TestResources(t *testing.T) {
	s, _, err := submission(train(func(j *v1beta1.ClusterJob) {
		j.Spec.EntrypointResources = map[string]resource.Quantity{
			"CPU": resource.MustParse("500m"), "GPU": resource.MustParse("2"), "memory": resource.MustParse("1Gi"), "accelerator_type:A100": resource.MustParse("0.001"),
		}
		j.Spec.EntrypointLabelSelector = map[string]string{"zone": "a"}
		j.Spec.Metadata = map[string]string{"team": "b"}
	}), numbered(2), target{})
	if err != nil {
		t.Fatal(err)
	}
	if s.CPUs != 0.5 || s.GPUs != 2 || s.Memory != 1<<30 || !maps.Equal(s.Resources, map[string]float64{"accelerator_type:A100": 0.001}) {
		t.Errorf("%+v", s)
	}
	if s.LabelSelector["zone"] != "a" || s.Metadata["team"] != "b" || s.Metadata[metadataJob] != "train" || s.Metadata[metadataUID] != "job-uid" || s.Metadata[metadataAttempt] != "2" {
		t.Errorf("%+v", s)
	}
}

// TestPayload: what is asked for has one name, whatever the order in which it is held, and
// another name with every change.
func TestPayload(t *testing.T) {
	full := func(j *v1beta1.ClusterJob) {
		j.Spec.Metadata = map[string]string{}
		for i := range 20 {
			j.Spec.Metadata[fmt.Sprint("key", i)] = "a"
		}
		j.Spec.RuntimeEnv = raw(`{"env_vars":{"A":"b"}}`)
		j.Spec.Env = []corev1.EnvVar{{Name: "B", Value: "c"}}
		j.Spec.EntrypointResources = map[string]resource.Quantity{"CPU": resource.MustParse("1"), "GPU": resource.MustParse("2")}
		j.Spec.EntrypointLabelSelector = map[string]string{"zone": "a", "rack": "b"}
	}
	name, _, _ := submitted(t, train(full), 1)
	for range 50 {
		if again, _, _ := submitted(t, train(full), 1); again != name {
			t.Fatalf("%s, and then %s", name, again)
		}
	}
	names := map[string]string{name: "nothing changed"}
	for what, change := range map[string]edit{
		"entrypoint": func(j *v1beta1.ClusterJob) { j.Spec.Entrypoint = "python other.py" },
		"command":    func(j *v1beta1.ClusterJob) { j.Spec.Command = []string{"python"} },
		"words":      func(j *v1beta1.ClusterJob) { j.Spec.Command = []string{"pyt", "hon"} },
		"runtimeEnv": func(j *v1beta1.ClusterJob) { j.Spec.RuntimeEnv = raw(`{"env_vars":{"A":"c"}}`) },
		"env":        func(j *v1beta1.ClusterJob) { j.Spec.Env[0].Value = "d" },
		"resources":  func(j *v1beta1.ClusterJob) { j.Spec.EntrypointResources["CPU"] = resource.MustParse("2") },
		"selector":   func(j *v1beta1.ClusterJob) { j.Spec.EntrypointLabelSelector["zone"] = "b" },
		"metadata":   func(j *v1beta1.ClusterJob) { j.Spec.Metadata["key1"] = "b" },
		"job":        func(j *v1beta1.ClusterJob) { j.UID = "another" },
	} {
		name, _, _ := submitted(t, train(full, change), 1)
		if other, taken := names[name]; taken {
			t.Errorf("the change of %s has the name of %s", what, other)
		}
		names[name] = what
	}
	if second, _, _ := submitted(t, train(full), 2); names[second] != "" {
		t.Errorf("the second attempt has the name of %s", names[second])
	}
}

// TestOwnCluster: it is the template's, belongs to the job, and has the secret variables.
func TestOwnCluster(t *testing.T) {
	secret := corev1.EnvVar{Name: "S", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}
	job := train(own, func(j *v1beta1.ClusterJob) {
		j.Spec.Env = []corev1.EnvVar{{Name: "OPEN", Value: "b"}, secret}
		j.Spec.ClusterTemplate.Metadata = v1beta1.TemplateMetadata{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "b"}}
		j.Spec.ClusterTemplate.Spec.PodDefaults = &v1beta1.PodDefaults{Env: []corev1.EnvVar{{Name: "A", Value: "c"}}}
	})
	before := job.DeepCopy()
	yes := true
	want := &v1beta1.ComputeCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.JobCluster("train", "job-uid", 2), Namespace: "default",
			Labels: map[string]string{"team": "a", v1beta1.LabelJob: "train"}, Annotations: map[string]string{"note": "b"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "heliostat.dev/v1beta1", Kind: "ClusterJob", Name: "train", UID: "job-uid", Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: *before.Spec.ClusterTemplate.Spec.DeepCopy(),
	}
	want.Spec.PodDefaults = &v1beta1.PodDefaults{Env: []corev1.EnvVar{{Name: "A", Value: "c"}, secret}}
	if diff := gocmp.Diff(want, ownCluster(job, 2)); diff != "" {
		t.Errorf("the cluster (- wanted, + made):\n%s", diff)
	}
	if !reflect.DeepEqual(job, before) {
		t.Errorf("the job was changed")
	}
	if plain := ownCluster(train(own), 1); plain.Spec.PodDefaults != nil || plain.Labels[v1beta1.LabelJob] != "train" {
		t.Errorf("a plain one: %+v", plain)
	}
}
