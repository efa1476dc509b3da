package reason

// Why a pod is not ready. The texts say nothing of which pod: Finding.About does.
var (
	Unschedulable = Reason{
		"Unschedulable", Warning, "The scheduler finds no node for the pod. The message is a summary of the scheduler's: numbers of nodes, each with their problem.",
		"cannot be scheduled: %s", "Free resources, add nodes, or request less",
		[]Case{
			{"resources", "Request less in size, or add nodes with more %s"},
			{"pods", "Add nodes, or raise their limit of pods"},
			{"taint", "Add a toleration for %s to podDefaults.tolerations or the template"},
			{"taints", "Add a toleration for the nodes' taints to podDefaults.tolerations or the template"},
			{"selector", "Correct nodeSelector and affinity in the template, or label nodes to match"},
			{"affinity", "Relax the pod affinity or topologySpreadConstraints in the template, or add nodes"},
			{"volume", "Make its volumes available on the nodes that fit"},
			{"ports", "Remove hostPort and hostNetwork from the template, or add nodes"},
			{"cordoned", "Uncordon a node or add one"},
			{"scheduler", "Check that the scheduler %s runs"},
		},
	}
	VolumeNotReady = Reason{
		"VolumeNotReady", Warning, "A volume cannot be mounted or attached, or its source is missing.",
		"%s", "Check the events of the pod and its claims",
		[]Case{
			{"missing", "Create %s, or correct the volume in the template"},
			{"key", "Add the key to %s, or correct the volume in the template"},
			{"claim", "Check why claim %s is not bound: its storage class, or a lack of volumes"},
			{"unbound", "Check why its PersistentVolumeClaims are not bound: storage class, or a lack of volumes"},
			{"absent", "Create %s, or correct claimName in sharedVolumes"},
			{"deleted", "Wait until it is gone and create it again, or use another claim in sharedVolumes"},
			{"unmade", "Wait until the operator has made an empty one"},
			{"former", "Wait until it is gone; the operator then makes an empty one"},
			{"remade", "Copy its files elsewhere: once no pod uses it, Kubernetes deletes it, and the operator makes an empty one"},
			{"lost", "Restore the PersistentVolume, or use another claim in sharedVolumes"},
			{"lostours", "Restore the PersistentVolume, or delete claim %s: the operator then makes an empty one"},
			{"modes", "Use a claim with access mode ReadWriteMany in sharedVolumes, or remove the worker groups"},
			{"taken", "Rename the shared volume, or name that claim in its claimName"},
			{"attached", "Use a volume with access mode ReadWriteMany, or wait until the other pod is deleted"},
		},
	}
	ImagePullFailed = Reason{
		"ImagePullFailed", Warning, "The kubelet cannot pull an image. The message is a summary of the registry's.",
		"image %s cannot be pulled: %s", "Correct the image, or check the events of the pod",
		[]Case{
			{"credentials", "Name a Secret with credentials in podDefaults.imagePullSecrets"},
			{"access", "Correct the image, or name a Secret with credentials in podDefaults.imagePullSecrets"},
			{"missing", "Correct the image"},
			{"name", "Correct the image's name"},
			{"never", "Load it onto the nodes, or change imagePullPolicy"},
			{"network", "Check that the nodes reach the registry"},
			{"rate", "Use credentials in podDefaults.imagePullSecrets or a mirror; the kubelet retries by itself"},
			{"disk", "Free space on the node"},
			{"platform", "Use an image for the node's architecture"},
			{"signature", "Sign the image, or use one that is"},
			{"collector", "Name a Secret with credentials in podDefaults.imagePullSecrets, or set history.keep to Records, without which no pod needs this image"},
		},
	}
	ConfigError = Reason{
		"ConfigError", Warning, "A container cannot be created, because an object that its variables name is missing, or because its image and securityContext contradict each other.",
		"container %s cannot be created: %s", "Correct the container in the template",
		[]Case{
			{"missing", "Create %s, or correct env and envFrom in the template"},
			{"key", "Add the key to %s, or correct env in the template"},
			{"root", "Set runAsUser in the securityContext of the template to a user other than 0"},
			{"user", "Set runAsUser in the securityContext of the template to a number: the user of the image is not numeric"},
		},
	}
	IPv6Unsupported = Reason{
		"IPv6Unsupported", Warning, "The pod's first address is one of IPv6, and the cluster's Ray does not listen there.",
		"has the address %s, and Ray %s does not work on IPv6",
		"Set rayVersion and image to Ray %s or later, or use a Kubernetes cluster that gives pods an IPv4 address first", nil,
	}
	WrongArchitecture = Reason{
		"WrongArchitecture", Warning, "A container ends with \"exec format error\": the programs of its image are for another architecture than its node's.",
		"container %s cannot run on node %s: image %s is for %s", "Use an image for the node's architecture, or set nodeSelector kubernetes.io/arch to the image's",
		[]Case{{"image", "Use image %s, or set nodeSelector kubernetes.io/arch to %s"}},
	}
	StartFailed = Reason{
		"StartFailed", Warning, "A container was created and cannot be started, for instance because its command is not in the image.",
		"container %s cannot be started: %s", "Correct command, mounts or securityContext of the container, or the image", nil,
	}
	SetupFailed = Reason{
		"SetupFailed", Warning, "The node cannot set up the pod: its network or its devices.",
		"cannot be set up on node %s: %s", "Check the node's network plugin, container runtime and device plugins", nil,
	}
	NodeRefused = Reason{
		"NodeRefused", Warning, "The kubelet refused a pod that was scheduled to its node, for instance because a device is missing.",
		"node %s refused it (%s): %s", "The operator replaces it; if this repeats, check the node's devices and resources", nil,
	}
	PodFailed = Reason{
		"PodFailed", Warning, "The pod ended as a whole for another reason, such as activeDeadlineSeconds.",
		"ended as a whole: %s", "Correct the template, unless this is intended", nil,
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
	SidecarRewritten = Reason{
		"SidecarRewritten", Warning, "A container that runs beside Ray has lost its restartPolicy, as by a webhook older than such containers. The pod waits for it to end, which it never does.",
		"init container %s has no restartPolicy Always any more, so the pod waits for its end", "Update the webhook that changes pods, or exempt the namespace from it", nil,
	}
	InitFailed = Reason{
		"InitFailed", Warning, "An init container ends with an error.",
		"init container %s ended with exit code %s%s%s", "Correct the init container in the template", nil,
	}
	SidecarFailed = Reason{
		"SidecarFailed", Warning, "A container other than ray ends, so the pod is not ready.",
		"container %s ended with exit code %s%s%s", "Correct that container in the template", nil,
	}
	CrashLoop = Reason{
		"CrashLoop", Warning, "The ray container crash-loops. Its last log lines are shown.",
		"container %s ended with exit code %s%s%s", "Check its log: kubectl logs --previous", nil,
	}
	ProbeFailing = Reason{
		"ProbeFailing", Warning, "A container was ready and its readiness probe fails, or it has not become ready within two minutes.",
		"container %s runs and does not answer its probe%s", "Check its log, and that it has enough CPU", nil,
	}
	Preempted = Reason{
		"Preempted", Warning, "The scheduler preempted the pod for one of higher priority.",
		"was preempted on node %s: %s", "Give it a higher priority with podDefaults.priorityClassName", nil,
	}
	Evicted = Reason{
		"Evicted", Warning, "The kubelet, the eviction API or a drain of its node evicted the pod.",
		"was evicted from node %s: %s", "",
		[]Case{
			{"memory", "Set requests equal to limits for memory, so that it is not evicted first"},
			{"storage", "Request ephemeral-storage in size, or write less to disk"},
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
		"ContainerCreating", Progress, "The pod is on its node and its containers are being created: volumes, network, image.",
		"its containers are being created on node %s", "", nil,
	}
	Preempting = Reason{
		"Preempting", Progress, "The scheduler preempts pods of lower priority to make room for the pod.",
		"waits for pods of lower priority to leave node %s", "", nil,
	}
	Scheduling = Reason{"Scheduling", Progress, "The scheduler has not decided yet.", "is being scheduled", "", nil}
	Starting   = Reason{"Starting", Progress, "A container runs and has not answered its startup probe yet.", "container %s is starting", "", nil}
)

func pods() Section {
	return Section{"Why a pod is not ready", []Reason{
		VersionMismatch, OutOfMemory, ImagePullFailed, ConfigError, VolumeNotReady, Unschedulable, IPv6Unsupported, WrongArchitecture, StartFailed, SidecarRewritten, InitFailed,
		CrashLoop, SidecarFailed, SetupFailed, NodeRefused, PodFailed, NodeLost, Preempted, Evicted, ProbeFailing,
		SchedulingGated, Preempting, Scheduling, ImagePulling, InitRunning, ContainerCreating, Starting, ReadinessGated,
	}}
}
