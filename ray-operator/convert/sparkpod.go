package convert

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

const (
	// sparkMemory is what Spark gives driver and executors where nobody says it.
	sparkMemory = "1g"
	// leastOverhead is the least memory of a pod beside that of its JVM.
	leastOverhead = 384 << 20
	// besideRay is the memory that Ray itself has in each pod, besideDriver what Spark's Master has, and besideExecutor what a Worker has.
	besideRay, besideDriver, besideExecutor = 1 << 30, 512 << 20, 256 << 20
	// localDirectory is how volumes are named in which Spark writes while it runs.
	localDirectory = "spark-local-dir-"
	// confDirectory and hadoopDirectory are where pods have configuration of a ConfigMap.
	confDirectory, hadoopDirectory = "/etc/spark/conf", "/etc/hadoop/conf"
)

// sortedKeys returns the keys of a map in their order.
func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

// mainOf returns the position of the container that runs the program in a pod template.
func mainOf(of *sparkPod) int {
	return max(slices.IndexFunc(of.Template.Spec.Containers, func(c corev1.Container) bool { return strings.HasPrefix(c.Name, "spark-kubernetes-") }), 0)
}

// source makes the source of a role: the pod that the operator would make.
func (s *sparkPart) source(name string, of *sparkPod) roleSource {
	made := roleSource{
		name: name, alias: name, at: "spec." + name, templateAt: "spec." + name + ".template", container: "spark-kubernetes-" + name, replicas: 1,
		restartAt: "spec.restartPolicy.type",
	}
	template, container := &made.template, corev1.Container{}
	if of.Template != nil {
		template = of.Template.DeepCopy()
		if at := mainOf(of); len(template.Spec.Containers) > 0 {
			container = template.Spec.Containers[at]
			template.Spec.Containers = slices.Delete(template.Spec.Containers, at, at+1)
		}
		if len(container.Command)+len(container.Args) > 0 {
			container.Command, container.Args = nil, nil
			s.drop("spec."+name+".template.spec.containers", "the gang starts Spark, so that command and args of its container have no place")
		}
		made.template = *template
		template = &made.template
	}
	container.Name, container.Image = made.container, cmp.Or(of.Image, s.app.Image, container.Image)
	container.ImagePullPolicy = cmp.Or(s.app.ImagePullPolicy, container.ImagePullPolicy)
	container.Env = s.withVariables(name, of)
	container.EnvFrom = slices.Concat(container.EnvFrom, of.EnvFrom)
	container.VolumeMounts = slices.Concat(container.VolumeMounts, of.VolumeMounts)
	container.Ports = slices.Concat(container.Ports, of.Ports)
	container.SecurityContext = cmp.Or(of.SecurityContext, container.SecurityContext)
	container.Lifecycle = cmp.Or(of.Lifecycle, container.Lifecycle)
	container.Resources = s.resources(name, of)
	template.Spec.Containers = slices.Concat([]corev1.Container{container}, template.Spec.Containers, of.Sidecars)
	s.takePod(template, of)
	s.takeFiles(name, &made, of)
	for _, volume := range s.app.Volumes {
		template.Spec.Volumes = append(template.Spec.Volumes, volume)
		dropUnmounted(&template.Spec, volume.Name)
	}
	return made
}

// takePod writes what a pod has by the same names, over what its template says.
func (s *sparkPart) takePod(template *corev1.PodTemplateSpec, of *sparkPod) {
	pod := &template.Spec
	template.Labels = over(template.Labels, of.Labels)
	template.Annotations = over(template.Annotations, of.Annotations)
	pod.NodeSelector = over(over(pod.NodeSelector, s.app.NodeSelector), of.NodeSelector)
	pod.Tolerations = slices.Concat(pod.Tolerations, of.Tolerations)
	pod.InitContainers = slices.Concat(pod.InitContainers, of.InitContainers)
	pod.HostAliases = slices.Concat(pod.HostAliases, of.HostAliases)
	pod.Affinity = cmp.Or(of.Affinity, pod.Affinity)
	pod.DNSConfig = cmp.Or(of.DNSConfig, pod.DNSConfig)
	pod.SecurityContext = cmp.Or(of.PodSecurity, pod.SecurityContext)
	pod.TerminationGracePeriodSeconds = cmp.Or(of.GraceSeconds, pod.TerminationGracePeriodSeconds)
	pod.SchedulerName = cmp.Or(of.SchedulerName, pod.SchedulerName)
	pod.PriorityClassName = cmp.Or(of.PriorityClassName, pod.PriorityClassName)
	pod.ServiceAccountName = cmp.Or(of.ServiceAccount, pod.ServiceAccountName)
	pod.HostNetwork = pod.HostNetwork || of.HostNetwork
	for _, name := range s.app.ImagePullSecrets {
		pod.ImagePullSecrets = append(pod.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
}

// over returns the entries of two maps, of which the second one counts more.
func over(below, above map[string]string) map[string]string {
	if len(below)+len(above) == 0 {
		return nil
	}
	made := maps.Clone(below)
	if made == nil {
		made = map[string]string{}
	}
	maps.Copy(made, above)
	return made
}

// filesOfTypes are the variables that point programs to what a Secret of a type has.
var filesOfTypes = map[string]struct{ name, file string }{
	"GCPServiceAccount":     {"GOOGLE_APPLICATION_CREDENTIALS", "key.json"},
	"HadoopDelegationToken": {"HADOOP_TOKEN_FILE_LOCATION", "hadoop.token"},
}

// takeFiles mounts ConfigMaps and Secrets as the operator does.
func (s *sparkPart) takeFiles(name string, to *roleSource, of *sparkPod) {
	at := "spec." + name + "."
	mount := func(at, volume, path string, source corev1.VolumeSource) {
		if s.isOnto() {
			s.refuse(at, fmt.Sprintf("processes find the volumes of the cluster's pods; mount it in the template of a worker group of %s, and take "+
				"it out here", s.options.Kubeflow.Onto))
			return
		}
		container := &to.template.Spec.Containers[0]
		to.template.Spec.Volumes = append(to.template.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: source})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path})
	}
	ofConfigMap := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
	}
	for i, one := range of.ConfigMaps {
		mount(fmt.Sprintf("%sconfigMaps[%d]", at, i), one.Name+"-vol", one.Path, ofConfigMap(one.Name))
	}
	for i, one := range of.Secrets {
		mount(fmt.Sprintf("%ssecrets[%d]", at, i), one.Name+"-vol", one.Path, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: one.Name}})
		if variable, has := filesOfTypes[one.SecretType]; has {
			to.env = append(to.env, corev1.EnvVar{Name: variable.name, Value: strings.TrimRight(one.Path, "/") + "/" + variable.file})
		}
	}
	if from := s.app.SparkConfigMap; from != "" {
		mount("spec.sparkConfigMap", "spark-configmap-volume", confDirectory, ofConfigMap(from))
		to.inPod = append(to.inPod, corev1.EnvVar{Name: "SPARK_CONF_DIR", Value: confDirectory})
	}
	if from := s.app.HadoopConfigMap; from != "" {
		mount("spec.hadoopConfigMap", "hadoop-configmap-volume", hadoopDirectory, ofConfigMap(from))
		to.inPod = append(to.inPod, corev1.EnvVar{Name: "HADOOP_CONF_DIR", Value: hadoopDirectory})
	}
	var local []string
	for _, one := range to.template.Spec.Containers[0].VolumeMounts {
		if strings.HasPrefix(one.Name, localDirectory) && !s.isOnto() {
			local = append(local, one.MountPath)
		}
	}
	if len(local) > 0 {
		to.env = append(to.env, corev1.EnvVar{Name: "SPARK_LOCAL_DIRS", Value: strings.Join(local, ",")})
	}
}

// resources are those of a pod's container. A job on a cluster that is there reserves memory by itself.
func (s *sparkPart) resources(name string, of *sparkPod) corev1.ResourceRequirements {
	made := corev1.ResourceRequirements{Limits: corev1.ResourceList{}, Requests: corev1.ResourceList{}}
	take := func(field, text string, list corev1.ResourceList) {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			s.refuse("spec."+name+"."+field, fmt.Sprintf("%.40q is no number of cores; correct it", text))
			return
		}
		list[corev1.ResourceCPU] = quantity
	}
	take("coreRequest", cmp.Or(of.CoreRequest, strconv.Itoa(int(coresOf(of)))), made.Requests)
	if of.CoreLimit != "" {
		take("coreLimit", of.CoreLimit, made.Limits)
	}
	if of.GPU != nil && of.GPU.Quantity > 0 {
		made.Limits[corev1.ResourceName(of.GPU.Name)] = *resource.NewQuantity(of.GPU.Quantity, resource.DecimalSI)
	}
	place := s.placeOf(name, of)
	if s.isOnto() || place == 0 {
		return made
	}
	memory := *resource.NewQuantity(place+besideRay, resource.BinarySI)
	if limit, err := resource.ParseQuantity(of.MemoryLimit); err == nil && limit.Cmp(memory) > 0 {
		memory = limit
	}
	made.Requests[corev1.ResourceMemory], made.Limits[corev1.ResourceMemory] = memory, memory
	s.adjust("spec."+name+".memory", "clusterTemplate.spec.workerGroups[].template", fmt.Sprintf("the pod has %s: memory and overhead of the JVM, and "+
		"what Ray and Spark's own process need beside it", memory.String()))
	return made
}

// placeOf is the memory of a role's place: that of the JVM, its overhead, and what Spark's own process beside it needs. It is 0 where a
// size was refused.
func (s *sparkPart) placeOf(name string, of *sparkPod) int64 {
	memory := s.bytes("spec."+name+".memory", cmp.Or(of.Memory, sparkMemory))
	beside := int64(besideExecutor)
	if name == v1beta1.GangRoleDriver {
		beside = besideDriver
	}
	if memory == 0 {
		return 0
	}
	if of.MemoryOverhead != "" {
		return memory + s.bytes("spec."+name+".memoryOverhead", of.MemoryOverhead) + beside
	}
	factor := 0.1
	if s.isScript() {
		factor = 0.4 // as Spark has it on Kubernetes, for what runs beside the JVM
	}
	if text := s.app.MemoryOverheadFactor; text != "" {
		var err error
		if factor, err = strconv.ParseFloat(text, 64); err != nil {
			s.refuse("spec.memoryOverheadFactor", "it is no number; write one such as 0.1")
		}
	}
	return memory + max(leastOverhead, int64(factor*float64(memory))>>20<<20) + beside
}

// isScript reports whether the application is in Python or R.
func (s *sparkPart) isScript() bool {
	return slices.Contains([]string{"Python", "R"}, s.app.Type)
}

// sizeOfJVM matches a size as Spark takes it.
var sizeOfJVM = regexp.MustCompile(`^([0-9]{1,9})([kmgtKMGT]?)[bB]?$`)

// bytes reads a size. Without a unit it is in MiB.
func (s *sparkPart) bytes(path, text string) int64 {
	found := sizeOfJVM.FindStringSubmatch(text)
	if found == nil {
		s.refuse(path, fmt.Sprintf("%.40q is no size as Spark has it; write such as 512m or 4g", text))
		return 0
	}
	number, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		return 0
	}
	shift := map[string]int{"k": 10, "": 20, "m": 20, "g": 30, "t": 40}[strings.ToLower(found[2])]
	return number << shift
}
