package job

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/jobs"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// variableStopWait is for how many seconds Ray waits from SIGTERM to SIGKILL where it stops a driver.
const variableStopWait = "RAY_JOB_STOP_WAIT_TIME_S" //nolint:gosec // a time, and no credential

// driverSlack is how much longer than the grace a gang's driver may take to end.
const driverSlack = 5 * time.Second

// startLauncher is the shell line that becomes a gang's driver. The Python that has Ray is the one that starts the command ray,
// by its first line: the image's python is often the program's, and some images have none. An installer that cannot put a path
// into the first line, as it is too long or has spaces, writes a shell script whose second line has it in quotes.
const startLauncher = `set -f; a=; b=; r=$(command -v ray) && [ -f "$r" ] && { IFS= read -r a; IFS= read -r b; } <"$r" 2>/dev/null; ` +
	`case $a in '#!'*) set -- ${a#??} ;; *) set -- ;; esac; ` +
	`case "${1##*/} ${2-}" in python*|pypy*|'env python'*) ;; 'sh '*) ` +
	`set --; case $b in "'''exec' "*' "$0" "$@"') b=${b#"'''exec' "}; b=${b%' "$0" "$@"'}; b=${b#[\"\']}; set -- "${b%[\"\']}" ;; esac ;; ` +
	`*) set -- ;; esac; [ -x "${1-}" ] || set -- python; exec "$@" -m ` + launcher.Module

// packGang returns the package of the attempt that a record has, nil for a job that is no gang.
func packGang(job *v1beta1.ClusterJob, record Record, to target) (*jobs.Package, error) {
	if gangOf(&job.Spec) == nil {
		return nil, nil //nolint:nilnil // a plain job has none
	}
	description := describeGang(job, record)
	description.Tune = describeTune(&job.Spec, to.cluster)
	name, archive, err := launcher.Package(description)
	if err != nil {
		return nil, err
	}
	return &jobs.Package{Name: name, Archive: archive}, nil
}

// gangVariables returns the variables of a gang's driver, none for a plain job's.
func gangVariables(spec *v1beta1.ClusterJobSpec) map[string]string {
	if gangOf(spec) == nil {
		return nil
	}
	return map[string]string{variableStopWait: wholeSeconds(graceOf(spec) + driverSlack)}
}

// addModule puts a package behind the py_modules of a runtime environment; nil is none.
func addModule(environment map[string]json.RawMessage, launched *jobs.Package) error {
	if launched == nil {
		return nil
	}
	var modules []json.RawMessage
	if given := environment["py_modules"]; given != nil {
		if err := json.Unmarshal(given, &modules); err != nil {
			return fmt.Errorf("read spec.runtimeEnv.py_modules: %w", err)
		}
	}
	module, err := json.Marshal("gcs://" + launched.Name)
	if err != nil {
		return fmt.Errorf("print the launcher's address: %w", err)
	}
	environment["py_modules"], err = json.Marshal(append(modules, module))
	if err != nil {
		return fmt.Errorf("print py_modules: %w", err)
	}
	return nil
}

// firstWithSelectors is the minor version of the first Ray 2 that places drivers by labels.
const firstWithSelectors = 54

// driverSelector returns on which nodes the driver may run. That of a gang is kept off a head whose memory outlives it, unless
// the spec says where it runs, or the cluster can have no worker: else the head's replacement would end the gang. Where no worker is
// there yet, Ray lists the driver as demand for one, which the autoscaler serves.
func driverSelector(spec *v1beta1.ClusterJobSpec, to target) map[string]string {
	if isOneProcess(spec) { // the selector is that of its trials
		spec = &v1beta1.ClusterJobSpec{Tune: spec.Tune}
	}
	isPlaced := len(spec.EntrypointLabelSelector)+len(spec.EntrypointResources) > 0
	if gangOf(spec) == nil || isPlaced || to.cluster == nil || to.cluster.Spec.ControlStore == nil ||
		roomOf(to.cluster).workers == 0 || naming.IsRayBefore(to.ray, firstWithSelectors) {
		return spec.EntrypointLabelSelector
	}
	return map[string]string{pod.LabelGroup: "!" + naming.HeadGroup}
}
