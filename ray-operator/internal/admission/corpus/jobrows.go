package corpus

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

type (
	jobs  = v1beta1.ClusterJobSpec
	after = v1beta1.CleanupRule
)

func jobManaged(by string) jobEdit { return jobSpec(func(s *jobs) { s.ManagedBy = by }) }

func stops(value string) jobEdit {
	return func(j *job) { j.Annotations = map[string]string{v1beta1.AnnotationStop: value} }
}

var jobRows = []jobRow{
	{Name: "a good job", Edit: func(*job) {}},
	{Name: "a good job of its own cluster", Edit: ownCluster},
	{Name: "a full job of its own cluster", Edit: both(
		templateMeta(some, some), command("python", "train.py", "a b"), runtimeEnv(`{"pip":["torch"],"env_vars":{"A":"1"}}`),
		env(corev1.EnvVar{Name: "B", Value: "2"}, fromSecret("TOKEN")), takes("CPU", "500m", "memory", "1Gi"), selects("market", "!in(spot, preemptible)"),
		jobMetadata("owner", "ana"), onExitCodes([]int32{1, 137}, nil), backoff(ptr(int32(1)), ptr(int32(60))), suspended,
		cleanup(after{Outcome: "Success", Action: "DeleteCluster"}, after{Outcome: "Failure", Action: "DeleteWorkers"}, after{Outcome: "Failure", Action: "DeleteCluster", AfterSeconds: 60}),
		jobSpec(func(s *jobs) {
			s.StartDeadlineSeconds, s.ActiveDeadlineSeconds, s.TTLSecondsAfterFinished = ptr(int32(1)), ptr(int32(2)), ptr(int32(0))
			s.Retry.Limit, s.Retry.Scope, s.Retry.InfrastructureLimit, s.Retry.AttemptDeadlineSeconds = 3, "Cluster", ptr(int32(9)), ptr(int32(1))
		}),
	)},
	{Name: "a job that is not to run", Edit: stops("true")},
	{Name: "a job that is not to stop", Edit: stops("false")},
	{Name: "a job stopped while it runs", Before: func(*job) {}, Edit: stops("true")},
	{Name: "a job's name of 63", Edit: jobNamed(long(63))},
	{Name: "a job's name of 64", Rule: "job-name", Edit: jobNamed(long(64))},
	{Name: "a job's name with a digit first", Rule: "job-name", Edit: jobNamed("1a")},
	{Name: "no cluster", Rule: "job-where", Edit: jobSpec(func(s *jobs) { s.ClusterRef, s.ClusterTemplate = nil, nil })},
	{Name: "two clusters", Rule: "job-where", Edit: both(ownCluster, jobSpec(func(s *jobs) { s.ClusterRef = &v1beta1.ClusterReference{Name: "demo"} }))},
	{Name: "a cluster without a name", Rule: "required", Edit: onCluster("")},
	{Name: "a cluster's name too long", Rule: "long-text", Edit: onCluster(long(51))},
	{Name: "a cluster's name in capitals", Rule: "home-cluster-name", Edit: onCluster("Demo")},
	{Name: "a job of another manager", Edit: jobManaged("kueue.x-k8s.io/multikueue")},
	{Name: "a job's manager without a domain", Rule: "managed-by", Edit: jobManaged("kueue")},
	{Name: "a job's manager changed", Rule: "job-managed-by-fixed", Before: jobManaged("a.b/c"), Edit: jobManaged("a.b/d")},
	{Name: "a job's default manager said", Before: jobManaged(""), Edit: jobManaged(v1beta1.ManagedByOperator)},
	{Name: "no deadline at all", Rule: "out-of-bounds", Edit: jobSpec(func(s *jobs) { s.ActiveDeadlineSeconds = ptr(int32(0)) })},
	{Name: "again on the same cluster", Edit: retry(func(r *v1beta1.Retry) { r.Limit, r.Scope = 1000, v1beta1.RetryDriver })},
	{Name: "again on a new cluster", Edit: both(ownCluster, retry(func(r *v1beta1.Retry) { r.Scope = v1beta1.RetryCluster }))},
	{Name: "again on a cluster of others", Rule: "retry-scope", Edit: both(onCluster("demo"), retry(func(r *v1beta1.Retry) { r.Scope = v1beta1.RetryCluster }))},
	{Name: "again somewhere", Rule: "unknown-word", Edit: retry(func(r *v1beta1.Retry) { r.Scope = "Anywhere" })},
	{Name: "again too often", Rule: "out-of-bounds", Edit: retry(func(r *v1beta1.Retry) { r.Limit = 1001 })},
	{Name: "a steady back-off", Edit: backoff(ptr(int32(5)), ptr(int32(5)))},
	{Name: "a back-off that falls", Rule: "retry-backoff", Edit: backoff(ptr(int32(6)), ptr(int32(5)))},
	{Name: "the default back-off above the most", Rule: "retry-backoff", Edit: backoff(nil, ptr(int32(9)))},
	{Name: "a back-off above the default most", Rule: "retry-backoff", Edit: backoff(ptr(int32(361)), nil)},
	{Name: "all but one exit code", Edit: onExitCodes(nil, []int32{2})},
	{Name: "exit codes of both sorts", Rule: "retry-exit-codes", Edit: onExitCodes([]int32{1}, []int32{2})},
	{Name: "exit codes of no sort", Rule: "retry-exit-codes", Edit: onExitCodes(nil, nil)},
	{Name: "the exit code of a success", Rule: "out-of-bounds", Edit: onExitCodes([]int32{0}, nil)},
	{Name: "an exit code that is none", Rule: "out-of-bounds", Edit: onExitCodes(nil, []int32{256})},
	{Name: "an exit code twice", Rule: "duplicate", Edit: onExitCodes([]int32{1, 2, 1}, nil)},
}

func words(n int) []string { return strings.Fields(strings.Repeat("a ", n)) }

var commandRows = []jobRow{
	{Name: "nothing to run", Rule: "job-what", Edit: line("")},
	{Name: "two things to run", Rule: "job-what", Edit: jobSpec(func(s *jobs) { s.Entrypoint, s.Command = "a", []string{"b"} })},
	{Name: "a line of characters", Edit: line("python -c 'print(\"ä\\n\")' && echo $HOME | cat\n")},
	{Name: "a line of blanks", Rule: "entrypoint-blank", Edit: line(" \n\t\u00a0")},
	{Name: "a long line", Edit: line(long(32768))},
	{Name: "a line too long", Rule: "long-text", Edit: line(long(32769))},
	{Name: "a line of too many bytes", Rule: "run-size", Edit: line(strings.Repeat("ä", 16385))},
	{Name: "a line with a NUL", Rule: "run-nul", Edit: line("a\x00b")},
	{Name: "a program with empty words", Edit: command("printf", "", "ä\n'\"")},
	{Name: "no program", Rule: "command-program", Edit: command("", "a")},
	{Name: "1024 words", Edit: command(words(1024)...)},
	{Name: "1025 words", Rule: "long-list", Edit: command(words(1025)...)},
	{Name: "a long command", Edit: command(long(10000), long(22762))},
	{Name: "a command too long", Rule: "run-size", Edit: command(long(10000), long(22763))},
	{Name: "a word with a NUL", Rule: "run-nul", Edit: command("a", "\x00")},
	{Name: "a word too long", Rule: "long-text", Edit: command(long(32769))},
}

func numbers(n int) string { return "[" + strings.Repeat("0,", n-1) + "0]" }

// nested is an object in an object, n deep.
func nested(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }

var runtimeEnvRows = []jobRow{
	{Name: "an empty runtime environment", Edit: runtimeEnv(`{}`)},
	{Name: "a runtime environment as a text", Rule: "runtime-env-object", Edit: runtimeEnv(`"pip: [torch]"`)},
	{Name: "a runtime environment with fields of tomorrow", Edit: runtimeEnv(`{"tomorrow":{"a":[1,null,2.5,true]},"config":{"setup_timeout_seconds":60}}`)},
	{Name: "a letter too many in a runtime environment", Rule: "runtime-env-misspelt", Edit: runtimeEnv(`{"pipp":["torch"]}`)},
	{Name: "two letters in the wrong order", Rule: "runtime-env-misspelt", Edit: runtimeEnv(`{"wokring_dir":"s3://b/a.zip"}`)}, //nolint:misspell // on purpose
	{Name: "a field in the manner of Kubernetes", Rule: "runtime-env-misspelt", Edit: runtimeEnv(`{"envVars":{"A":"1"}}`)},
	{Name: "pip in capitals", Rule: "runtime-env-misspelt", Edit: runtimeEnv(`{"PIP":["torch"]}`)},
	{Name: "plugins with names like short ones of Ray's", Edit: runtimeEnv(`{"zip":"a","uv2":"b","pop":"c"}`)},
	{Name: "the name of Ray's own plugin", Edit: runtimeEnv(`{"_nsight":"default"}`)},
	{Name: "fields that are null", Edit: runtimeEnv(`{"pip":null,"conda":null,"working_dir":null,"py_modules":null}`)},
	{Name: "variables of a runtime environment", Edit: runtimeEnv(`{"env_vars":{"A":"1","_b.C-d":""}}`)},
	{Name: "a number as a variable", Rule: "runtime-env-vars", Edit: runtimeEnv(`{"env_vars":{"A":1}}`)},
	{Name: "variables that are null", Rule: "runtime-env-vars", Edit: runtimeEnv(`{"env_vars":null}`)},
	{Name: "variables as a list", Rule: "runtime-env-vars", Edit: runtimeEnv(`{"env_vars":["A=1"]}`)},
	{Name: "archives", Edit: runtimeEnv(`{"working_dir":"https://a.b/c.zip?v=1","py_modules":["s3://b/a.whl","gcs://_ray_pkg_1.zip","file:///a/b.tar.gz"]}`)},
	{Name: "a directory of the image", Edit: runtimeEnv(`{"working_dir":"local:///app"}`)},
	{Name: "a path as a working directory", Rule: "runtime-env-uri", Edit: runtimeEnv(`{"working_dir":"/app"}`)},
	{Name: "here as a working directory", Rule: "runtime-env-uri", Edit: runtimeEnv(`{"working_dir":"."}`)},
	{Name: "a scheme that Ray does not know", Rule: "runtime-env-uri", Edit: runtimeEnv(`{"working_dir":"ftp://a/b.zip"}`)},
	{Name: "a page as a working directory", Rule: "runtime-env-uri", Edit: runtimeEnv(`{"working_dir":"https://a.b/c"}`)},
	{Name: "a wheel as a working directory", Rule: "runtime-env-uri", Edit: runtimeEnv(`{"working_dir":"s3://b/a.whl"}`)},
	{Name: "a path as a module", Rule: "runtime-env-uri", Edit: runtimeEnv(`{"py_modules":["s3://b/a.zip","/app/lib"]}`)},
	{Name: "a module alone", Rule: "runtime-env-uri", Edit: runtimeEnv(`{"py_modules":"s3://b/a.zip"}`)},
	{Name: "requirements", Edit: runtimeEnv(`{"pip":["torch==2.9","-r /app/more.txt"]}`)},
	{Name: "requirements in a file", Edit: runtimeEnv(`{"uv":"/app/requirements.txt"}`)},
	{Name: "requirements with options", Edit: runtimeEnv(`{"pip":{"packages":["torch"],"pip_check":false}}`)},
	{Name: "a conda environment", Edit: runtimeEnv(`{"conda":{"dependencies":["a",{"pip":["b"]}]}}`)},
	{Name: "a conda environment by its name", Edit: runtimeEnv(`{"conda":"base"}`)},
	{Name: "pip and conda", Rule: "runtime-env-installer", Edit: runtimeEnv(`{"pip":["a"],"conda":"base"}`)},
	{Name: "pip and uv", Rule: "runtime-env-installer", Edit: runtimeEnv(`{"pip":["a"],"uv":["a"]}`)},
	{Name: "pip by versions", Rule: "runtime-env-packages", Edit: runtimeEnv(`{"pip":{"torch":"2.9"}}`)},
	{Name: "pip with a number", Rule: "runtime-env-packages", Edit: runtimeEnv(`{"pip":["torch",2.9]}`)},
	{Name: "uv as a switch", Rule: "runtime-env-packages", Edit: runtimeEnv(`{"uv":true}`)},
	{Name: "conda as a list", Rule: "runtime-env-packages", Edit: runtimeEnv(`{"conda":["a"]}`)},
	{Name: "a runtime environment seven deep", Edit: runtimeEnv(nested(8))},
	{Name: "a runtime environment too deep", Rule: "runtime-env-size", Edit: runtimeEnv(nested(9))},
	// Beside the text there are 4 bytes for each of three objects, the key x, and the text.
	{Name: "a large runtime environment", Edit: runtimeEnv(`{"x":"` + long(65536-21) + `"}`)},
	{Name: "a runtime environment too large", Rule: "runtime-env-size", Edit: runtimeEnv(`{"x":"` + long(65536-20) + `"}`)},
	{Name: "1024 packages", Edit: runtimeEnv(`{"pip":[` + strings.Repeat(`"a",`, 1023) + `"b"]}`)},
	{Name: "1025 packages", Rule: "runtime-env-size", Edit: runtimeEnv(`{"pip":[` + strings.Repeat(`"a",`, 1024) + `"b"]}`)},
	{Name: "as many numbers as 64 KiB hold", Edit: runtimeEnv(`{"x":[` + strings.Repeat(numbers(1023)+",", 15) + numbers(1000) + `]}`)},
	{Name: "metadata too large", Rule: "runtime-env-size", Edit: jobMetadata("a", long(65536))},
	{Name: "a variable too large", Rule: "runtime-env-size", Edit: env(corev1.EnvVar{Name: "A", Value: long(65536)})},
}

var variableRows = []jobRow{
	{Name: "variables of a job", Edit: env(corev1.EnvVar{Name: "A", Value: "1"}, corev1.EnvVar{Name: "RAY_DEDUP_LOGS", Value: "0"})},
	{Name: "256 variables", Edit: env(longVariables(256, 1)...)},
	{Name: "257 variables", Rule: "long-list", Edit: env(longVariables(257, 1)...)},
	{Name: "a job's variable twice", Rule: "duplicate", Edit: env(corev1.EnvVar{Name: "A"}, corev1.EnvVar{Name: "A"})},
	{Name: "a variable without a name", Rule: "variable-name", Edit: env(corev1.EnvVar{Value: "1"})},
	{Name: "a variable's name", Rule: "variable-name", Edit: env(corev1.EnvVar{Name: "A=B"})},
	{Name: "the name of a variable of a runtime environment", Rule: "variable-name", Edit: runtimeEnv(`{"env_vars":{"1A":""}}`)},
	{Name: "the variable of the attempt", Rule: "variable-own", Edit: env(corev1.EnvVar{Name: "HELIOSTAT_JOB_ATTEMPT", Value: "7"})},
	{Name: "the variable of the job in a runtime environment", Rule: "variable-own", Edit: runtimeEnv(`{"env_vars":{"HELIOSTAT_JOB_NAME":"x"}}`)},
	{Name: "the variable of the cluster", Rule: "variable-own", Edit: env(corev1.EnvVar{Name: "RAY_ADDRESS", Value: "auto"})},
	{Name: "the variable of a control store", Rule: "variable-own", Edit: env(corev1.EnvVar{Name: "RAY_REDIS_ADDRESS", Value: "redis://redis:6379"})},
	{Name: "the variable of Ray's job", Rule: "variable-own", Edit: env(corev1.EnvVar{Name: "RAY_JOB_CONFIG_JSON_ENV_VAR", Value: "{}"})},
	{Name: "a variable with a NUL", Rule: "run-nul", Edit: env(corev1.EnvVar{Name: "A", Value: "\x00"})},
	{Name: "a variable with a NUL in a runtime environment", Rule: "run-nul", Edit: runtimeEnv(`{"env_vars":{"A":"a\u0000"}}`)},
	{Name: "signs that Ray leaves as they are", Edit: env(corev1.EnvVar{Name: "A", Value: "a$ $5 $$ $(X) {A} ${"})},
	{Name: "the variable of a node in a value", Rule: "variable-expanded", Edit: env(corev1.EnvVar{Name: "A", Value: "x:$PATH"})},
	{Name: "a password with a variable in it", Rule: "variable-expanded", Edit: env(corev1.EnvVar{Name: "A", Value: "pw${A}1"})},
	{Name: "the variable of a node, for Ray to replace", Edit: runtimeEnv(`{"env_vars":{"PATH":"/app:${PATH}"}}`)},
	{Name: "a variable from a Secret", Edit: both(ownCluster, env(fromSecret("TOKEN")))},
	{Name: "a variable from the pod", Edit: both(ownCluster, env(corev1.EnvVar{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}))},
	{Name: "a variable from a Secret on a cluster of others", Rule: "variable-open", Edit: both(onCluster("demo"), env(fromSecret("TOKEN")))},
	{Name: "a variable with a value and a source", Rule: "variable-source", Edit: both(ownCluster, env(fromSecret("TOKEN")), func(j *job) { j.Spec.Env[0].Value = "1" })},
	{Name: "a variable from nowhere", Rule: "variable-source", Edit: both(ownCluster, env(corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{}}))},
	{Name: "a variable from two sources", Rule: "variable-source", Edit: both(ownCluster, env(fromSecret("A")), func(j *job) {
		j.Spec.Env[0].ValueFrom.FieldRef = &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}
	})},
	{Name: "a variable in both places", Rule: "variable-twice", Edit: both(runtimeEnv(`{"env_vars":{"A":"1"}}`), env(corev1.EnvVar{Name: "A"}))},
	{Name: "a secret variable in the defaults of pods", Rule: "variable-in-template", Edit: both(ofCluster(defaults(func(d *v1beta1.PodDefaults) {
		d.Env = []corev1.EnvVar{{Name: "TOKEN"}}
	})), env(fromSecret("TOKEN")))},
	{Name: "a secret variable in the ray container", Rule: "variable-in-template", Edit: both(ofCluster(inRay(func(c *container) {
		c.Env = []corev1.EnvVar{{Name: "TOKEN"}}
	})), env(fromSecret("TOKEN")))},
	{Name: "a secret variable in a sidecar", Edit: both(ofCluster(inSide(func(c *container) { c.Env = []corev1.EnvVar{{Name: "TOKEN"}} })), env(fromSecret("TOKEN")))},
	{Name: "a plain variable in the defaults of pods", Edit: both(ofCluster(defaults(func(d *v1beta1.PodDefaults) {
		d.Env = []corev1.EnvVar{{Name: "A", Value: "1"}}
	})), env(corev1.EnvVar{Name: "A", Value: "2"}))},
	{Name: "as many variables of pods as may be", Edit: both(ofCluster(defaults(func(d *v1beta1.PodDefaults) {
		d.Env = longVariables(255, 1)
	})), env(fromSecret("TOKEN"), corev1.EnvVar{Name: "A"}))},
	{Name: "too many variables of pods", Rule: "variable-room", Edit: both(ofCluster(defaults(func(d *v1beta1.PodDefaults) {
		d.Env = longVariables(255, 1)
	})), env(fromSecret("TOKEN"), fromSecret("OTHER")))},
	{Name: "metadata", Edit: jobMetadata("job_name", "train")},
	{Name: "metadata of ours", Rule: "metadata-own", Edit: jobMetadata("heliostat.dev/payload", "x")},
	{Name: "metadata of Ray's", Rule: "metadata-own", Edit: jobMetadata("job_submission_id", "x")},
}
