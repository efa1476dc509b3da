package job

import (
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/cli/cluster"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/yaml"
)

// wish is what flags say of a job.
type wish struct {
	name       string
	file       string
	cluster    string
	shape      cluster.Shape
	env        []string
	retries    int32
	runtimeEnv string
	envFile    string
	cpus, gpus float64
	memory     int64
	resources  string
	selector   string
	metadata   string
	workingDir string
	gang       gangWish
}

func (w *wish) add(flags *pflag.FlagSet) {
	flags.StringVar(&w.name, "name", "", "name of the job; default: a generated name")
	flags.StringVarP(&w.file, "filename", "f", "", "manifest of a ClusterJob to begin with; - is standard input")
	flags.StringVar(&w.cluster, "cluster", "", "run on this existing cluster; default: a cluster of the job's own, which other flags describe")
	w.shape.Add(flags)
	flags.Lookup("idle").Hidden = true // it is there to be refused with a reason
	w.gang.add(flags)
	flags.StringArrayVar(&w.env, "env", nil, "variable of the program, as NAME=VALUE; can be given more than once")
	flags.Int32Var(&w.retries, "retries", 0, "how often a failed attempt is tried again")
	flags.StringVar(&w.runtimeEnv, "runtime-env-json", "", "Ray's runtime environment as JSON, such as {\"pip\": [\"x\"]}")
	flags.StringVar(&w.envFile, "runtime-env", "", "YAML file with Ray's runtime environment")
	flags.StringVar(&w.workingDir, "working-dir", "", "directory of this machine to run in, or the URI of an archive; "+
		".gitignore and .rayignore say what stays here")
	flags.Float64Var(&w.cpus, "entrypoint-num-cpus", 0, "CPUs that the driver reserves in Ray")
	flags.Float64Var(&w.gpus, "entrypoint-num-gpus", 0, "GPUs that the driver reserves in Ray")
	flags.Int64Var(&w.memory, "entrypoint-memory", 0, "bytes of memory that the driver reserves in Ray")
	flags.StringVar(&w.resources, "entrypoint-resources", "", "other resources that the driver reserves in Ray, as JSON of numbers, "+
		"such as {\"TPU\": 4}")
	flags.StringVar(&w.selector, "entrypoint-label-selector", "", "labels of the Ray nodes on which the driver may run, as JSON of texts, "+
		"such as {\"market-type\": \"on-demand\"}")
	flags.StringVar(&w.metadata, "metadata-json", "", "metadata that Ray keeps with the job, as JSON of texts")
}

// build returns the job that flags and a command describe. Manifest is what the file holds, nil without one.
func (w *wish) build(
	namespace string, flags *pflag.FlagSet, manifest []byte, command []string,
) (*v1beta1.ClusterJob, error) {
	job := &v1beta1.ClusterJob{}
	if manifest != nil {
		if err := kube.ReadManifest(manifest, kube.Job, job); err != nil {
			return nil, outcome.Errorf(outcome.Usage, "read the manifest %s: %w", w.file, err)
		}
	}
	job.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ClusterJob"}
	if job.Namespace != "" && job.Namespace != namespace {
		return nil, outcome.Errorf(outcome.Usage, "the manifest %s is of namespace %q; give -n %s", w.file, job.Namespace,
			job.Namespace)
	}
	job.Namespace = namespace
	if w.name != "" {
		job.Name, job.GenerateName = w.name, ""
	} else if job.Name == "" && job.GenerateName == "" {
		job.GenerateName = "job-"
	}
	if err := setCommand(job, command); err != nil {
		return nil, err
	}
	if err := w.setGang(job, flags); err != nil {
		return nil, err
	}
	if err := w.setCluster(job, flags); err != nil {
		return nil, err
	}
	return job, w.setRest(job, flags)
}

// setCommand sets what the job runs. One word is a line for a shell, as of ray job submit; several are a program with
// its arguments, which no shell reads.
func setCommand(job *v1beta1.ClusterJob, command []string) error {
	switch len(command) {
	case 0:
		if job.Spec.Entrypoint == "" && len(job.Spec.Command) == 0 {
			return outcome.Errorf(outcome.Usage, "there is nothing to run; write -- and the command")
		}
	case 1:
		job.Spec.Entrypoint, job.Spec.Command = command[0], nil
	default:
		job.Spec.Entrypoint, job.Spec.Command = "", command
	}
	return nil
}

// setCluster sets where the job runs.
func (w *wish) setCluster(job *v1beta1.ClusterJob, flags *pflag.FlagSet) error {
	given := cluster.Given(flags)
	switch {
	case w.cluster != "" && len(given) > 0:
		return outcome.Errorf(outcome.Usage, "--cluster is a cluster that is there, and --%s shapes one; give one of the two",
			given[0])
	case w.cluster != "":
		job.Spec.ClusterRef, job.Spec.ClusterTemplate = &v1beta1.ClusterReference{Name: w.cluster}, nil
		return nil
	case len(given) == 0 && (job.Spec.ClusterRef != nil || job.Spec.ClusterTemplate != nil):
		return nil // the manifest says it
	}
	if flags.Changed("idle") {
		return outcome.Errorf(outcome.Usage, "--idle is for clusters that stay; the cluster of a job goes when the job ends")
	}
	if w.gang.framework != "" {
		w.shape.Fit(flags, w.gang.places(), w.gang.cpus, w.gang.gpus)
	}
	made, err := w.shape.Build(job.Namespace, job.Name, flags.Changed("workers"))
	if err != nil {
		return err
	}
	job.Spec.ClusterRef, job.Spec.ClusterTemplate = nil, &v1beta1.ClusterTemplate{Spec: made.Spec}
	return nil
}

// setRest sets what else flags say.
func (w *wish) setRest(job *v1beta1.ClusterJob, flags *pflag.FlagSet) error {
	for _, one := range w.env {
		name, value, hasValue := strings.Cut(one, "=")
		if !hasValue || name == "" {
			return outcome.Errorf(outcome.Usage, "--env %q is no variable; write NAME=VALUE", name)
		}
		job.Spec.Env = append(job.Spec.Env, corev1.EnvVar{Name: name, Value: value})
	}
	if w.retries < 0 {
		return outcome.Errorf(outcome.Usage, "--retries must not be negative; give 0 or more")
	}
	if flags.Changed("retries") {
		if job.Spec.Retry == nil {
			job.Spec.Retry = &v1beta1.Retry{}
		}
		job.Spec.Retry.Limit = w.retries
	}
	if err := w.setResources(job); err != nil {
		return err
	}
	return w.setJSON(job)
}

// setResources sets what the driver reserves in Ray.
func (w *wish) setResources(job *v1beta1.ClusterJob) error {
	wanted := map[string]float64{}
	if w.resources != "" {
		if err := json.Unmarshal([]byte(w.resources), &wanted); err != nil || wanted == nil {
			return outcome.Errorf(outcome.Usage, `--entrypoint-resources is no JSON object of numbers; write one such as {"TPU": 4}`)
		}
	}
	for name, amount := range map[string]float64{"CPU": w.cpus, "GPU": w.gpus, "memory": float64(w.memory)} {
		if amount != 0 {
			wanted[name] = amount
		}
	}
	for name, amount := range wanted {
		if amount < 0 {
			return outcome.Errorf(outcome.Usage, "the driver cannot reserve %v of %s; give more than 0", amount, name)
		}
		if job.Spec.EntrypointResources == nil {
			job.Spec.EntrypointResources = map[string]resource.Quantity{}
		}
		quantity, err := resource.ParseQuantity(strconv.FormatFloat(amount, 'f', -1, 64))
		if err != nil {
			return outcome.Errorf(outcome.Usage, "the driver cannot reserve %v of %s; give a number", amount, name)
		}
		job.Spec.EntrypointResources[name] = quantity
	}
	return nil
}

// setJSON sets what is given as JSON.
func (w *wish) setJSON(job *v1beta1.ClusterJob) error {
	if err := w.setRuntimeEnv(job); err != nil {
		return err
	}
	for _, one := range []struct {
		flag, given string
		into        *map[string]string
	}{
		{"metadata-json", w.metadata, &job.Spec.Metadata},
		{"entrypoint-label-selector", w.selector, &job.Spec.EntrypointLabelSelector},
	} {
		if one.given == "" {
			continue
		}
		if err := json.Unmarshal([]byte(one.given), one.into); err != nil {
			return outcome.Errorf(outcome.Usage, `--%s is no JSON object of texts; write one such as {"a": "b"}`, one.flag)
		}
	}
	return nil
}

// setRuntimeEnv sets Ray's runtime environment, which a flag holds or a file.
func (w *wish) setRuntimeEnv(job *v1beta1.ClusterJob) error {
	const example = `write one such as {"pip": ["x"]}`
	text, problem := []byte(w.runtimeEnv), "--runtime-env-json is no JSON object; "+example
	switch {
	case w.envFile != "" && w.runtimeEnv != "":
		return outcome.Errorf(outcome.Usage, "--runtime-env and --runtime-env-json say the same; give one of the two")
	case w.envFile != "":
		read, err := os.ReadFile(w.envFile)
		if err != nil {
			return outcome.Errorf(outcome.Usage, "read the runtime environment: %w", err)
		}
		if text, err = yaml.ToJSON(read, kube.LargestManifest); err != nil {
			return outcome.Errorf(outcome.Usage, "read the runtime environment %s: %w", w.envFile, err)
		}
		problem = w.envFile + " has no YAML object; " + example
	case w.runtimeEnv == "":
		return nil
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil || fields == nil {
		return outcome.Errorf(outcome.Usage, "%s", problem)
	}
	job.Spec.RuntimeEnv = &runtime.RawExtension{Raw: text}
	return nil
}

// readManifest reads the file with the manifest; without one it is nil.
func readManifest(file string, stdin io.Reader) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	from := stdin
	if file != "-" {
		opened, err := os.Open(file) //nolint:gosec // the user names the file
		if err != nil {
			return nil, outcome.Errorf(outcome.Usage, "read the manifest: %w", err)
		}
		defer func() { _ = opened.Close() }() // it was read
		from = opened
	}
	text, err := io.ReadAll(io.LimitReader(from, kube.LargestManifest+1))
	switch {
	case err != nil:
		return nil, outcome.Errorf(outcome.Usage, "read the manifest %s: %w", file, err)
	case len(text) > kube.LargestManifest:
		return nil, outcome.Errorf(outcome.Usage, "the manifest %s has more than %d MiB; give one ClusterJob", file,
			kube.LargestManifest>>20)
	}
	return text, nil
}
