package job

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// frameworks are those of gangs.
var frameworks = []v1beta1.GangFramework{
	v1beta1.FrameworkPyTorch, v1beta1.FrameworkTensorFlow, v1beta1.FrameworkJAX, v1beta1.FrameworkXGBoost, v1beta1.FrameworkMPI,
	v1beta1.FrameworkSpark, v1beta1.FrameworkGeneric,
}

// gangWish is what flags say of a gang of one role, worker; with Spark, of its executors, beside a driver of one CPU.
type gangWish struct {
	framework           string
	replicas, processes int32
	cpus, gpus          string
	restarts            int32
}

// instead has a remedy for each flag that needs --gang, where it is given without.
var instead = map[string]string{
	"replicas": "--workers for the size of the job's own cluster", "processes": "leave it out", "max-restarts": "--retries for attempts of a plain job",
	"cpus": "--cpu for each worker of the job's own cluster", "gpus": "--gpu for each worker of the job's own cluster",
}

func (g *gangWish) add(flags *pflag.FlagSet) {
	flags.StringVar(&g.framework, "gang", "", "run the command as a gang of this framework: "+strings.Join(names(), ", "))
	flags.Int32Var(&g.replicas, "replicas", 1, "replicas of the gang, which start and end together; without --cluster also the "+
		"default of --workers")
	flags.StringVar(&g.cpus, "cpus", "", "CPUs of each replica of the gang; default: 1 where --gpus is not given")
	flags.StringVar(&g.gpus, "gpus", "", "GPUs of each replica of the gang")
	flags.Int32Var(&g.processes, "processes", 1, "processes of each replica of the gang, such as one a GPU")
	flags.Int32Var(&g.restarts, "max-restarts", 0, "how often all processes of the gang start again after one has failed")
}

// names returns the frameworks as users write them.
func names() []string {
	var all []string
	for _, one := range frameworks {
		all = append(all, strings.ToLower(string(one)))
	}
	return all
}

// setGang makes the job a gang where flags say so.
func (w *wish) setGang(job *v1beta1.ClusterJob, flags *pflag.FlagSet) error {
	g := &w.gang
	if g.framework == "" {
		for _, name := range slices.Sorted(maps.Keys(instead)) {
			if flags.Changed(name) {
				return outcome.Errorf(outcome.Usage, "--%s is of a gang; give --gang too, or %s", name, instead[name])
			}
		}
		return nil
	}
	at := slices.Index(names(), strings.ToLower(g.framework))
	if at < 0 {
		return outcome.Errorf(outcome.Usage, "--gang %q is no framework; %s", g.framework, spelling.Remedy(strings.ToLower(g.framework), names()))
	}
	if g.replicas < 1 || g.processes < 1 || g.restarts < 0 {
		return outcome.Errorf(outcome.Usage, "--replicas and --processes must be at least 1, and --max-restarts at least 0; raise them")
	}
	role := v1beta1.GangRole{Name: v1beta1.GangRoleWorker, Replicas: g.replicas}
	if g.processes > 1 {
		role.ProcessesPerReplica = g.processes
	}
	framework := frameworks[at]
	if slices.Contains([]v1beta1.GangFramework{v1beta1.FrameworkPyTorch, v1beta1.FrameworkGeneric}, framework) && isLauncher(job) {
		role.Start = v1beta1.StartPerReplica
	}
	var err error
	if role.Resources, err = g.resources(); err != nil {
		return err
	}
	roles := []v1beta1.GangRole{role}
	if framework == v1beta1.FrameworkSpark {
		roles[0].Name = v1beta1.GangRoleExecutor
		driver := v1beta1.GangRole{Name: v1beta1.GangRoleDriver, Resources: map[string]resource.Quantity{"CPU": resource.MustParse("1")}}
		roles = append([]v1beta1.GangRole{driver}, roles...)
	}
	job.Spec.Gang = &v1beta1.Gang{Framework: framework, MaxRestarts: g.restarts, Roles: roles}
	return nil
}

// places returns how many places the gang has.
func (g *gangWish) places() int32 {
	if strings.EqualFold(g.framework, string(v1beta1.FrameworkSpark)) {
		return g.replicas + 1 // the driver's
	}
	return g.replicas
}

// resources returns what each replica reserves in Ray.
func (g *gangWish) resources() (map[string]resource.Quantity, error) {
	if g.cpus == "" && g.gpus == "" {
		g.cpus = "1"
	}
	all := map[string]resource.Quantity{}
	for _, one := range []struct{ flag, name, text string }{{"cpus", "CPU", g.cpus}, {"gpus", "GPU", g.gpus}} {
		if one.text == "" {
			continue
		}
		quantity, err := resource.ParseQuantity(one.text)
		if err != nil || quantity.Sign() <= 0 {
			return nil, outcome.Errorf(outcome.Usage, "--%s %q is no amount; give one such as 4", one.flag, one.text)
		}
		all[one.name] = quantity
	}
	return all, nil
}

// isLauncher reports whether a job runs torchrun, which starts the processes of a replica itself.
func isLauncher(job *v1beta1.ClusterJob) bool {
	words := job.Spec.Command
	if len(words) == 0 {
		words = strings.Fields(job.Spec.Entrypoint)
	}
	return len(words) > 0 && path.Base(words[0]) == "torchrun"
}
