package reason

// Why a pod is not ready. The texts say nothing of which pod: Finding.About does.
var (
	Unschedulable = Reason{
		"Unschedulable", Warning, "The scheduler finds no node for the pod. Its words, boiled down: numbers first, then what is wrong with so many nodes.",
		"cannot be scheduled: %s", "Make room, add nodes, or ask for less",
		[]Case{
			{"resources", "Ask for less in size, or add nodes with more %s"},
			{"pods", "Add nodes, or let them take more pods"},
			{"taint", "Add a toleration for %s to podDefaults.tolerations or the template"},
			{"taints", "Add a toleration for the nodes' taints to podDefaults.tolerations or the template"},
			{"selector", "Correct nodeSelector and affinity in the template, or label nodes to match"},
			{"affinity", "Relax the pod affinity or topologySpreadConstraints in the template, or add nodes"},
			{"volume", "Make its volumes available on the nodes that fit"},
			{"ports", "Leave out hostPort and hostNetwork in the template, or add nodes"},
			{"cordoned", "Uncordon a node or add one"},
			{"scheduler", "See whether the scheduler %s runs"},
		},
	}
	VolumeNotReady = Reason{
		"VolumeNotReady", Warning, "A volume cannot be mounted or attached, or what it is made of is missing.",
		"%s", "See the events of the pod and its claims",
		[]Case{
			{"missing", "Create %s, or correct the volume in the template"},
			{"key", "Add the key to %s, or correct the volume in the template"},
			{"claim", "See why claim %s is not bound: its storage class, or a lack of volumes"},
			{"unbound", "See why its PersistentVolumeClaims are not bound: storage class, or a lack of volumes"},
			{"attached", "Use a volume with access mode ReadWriteMany, or wait until the other pod is gone"},
		},
	}
	ImagePullFailed = Reason{
		"ImagePullFailed", Warning, "The kubelet cannot pull an image. The registry's words, boiled down.",
		"image %s cannot be pulled: %s", "Correct the image, or see the events of the pod",
		[]Case{
			{"credentials", "Name a Secret with credentials in podDefaults.imagePullSecrets"},
			{"access", "Correct the image, or name a Secret with credentials in podDefaults.imagePullSecrets"},
			{"missing", "Correct the image"},
			{"name", "Correct the image's name"},
			{"never", "Load it onto the nodes, or change imagePullPolicy"},
			{"network", "See whether the nodes reach the registry"},
			{"rate", "Use credentials in podDefaults.imagePullSecrets or a mirror; it is tried again by itself"},
			{"disk", "Free space on the node"},
			{"platform", "Use an image for the node's architecture"},
			{"signature", "Sign the image, or use one that is"},
		},
	}
	ConfigError = Reason{
		"ConfigError", Warning, "A container cannot be made because something that its variables name is missing, or because its image and securityContext contradict each other.",
		"container %s cannot be made: %s", "Correct the container in the template",
		[]Case{
			{"missing", "Create %s, or correct env and envFrom in the template"},
			{"key", "Add the key to %s, or correct env in the template"},
			{"root", "Set runAsUser in the securityContext of the template to a user other than 0"},
			{"user", "Set runAsUser in the securityContext of the template to a number: the image names its user by a word"},
		},
	}
	StartFailed = Reason{
		"StartFailed", Warning, "A container was made and cannot be started, for instance because its command is not in the image.",
		"container %s cannot be started: %s", "Correct command, mounts or securityContext of the container, or the image", nil,
	}
	SetupFailed = Reason{
		"SetupFailed", Warning, "The node cannot set the pod up: its network, its devices.",
		"cannot be set up on node %s: %s", "See the node's network plugin, container runtime and device plugins", nil,
	}
	NodeRefused = Reason{
		"NodeRefused", Warning, "The kubelet refused the pod that the scheduler had placed, for instance because a device is gone.",
		"node %s refused it (%s): %s", "It is replaced by itself; if this repeats, see the node's devices and resources", nil,
	}
	PodFailed = Reason{
		"PodFailed", Warning, "The pod ended as a whole for a cause that is none of the others, such as activeDeadlineSeconds.",
		"ended as a whole: %s", "Correct the template, unless it was meant to", nil,
	}
	VersionMismatch = Reason{
		"VersionMismatch", Warning, "A worker has another version of Ray or Python than the head; Ray refuses to let it join.",
		"Ray refuses it: the head runs Ray %s and Python %s, this image has Ray %s and Python %s",
		"Use the head's image, or one with the same versions of Ray and, to the patch, Python", nil,
	}
	OutOfMemory = Reason{
		"OutOfMemory", Warning, "The kernel killed a container at its memory limit, or its node ran out of memory.",
		"container %s ran out of memory%s%s", "Raise memory in size or the template",
		[]Case{{"template", "Raise its memory limit in the template"}, {"node", "Give it a memory limit, or add memory to the nodes"}},
	}
	InitFailed = Reason{
		"InitFailed", Warning, "An init container ends with an error.",
		"init container %s ended with exit code %s%s%s", "Correct the init container in the template", nil,
	}
	SidecarFailed = Reason{
		"SidecarFailed", Warning, "A container other than ray ends, and so the pod is not ready.",
		"container %s ended with exit code %s%s%s", "Correct that container in the template", nil,
	}
	CrashLoop = Reason{
		"CrashLoop", Warning, "The ray container ends again and again. Its last log lines are shown.",
		"container %s ended with exit code %s%s%s", "See its log: kubectl logs --previous", nil,
	}
	ProbeFailing = Reason{
		"ProbeFailing", Warning, "A container had been ready and its readiness probe fails now, or it has not become ready within two minutes.",
		"container %s runs and does not answer its probe%s", "See its log and whether it has enough CPU", nil,
	}
	Preempted = Reason{
		"Preempted", Warning, "A pod of higher priority took its place.",
		"was preempted on node %s: %s", "Give it a higher priority with podDefaults.priorityClassName", nil,
	}
	Evicted = Reason{
		"Evicted", Warning, "The kubelet, the eviction API or a drain of its node sent the pod away.",
		"was evicted from node %s: %s", "",
		[]Case{
			{"memory", "Let requests equal limits for memory, so that it is not the first to go"},
			{"storage", "Ask for ephemeral-storage in size, or write less to disk"},
			{"shm", "Raise memory in size: /dev/shm grows with it"},
		},
	}
	NodeLost = Reason{
		"NodeLost", Warning, "The pod's node does not answer or is gone.",
		"its node %s is lost: %s", "", nil,
	}
	SchedulingGated = Reason{
		"SchedulingGated", Progress, "A queue holds the pod back by a scheduling gate, as Kueue does.",
		"held back by scheduling gate %s", "", nil,
	}
	ReadinessGated = Reason{
		"ReadinessGated", Progress, "All containers are ready, and a readiness gate of the template is not.",
		"waits for its readiness gate %s", "", nil,
	}
	ImagePulling = Reason{
		"ImagePulling", Progress, "The kubelet is pulling an image, which may take minutes the first time on a node.",
		"image %s is being pulled on node %s", "", nil,
	}
	InitRunning = Reason{
		"InitRunning", Progress, "An init container has not ended yet.",
		"init container %s is running", "", nil,
	}
	ContainerCreating = Reason{
		"ContainerCreating", Progress, "The pod is on its node and its containers are being made: volumes, network, image.",
		"its containers are being made on node %s", "", nil,
	}
	Preempting = Reason{
		"Preempting", Progress, "The scheduler makes room for the pod by sending pods of lower priority away.",
		"waits for pods of lower priority to leave node %s", "", nil,
	}
	Scheduling = Reason{"Scheduling", Progress, "The scheduler has not decided yet.", "is being scheduled", "", nil}
	Starting   = Reason{"Starting", Progress, "A container runs and has not answered its startup probe yet.", "container %s is starting", "", nil}
)

func pods() Section {
	return Section{"Why a pod is not ready", []Reason{
		VersionMismatch, OutOfMemory, ImagePullFailed, ConfigError, VolumeNotReady, Unschedulable, StartFailed, InitFailed, CrashLoop, SidecarFailed,
		SetupFailed, NodeRefused, PodFailed, NodeLost, Preempted, Evicted, ProbeFailing,
		SchedulingGated, Preempting, Scheduling, ImagePulling, InitRunning, ContainerCreating, Starting, ReadinessGated,
	}}
}
