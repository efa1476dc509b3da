package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// input is what the program inputs gives: an object, and what crdcheck refuses of it.
type input struct {
	Name     string          `json:"name"`
	Before   json.RawMessage `json:"before"`
	Object   json.RawMessage `json:"object"`
	Refusals []refusal       `json:"refusals"`
	// Pods are those that the operator makes of it first.
	Pods []*corev1.Pod `json:"pods"`
}

type refusal struct {
	Rule  string `json:"rule"`
	Field string `json:"field"`
	Says  string `json:"says"`
}

// Counts of generated inputs that CI sends, as options of the program that makes them;
// HELIOSTAT_ADMISSION asks for others instead. Beside those of jobs and of services there is one
// for each row about a cluster.
const (
	countsOfClusters = "-n 30 -mutations 40 -seed 1"
	countsOfJobs     = "-n 20 -mutations 30 -seed 1"
	countsOfServices = "-n 20 -mutations 30 -seed 1"

	countsOfSchedules = "-n 20 -mutations 30 -seed 1"
)

// inputs are what the program of that name gives: of clusters, of jobs, of services or of schedules.
func inputs(t *testing.T, what, options string) []input {
	t.Helper()
	if full := os.Getenv("HELIOSTAT_ADMISSION"); full != "" {
		options = full
	}
	args := slices.Concat([]string{"run", "../../ray-operator/internal/testkit/inputs"}, strings.Fields(options), []string{what})
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	must(t, err)
	var all []input
	for lines := bufio.NewReader(bytes.NewReader(out)); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return all
		}
		var in input
		must(t, json.Unmarshal(line, &in))
		all = append(all, in)
	}
}

func TestTheAPIServerAndTheRulesAgree(t *testing.T) {
	t.Parallel()
	agree(t, "clusters", countsOfClusters)
}

// agree sends the inputs to the API server, with the chart's CRDs and policies, which must answer as crdcheck did. Of what both
// find good, Kubernetes must take the pods.
func agree(t *testing.T, what, counts string) {
	t.Helper()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	all := inputs(t, what, counts)
	begin, refused, pods := time.Now(), 0, 0
	found := make([]string, len(all))
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(4)
	for i := range all {
		if pods += len(all[i].Pods); len(all[i].Refusals) > 0 {
			refused++
		}
		group.Go(func() (err error) {
			found[i], err = disagreement(ctx, namespace, &all[i])
			return err
		})
	}
	must(t, group.Wait())
	told := 0
	for i := range found {
		if found[i] == "" {
			continue
		}
		if told++; told <= 20 {
			t.Errorf("%s: %s\n%.1500s", all[i].Name, found[i], all[i].Object)
		}
	}
	t.Logf("%d inputs, %d of them bad, %d pods of good ones, in %v: %d disagreements", len(all), refused, pods, time.Since(begin).Round(time.Millisecond), told)
}

// TestRefusals_NameWhatIsBroken: beside the field, the answer names the device or resource, its container and the variable.
func TestRefusals_NameWhatIsBroken(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	sized := func(pairs ...string) func(*v1beta1.WorkerGroup) {
		return func(group *v1beta1.WorkerGroup) { group.Size = amounts(pairs...) }
	}
	beside := func(side corev1.Container) func(*v1beta1.WorkerGroup) {
		side.Name, side.Image = "side", "none"
		return func(group *v1beta1.WorkerGroup) {
			containers := []corev1.Container{{Name: v1beta1.ContainerRay}, side}
			group.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: containers}}
		}
	}
	needs := func(requests, limits corev1.ResourceList) func(*v1beta1.WorkerGroup) {
		return beside(corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}})
	}
	const size, template = "spec.workerGroups[0].size: ", "spec.workerGroups[0].template.spec.containers[*]."
	for _, c := range []struct {
		edit         func(*v1beta1.WorkerGroup)
		where, names string
	}{
		{sized("cpu", "1", "nvidia.com/gpu", "500m"), size, "(nvidia.com/gpu)"},
		{sized("cpu", "1", "memory", "-1Gi"), size, "(memory)"},
		{needs(nil, amounts("amd.com/gpu", "500m")), template + "resources: ", "(container side: amd.com/gpu)"},
		{needs(amounts("amd.com/gpu", "1"), amounts("amd.com/gpu", "2")), template + "resources: ", "(container side: amd.com/gpu)"},
		{needs(amounts("cpu", "-1"), nil), template + "resources", "(container side: cpu)"},
		{needs(amounts("cpu", "2"), amounts("cpu", "1")), template + "resources", "(container side: cpu)"},
		{beside(corev1.Container{Env: []corev1.EnvVar{{Name: "LONG", Value: strings.Repeat("a", 131070)}}}), template + "env: ", "(container side: LONG)"},
	} {
		cluster := newCluster(namespace, "broken", 1)
		c.edit(&cluster.Spec.WorkerGroups[0])
		err := shared.Create(t.Context(), cluster, client.DryRunAll)
		if said := fmt.Sprint(err); !apierrors.IsInvalid(err) || !strings.Contains(said, c.where) || !strings.Contains(said, c.names) {
			t.Errorf("the answer is %s, want it to name %s and %s", said, c.where, c.names)
		}
	}
}

// policyInForce waits until the API server asks the policies, which takes it a moment
// after they were made.
func policyInForce(t *testing.T, namespace string) {
	t.Helper()
	cluster, job, service := newCluster(namespace, "probe", 0), newJob(namespace, "probe"), servedIn(namespace, "probe")
	schedule := newSchedule(namespace, "probe", newJob(namespace, "probe"))
	schedule.Spec.JobTemplate.Spec.ClusterTemplate.Spec.WorkerGroups[0].RayStartParams = badOption
	cluster.Spec.WorkerGroups[0].RayStartParams = badOption
	job.Spec.ClusterTemplate.Spec.WorkerGroups[0].RayStartParams = badOption
	service.Spec.ClusterTemplate.Spec.WorkerGroups[0].RayStartParams = badOption
	must(t, live.Until(t.Context(), limit, "the admission policies to be in force", func(ctx context.Context) error {
		for _, bad := range []client.Object{cluster, job, service, schedule} {
			if err := shared.Create(ctx, bad.DeepCopyObject().(client.Object), client.DryRunAll); !apierrors.IsInvalid(err) {
				return fmt.Errorf("a bad %T is answered with %q", bad, fmt.Sprint(err))
			}
		}
		return nil
	}))
}

// badOption is what only the policies refuse.
var badOption = map[string]string{"UPPER": ""}

// disagreement sends an input and tells how the answer differs from what the rules say.
func disagreement(ctx context.Context, namespace string, in *input) (string, error) {
	err := send(ctx, namespace, in)
	bad := apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
	switch {
	case err != nil && !bad:
		return "", fmt.Errorf("send %s: %w", in.Name, err)
	case !bad && len(in.Refusals) > 0:
		return fmt.Sprintf("the API server takes it, the rules say %v", in.Refusals), nil
	case bad && len(in.Refusals) == 0:
		return fmt.Sprintf("the rules find it good, the API server says %v", err), nil
	case bad && !slices.ContainsFunc(in.Refusals, func(r refusal) bool { return named(err.Error(), r.Field, r.Says) }):
		return fmt.Sprintf("the API server says %v, the rules %v", err, in.Refusals), nil
	}
	for _, pod := range in.Pods {
		pod.Namespace = namespace
		if err := shared.Create(ctx, pod, client.DryRunAll); err != nil {
			return fmt.Sprintf("both find it good, and Kubernetes refuses its pod: %v", err), nil
		}
	}
	return "", nil
}

// place is the part of a path that both sides always name.
var place = regexp.MustCompile(`^(metadata\.name|spec\.(clusterTemplate\.(spec|metadata)\.)?(head|workerGroups(\[\d+\])?|[a-zA-Z]+))`)

// named reports whether an answer names what a rule does. A required field that is empty is not sent, nor is
// what holds nothing else, so the API server misses it, whatever the rule says.
func named(answer, field, says string) bool {
	for of := field; of != ""; of = of[:max(strings.LastIndex(of, "."), 0)] {
		if strings.Contains(answer, of+": Required value") {
			return true
		}
	}
	return strings.Contains(answer, says) && strings.Contains(answer, place.FindString(field))
}

func send(ctx context.Context, namespace string, in *input) error {
	object, err := decode(namespace, in.Object)
	if err != nil {
		return err
	}
	if in.Before == nil {
		return shared.Create(ctx, object, client.DryRunAll)
	}
	before, err := decode(namespace, in.Before)
	if err != nil {
		return err
	}
	before.SetName("")
	before.SetGenerateName("before-")
	if err := shared.Create(ctx, before); err != nil {
		return fmt.Errorf("create the state before: %w", err)
	}
	if err := setStatus(ctx, before, in.Before); err != nil {
		return err
	}
	object.SetName(before.GetName())
	object.SetResourceVersion(before.GetResourceVersion())
	return shared.Update(ctx, object, client.DryRunAll)
}

// setStatus writes the status that a text gives, if it gives one: to create an object drops it.
func setStatus(ctx context.Context, object *unstructured.Unstructured, text []byte) error {
	given, err := decode(object.GetNamespace(), text)
	if err != nil {
		return err
	}
	status, _, err := unstructured.NestedMap(given.Object, "status")
	if err != nil || len(status) == 0 {
		return err
	}
	object.Object["status"] = status
	if err := shared.Status().Update(ctx, object); err != nil {
		return fmt.Errorf("write the status before: %w", err)
	}
	return nil
}

func decode(namespace string, text []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("read an input: %w", err)
	}
	object.SetNamespace(namespace)
	return object, nil
}
