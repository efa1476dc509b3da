package rest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/portal/access"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

const (
	aRayJob = "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: train, namespace: team-a}\n" +
		"spec:\n  entrypoint: ls\n  clusterSelector: {ray.io/cluster: dev}\n"
	aRayCluster = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: dev, namespace: team-a}\n" +
		"spec:\n  rayVersion: 2.60.0\n  headGroupSpec:\n    template: {spec: {containers: [{name: ray, image: rayproject/ray:2.60.0, " +
		"resources: {limits: {cpu: 1, memory: 2Gi}}}]}}\n"
)

func TestConvertManifests_SaysWhatBecameOfEachField(t *testing.T) {
	for name, c := range map[string]struct {
		manifests string
		objects   []string
		fields    []string // document:line object field verdict
		counts    string   // differing, refused, unread
	}{
		"nothing differs": {aRayJob, []string{"ClusterJob train"}, nil, "0 0 0"},
		"what differs": {"---\n" + aRayCluster, []string{"ComputeCluster dev"},
			[]string{"2:5 RayCluster/dev spec.authOptions changed", "2:5 RayCluster/dev spec.networkPolicy changed"}, "1 0 0"},
		"refused beside taken": {strings.Replace(aRayJob, "entrypoint: ls", "entrypoint: ls\n  jobId: x", 1) + "---\n" + aRayJob,
			[]string{"ClusterJob train"}, []string{"1:6 RayJob/train spec.jobId refused"}, "0 1 0"},
		"unread beside taken": {"a: [\n---\n" + aRayJob, []string{"ClusterJob train"}, []string{"1:1 /  unread"}, "0 0 1"},
		"a rounded number": {aRayJob + "---\napiVersion: v1\nkind: X\nat: 9007199254740993\n", []string{"ClusterJob train"},
			[]string{"2:8 /  unread"}, "0 0 1"},
		"too deep": {"apiVersion: v1\nkind: X\na: " + strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), nil,
			[]string{"1:1 /  unread"}, "0 0 1"},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := newBed(t).api.portal.ConvertManifests(withCaller(t.Context(), &access.Caller{}), &heliostatv1.ConvertManifestsRequest{Manifests: c.manifests})
			if err != nil {
				t.Fatal(err)
			}
			var objects, fields []string
			for _, one := range answer.GetObjects() {
				object := one.AsMap()
				metadata, _ := object["metadata"].(map[string]any)
				objects = append(objects, fmt.Sprint(object["kind"], " ", metadata["name"]))
			}
			for _, f := range answer.GetFields() {
				fields = append(fields, fmt.Sprintf("%d:%d %s/%s %s %s", f.GetDocument(), f.GetLine(), f.GetKind(), f.GetName(), f.GetField(), f.GetVerdict()))
				if f.GetText() == "" {
					t.Errorf("nothing says what to do about %s", f.GetField())
				}
			}
			got := []any{objects, fields, fmt.Sprint(answer.GetDiffering(), answer.GetRefused(), answer.GetUnread())}
			if diff := cmp.Diff([]any{c.objects, c.fields, c.counts}, got); diff != "" {
				t.Errorf("it answers otherwise (- wanted):\n%s", diff)
			}
		})
	}
}

func TestConvertManifests_KeepsOpenAndAddsAliases(t *testing.T) {
	answer, err := newBed(t).api.portal.ConvertManifests(withCaller(t.Context(), &access.Caller{}),
		&heliostatv1.ConvertManifestsRequest{Manifests: aRayCluster, Aliases: true, KeepOpen: true})
	if err != nil || len(answer.GetObjects()) != 2 || answer.GetDiffering() != 0 {
		t.Fatalf("it is %v, %v", answer, err)
	}
	if text := answer.GetObjects()[1].String(); !strings.Contains(text, "dev-head-svc") {
		t.Errorf("the alias is %s", text)
	}
}

const aTrainJob = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: tune, namespace: team-a}\n" +
	"spec: {runtimeRef: {name: own}, trainer: {numNodes: 2}}\n---\n" +
	"apiVersion: trainer.kubeflow.org/v1alpha1\nkind: ClusterTrainingRuntime\nmetadata: {name: own}\nspec: {mlPolicy: {torch: {}}, template: {spec: " +
	"{replicatedJobs: [{name: node, template: {spec: {template: {spec: {nodeSelector: {gpu: a}, containers: [{name: node}]}}}}}]}}}\n"

// TestConvertManifests_TakesChoicesForJobsOfKubeflow: with a runtime that stands behind the job in the same text.
func TestConvertManifests_TakesChoicesForJobsOfKubeflow(t *testing.T) {
	request := &heliostatv1.ConvertManifestsRequest{Manifests: aTrainJob, Onto: "shared", Command: "torchrun 'a b.py'",
		LabelSelectors: []string{"worker=pool=gpu"}}
	portal, ctx := newBed(t).api.portal, withCaller(t.Context(), &access.Caller{})
	answer, err := portal.ConvertManifests(ctx, request)
	if err != nil || len(answer.GetObjects()) != 1 || answer.GetRefused() != 0 {
		t.Fatalf("it is %v, %v", answer, err)
	}
	for _, want := range []string{"shared", "a b.py", "PerReplica", "pool"} {
		if text := answer.GetObjects()[0].String(); !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if len(answer.GetUnused()) > 0 {
		t.Errorf("choices that were used are named as unused: %v", answer.GetUnused())
	}
	request.LabelSelectors = []string{"worker"}
	if _, err := portal.ConvertManifests(ctx, request); err == nil || !strings.Contains(err.Error(), "labelSelectors") {
		t.Errorf("a selector of nothing: %v", err)
	}
}

// TestConvertManifests_NamesChoicesThatFitNothing: each by its field of the request.
func TestConvertManifests_NamesChoicesThatFitNothing(t *testing.T) {
	request := &heliostatv1.ConvertManifestsRequest{Manifests: aRayJob, Onto: "shared", Command: "a", Images: []string{"a=b", "c"},
		LabelSelectors: []string{"worker=pool=gpu"}}
	answer, err := newBed(t).api.portal.ConvertManifests(withCaller(t.Context(), &access.Caller{}), request)
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, one := range answer.GetUnused() {
		fields = append(fields, one.GetField())
		if one.GetMessage() == "" || one.GetRemedy() == "" {
			t.Errorf("nothing says what to do about %v", one)
		}
	}
	if diff := cmp.Diff([]string{"onto", "command", "images", "images", "labelSelectors"}, fields); diff != "" {
		t.Errorf("other choices are named (- wanted):\n%s", diff)
	}
	// An object that does not come out may need each of them.
	request.Manifests += "---\n" + strings.Replace(aRayJob, "entrypoint: ls", "entrypoint: ls\n  jobId: x", 1)
	answer, err = newBed(t).api.portal.ConvertManifests(withCaller(t.Context(), &access.Caller{}), request)
	if err != nil || answer.GetRefused() != 1 || len(answer.GetUnused()) > 0 {
		t.Errorf("beside a refused object it names %v, %v", answer.GetUnused(), err)
	}
}

func TestConvertManifests_IsBounded(t *testing.T) {
	bed := newBed(t)
	for name, c := range map[string]struct {
		media, body string
		code        int
		says        string
	}{
		"nothing":            {"application/yaml", " ", 400, "manifests is empty"},
		"another media type": {"text/plain", aRayJob, 415, "not declared as JSON"},
		"too large":          {"application/yaml", strings.Repeat("# comment\n", MaxBody/10+1), 413, "more than 1024 KiB"},
		"no UTF-8":           {"application/yaml", "a: \xff", 400, "is no UTF-8"},
		"an unknown field":   {"application/json", `{"manifest":"a"}`, 400, `write \"manifests\"`},
		"too many values":    {"application/yaml", strings.Repeat("apiVersion: v1\nkind: X\na: ["+strings.Repeat("1,", maxValues/2)+"]\n---\n", 2), 413, "more than 500000 values"},
		"too many rows":      {"application/yaml", strings.Repeat("a\n---\n", maxRows+1), 413, "more than 20000 fields"},
		"YAML":               {"application/yaml", aRayJob, 200, `"kind":"ClusterJob"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/v1/convert", strings.NewReader(c.body)).WithContext(t.Context())
			r.Header.Set("Content-Type", c.media)
			w := httptest.NewRecorder()
			request, err := bed.api.Read(r)
			if err != nil || request.IsChange() {
				t.Fatalf("it is a change: %v", err)
			}
			bed.api.Serve(w, r, request, &access.Caller{})
			if said := w.Body.String(); w.Code != c.code || !strings.Contains(strings.ReplaceAll(said, `": `, `":`), c.says) {
				t.Errorf("it is %d: %.300s", w.Code, said)
			}
		})
	}
	if len(bed.written) > 0 {
		t.Errorf("it writes %q", bed.written)
	}
}
