package convert

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Groups of what is converted.
const (
	rayGroup      = "ray.io"
	kubeflowGroup = "kubeflow.org"
	trainerGroup  = "trainer.kubeflow.org"
	sparkGroup    = "sparkoperator.k8s.io"
)

// Kinds of ray.io.
const (
	kindCluster = "RayCluster"
	kindJob     = "RayJob"
	kindService = "RayService"
	kindCron    = "RayCronJob"
)

// Kinds of Kubeflow, and MLTrainingJob, which articles define in groups of their own.
const (
	kindTF             = "TFJob"
	kindPyTorch        = "PyTorchJob"
	kindXGBoost        = "XGBoostJob"
	kindJAX            = "JAXJob"
	kindPaddle         = "PaddleJob"
	kindMX             = "MXJob"
	kindMPI            = "MPIJob"
	kindTrain          = "TrainJob"
	kindRuntime        = "TrainingRuntime"
	kindClusterRuntime = "ClusterTrainingRuntime"
	kindML             = "MLTrainingJob"
	kindSpark          = "SparkApplication"
	kindSparkSchedule  = "ScheduledSparkApplication"
	kindExperiment     = "Experiment"
	kindOptimization   = "OptimizationJob"
)

// kindBatch is a Job of Kubernetes, which is converted as a template of trials alone.
const kindBatch = "Job"

// Kind is a kind that is converted.
type Kind struct {
	Name string
	// Group is empty for a kind that may be of any group.
	Group string
	// Versions are those that are converted, the usual one first. Of a kind of any group, each is.
	Versions []string
}

// Resource is the name of the kind's objects in paths of the API server.
func (k *Kind) Resource() string { return strings.ToLower(k.Name) + "s" }

// formerVersions are those in which jobs of kubeflow.org had their fields where v1 has them.
var formerVersions = []string{"v1", "v1beta2", "v1beta1", "v1alpha2"}

// kinds are all that are converted, in the order in which people read of them.
var kinds = []Kind{
	{kindCluster, rayGroup, []string{"v1"}}, {kindJob, rayGroup, []string{"v1"}}, {kindService, rayGroup, []string{"v1"}},
	{kindCron, rayGroup, []string{"v1"}},
	{kindPyTorch, kubeflowGroup, formerVersions}, {kindTF, kubeflowGroup, formerVersions}, {kindJAX, kubeflowGroup, []string{"v1"}},
	{kindXGBoost, kubeflowGroup, []string{"v1"}}, {kindMPI, kubeflowGroup, []string{"v2beta1", "v1", "v1alpha2", "v1alpha1"}},
	{kindPaddle, kubeflowGroup, []string{"v1"}}, {kindMX, kubeflowGroup, []string{"v1", "v1beta1"}},
	{kindTrain, trainerGroup, []string{"v1alpha1"}}, {kindRuntime, trainerGroup, []string{"v1alpha1"}},
	{kindClusterRuntime, trainerGroup, []string{"v1alpha1"}},
	{kindML, "", nil},
	{kindSpark, sparkGroup, []string{"v1beta2"}}, {kindSparkSchedule, sparkGroup, []string{"v1beta2"}},
	{kindExperiment, kubeflowGroup, []string{"v1beta1"}}, {kindOptimization, trainerGroup, []string{"v1alpha1"}},
}

// Sources returns the kinds that are converted.
func Sources() []Kind { return slices.Clone(kinds) }

// Kinds returns the names of the kinds that are converted.
func Kinds() []string {
	var names []string
	for i := range kinds {
		names = append(names, kinds[i].Name)
	}
	return names
}

// kindsOf returns the names of the kinds of a group.
func kindsOf(group string) []string {
	var names []string
	for i := range kinds {
		if kinds[i].Group == group {
			names = append(names, kinds[i].Name)
		}
	}
	return names
}

// groupOf returns the group of a kind.
func groupOf(kind string) string {
	at := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == kind })
	if at < 0 {
		return ""
	}
	return kinds[at].Group
}

// isSource reports whether an object is of a kind that is converted. Of one that only looks so, it returns why it is refused.
func isSource(from *unstructured.Unstructured) (is bool, refused *Row) {
	gvk := from.GroupVersionKind()
	at := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == gvk.Kind })
	if at < 0 {
		if meant := kindLike(gvk.Group, gvk.Kind); meant != "" {
			return false, &Row{Path: "kind", Verdict: Refused, Text: fmt.Sprintf("%s has no kind %s; write %s", gvk.Group, gvk.Kind, meant)}
		}
		if gvk.Group != rayGroup {
			return false, nil
		}
		return false, &Row{Path: "kind", Verdict: Refused, Text: fmt.Sprintf("ray.io has no kind %s; use one of %s", gvk.Kind,
			strings.Join(kindsOf(rayGroup), ", "))}
	}
	kind := kinds[at]
	switch {
	case kind.Group == "":
		return true, nil
	case gvk.Group != kind.Group:
		return false, &Row{Path: "apiVersion", Verdict: Refused, Text: fmt.Sprintf("%s is of %s/%s, not of %q; correct apiVersion", gvk.Kind,
			kind.Group, kind.Versions[0], from.GetAPIVersion())}
	case !slices.Contains(kind.Versions, gvk.Version):
		return false, &Row{Path: "apiVersion", Verdict: Refused, Text: versionsOf(&kind)}
	}
	return true, nil
}

// kindLike returns the kind of a group whose name is another one but for case and number, empty where there is none.
func kindLike(group, kind string) string {
	for _, one := range kindsOf(group) {
		if strings.EqualFold(strings.TrimSuffix(strings.ToLower(kind), "s"), one) {
			return one
		}
	}
	return ""
}

// versionsOf says which versions of a kind are converted.
func versionsOf(kind *Kind) string {
	if kind.Group == rayGroup {
		return "only ray.io/v1 is converted; write that, or have an API server with KubeRay's CRDs print the object"
	}
	return fmt.Sprintf("of %s.%s, %s is converted; write the object as %s has it", kind.Name, kind.Group,
		strings.Join(kind.Versions, ", "), kind.Versions[0])
}

// makers make the object of ours, nil where the object cannot be read or none replaces it.
func makers() map[string]func(*conversion) runtime.Object {
	return map[string]func(*conversion) runtime.Object{
		kindCluster: reading((*conversion).computeCluster), kindJob: reading((*conversion).clusterJob),
		kindService: reading((*conversion).clusterService), kindCron: reading(convertCronJob),
		kindPyTorch: pyTorchJob, kindTF: tfJob, kindJAX: jaxJob,
		kindXGBoost: xgBoostJob, kindPaddle: paddleJob, kindMX: mxJob,
		kindMPI: mpiJob, kindTrain: trainJob, kindRuntime: trainingRuntime,
		kindClusterRuntime: trainingRuntime, kindML: reading(mlTrainingJob),
		kindSpark: reading(sparkApplication), kindSparkSchedule: reading(sparkSchedule),
		kindExperiment: reading(experiment), kindOptimization: reading(optimizationJob), kindBatch: reading(batchJob),
	}
}

// reading has a function take the spec of an object that could be read.
func reading[Spec any](take func(*conversion, *Spec) runtime.Object) func(*conversion) runtime.Object {
	return func(c *conversion) runtime.Object {
		var spec Spec
		if !c.read(&spec) {
			return nil
		}
		return take(c, &spec)
	}
}

// isOf reports whether an API version is of a group.
func isOf(apiVersion string, groups ...string) bool {
	version, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && slices.Contains(groups, version.Group)
}
