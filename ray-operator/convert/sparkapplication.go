package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// sparkPart is a SparkApplication on its way.
type sparkPart struct {
	*gangJob
	app *sparkSpec
	// conf are the settings that stay, without what fields of the application or of a gang say.
	conf map[string]string
	// allocationAt is where executors are said to follow demand.
	allocationAt string
	// first is the position of the first argument among the words of the command.
	first int
	// places are where the variables of each role stand, by the role's name.
	places map[string][]string
}

// sparkApplication converts a SparkApplication.
func sparkApplication(c *conversion, spec *sparkSpec) runtime.Object {
	s := &sparkPart{gangJob: c.newGangJob(v1beta1.FrameworkSpark), app: spec, conf: map[string]string{}, places: map[string][]string{}}
	s.allocationAt = "spec.dynamicAllocation.enabled"
	s.takeConf()
	s.takeScheduler()
	driver := s.source(v1beta1.GangRoleDriver, &spec.Driver.sparkPod)
	executor := s.source(v1beta1.GangRoleExecutor, &spec.Executor.sparkPod)
	executor.isDaemon = true
	executor.replicas, executor.least = s.executors()
	of := containerOf(&driver)
	of.Command = s.command()
	s.takeRoles([]roleSource{driver, executor})
	if executor.least > 0 {
		s.gang.MinReplicasAfterSeconds = new(int32(0))
	}
	s.size(v1beta1.GangRoleDriver, &spec.Driver.sparkPod)
	s.size(v1beta1.GangRoleExecutor, &spec.Executor.sparkPod)
	s.takeRun()
	made := s.finished()
	s.moveRows()
	return made
}

// moveRows has rows about the pod templates that were made be about the fields of the application, each once.
func (s *sparkPart) moveRows() {
	rows := s.rows
	s.rows = nil
	for _, row := range rows {
		row.Path = s.formerPath(row.Path)
		s.noted[row.Path] = true
		if !slices.Contains(s.rows, row) {
			s.rows = append(s.rows, row)
		}
	}
}

// takeScheduler takes the scheduler that places all pods or none, and the class of the pods.
func (s *sparkPart) takeScheduler() {
	options := &s.app.BatchSchedulerOptions
	name, isKnown := map[string]v1beta1.SchedulerKind{
		"volcano": v1beta1.SchedulerVolcano, "yunikorn": v1beta1.SchedulerYuniKorn,
	}[strings.ToLower(s.app.BatchScheduler)]
	switch {
	case s.isOnto() || s.app.BatchScheduler == "":
	case isKnown:
		s.cluster.made.Scheduler = &v1beta1.Scheduler{Name: name, Queue: options.Queue}
		s.keep("spec.batchScheduler")
		s.keep("spec.batchSchedulerOptions.queue")
	}
	switch class := options.PriorityClassName; {
	case class == "":
	case s.isOnto():
		s.note(Row{Path: "spec.batchSchedulerOptions.priorityClassName", Verdict: Dropped, Differs: true, Text: "the cluster's pods have a priority of their own"})
	default:
		s.cluster.made.PodDefaults = &v1beta1.PodDefaults{PriorityClassName: class}
	}
}

// executors returns how many there are, and with how many the application starts, 0 where it needs all.
func (s *sparkPart) executors() (replicas, least int32) {
	replicas = 1
	if s.app.Executor.Instances != nil {
		replicas = *s.app.Executor.Instances
	}
	of := &s.app.DynamicAllocation
	if !of.Enabled {
		return replicas, 0
	}
	if of.MaxExecutors != nil {
		replicas = max(*of.MaxExecutors, 1)
	} else if of.InitialExecutors != nil {
		replicas = max(replicas, *of.InitialExecutors)
	}
	least = 1
	if of.MinExecutors != nil {
		least = max(*of.MinExecutors, 1)
	}
	if of.MaxExecutors == nil {
		replicas = max(replicas, least)
	}
	s.change(s.allocationAt, "gang.roles[].minReplicas", fmt.Sprintf("executors do not follow demand: the application starts with %d, and "+
		"more join as places appear, up to %d, until it ends; a cluster of its own has pods for all of them", min(least, replicas), replicas))
	if least >= replicas {
		least = 0
	}
	return replicas, least
}

// literal is a text of which Kubernetes would replace nothing.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// command is how the application is submitted. What Kubernetes replaces in arguments stays to be replaced.
func (s *sparkPart) command() []string {
	app := s.app
	words := []string{"spark-submit"}
	add := func(option, value string) {
		if value != "" {
			words = append(words, option, literal(value))
		}
	}
	add("--class", app.MainClass)
	add("--proxy-user", app.ProxyUser)
	add("--driver-memory", cmp.Or(app.Driver.Memory, sparkMemory))
	add("--executor-memory", cmp.Or(app.Executor.Memory, sparkMemory))
	add("--driver-java-options", app.Driver.JavaOptions)
	for _, list := range []struct {
		option string
		values []string
	}{
		{"--jars", app.Deps.Jars}, {"--files", app.Deps.Files}, {"--py-files", app.Deps.PyFiles}, {"--archives", app.Deps.Archives},
		{"--packages", app.Deps.Packages}, {"--exclude-packages", app.Deps.ExcludePackages}, {"--repositories", app.Deps.Repositories},
	} {
		add(list.option, strings.Join(list.values, ","))
	}
	for _, key := range sortedKeys(s.conf) {
		add("--conf", key+"="+s.conf[key])
	}
	for _, key := range sortedKeys(app.HadoopConf) {
		add("--conf", "spark.hadoop."+key+"="+app.HadoopConf[key])
	}
	file, isLocal := strings.CutPrefix(app.MainApplicationFile, "local:")
	switch {
	case file == "":
		s.refuse("spec.mainApplicationFile", "an application has a file; name it, as a path in the image or an address")
	case isLocal:
		file = "/" + strings.TrimLeft(file, "/")
	}
	words = append(words, literal(file))
	s.first = len(words)
	return append(words, app.Arguments...)
}

// takeRun takes restarts, times and suspension.
func (s *sparkPart) takeRun() {
	limit, path := s.app.RestartPolicy.OnFailureRetries, "spec.restartPolicy.onFailureRetries"
	if limit == nil && s.app.FailureRetries != nil {
		limit, path = s.app.FailureRetries, "spec.failureRetries"
	}
	restart, most := cmp.Or(s.app.RestartPolicy.Type, restartNever), int32(0)
	if restart == restartAlways {
		limit, most = nil, mostRestarts
	}
	for _, role := range s.roles {
		role.restart, role.restartAt = restart, "spec.restartPolicy.type"
	}
	s.takeRestarts(limit, path, restartNever, most)
	if ttl := atMostAYear(s.app.TimeToLiveSeconds); ttl != nil {
		s.spec.TTLSecondsAfterFinished = ttl
	}
	s.spec.Suspend = s.suspended("spec.suspend", s.app.Suspend)
}

// size says what a role reserves of Ray. An executor has as many cores as the role has CPUs.
func (s *sparkPart) size(name string, of *sparkPod) {
	at := slices.IndexFunc(s.roles, func(r *gangRole) bool { return r.name == name })
	role := s.roles[at]
	if slices.ContainsFunc(s.rows, isRefusal) {
		return
	}
	cores := *resource.NewQuantity(int64(coresOf(of)), resource.DecimalSI)
	role.made.Resources["CPU"] = cores
	if s.isOnto() {
		if place := s.placeOf(name, of); place > 0 {
			role.made.Resources["memory"] = *resource.NewQuantity(place, resource.BinarySI)
		}
		return
	}
	if of.CoreRequest == "" && of.CoreLimit == "" {
		return
	}
	if role.group.RayResources == nil {
		role.group.RayResources = map[string]resource.Quantity{}
	}
	role.group.RayResources["CPU"] = cores
}

// coresOf returns how many cores a pod's process has.
func coresOf(of *sparkPod) int32 {
	if of.Cores == nil {
		return 1
	}
	return max(*of.Cores, 1)
}

// formerPath is the path of a field in the application, of one in the pod template that was made of it.
func (s *sparkPart) formerPath(path string) string {
	for name, of := range map[string]*sparkPod{v1beta1.GangRoleDriver: &s.app.Driver.sparkPod, v1beta1.GangRoleExecutor: &s.app.Executor.sparkPod} {
		below, is := strings.CutPrefix(path, "spec."+name+".template.")
		if !is {
			continue
		}
		field, isOfContainer := strings.CutPrefix(below, "spec.containers[0].")
		if isOfContainer {
			return s.pathInContainer(name, field, of)
		}
		if of.Template != nil {
			return path
		}
		return formerOfPod(name, below)
	}
	return path
}

// pathInContainer is the path of a field of the container that runs the program.
func (s *sparkPart) pathInContainer(name, field string, of *sparkPod) string {
	var number int
	plain, _, _ := strings.Cut(field, "[")
	if _, err := fmt.Sscanf(strings.TrimPrefix(field, plain), "[%d]", &number); err != nil {
		number = -1
	}
	switch {
	case plain == "image" && of.Image == "":
		return "spec.image"
	case plain == "command" && number >= s.first:
		return fmt.Sprintf("spec.arguments[%d]", number-s.first)
	case plain == "command":
		return "spec.mainApplicationFile"
	case plain == "env" && number >= 0 && number < len(s.places[name]):
		return s.places[name][number]
	case plain == "resources":
		return "spec." + name
	}
	return "spec." + name + "." + field
}

// formerOfPod is the path of a field of a pod.
func formerOfPod(name, below string) string {
	field := strings.TrimPrefix(below, "spec.")
	switch plain, _, _ := strings.Cut(field, "["); plain {
	case "volumes", "imagePullSecrets":
		return "spec." + field
	case "serviceAccountName":
		return "spec." + name + ".serviceAccount"
	case "securityContext":
		return "spec." + name + ".podSecurityContext"
	case "containers":
		return "spec." + name + ".sidecars"
	case "metadata.labels", "metadata.annotations":
		return "spec." + name + "." + strings.TrimPrefix(field, "metadata.")
	case "metadata":
		return "spec." + name + ".labels"
	}
	return "spec." + name + "." + field
}

// withVariables are the variables of a pod, and where each stands.
func (s *sparkPart) withVariables(name string, of *sparkPod) []corev1.EnvVar {
	var env []corev1.EnvVar
	add := func(at string, e corev1.EnvVar) {
		env = append(env, e)
		s.places[name] = append(s.places[name], "spec."+name+"."+at)
	}
	if of.Template != nil && len(of.Template.Spec.Containers) > 0 {
		for i, e := range of.Template.Spec.Containers[mainOf(of)].Env {
			add(fmt.Sprintf("template.spec.containers[%d].env[%d]", mainOf(of), i), e)
		}
	}
	for _, key := range sortedKeys(of.EnvVars) {
		add(join("envVars", key), corev1.EnvVar{Name: key, Value: literal(of.EnvVars[key])})
	}
	for _, key := range sortedKeys(of.EnvSecretKeys) {
		from := of.EnvSecretKeys[key]
		add(join("envSecretKeyRefs", key), corev1.EnvVar{Name: key, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: from.Name}, Key: from.Key,
		}}})
	}
	for i, e := range of.Env {
		add(fmt.Sprintf("env[%d]", i), e)
	}
	return env
}
