package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/convert"
	"github.com/heliostat-dev/heliostat/tests/kubeflow"
	"github.com/heliostat-dev/heliostat/tests/live"
	"github.com/heliostat-dev/heliostat/tests/rayio"
)

// conversions is how many generated objects are converted and sent, one in four of them a job of Kubeflow; HELIOSTAT_CONVERSIONS asks for
// others.
const conversions = 100

// TestConvertedObjectsAreAdmitted: what the converter lets out, a real API server takes, with the chart's CRDs and policies.
func TestConvertedObjectsAreAdmitted(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	many, sent := number(t, "HELIOSTAT_CONVERSIONS", conversions), 0
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(4)
	for seed := range many {
		chance := rand.New(rand.NewPCG(uint64(seed), 27))
		from, _ := rayio.Generate(chance)
		if seed%4 == 0 {
			from = kubeflow.Generate(chance)
		}
		from.SetNamespace(namespace)
		result := convert.Object(from, convert.Options{Aliases: chance.IntN(2) == 0, KeepOpen: chance.IntN(2) == 0})
		for _, object := range result.Objects {
			sent++
			group.Go(func() error {
				err := shared.Create(ctx, object, client.DryRunAll)
				if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
					t.Errorf("seed %d: the API server refuses the %s: %v", seed, object.GetKind(), err)
					return nil
				}
				if err != nil {
					return fmt.Errorf("send the object of seed %d: %w", seed, err)
				}
				return nil
			})
		}
	}
	must(t, group.Wait())
	t.Logf("%d objects of %d inputs were sent", sent, many)
	if sent < many/3 {
		t.Errorf("only %d objects of %d came out", sent, many)
	}
}

// yamlLine matches lines of an object, and none of the rows about it.
var yamlLine = regexp.MustCompile(`^( |-|[A-Za-z]+:[ \n])`)

// TestConvert_TakesJobsOfKubeflowAsFilesOrLive: a job comes out of the API server as it comes out of its manifest.
func TestConvert_TakesJobsOfKubeflowAsFilesOrLive(t *testing.T) {
	t.Parallel()
	cli := newCommandLine(t)
	text, err := os.ReadFile("testdata/pytorchjobs.yaml")
	must(t, err)
	objects, err := live.Decode(text)
	must(t, err)
	t.Cleanup(func() { must(t, client.IgnoreNotFound(shared.Delete(context.WithoutCancel(t.Context()), objects[0]))) })
	must(t, shared.ApplyObject(t.Context(), objects[0]))
	permit(t, cli.namespace, "kubeflow", rbacv1.PolicyRule{APIGroups: []string{"kubeflow.org"}, Resources: []string{"pytorchjobs"}, Verbs: []string{"get", "list"}})
	job := objects[1]
	job.SetNamespace(cli.namespace)
	file := filepath.Join(t.TempDir(), "job.yaml")
	manifest, err := job.MarshalJSON()
	must(t, err)
	must(t, os.WriteFile(file, manifest, 0o600))
	eventually(t, "the job to be made", func(ctx context.Context) error { return shared.Create(ctx, job.DeepCopyObject().(client.Object)) })

	object := func(printed string) string {
		t.Helper()
		from := strings.Index(printed, "apiVersion: heliostat.dev/")
		if from < 0 {
			t.Fatalf("no object came out:\n%s", printed)
		}
		var lines []string
		for line := range strings.Lines(printed[from:]) {
			if !yamlLine.MatchString(line) { // rows follow
				break
			}
			lines = append(lines, line)
		}
		found, err := live.Decode([]byte(strings.Join(lines, "")))
		must(t, err)
		spec, err := (&unstructured.Unstructured{Object: map[string]any{"spec": found[0].Object["spec"], "metadata": found[0].Object["metadata"]}}).MarshalJSON()
		must(t, err)
		return string(spec)
	}
	ofFile := object(cli.run(t, "ana", outcome.Differs, "convert -f "+file))
	ofServer := object(cli.run(t, "ana", outcome.Differs, "convert pytorchjobs"))
	if ofFile != ofServer {
		t.Errorf("the file becomes\n%s\nand the live object\n%s", ofFile, ofServer)
	}
}
