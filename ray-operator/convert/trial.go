package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// trial is what the texts of a template of trials may refer to.
type trial struct {
	// parameters are the names of the parameters of tune.
	parameters []string
	// container is the one that runs the program, where the kind of the template has no name for it.
	container string
}

// has reports whether a text is a reference to a parameter of the trials, or to the number of a trial.
func (t *trial) has(text string) bool {
	if t == nil {
		return false
	}
	name, is := strings.CutPrefix(strings.TrimSuffix(text, ")"), trialReference)
	return is && (name == validate.TrialReference || slices.Contains(t.parameters, name))
}

// trialReference is how a reference to a parameter begins, and numberOfTrial is the one to the number of the trial.
const (
	trialReference = "$(tune."
	numberOfTrial  = trialReference + validate.TrialReference + ")"
)

// trialKinds are those of which a template of trials can be.
var trialKinds = []string{
	kindBatch, kindPyTorch, kindTF, kindJAX, kindXGBoost, kindMPI, kindPaddle, kindMX, kindTrain, kindSpark,
}

// trialTemplate is a template of trials on its way.
type trialTemplate struct {
	*conversion
	// at is where the template stands.
	at   string
	from *unstructured.Unstructured
	// values are what replaces the placeholders of Katib, by their names.
	values map[string]string
	trial  *trial
}

// job converts the template to the job whose command is a trial, nil where that is not possible.
func (t *trialTemplate) job() *v1beta1.ClusterJob {
	kind := t.from.GetKind()
	if kind == kindBatch && t.from.GetAPIVersion() != "batch/v1" || !slices.Contains(trialKinds, kind) {
		t.refuse(t.at, fmt.Sprintf("trials of a %.60s of %.60s are not converted; use one of %s", kind, t.from.GetAPIVersion(),
			strings.Join(trialKinds, ", ")))
		return nil
	}
	if kind != kindBatch {
		if _, refused := isSource(t.from); refused != nil {
			refused.Path = t.at + "." + refused.Path
			t.note(*refused)
			return nil
		}
	}
	t.takeKueueOfTrials()
	meta := t.meta
	if meta.Name != "" {
		meta.Name += "-" + numberOfTrial // which is what names of pods begin with
	}
	part := &nested{
		kind: kind, apiVersion: t.from.GetAPIVersion(), spec: t.written(t.at+".spec", t.from.Object["spec"]), at: t.at + ".spec", meta: meta, trial: t.trial,
	}
	return part.convert(t.conversion)
}

// takeKueueOfTrials queues the job where each trial was queued. Other metadata of trials has no object to be on.
func (t *trialTemplate) takeKueueOfTrials() {
	for _, key := range slices.Sorted(maps.Keys(t.from.GetLabels())) {
		if !strings.HasPrefix(key, prefixKueue) {
			continue
		}
		if t.meta.Labels == nil {
			t.meta.Labels = map[string]string{}
		}
		t.meta.Labels[key] = t.from.GetLabels()[key]
		t.change(t.at+".metadata.labels["+key+"]", "metadata.labels", "the job is queued as a whole, and its trials are not queued one by one")
	}
}

// placeholder matches what Katib replaces in a template of trials.
var placeholder = regexp.MustCompile(`\$\{trialParameters\.([^}]*)\}`)

// written returns a value of the template with references of ours in place of Katib's placeholders.
func (t *trialTemplate) written(at string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		made := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			made[key] = t.written(join(at, key), value[key])
		}
		return made
	case []any:
		made := make([]any, 0, len(value))
		for i := range value {
			made = append(made, t.written(fmt.Sprintf("%s[%d]", at, i), value[i]))
		}
		return made
	case string:
		return placeholder.ReplaceAllStringFunc(value, func(found string) string {
			name := placeholder.FindStringSubmatch(found)[1]
			text, has := t.values[name]
			if !has {
				t.refuse(at, fmt.Sprintf("trialParameters has no %.60s; add it there, or take the placeholder out", name))
			}
			return text
		})
	default:
		return value
	}
}

// withTune completes a job whose command is a trial.
func (t *trialTemplate) withTune(job *v1beta1.ClusterJob, tune *v1beta1.Tune) runtime.Object {
	spec := &job.Spec
	job.ObjectMeta, spec.Tune = t.meta, tune
	tune.Parameters = tune.Parameters[:min(len(tune.Parameters), mostParameters)] // more are refused
	if spec.ActiveDeadlineSeconds != nil {
		tune.TrialDeadlineSeconds, spec.ActiveDeadlineSeconds = *spec.ActiveDeadlineSeconds, nil
		t.adjust(t.at+".spec", "tune.trialDeadlineSeconds", "activeDeadlineSeconds bounds each trial")
	}
	if spec.TTLSecondsAfterFinished != nil {
		spec.TTLSecondsAfterFinished = nil
		t.drop(t.at+".spec.ttlSecondsAfterFinished", "trials are no objects, and go with their job; set ttlSecondsAfterFinished of that")
	}
	if spec.Suspend != nil {
		spec.Suspend = nil
		t.drop(t.at+".spec.suspend", "a trial cannot be suspended; suspend the job")
	}
	t.makeRoom(spec)
	return job
}

// makeRoom gives the job's own cluster as many workers as trials need that run at a time.
func (t *trialTemplate) makeRoom(spec *v1beta1.ClusterJobSpec) {
	if spec.ClusterTemplate == nil {
		return
	}
	groups := spec.ClusterTemplate.Spec.WorkerGroups
	if text, err := json.Marshal(spec.ClusterTemplate); err == nil && strings.Contains(string(text), trialReference) {
		t.refuse(t.at, "only command, args and variables of the container that runs the program can have the values of a trial; take them out "+
			"of all other fields")
		return
	}
	if many := spec.Tune.ParallelTrials; many > 1 {
		for i := range groups {
			groups[i].Replicas = new(*groups[i].Replicas * many)
		}
		t.adjust(t.at, "clusterTemplate.spec.workerGroups[].replicas", fmt.Sprintf("the job's cluster has workers for %d trials at a time", many))
	}
}
