package cluster

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// What a cluster has where no flag says something else.
const (
	groupName = "workers"
	// nvidia is the resource that a GPU is without a name.
	nvidia = "nvidia.com/gpu"
)

// Shape is what flags say of a cluster. The zero value of each is that it was not given.
type Shape struct {
	workers   int32
	cpu       string
	memory    string
	gpu       string
	image     string
	ray       string
	autoscale string
	idle      time.Duration
}

// Add adds the flags to those of a command.
func (s *Shape) Add(flags *pflag.FlagSet) {
	flags.Int32Var(&s.workers, "workers", 1, "number of workers")
	flags.StringVar(&s.cpu, "cpu", "", "CPUs of each worker, such as 4 or 500m; default: those of the installation")
	flags.StringVar(&s.memory, "memory", "", "memory of each worker, such as 16Gi; default: that of the installation")
	flags.StringVar(&s.gpu, "gpu", "", "GPUs of each worker: a number, or RESOURCE=N such as amd.com/gpu=1")
	flags.StringVar(&s.image, "image", "", "image with Ray and your dependencies; default: Ray's own of that version")
	flags.StringVar(&s.ray, "ray-version", naming.NewestRay, "version of Ray in the image")
	flags.StringVar(&s.autoscale, "autoscale", "", "MIN:MAX workers, scaled by demand, instead of --workers")
	console.AddDuration(flags, &s.idle, "idle", "suspend the cluster after it was idle for this time, such as 1h")
}

// Given returns the names of the flags of a shape that a user gave.
func Given(flags *pflag.FlagSet) []string {
	names := []string{"workers", "cpu", "memory", "gpu", "image", "ray-version", "autoscale", "idle"}
	return slices.DeleteFunc(names, func(name string) bool { return !flags.Changed(name) })
}

// Fit gives each of some replicas a worker of its own, as far as no flag says something else.
func (s *Shape) Fit(flags *pflag.FlagSet, replicas int32, cpus, gpus string) {
	if !flags.Changed("workers") {
		s.workers = replicas
	}
	if s.cpu == "" {
		s.cpu = cpus
	}
	if amount, err := resource.ParseQuantity(gpus); err == nil && s.gpu == "" {
		s.gpu = strconv.FormatInt(amount.Value(), 10) // a pod takes whole ones
	}
}

// Build returns the cluster that the flags describe.
func (s *Shape) Build(namespace, name string, hasWorkers bool) (*v1beta1.ComputeCluster, error) {
	cluster := &v1beta1.ComputeCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ComputeCluster"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}
	cluster.Spec.RayVersion, cluster.Spec.Image = s.ray, s.image
	group := v1beta1.WorkerGroup{Name: groupName}
	var err error
	if group.Size, err = s.size(); err != nil {
		return nil, err
	}
	switch {
	case s.autoscale != "" && hasWorkers:
		return nil, outcome.Errorf(outcome.Usage, "--workers is a fixed number, and --autoscale a range; give one of the two")
	case s.autoscale != "":
		if group.MinReplicas, group.MaxReplicas, err = readRange(s.autoscale); err != nil {
			return nil, err
		}
		cluster.Spec.Autoscaling = &v1beta1.Autoscaling{}
	case s.workers < 0:
		return nil, outcome.Errorf(outcome.Usage, "--workers must not be negative; give 0 or more")
	default:
		group.Replicas = &s.workers
	}
	cluster.Spec.WorkerGroups = []v1beta1.WorkerGroup{group}
	if s.idle != 0 {
		seconds := s.idle.Seconds()
		if seconds < 10 || seconds > math.MaxInt32 {
			return nil, outcome.Errorf(outcome.Usage, "--idle is %s; give 10s or more", s.idle)
		}
		cluster.Spec.IdlePolicy = &v1beta1.IdlePolicy{AfterSeconds: int32(seconds), Action: "Suspend"}
	}
	return cluster, nil
}

// size returns the resources of a worker.
func (s *Shape) size() (corev1.ResourceList, error) {
	name, count, hasName := strings.Cut(s.gpu, "=")
	if !hasName {
		name, count = nvidia, s.gpu
	}
	size := corev1.ResourceList{}
	for _, one := range []struct{ flag, name, text string }{
		{"cpu", "cpu", s.cpu}, {"memory", "memory", s.memory}, {"gpu", name, count},
	} {
		if one.text == "" {
			continue
		}
		quantity, err := resource.ParseQuantity(one.text)
		if err != nil || quantity.Sign() <= 0 {
			return nil, outcome.Errorf(outcome.Usage, "--%s %q is no amount; give one such as 4 or 16Gi", one.flag, one.text)
		}
		size[corev1.ResourceName(one.name)] = quantity
	}
	if len(size) == 0 {
		return nil, nil
	}
	return size, nil
}

// readRange reads MIN:MAX.
func readRange(text string) (least, most *int32, err error) {
	from, to, hasTo := strings.Cut(text, ":")
	first, failed := strconv.ParseInt(from, 10, 32)
	last, alsoFailed := strconv.ParseInt(to, 10, 32)
	if !hasTo || failed != nil || alsoFailed != nil || first < 0 || last < first {
		return nil, nil, outcome.Errorf(outcome.Usage, "--autoscale %q is no range; write MIN:MAX, such as 0:8", text)
	}
	a, b := int32(first), int32(last)
	return &a, &b, nil
}

// describe says in words what a cluster will have.
func describe(cluster *v1beta1.ComputeCluster) string {
	least, most := int32(0), int32(0)
	for i := range cluster.Spec.WorkerGroups {
		group := &cluster.Spec.WorkerGroups[i]
		from, to := ptr.Deref(group.Replicas, 1), ptr.Deref(group.Replicas, 1)
		if cluster.Spec.Autoscaling != nil {
			from, to = ptr.Deref(group.MinReplicas, 0), ptr.Deref(group.MaxReplicas, 0)
		}
		least, most = least+from, most+to
	}
	if least == most {
		return fmt.Sprintf("Ray %s, %d workers", cluster.Spec.RayVersion, least)
	}
	return fmt.Sprintf("Ray %s, %d to %d workers", cluster.Spec.RayVersion, least, most)
}
