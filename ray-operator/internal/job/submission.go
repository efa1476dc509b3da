package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/jobs"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Keys of a submission's metadata, which Ray keeps and gives back.
const (
	metadataJob     = "heliostat.dev/job"
	metadataUID     = "heliostat.dev/job-uid"
	metadataAttempt = "heliostat.dev/attempt"
)

// target is where an attempt is sent: a cluster, and the version of Ray that answers there.
type target struct {
	cluster *v1beta1.ComputeCluster
	ray     string
}

// submission is what is sent for an attempt, and the package that a gang's driver runs in: a function of the spec, the record
// and where it is sent.
func submission(job *v1beta1.ClusterJob, record Record, to target) (*headclient.Submission, *jobs.Package, error) {
	spec, attempt := &job.Spec, record.Attempt
	launched, err := packGang(job, record, to)
	if err != nil {
		return nil, nil, err
	}
	environment, err := runtimeEnv(job, attempt, launched)
	if err != nil {
		return nil, nil, err
	}
	s := &headclient.Submission{
		ID: naming.Submission(job.Name, job.UID, attempt), Entrypoint: entrypoint(spec), RuntimeEnv: environment,
		LabelSelector: driverSelector(spec, to), Metadata: map[string]string{},
	}
	maps.Copy(s.Metadata, spec.Metadata)
	s.Metadata[metadataJob], s.Metadata[metadataUID] = job.Name, string(job.UID)
	s.Metadata[metadataAttempt] = strconv.Itoa(int(attempt))
	for name, quantity := range driverResources(spec) {
		switch name {
		case "CPU":
			s.CPUs = quantity.AsApproximateFloat64()
		case "GPU":
			s.GPUs = quantity.AsApproximateFloat64()
		case "memory":
			s.Memory = quantity.Value()
		default:
			if s.Resources == nil {
				s.Resources = map[string]float64{}
			}
			s.Resources[name] = quantity.AsApproximateFloat64()
		}
	}
	s.Metadata[jobs.MetadataPayload], err = hashPayload(job, attempt)
	return s, launched, err
}

// hashPayload names what is submitted: the user's words and not what is made of them, so that
// a new operator knows again what a former one has submitted.
func hashPayload(job *v1beta1.ClusterJob, attempt int32) (string, error) {
	run := v1beta1.ClusterJobSpec{
		Entrypoint: job.Spec.Entrypoint, Command: job.Spec.Command, RuntimeEnv: job.Spec.RuntimeEnv, Env: job.Spec.Env,
		EntrypointResources: job.Spec.EntrypointResources, EntrypointLabelSelector: job.Spec.EntrypointLabelSelector, Metadata: job.Spec.Metadata,
		Gang: job.Spec.Gang, Tune: job.Spec.Tune,
	}
	hash, err := naming.ObjectHash([]any{job.UID, attempt, run})
	if err != nil {
		return "", fmt.Errorf("name what is submitted: %w", err)
	}
	return hash, nil
}

// killAfter is how long after SIGTERM what a driver leaves behind gets SIGKILL.
const killAfter = 3 * time.Second

// endGroup returns shell code that ends what a driver leaves behind in its process group: with SIGTERM when the driver's
// shell has ended, which becomes the driver, and with SIGKILL some time later. Ray has a process for that, and kills it when the
// driver ends. This one has no parent among them, so that neither Ray nor the program sees it: no wait returns it, and no
// signal of a stop reaches it. A driver that nobody reaps has ended too: a zombie (Z) without other threads (1).
func endGroup(later time.Duration) string {
	return `( trap "" TERM; (while kill -0 $$; do s=; read -r s </proc/$$/stat; set -- ${s##*) }; ` +
		`[ "$1${18}" = Z1 ] && break; sleep 1; done; kill -TERM -$$; sleep ` + wholeSeconds(later) +
		`; kill -KILL -$$) </dev/null >/dev/null 2>&1 & )`
}

// wholeSeconds is a time as a number of seconds.
func wholeSeconds(of time.Duration) string { return strconv.Itoa(int(of / time.Second)) }

// entrypoint is the shell line that Ray runs. A command is quoted so that its words reach
// the program as they are, which takes the shell's place.
func entrypoint(spec *v1beta1.ClusterJobSpec) string {
	if gangOf(spec) != nil {
		return v1beta1.EntrypointPrefix + startLauncher
	}
	if len(spec.Command) == 0 {
		return v1beta1.EntrypointPrefix + spec.Entrypoint
	}
	words := []string{"exec"}
	for _, word := range spec.Command {
		words = append(words, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	return v1beta1.EntrypointPrefix + strings.Join(words, " ")
}

// runtimeEnv is the user's runtime environment with the job's variables in it, and the package of a gang.
func runtimeEnv(job *v1beta1.ClusterJob, attempt int32, launched *jobs.Package) (json.RawMessage, error) {
	environment := map[string]json.RawMessage{}
	variables := map[string]string{}
	if raw := job.Spec.RuntimeEnv; raw != nil && len(raw.Raw) > 0 {
		if err := json.Unmarshal(raw.Raw, &environment); err != nil {
			return nil, fmt.Errorf("read spec.runtimeEnv: %w", err)
		}
		if given, ok := environment["env_vars"]; ok {
			if err := json.Unmarshal(given, &variables); err != nil {
				return nil, fmt.Errorf("read spec.runtimeEnv.env_vars: %w", err)
			}
		}
	}
	if environment == nil { // JSON's null
		environment = map[string]json.RawMessage{}
	}
	if variables == nil {
		variables = map[string]string{}
	}
	for i := range job.Spec.Env {
		if v := &job.Spec.Env[i]; v.ValueFrom == nil {
			variables[v.Name] = v.Value
		}
	}
	variables[v1beta1.EnvJobName] = job.Name
	variables[v1beta1.EnvJobEnds] = endGroup(withGrace(&job.Spec, killAfter))
	variables[v1beta1.EnvJobAttempt] = strconv.Itoa(int(attempt))
	if at := job.Annotations[v1beta1.AnnotationScheduledAt]; at != "" {
		variables[v1beta1.EnvScheduledAt] = at
	}
	maps.Copy(variables, gangVariables(&job.Spec))
	text, err := json.Marshal(variables)
	if err != nil {
		return nil, fmt.Errorf("print the variables: %w", err)
	}
	environment["env_vars"] = text
	if err := addModule(environment, launched); err != nil {
		return nil, err
	}
	if text, err = json.Marshal(environment); err != nil {
		return nil, fmt.Errorf("print the runtime environment: %w", err)
	}
	return text, nil
}
