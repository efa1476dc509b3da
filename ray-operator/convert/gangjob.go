package convert

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

const (
	// labelGroup is the label of Ray's by which a node says of which worker group it is.
	labelGroup = "ray.io/node-group"
	// mostRestarts bounds restarts and retries.
	mostRestarts = 1000
)

// gangJob is a job of Kubeflow's on its way to a ClusterJob with a gang. Each role becomes a role of the gang and, where the job has
// a cluster of its own, a worker group.
type gangJob struct {
	*conversion
	// roles are in the order of the gang's.
	roles []*gangRole
	spec  v1beta1.ClusterJobSpec
	gang  v1beta1.Gang
	// cluster is the job's own, which is not used with --onto.
	cluster *clusterPart
	// images are those that were told of.
	images map[string]bool
	// hosts finds names of the pods that Kubeflow makes, nil where the object's name is not known yet.
	hosts *regexp.Regexp
}

// roleSource is what a role is made of.
type roleSource struct {
	// name is that in the gang, alias how names of pods have it.
	name, alias string
	// at is the path of the role, and templateAt that of its pod template, where that is part of the object.
	at, templateAt string
	template       corev1.PodTemplateSpec
	// container is the name of the one that runs the program; without one it is the first.
	container string
	replicas  int32
	processes int32
	// least is the number of replicas that a round needs, 0 where it needs all.
	least int32
	// restart is its restart policy, and restartAt where that stands.
	restart, restartAt string
	start              v1beta1.RoleStart
	success            v1beta1.SuccessPolicy
	// isDaemon reports that the role runs no program of its own, as workers of MPI, and isGuest that its program runs in the place of
	// such a one, and it has none.
	isDaemon, isGuest bool
	// env is what Kubeflow sets for a framework that gangs do not have, and inPod are variables that stay in the template, as their values
	// come from a Secret or the like.
	env, inPod []corev1.EnvVar
}

// gangRole is a role on its way.
type gangRole struct {
	*gangJob
	roleSource
	// main is the position of the container that runs the program.
	main int
	// image is what the container becomes, after --image.
	image string
	// values are variables of the container with a value that is known, open those whose value a pod finds.
	values map[string]string
	open   map[string]bool
	made   v1beta1.GangRole
	group  v1beta1.WorkerGroup
}

func (c *conversion) newGangJob(framework v1beta1.GangFramework) *gangJob {
	if c.options.Kubeflow.Onto != "" {
		c.use(choiceOnto, "")
	}
	return &gangJob{
		conversion: c, gang: v1beta1.Gang{Framework: framework}, images: map[string]bool{},
		cluster: &clusterPart{conversion: c, at: "spec", spec: &rayClusterSpec{}},
	}
}

// isOnto reports whether the job runs on a cluster that is there.
func (g *gangJob) isOnto() bool { return g.options.Kubeflow.Onto != "" }

// takeRoles converts roles, in the order of the gang.
func (g *gangJob) takeRoles(sources []roleSource) {
	g.findHosts(sources)
	for i := range sources {
		sources[i].processes = max(sources[i].processes, 1)
		g.roles = append(g.roles, &gangRole{gangJob: g, roleSource: sources[i], values: map[string]string{}, open: map[string]bool{}})
	}
	for _, role := range g.roles {
		role.take()
	}
}

// take converts a role.
func (r *gangRole) take() {
	r.made = v1beta1.GangRole{Name: r.name, Replicas: r.replicas, MinReplicas: r.least, Start: r.start, SuccessPolicy: r.success}
	if r.processes > 1 {
		r.made.ProcessesPerReplica = r.processes
	}
	if r.replicas < 1 {
		r.refuse(r.at+".replicas", "a role must have at least one replica; raise it, or take the role out")
		return
	}
	if !r.findMain() {
		return
	}
	if r.isGuest {
		r.takeEnv()
		r.takeCommand()
		r.takeGrace()
		if r.isOnto() {
			r.takeImage()
			r.takeOnto()
		}
		return
	}
	r.takeImage()
	r.takeEnv()
	r.takeCommand()
	r.takeGrace()
	if r.isOnto() {
		r.takeOnto()
	} else {
		r.takeGroup()
	}
	r.takeResources()
}

// findMain finds the container that runs the program.
func (r *gangRole) findMain() bool {
	containers := r.template.Spec.Containers
	if len(containers) == 0 {
		r.refuse(r.templateAt, "no container runs the program; give one")
		return false
	}
	r.main = slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == r.container })
	if r.main < 0 {
		if len(containers) > 1 && r.container != "" {
			r.refuse(r.templateAt+".spec.containers", fmt.Sprintf("%s runs the container %s, and none has that name; rename the one that "+
				"runs the program", r.kind, r.container))
			return false
		}
		r.main = 0
	}
	return true
}

// container is the one that runs the program.
func (r *gangRole) program() *corev1.Container { return &r.template.Spec.Containers[r.main] }

// path is that of a field of the container that runs the program.
func (r *gangRole) path(field string) string {
	return fmt.Sprintf("%s.spec.containers[%d].%s", r.templateAt, r.main, field)
}

// isQueued reports whether Kueue admits the job.
func (g *gangJob) isQueued() bool { return g.meta.Labels[keyQueue] != "" }

// finished returns the ClusterJob.
func (g *gangJob) finished() *v1beta1.ClusterJob {
	g.lift()
	for _, role := range g.roles {
		if role.group.Name != "" && len(g.roles) > 1 {
			role.made.LabelSelector = map[string]string{labelGroup: role.group.Name}
		}
		g.gang.Roles = append(g.gang.Roles, role.made)
	}
	g.spec.Gang = &g.gang
	if g.isOnto() {
		g.spec.ClusterRef = &v1beta1.ClusterReference{Name: g.options.Kubeflow.Onto}
		g.leaveQueue()
	} else {
		g.spec.ClusterTemplate = &v1beta1.ClusterTemplate{Spec: g.own()}
	}
	return &v1beta1.ClusterJob{TypeMeta: typeMeta("ClusterJob"), ObjectMeta: g.meta, Spec: g.spec}
}

// lift writes what all roles have in common once, in the job.
func (g *gangJob) lift() {
	var commands, env []*gangRole
	for _, role := range g.roles {
		if len(role.made.Command) > 0 {
			commands = append(commands, role)
		}
		if !reflect.DeepEqual(role.made.Env, g.roles[0].made.Env) {
			env = append(env, role)
		}
	}
	isSame := func(r *gangRole) bool { return slices.Equal(r.made.Command, commands[0].made.Command) }
	if len(commands) > 0 && !slices.ContainsFunc(commands, func(r *gangRole) bool { return !isSame(r) }) {
		g.spec.Command = commands[0].made.Command
		for _, role := range commands {
			role.made.Command = nil
		}
	}
	if len(env) > 0 || len(g.roles) == 0 || len(g.spec.Env) > 0 {
		return
	}
	g.spec.Env = g.roles[0].made.Env
	for _, role := range g.roles {
		role.made.Env = nil
	}
}

// own is the cluster that the job has to itself.
func (g *gangJob) own() v1beta1.ComputeClusterSpec {
	made := &g.cluster.made
	made.Scheduler = cmp.Or(g.scheduler(), made.Scheduler)
	if len(g.roles) > 0 {
		made.Image = g.roles[0].image
		g.shareClaims()
		g.sharePullSecrets()
	}
	for _, role := range g.roles {
		if role.image != made.Image {
			role.group.Image = role.image
		}
		made.WorkerGroups = append(made.WorkerGroups, role.group)
	}
	if made.RayVersion, _ = rayIn(made.Image); made.RayVersion == "" {
		made.RayVersion = naming.NewestRay
	}
	g.adjust("spec", "clusterTemplate.spec.head", fmt.Sprintf("the job has a cluster of its own, with Ray %s and a head of 1 CPU and "+
		"4Gi beside "+
		"its workers; correct rayVersion if the image holds another, and set head.size for another size", made.RayVersion))
	return *made
}

// sharePullSecrets gives the credentials for registries that a role has to all pods, as the head pulls an image of a role.
func (g *gangJob) sharePullSecrets() {
	var all []corev1.LocalObjectReference
	for _, role := range g.roles {
		template := role.group.Template
		if template == nil || len(template.Spec.ImagePullSecrets) == 0 {
			continue
		}
		for _, secret := range template.Spec.ImagePullSecrets {
			if !slices.Contains(all, secret) {
				all = append(all, secret)
			}
		}
		template.Spec.ImagePullSecrets = nil
		if isBare(template) {
			role.group.Template = nil
		}
		g.adjust(role.templateAt+".spec.imagePullSecrets", "clusterTemplate.spec.podDefaults.imagePullSecrets", "the head and all workers pull with them")
	}
	if len(all) == 0 {
		return
	}
	defaults := cmp.Or(g.cluster.made.PodDefaults, &v1beta1.PodDefaults{})
	defaults.ImagePullSecrets = all
	g.cluster.made.PodDefaults = defaults
}

// leaveQueue is about a job on a cluster that is there, whose quota the cluster holds.
func (g *gangJob) leaveQueue() {
	if !g.isQueued() {
		return
	}
	g.note(Row{Path: "metadata.labels[" + keyQueue + "]", Verdict: Dropped, Differs: true,
		Text: "a job on a cluster that is there is not queued, as the cluster holds the quota; set maxConcurrentJobs in the cluster"})
	delete(g.meta.Labels, keyQueue)
	if len(g.meta.Labels) == 0 {
		g.meta.Labels = nil
	}
}

var (
	rayRepository = regexp.MustCompile(`(^|[-_.])ray([-_.]|$)`)
	rayTag        = regexp.MustCompile(`(^|[-_.])ray[-_.]?([0-9]+\.[0-9]+\.[0-9]+)`)
)

// rayIn reads from the name of an image whether it holds Ray, and which version, empty where the name does not say that. A version that
// clusters cannot have counts as none.
func rayIn(image string) (version string, holds bool) {
	image, _, _ = strings.Cut(image, "@")
	repository, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	version = versionInTag.FindString(tag)
	if found := rayTag.FindStringSubmatch(tag); found != nil {
		version = found[2]
	} else if !rayRepository.MatchString(repository) {
		return "", false
	}
	if isNumber := strings.Contains(version, "."); isNumber && !strings.HasPrefix(version, "2.") || naming.IsRayBefore(version, firstRay) {
		return "", false
	}
	return version, true
}

// firstRay is the minor version of the first Ray 2 that clusters may have.
const firstRay = 52

// takeImage takes the container's image, which must hold Ray.
func (r *gangRole) takeImage() {
	image, path := r.program().Image, r.path("image")
	mapped := r.imageOf(r.program())
	_, isMapped := r.options.Kubeflow.Images[image]
	switch {
	case strings.ContainsFunc(image, func(letter rune) bool { return unicode.IsSpace(letter) || unicode.IsControl(letter) }):
		r.refuse(path, "the name of an image has no space and no end of a line; correct it")
	case r.isOnto() && image != "":
		r.note(Row{Path: path, Verdict: Dropped, Differs: true,
			Text: "processes run in the pods of " + r.options.Kubeflow.Onto + "; the image of these must hold the program"})
	case r.isOnto():
	case isMapped:
		r.keep(path)
		r.image = mapped
	case image == "":
		r.refuse(path, "the container names no image; name one that holds the program and Ray, or pass --image IMAGE")
	default:
		r.image = image
		r.tellImage(path)
	}
}

// tellImage says how an image gets Ray, once for each.
func (r *gangRole) tellImage(path string) {
	if _, holds := rayIn(r.image); holds || r.images[r.image] {
		return
	}
	r.images[r.image] = true
	r.change(path, "image", fmt.Sprintf("the image must hold Ray, whose Python may be another than the program's; build one by these "+
		"three lines, with a USER that is not root, and pass --image %[1]s=NEW\n"+
		"FROM %[1]s\n"+
		"COPY --from=rayproject/ray:%[2]s /home/ray/anaconda3 /home/ray/anaconda3\n"+
		"ENV PATH=$PATH:/home/ray/anaconda3/bin", r.image, naming.NewestRay))
}

// metadataOf is what a pod template keeps of its metadata.
func metadataOf(of metav1.ObjectMeta) bool { return len(of.Labels)+len(of.Annotations) > 0 }
