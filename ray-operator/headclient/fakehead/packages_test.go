package fakehead_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
)

// TestPackages_GoWithTheirLastReference: a question keeps a package for ten minutes, and a job until it is over.
func TestPackages_GoWithTheirLastReference(t *testing.T) {
	const name = "a.zip"
	for field, value := range map[string]string{"working_dir": `"gcs://a.zip"`, "py_modules": `["gcs://b.zip", "gcs://a.zip"]`} {
		t.Run(field, func(t *testing.T) {
			head, clock := fake(t)
			jobs := converse(t, head)
			upload := func(name string) {
				if _, err := jobs.HasPackage(t.Context(), name); err != nil {
					t.Fatal(err)
				}
				if err := jobs.Upload(t.Context(), name, []byte("zip")); err != nil {
					t.Fatal(err)
				}
			}
			has := func(when string, want bool) {
				t.Helper()
				if isThere, err := jobs.HasPackage(t.Context(), name); isThere != want || err != nil {
					t.Errorf("%s: it is there: %t, %v", when, isThere, err)
				}
			}
			upload("b.zip")
			upload(name)
			clock.Step(9 * time.Minute)
			has("nine minutes later", true)
			clock.Step(9 * time.Minute)
			has("nine minutes after it was asked for", true)
			clock.Step(10 * time.Minute)
			has("ten minutes after it was asked for", false)
			upload("b.zip")
			upload(name)
			env := fmt.Appendf(nil, `{%q: %s}`, field, value)
			submit(t, head, headclient.Submission{ID: "uses", Entrypoint: "hang", RuntimeEnv: env})
			clock.Step(fakehead.StartDelay)
			holds(t, head, "uses", headclient.JobRunning)
			clock.Step(time.Hour)
			has("while a job runs in it", true)
			clock.Step(time.Hour)
			if _, err := jobs.Stop(t.Context(), "uses"); err != nil {
				t.Fatal(err)
			}
			clock.Step(time.Second)
			holds(t, head, "uses", headclient.JobStopped)
			submit(t, head, headclient.Submission{ID: "late", Entrypoint: "hang", RuntimeEnv: env})
			clock.Step(fakehead.StartDelay)
			if job := holds(t, head, "late", headclient.JobFailed); job.ErrorType != "RUNTIME_ENV_SETUP_FAILURE" {
				t.Errorf("%+v", job)
			}
		})
	}
}

// TestPackages_WithoutAReferenceStay: Ray drops what had one.
func TestPackages_WithoutAReferenceStay(t *testing.T) {
	head, clock := fake(t)
	jobs := converse(t, head)
	if err := jobs.Upload(t.Context(), "a.zip", []byte("zip")); err != nil {
		t.Fatal(err)
	}
	clock.Step(time.Hour)
	if isThere, err := jobs.HasPackage(t.Context(), "a.zip"); !isThere || err != nil {
		t.Errorf("it is there: %t, %v", isThere, err)
	}
}
