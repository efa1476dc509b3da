package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// longestGrace bounds gracePeriodSeconds of a gang.
const longestGrace = 3600

// metricsPort is where Ray has its metrics in each pod.
const metricsPort = 8080

// ownPorts are names of the ports that Kubeflow gives the processes of a framework.
var ownPorts = []string{"tfjob-port", "pytorchjob-port", "xgboostjob-port", "jaxjob-port", "mpi-port", "mxjob-port", "master"}

// takeGrace takes how long processes may take to end. The longest of all roles counts.
func (r *gangRole) takeGrace() {
	given := r.template.Spec.TerminationGracePeriodSeconds
	if given == nil {
		return
	}
	at := r.templateAt + ".spec.terminationGracePeriodSeconds"
	grace := int32(max(min(*given, longestGrace), 0))
	if r.gang.GracePeriodSeconds == nil || *r.gang.GracePeriodSeconds < grace {
		r.gang.GracePeriodSeconds = &grace
	}
	r.adjust(at, "gang.gracePeriodSeconds", "processes of all roles get the longest time that one of them had")
}

// takeGroup makes the worker group of a role: its template, without what the gang takes of it.
func (r *gangRole) takeGroup() {
	template := r.ownTemplate()
	before := len(r.rows)
	node := r.cluster.node(strings.TrimSuffix(r.templateAt, ".template"), "clusterTemplate.spec.workerGroups[]",
		&rayNode{Template: template})
	for i := range r.rows[before:] {
		r.rows[before+i].Path = r.formerPath(r.rows[before+i].Path)
	}
	r.tellSelectors()
	r.group = v1beta1.WorkerGroup{Name: r.name, Replicas: new(r.replicas), NodeSpec: node.finished()}
	r.takeHostNetwork()
}

// tellSelectors says which fields of the pods count on labels that Kubeflow gives its pods.
func (r *gangRole) tellSelectors() {
	fields := asMap(&r.template.Spec)
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		text, err := json.Marshal(fields[field])
		if err == nil && field != "containers" && strings.Contains(string(text), `"training.kubeflow.org/`) {
			r.change(r.templateAt+".spec."+field, "clusterTemplate.spec.workerGroups[].template", "pods have no labels of training.kubeflow.org "+
				"here; select heliostat.dev/cluster and heliostat.dev/group instead")
		}
	}
}

// takeHostNetwork is about pods on their host's network, to which no NetworkPolicy applies.
func (r *gangRole) takeHostNetwork() {
	template := r.group.Template
	if template == nil || !template.Spec.HostNetwork {
		return
	}
	r.cluster.network().Isolation = v1beta1.Disabled
	if template.Spec.DNSPolicy == "" {
		template.Spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	r.adjust(r.templateAt+".spec.hostNetwork", "clusterTemplate.spec.network.isolation", "NetworkPolicies do not apply to the host's "+
		"network, so that "+
		"isolation is off for the job's cluster; leave hostNetwork out to have it")
}

// ownTemplate is the pod template as a worker group takes it: the program's container first, without the program.
func (r *gangRole) ownTemplate() corev1.PodTemplateSpec {
	template := *r.template.DeepCopy()
	pod := &template.Spec
	pod.Containers = slices.Concat(pod.Containers[r.main:r.main+1], pod.Containers[:r.main], pod.Containers[r.main+1:])
	pod.TerminationGracePeriodSeconds = nil
	of := &pod.Containers[0]
	of.Image, of.Command, of.Args, of.Env = r.image, nil, nil, nil
	for i := range r.inPod {
		of.Env = append(of.Env, *r.inPod[i].DeepCopy())
	}
	renameIn(&template, of.Name)
	of.Ports = slices.DeleteFunc(of.Ports, func(p corev1.ContainerPort) bool { return slices.Contains(ownPorts, p.Name) })
	for i, port := range r.program().Ports {
		if port.ContainerPort == metricsPort {
			r.change(fmt.Sprintf("%s[%d]", r.path("ports"), i), "", "Ray has its metrics on port 8080 of the pod; have the program listen on another")
		}
	}
	if len(of.Ports) < len(r.program().Ports) {
		r.drop(r.path("ports"), "the gang gives each process a port")
	}
	if len(of.Ports) == 0 {
		of.Ports = nil
	}
	for _, one := range []struct {
		name  string
		probe **corev1.Probe
	}{{"livenessProbe", &of.LivenessProbe}, {"readinessProbe", &of.ReadinessProbe}, {"startupProbe", &of.StartupProbe}} {
		if *one.probe != nil {
			r.note(Row{Path: r.path(one.name), Verdict: Dropped, Differs: true, Text: "the container runs Ray, which the operator probes itself"})
			*one.probe = nil
		}
	}
	r.tellUsers(r.templateAt+".spec.initContainers", pod.InitContainers, -1)
	r.tellUsers(r.templateAt+".spec.containers", r.template.Spec.Containers, r.main)
	return template
}

// tellUsers is about containers beside the program's, whose images may have root as their user, which no pod of a cluster runs as.
func (r *gangRole) tellUsers(path string, containers []corev1.Container, program int) {
	if of := r.template.Spec.SecurityContext; of != nil && of.RunAsUser != nil {
		return
	}
	for i := range containers {
		if of := containers[i].SecurityContext; i == program || of != nil && of.RunAsUser != nil {
			continue
		}
		r.change(fmt.Sprintf("%s[%d].securityContext.runAsUser", path, i), "", "pods of a cluster do not run as root: "+
			"set a user other than 0 where the image of container "+containers[i].Name+" names none")
	}
}

// annotationsOfContainers are prefixes of annotations that end with the name of a container.
var annotationsOfContainers = []string{
	"container.apparmor.security.beta.kubernetes.io/", "container.seccomp.security.alpha.kubernetes.io/",
}

// annotationsWithContainer are annotations whose value is the name of a container.
var annotationsWithContainer = []string{"kubectl.kubernetes.io/default-container", "kubectl.kubernetes.io/default-logs-container"}

// renameIn has a pod template name the program's container as it is named in the pods of a cluster.
func renameIn(template *corev1.PodTemplateSpec, former string) {
	for _, prefix := range annotationsOfContainers {
		if value, is := template.Annotations[prefix+former]; is && former != v1beta1.ContainerRay {
			delete(template.Annotations, prefix+former)
			template.Annotations[prefix+v1beta1.ContainerRay] = value
		}
	}
	for _, key := range annotationsWithContainer {
		if value, is := template.Annotations[key]; is && value == former {
			template.Annotations[key] = v1beta1.ContainerRay
		}
	}
	for _, of := range fieldsOfContainers(&template.Spec) {
		if of != nil && of.ContainerName == former {
			of.ContainerName = v1beta1.ContainerRay
		}
	}
}

// fieldsOfContainers returns what refers to resources of a container: variables, and files of volumes.
func fieldsOfContainers(pod *corev1.PodSpec) []*corev1.ResourceFieldSelector {
	var found []*corev1.ResourceFieldSelector
	for _, container := range slices.Concat(pod.Containers, pod.InitContainers) {
		for _, e := range container.Env {
			if e.ValueFrom != nil {
				found = append(found, e.ValueFrom.ResourceFieldRef)
			}
		}
	}
	var items []corev1.DownwardAPIVolumeFile
	for _, volume := range pod.Volumes {
		if volume.DownwardAPI != nil {
			items = append(items, volume.DownwardAPI.Items...)
		}
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.DownwardAPI != nil {
				items = append(items, source.DownwardAPI.Items...)
			}
		}
	}
	for _, item := range items {
		found = append(found, item.ResourceFieldRef)
	}
	return found
}

// formerPath is the path of a field in the template that went in, where the program's container may not be the first.
func (r *gangRole) formerPath(path string) string {
	before := r.templateAt + ".spec.containers["
	rest, is := strings.CutPrefix(path, before)
	if !is || r.main == 0 {
		return path
	}
	var number int
	if n, err := fmt.Sscanf(rest, "%d]", &number); n != 1 || err != nil {
		return path
	}
	_, after, _ := strings.Cut(rest, "]")
	switch {
	case number == 0:
		number = r.main
	case number <= r.main:
		number--
	}
	return fmt.Sprintf("%s%d]%s", before, number, after)
}

// takeResources says what a replica reserves of Ray: CPUs and accelerators of its container.
func (r *gangRole) takeResources() {
	of := r.program()
	r.made.Resources = map[string]resource.Quantity{}
	if cpu, sized := amount(of, corev1.ResourceCPU); sized && !cpu.IsZero() {
		r.made.Resources["CPU"] = *resource.NewQuantity(cpu.Value(), resource.DecimalSI) // a fraction counts as a whole one
	}
	for _, name := range slices.Sorted(maps.Keys(of.Resources.Limits)) {
		of := of.Resources.Limits[name]
		if kind := naming.Accelerator(name); kind != "" && !of.IsZero() {
			sum := r.made.Resources[kind]
			sum.Add(*resource.NewQuantity(of.Value(), resource.DecimalSI))
			r.made.Resources[kind] = sum
		}
	}
	if gpus, isSaid := r.group.RayResources[naming.ResourceGPU]; isSaid && !gpus.IsZero() {
		r.made.Resources[naming.ResourceGPU] = gpus // of a device whose name does not say that it is one
	}
	if len(r.made.Resources) > 0 {
		return
	}
	one := *resource.NewQuantity(1, resource.DecimalSI)
	r.made.Resources["CPU"] = one
	if r.isOnto() {
		r.adjust(r.at, "gang.roles[].resources", "each replica reserves one CPU, as its container asks for no CPU and no accelerator")
	}
	if r.isOnto() || len(of.Resources.Limits)+len(of.Resources.Requests) == 0 {
		return // a pod without resources gets one CPU
	}
	if r.group.RayResources == nil {
		r.group.RayResources = map[string]resource.Quantity{}
	}
	r.group.RayResources["CPU"] = one // Ray would count those of the machine, and several replicas would share a pod
}

// Reasons for fields of a pod that a job on an existing cluster does not have.
var ontoTexts = map[string]string{ //nolint:gosec // texts, and no credential
	"volumes":            "processes find the volumes of the cluster's pods; mount what the program needs there",
	"securityContext":    "processes run as the users of the cluster's pods",
	"serviceAccountName": "processes have the service account of the cluster's pods",
	"initContainers":     "no container runs before the processes; do it in the command, or in the template of a worker group",
	"imagePullSecrets":   "the cluster's pods have their images",
}

// places are fields of a pod that say on which nodes it may be.
var places = []string{"nodeSelector", "tolerations", "affinity"}

// takeOnto says what a job on a cluster that is there does not have of a pod.
func (r *gangRole) takeOnto() {
	if metadataOf(r.template.ObjectMeta) {
		r.leave(r.templateAt+".metadata", "the cluster's pods keep their own labels and annotations")
	}
	r.made.LabelSelector = r.options.Kubeflow.Selectors[r.name]
	if len(r.made.LabelSelector) > 0 && !r.isGuest {
		r.use(choiceSelector, r.name)
	}
	for _, field := range fieldsOf(&r.template.Spec) {
		at := r.templateAt + ".spec." + field
		switch {
		case slices.Contains([]string{"containers", "restartPolicy", "terminationGracePeriodSeconds"}, field):
		case !slices.Contains(places, field):
			text := ontoTexts[field]
			if text == "" {
				text = "it is of the cluster's pods; set it in the template of a worker group"
			}
			r.leave(at, text)
		case r.isGuest:
			r.leave(at, guestText)
		case len(r.made.LabelSelector) == 0:
			r.refuse(at, fmt.Sprintf("a place is picked by labels of Ray nodes; pass --label-selector %s=KEY=VALUE with a label that the "+
				"right worker "+
				"group of %s has", r.name, r.options.Kubeflow.Onto))
		default:
			r.drop(at, "--label-selector picks the nodes")
		}
	}
	for i := range r.template.Spec.Containers {
		if i != r.main {
			r.leave(fmt.Sprintf("%s.spec.containers[%d]", r.templateAt, i), "no container runs beside the processes; put it into the template of a "+
				"worker group")
		}
	}
	r.leaveContainer()
	r.leaveResources()
}

const guestText = "the command runs in the place of worker 0, with what that has"

// leaveResources says which resources of the container a role does not reserve.
func (r *gangRole) leaveResources() {
	of := &r.program().Resources
	names := maps.Clone(of.Limits)
	if names == nil {
		names = corev1.ResourceList{}
	}
	maps.Copy(names, of.Requests)
	if r.isGuest && len(names) > 0 {
		r.leave(r.path("resources"), guestText)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		at := fmt.Sprintf("%s[%s]", r.path("resources"), name)
		switch {
		case name == corev1.ResourceCPU || naming.Accelerator(name) != "":
		case !naming.IsDevice(name):
			r.leave(at, "processes share it with all others in the cluster's pods, and reserve none; set the size of the worker group")
		case len(r.made.LabelSelector) > 0:
			r.drop(at, "--label-selector picks the nodes")
		default:
			r.refuse(at, fmt.Sprintf("Ray does not count these devices; pass --label-selector %s=KEY=VALUE with a label of the Ray nodes that "+
				"have them", r.name))
		}
	}
}

// takenOfContainer are fields of a container that a role has, or that were told of.
var takenOfContainer = []string{"name", "image", "command", "args", "env", "envFrom", "resources", "workingDir", "volumeMounts", "imagePullPolicy"}

// leaveContainer says what a role does not have of the container that runs the program.
func (r *gangRole) leaveContainer() {
	for _, field := range fieldsOf(r.program()) {
		switch {
		case field == "ports":
			r.drop(r.path(field), "processes share the network of the cluster's pods, and the gang gives each a port")
		case !slices.Contains(takenOfContainer, field):
			r.leave(r.path(field), "it is of the cluster's pods; set it in the template of a worker group")
		}
	}
}

// leave says that a field has no effect on a cluster that is there.
func (r *gangRole) leave(path, text string) {
	r.note(Row{Path: path, Verdict: Dropped, Differs: true, Text: text})
}

// fieldsOf returns the names of the fields that an object has.
func fieldsOf(object any) []string {
	all := asMap(object)
	maps.DeleteFunc(all, func(_ string, value any) bool { return isEmpty(value) })
	return slices.Sorted(maps.Keys(all))
}

// asMap returns an object as it is in JSON.
func asMap(object any) map[string]any {
	text, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Sprintf("write a %T: %v", object, err)) // it was read from JSON
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		panic(fmt.Sprintf("read a %T: %v", object, err))
	}
	return all
}
