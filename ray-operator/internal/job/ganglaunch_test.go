package job

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// TestSubmission_OfAGang: the driver is the launcher, whose package stands behind the user's own modules, and has its grace.
func TestSubmission_OfAGang(t *testing.T) {
	job := train(gang, func(j *v1beta1.ClusterJob) {
		j.Spec.Gang.GracePeriodSeconds = number(60)
		j.Spec.RuntimeEnv = raw(`{"py_modules":["gcs://mine.zip"],"env_vars":{"RAY_JOB_STOP_WAIT_TIME_S":"1"}}`)
	})
	asked, launched, err := submission(job, newRecord(), target{})
	if err != nil {
		t.Fatal(err)
	}
	if asked.Entrypoint != v1beta1.EntrypointPrefix+startLauncher || launched == nil || len(launched.Archive) == 0 {
		t.Errorf("it runs %q in %+v", asked.Entrypoint, launched)
	}
	_, environment, vars := submitted(t, job, 1)
	if want := []any{"gcs://mine.zip", "gcs://" + launched.Name}; !reflect.DeepEqual(environment["py_modules"], want) {
		t.Errorf("modules %v, want %v", environment["py_modules"], want)
	}
	if vars["RAY_JOB_STOP_WAIT_TIME_S"] != "65" || vars[v1beta1.EnvJobEnds] != endGroup(70*time.Second) {
		t.Errorf("variables %v", vars)
	}
	if _, plain, err := submission(train(), newRecord(), target{}); plain != nil || err != nil {
		t.Errorf("a plain job has the package %+v, %v", plain, err)
	}
	job.Spec.RuntimeEnv = raw(`{"py_modules":"mine"}`)
	if _, _, err := submission(job, newRecord(), target{}); err == nil {
		t.Error("py_modules that are no list are submitted")
	}
}

// TestPayload_HasTheGang: another gang is another payload, and a plain job's is what former operators made of it.
func TestPayload_HasTheGang(t *testing.T) {
	const former = "dxshsffrj5gwr"
	plain, _, _ := submitted(t, train(), 1)
	first, _, _ := submitted(t, train(gang), 1)
	second, _, _ := submitted(t, train(gang, func(j *v1beta1.ClusterJob) { j.Spec.Gang.MaxRestarts = 1 }), 1)
	if first == plain || first == second {
		t.Errorf("payloads %s, %s and %s", plain, first, second)
	}
	if plain != former {
		t.Errorf("that of a plain job is %s, want %s", plain, former)
	}
}

// TestDriver_StaysOffAHeadThatIsReplaced: with a control store, unless the spec says where it runs.
func TestDriver_StaysOffAHeadThatIsReplaced(t *testing.T) {
	stored := demo()
	stored.Spec.ControlStore = &v1beta1.ControlStore{}
	away := map[string]string{"ray.io/node-group": "!headgroup"}
	empty, growing := stored.DeepCopy(), stored.DeepCopy()
	empty.Spec.WorkerGroups[0].Replicas, growing.Spec.WorkerGroups[0].Replicas = number(0), number(0)
	growing.Spec.Autoscaling, growing.Spec.WorkerGroups[0].MaxReplicas = &v1beta1.Autoscaling{}, number(2)
	for name, test := range map[string]struct {
		to   target
		edit edit
		want map[string]string
	}{
		"a control store":             {target{stored, "2.54.0"}, gang, away},
		"no worker yet":               {target{growing, "2.60.0"}, gang, away},
		"no worker ever":              {target{empty, "2.60.0"}, gang, nil},
		"an older Ray":                {target{stored, "2.53.0"}, gang, nil},
		"no control store":            {target{demo(), "2.60.0"}, gang, nil},
		"a plain job":                 {target{stored, "2.60.0"}, func(*v1beta1.ClusterJob) {}, nil},
		"the spec says what it takes": {target{stored, "2.60.0"}, func(j *v1beta1.ClusterJob) { gang(j); j.Spec.EntrypointResources = cpus("1") }, nil},
		"the spec says where": {
			target{stored, "2.60.0"}, func(j *v1beta1.ClusterJob) { gang(j); j.Spec.EntrypointLabelSelector = text("b") }, text("b"),
		},
	} {
		asked, _, err := submission(train(test.edit), newRecord(), test.to)
		if err != nil || !reflect.DeepEqual(asked.LabelSelector, test.want) {
			t.Errorf("%s: %v, %v, want %v", name, asked.LabelSelector, err, test.want)
		}
	}
}

// TestStartLauncher_FindsRaysPython runs the line with commands ray of all forms that installers write.
func TestStartLauncher_FindsRaysPython(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with space")
	plain := t.TempDir()
	const says = "#!/bin/sh\necho \"${0##*/} $*\"\n"
	write := func(path, content string) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	spaced, python3 := write(dir+"/python3.11", says), write(plain+"/python3.12", says)
	path := plain + "/path"
	write(path+"/python", says)
	write(path+"/python3", says)
	for name, test := range map[string]struct{ ray, want string }{
		"a path":                {"#!" + python3 + "\nimport ray\n", "python3.12 -m heliostat_gang"},
		"a path with an option": {"#!" + python3 + " -sP\n", "python3.12 -sP -m heliostat_gang"},
		"a search":              {"#!/usr/bin/env python3\n", "python3 -m heliostat_gang"},
		"a shell's, quoted":     {"#!/bin/sh\n'''exec' \"" + spaced + `" "$0" "$@"` + "\n' '''\n", "python3.11 -m heliostat_gang"},
		"a shell's, quoted '":   {"#!/bin/sh\n'''exec' '" + spaced + `' "$0" "$@"` + "\n' '''\n", "python3.11 -m heliostat_gang"},
		"a shell's, bare":       {"#!/bin/sh\n'''exec' " + python3 + ` "$0" "$@"` + "\n' '''\n", "python3.12 -m heliostat_gang"},
		"a shell script":        {"#!/bin/bash\nexec something\n", "python -m heliostat_gang"},
		"one that is gone":      {"#!/no/such/python3\n", "python -m heliostat_gang"},
		"a pattern":             {"#!" + plain + "/python*\n", "python -m heliostat_gang"},
		"a binary":              {"\x7fELF\x00\x01", "python -m heliostat_gang"},
		"nothing":               {"", "python -m heliostat_gang"},
	} {
		bin := filepath.Join(t.TempDir(), "bin")
		write(bin+"/ray", test.ray)
		command := exec.Command("sh", "-c", startLauncher)
		command.Env = []string{"PATH=" + strings.Join([]string{bin, path, "/usr/bin", "/bin"}, ":")}
		said, err := command.CombinedOutput()
		if have := strings.TrimSpace(string(said)); have != test.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, have, err, test.want)
		}
	}
}
