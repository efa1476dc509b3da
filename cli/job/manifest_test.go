package job

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/crdcheck"
)

// built is the job of flags, a manifest and a command.
func built(t *testing.T, flags, manifest string, command ...string) (*v1beta1.ClusterJob, error) {
	t.Helper()
	w, set := &wish{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	w.add(set)
	if err := set.Parse(strings.Fields(flags)); err != nil {
		t.Fatal(err)
	}
	var text []byte
	if manifest != "" {
		text = []byte(manifest)
	}
	return w.build("a", set, text, command)
}

// head begins the manifest of a job.
const head = "apiVersion: heliostat.dev/v1beta1\nkind: ClusterJob\n"

func TestBuild_MakesValidJobs(t *testing.T) {
	const shared = head + "metadata: {name: x}\nspec: {clusterRef: {name: dev}, entrypoint: ls}\n"
	const onDev = `"clusterRef":{"name":"dev"}`
	for name, c := range map[string]struct {
		flags, manifest string
		command         []string
		holds           []string
	}{
		"a job of its own cluster":             {"", "", []string{"ls"}, []string{`"generateName":"job-"`, `"entrypoint":"ls"`, `"clusterTemplate"`, `"replicas":1`}},
		"several words are no line of a shell": {"--cluster dev", "", []string{"echo", "$HOME; rm"}, []string{onDev, `"command":["echo","$HOME; rm"]`}},
		"a manifest stays":                     {"", shared, nil, []string{`"name":"x"`, `"namespace":"a"`, onDev, `"entrypoint":"ls"`}},
		"flags go before the manifest": {"--name y --workers 2 --retries 3 --env A=b=c", shared, []string{"a", "b"}, []string{
			`"name":"y"`, `"replicas":2`, `"limit":3`, `"value":"b=c"`, `"command":["a","b"]`}},
		"what the driver takes": {"--cluster dev --entrypoint-num-cpus 0.5 --entrypoint-num-gpus 1", "", []string{"ls"}, []string{`"CPU":"500m"`, `"GPU":"1"`}},
		"what else the driver takes": {`--cluster dev --entrypoint-memory 1000000000 --entrypoint-resources {"TPU":4,"a":0.25}`, "", []string{"ls"}, []string{
			`"TPU":"4"`, `"a":"250m"`, `"memory":"1G"`}},
		"a gang": {"--cluster dev --gang PyTorch --replicas 4 --gpus 1 --cpus 2500m --processes 2 --max-restarts 3", "", []string{"python", "train.py"}, []string{
			`"gang":{"framework":"PyTorch","maxRestarts":3,"roles":[{"name":"worker","replicas":4,"processesPerReplica":2,"resources":{"CPU":"2500m","GPU":"1"}}]}`}},
		"a gang of one CPU each": {"--cluster dev --gang mpi", "", []string{"mpirun", "a"}, []string{`"framework":"MPI"`, `"resources":{"CPU":"1"}`}},
		"executors of Spark beside a driver": {"--gang spark --replicas 3 --cpus 2", "", []string{"spark-submit", "a.py"}, []string{
			`"roles":[{"name":"driver","resources":{"CPU":"1"}},{"name":"executor","replicas":3,"resources":{"CPU":"2"}}]`, `"replicas":4,"size":{"cpu":"2"}`}},
		"torchrun once a replica": {"--cluster dev --gang pytorch --processes 8 --gpus 8", "", []string{"/opt/bin/torchrun", "a.py"}, []string{
			`"processesPerReplica":8,"start":"PerReplica","resources":{"GPU":"8"}`}},
		"torchrun in a line for a shell":         {"--cluster dev --gang generic", "", []string{"torchrun a.py > b"}, []string{`"start":"PerReplica"`}},
		"a gang's own cluster has room for it":   {"--gang jax --replicas 3 --gpus 2 --cpus 4", "", []string{"ls"}, []string{`"replicas":3,"size":{"cpu":"4","nvidia.com/gpu":"2"}`}},
		"half a GPU needs a whole one":           {"--gang jax --gpus 0.5", "", []string{"ls"}, []string{`"nvidia.com/gpu":"1"`, `"GPU":"500m"`}},
		"a gang's own cluster as flags shape it": {"--gang jax --replicas 4 --gpus 2 --workers 2 --gpu 4", "", []string{"ls"}, []string{`"replicas":2,"size":{"nvidia.com/gpu":"4"}`}},
		"what Ray gets as it is": {`--cluster dev --runtime-env-json {"pip":["x"]} --metadata-json {"a":"b"}`, "", []string{"ls"}, []string{
			`"runtimeEnv":{"pip":["x"]}`, `"metadata":{"a":"b"}`}},
		"an environment in a file": {`--cluster dev --runtime-env testdata/environment.yaml --entrypoint-label-selector {"a":"b"}`, "", []string{"ls"}, []string{
			`"runtimeEnv":{"env_vars":{"A":"b"},"pip":["x"]}`, `"entrypointLabelSelector":{"a":"b"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			job, err := built(t, c.flags, c.manifest, c.command...)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(job)
			if err != nil {
				t.Fatal(err)
			}
			for _, holds := range c.holds {
				if !strings.Contains(string(text), holds) {
					t.Errorf("the job holds no %s: %s", holds, text)
				}
			}
			if (job.Spec.ClusterRef == nil) == (job.Spec.ClusterTemplate == nil) || (job.Spec.Entrypoint == "") == (job.Spec.Command == nil) {
				t.Errorf("it has two places to run, or two commands: %s", text)
			}
			if job.Name == "" {
				job.Name = job.GenerateName + "x"
			}
			if answer, err := crdcheck.Create("ClusterJob", job); err != nil || len(answer.Findings) > 0 {
				t.Errorf("the API server would refuse it: %v, %v", answer.Findings, err)
			}
		})
	}
}

func TestBuild_RefusesWhatItCannotUnderstand(t *testing.T) {
	for name, c := range map[string]struct{ flags, manifest string }{
		"two places to run":           {"--cluster dev --gpu 1", ""},
		"a cluster of a job idles":    {"--idle 1h", ""},
		"no variable":                 {"--env A", ""},
		"a variable without a name":   {"--env =b", ""},
		"fewer retries than none":     {"--retries -1", ""},
		"fewer CPUs than none":        {"--entrypoint-num-cpus -1", ""},
		"less memory than none":       {"--entrypoint-memory -1", ""},
		"a text for a resource":       {`--entrypoint-resources {"TPU":"four"}`, ""},
		"no object of resources":      {`--entrypoint-resources null --entrypoint-num-cpus 1`, ""},
		"fewer of a resource":         {`--entrypoint-resources {"TPU":-1}`, ""},
		"a list for an environment":   {"--runtime-env-json []", ""},
		"two environments":            {"--runtime-env-json {} --runtime-env testdata/environment.yaml", ""},
		"an environment nowhere":      {"--runtime-env testdata/nowhere.yaml", ""},
		"an environment of text":      {"--runtime-env manifest_test.go", ""},
		"no environment":              {"--runtime-env-json null", ""},
		"numbers for labels":          {`--entrypoint-label-selector {"a":1}`, ""},
		"numbers in metadata":         {`--metadata-json {"a":1}`, ""},
		"a manifest of another kind":  {"", "apiVersion: v1\nkind: Pod\n"},
		"two manifests":               {"", head + "---\n" + head},
		"an unknown field":            {"", head + "spec: {clusterReff: {}}\n"},
		"a manifest of elsewhere":     {"", head + "metadata: {namespace: b}\n"},
		"a manifest that is no YAML":  {"", "{"},
		"an unknown framework":        {"--gang torch", ""},
		"replicas of no gang":         {"--replicas 2", ""},
		"a gang of none":              {"--gang mpi --replicas 0", ""},
		"a gang of no CPU":            {"--gang mpi --cpus 0", ""},
		"a gang of many GPUs":         {"--gang mpi --gpus many", ""},
		"a shape that cannot be read": {"--cpu much", ""},
	} {
		if _, err := built(t, c.flags, c.manifest, "ls"); outcome.Code(err) != outcome.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := built(t, "", ""); outcome.Code(err) != outcome.Usage {
		t.Errorf("nothing to run: %v", err)
	}
}
