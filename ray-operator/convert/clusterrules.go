package convert

// clusterRules are about the spec of a cluster, wherever it stands.
var clusterRules = []Rule{
	{
		Path: "rayVersion", To: "rayVersion", Verdict: Kept,
		Text: "Where it is missing, it is read from the tag of the head's image, which may be nightly. Ray 2.52 or later is needed.",
	},
	{
		Path: "suspend", To: "suspend", Verdict: Kept,
		Text: "In the cluster of a job or a service it is dropped: suspend the job or the service. With Kueue's " +
			"label it is dropped too: Kueue set it.",
	},
	{
		Path: "managedBy", To: "managedBy", Verdict: Kept,
		Text: "ray.io/kuberay-operator becomes the default; kueue.x-k8s.io/multikueue stays.",
	},
	{Path: "upgradeStrategy.type", To: "upgradeStrategy.type", Verdict: Kept},
	{
		Path: "enableInTreeAutoscaling", To: "autoscaling", Verdict: Kept,
		Text: "The autoscaler is the operator's own and needs no Kubernetes credential.",
	},
	{Path: "headServiceAnnotations", To: "head.service.annotations", Verdict: Kept, Whole: true},

	{
		Path: "authOptions.mode", To: "authentication.mode", Verdict: Changed, Differs: true,
		Text: "Token is the default, and token stays Token. disabled, or nothing, becomes Token too; pass " +
			"--keep-open to keep the cluster open.",
	},
	{Path: "authOptions.secretName", To: "authentication.secretName", Verdict: Kept},
	{
		Path: "authOptions.enableK8sTokenAuth", Verdict: Dropped, Differs: true,
		Text: "Ray's ports take the cluster's token alone. Callers with a Kubernetes token reach clusters through " +
			"Heliostat's server.",
	},

	{
		Path: "autoscalerOptions.idleTimeoutSeconds", To: "autoscaling.idleTimeoutSeconds", Verdict: Kept,
		Text: "0 becomes 1.",
	},
	{Path: "autoscalerOptions.upscalingMode", To: "autoscaling.pace", Verdict: Kept},
	{
		Path: "autoscalerOptions.version", Verdict: Dropped,
		Text: "The autoscaler is the operator's own, of one version, which has groups' priorities and idle times.",
	},
	{
		Path: "autoscalerOptions.image", Verdict: Dropped,
		Text: "The autoscaler is the operator's own program and not Ray's; autoscaling.image names a copy of the " +
			"operator's image.",
	},
	{
		Path: "autoscalerOptions.imagePullPolicy", Verdict: Dropped,
		Text: "The autoscaler's image is pulled as the operator's own.",
	},
	{
		Path: "autoscalerOptions.resources", Verdict: Dropped, Whole: true,
		Text: "The operator's autoscaler takes 50m and 64Mi; set autoscaling.size for more.",
	},
	{
		Path: "autoscalerOptions.securityContext", Verdict: Dropped, Whole: true,
		Text: "The operator's autoscaler runs within pod security restricted; set autoscaling.securityContext to " +
			"narrow that.",
	},
	{
		Path: "autoscalerOptions.env", Verdict: Dropped, Whole: true,
		Text: "The operator's autoscaler reads none of Ray's variables; set autoscaling.env for its own.",
	},
	{
		Path: "autoscalerOptions.envFrom", Verdict: Dropped, Whole: true,
		Text: "The operator's autoscaler reads none of Ray's variables; set autoscaling.env for its own.",
	},
	{
		Path: "autoscalerOptions.volumeMounts", Verdict: Dropped, Whole: true,
		Text: "The operator's autoscaler reads no files of the cluster.",
	},
	{
		Path: "autoscalerOptions.command", Verdict: Dropped, Whole: true,
		Text: "The autoscaler is the operator's own program.",
	},
	{
		Path: "autoscalerOptions.args", Verdict: Dropped, Whole: true,
		Text: "The autoscaler is the operator's own program.",
	},

	{
		Path: "gcsFaultToleranceOptions.backend", To: "controlStore", Verdict: Kept,
		Text: "redis becomes controlStore.redis, rocksdb controlStore.embedded.",
	},
	{
		Path: "gcsFaultToleranceOptions.redisAddress", To: "controlStore.redis.address", Verdict: Kept,
		Text: "redis:// and port 6379 are added where they are missing.",
	},
	{
		Path: "gcsFaultToleranceOptions.redisUsername.value", To: "controlStore.redis.usernameSecret", Verdict: Changed,
		Text: "A Secret beside the cluster takes the value: the spec holds no credential.",
	},
	{
		Path: "gcsFaultToleranceOptions.redisUsername.valueFrom", To: "controlStore.redis.usernameSecret", Verdict: Kept, Whole: true,
		Text: "Only a secretKeyRef is taken.",
	},
	{
		Path: "gcsFaultToleranceOptions.redisPassword.value", To: "controlStore.redis.passwordSecret", Verdict: Changed,
		Text: "A Secret beside the cluster takes the value: the spec holds no credential.",
	},
	{
		Path: "gcsFaultToleranceOptions.redisPassword.valueFrom", To: "controlStore.redis.passwordSecret", Verdict: Kept, Whole: true,
		Text: "Only a secretKeyRef is taken.",
	},
	{
		Path: "gcsFaultToleranceOptions.externalStorageNamespace", To: "controlStore.redis.namespace", Verdict: Kept,
		Text: "In a RayService it is dropped: each cluster of a service has a memory of its own.",
	},
	{
		Path: "gcsFaultToleranceOptions.storage.claimName", To: "controlStore.embedded.existingClaim", Verdict: Kept,
		Text: "In a RayService it is refused: two clusters never share a memory.",
	},
	{Path: "gcsFaultToleranceOptions.storage.size", To: "controlStore.embedded.storage", Verdict: Kept},
	{Path: "gcsFaultToleranceOptions.storage.storageClassName", To: "controlStore.embedded.storageClassName",
		Verdict: Kept},
	{Path: "gcsFaultToleranceOptions.storage.accessModes", To: "controlStore.embedded.accessModes", Verdict: Kept,
		Whole: true},
	{
		Path: "gcsFaultToleranceOptions.storage.subPath", Verdict: Dropped, Differs: true,
		Text: "The volume is the store's alone, from its root. With claimName it is refused, because Ray would find " +
			"another directory.",
	},
	{Path: "gcsFaultToleranceOptions.storage.deletionPolicy", To: "controlStore.embedded.retain", Verdict: Kept},

	{
		Path: "historyServerOptions", Verdict: Dropped, Differs: true, Whole: true,
		Text: "No collector runs beside Ray. Last lines and exit codes are in a job's status; the server reads " +
			"whole outputs while the cluster is there.",
	},
	{
		Path: "tlsOptions.enabled", To: "network.encryption", Verdict: Changed, Differs: true,
		Text: "true becomes Enabled: the operator makes the certificates, and needs no cert-manager. Clients need " +
			"the authority of the Secret NAME-ca.",
	},

	{
		Path: "networkPolicy.mode", To: "network", Verdict: Changed, Differs: true,
		Text: "Isolation is always Enabled. DenyAll and DenyAllEgress give allowTo, to which DNS and the cluster " +
			"itself are added.",
	},
	{
		Path: "networkPolicy.head.ingressRules", To: "network.allowFrom", Verdict: Changed, Differs: true, Whole: true,
		Text: "Numbers of ports become Ray's port names, and the rule holds for all pods of the cluster. A rule " +
			"about another port is refused.",
	},
	{
		Path: "networkPolicy.head.egressRules", To: "network.allowTo", Verdict: Kept, Whole: true,
		Text: "Head and workers have one list. Lists that differ are refused: write a NetworkPolicy that selects " +
			"heliostat.dev/role.",
	},
	{
		Path: "networkPolicy.worker.ingressRules", Verdict: Refused, Whole: true,
		Text: "Workers have no rules of their own; write a NetworkPolicy that selects heliostat.dev/role: worker, " +
			"and leave this out.",
	},
	{
		Path: "networkPolicy.worker.egressRules", To: "network.allowTo", Verdict: Kept, Whole: true,
		Text: "Head and workers have one list. Lists that differ are refused: write a NetworkPolicy that selects " +
			"heliostat.dev/role.",
	},
	{
		Path: "networkPolicy.workerGroups[]", Verdict: Refused, Whole: true,
		Text: "Groups have no rules of their own; write a NetworkPolicy that selects heliostat.dev/group, and leave " +
			"this out.",
	},

	{Path: "headGroupSpec.template", To: "head.template", Verdict: Kept, Whole: true, Text: templateText},
	{Path: "headGroupSpec.rayStartParams", To: "head.rayStartParams", Verdict: Kept, Whole: true, Text: optionsText},
	{Path: "headGroupSpec.resources", To: "head.rayResources", Verdict: Kept, Whole: true},
	{Path: "headGroupSpec.labels", To: "head.labels", Verdict: Kept, Whole: true},
	{Path: "headGroupSpec.serviceType", To: "head.service.type", Verdict: Kept},
	{
		Path: "headGroupSpec.headService", To: "head.service", Verdict: Kept, Whole: true,
		Text: "Type, labels, annotations, further ports and what leads to the Service are taken. Its name is " +
			"NAME-head; selector and Ray's ports are the operator's, and so are the names of those.",
	},
	{
		Path: "headGroupSpec.enableIngress", To: "head.ingress", Verdict: Kept,
		Text: "The Ingress needs a host and authentication.",
	},
	{Path: "headGroupSpec.ingressOptions.host", To: "head.ingress.host", Verdict: Kept},
	{Path: "headGroupSpec.ingressOptions.path", To: "head.ingress.path", Verdict: Kept},
	{Path: "headGroupSpec.ingressOptions.pathType", To: "head.ingress.pathType", Verdict: Kept},
	{Path: "headGroupSpec.ingressOptions.tls[].hosts", To: "head.ingress.additionalHosts", Verdict: Kept, Whole: true},
	{
		Path: "headGroupSpec.ingressOptions.tls[].secretName", To: "head.ingress.tlsSecretName", Verdict: Kept,
		Text: "All hosts have one Secret; several are refused.",
	},

	{
		Path: "workerGroupSpecs[].groupName", To: "workerGroups[].name", Verdict: Kept,
		Text: "Capitals, '_' and '.' become lower-case letters and '-'.",
	},
	{
		Path: "workerGroupSpecs[].replicas", To: "workerGroups[].replicas", Verdict: Kept,
		Text: "Within minReplicas and maxReplicas, as KubeRay counts it.",
	},
	{Path: "workerGroupSpecs[].minReplicas", To: "workerGroups[].minReplicas", Verdict: Kept},
	{
		Path: "workerGroupSpecs[].maxReplicas", To: "workerGroups[].maxReplicas", Verdict: Kept,
		Text: "A group has 10000 workers at most, counted with numOfHosts.",
	},
	{Path: "workerGroupSpecs[].numOfHosts", To: "workerGroups[].hostsPerReplica", Verdict: Kept},
	{
		Path: "workerGroupSpecs[].idleTimeoutSeconds", To: "workerGroups[].idleTimeoutSeconds", Verdict: Kept,
		Text: "0 becomes 1. Without autoscaling it has no effect, and is dropped.",
	},
	{
		Path: "workerGroupSpecs[].priority", To: "workerGroups[].priority", Verdict: Kept,
		Text: "From -1000 to 1000. Without autoscaling it has no effect, and is dropped.",
	},
	{Path: "workerGroupSpecs[].suspend", To: "workerGroups[].suspend", Verdict: Kept},
	{Path: "workerGroupSpecs[].resources", To: "workerGroups[].rayResources", Verdict: Kept, Whole: true},
	{Path: "workerGroupSpecs[].labels", To: "workerGroups[].labels", Verdict: Kept, Whole: true},
	{
		Path: "workerGroupSpecs[].rayStartParams", To: "workerGroups[].rayStartParams", Verdict: Kept, Whole: true,
		Text: optionsText,
	},
	{
		Path: "workerGroupSpecs[].scaleStrategy.workersToDelete", Verdict: Dropped, Whole: true,
		Text: "The pods that it names stay behind. Annotate a worker's pod with heliostat.dev/retire to have it " +
			"drained and removed.",
	},
	{
		Path: "workerGroupSpecs[].template", To: "workerGroups[].template", Verdict: Kept, Whole: true,
		Text: templateText,
	},
}

const (
	templateText = "The first container is named ray, and its image becomes image. What the operator does itself is " +
		"dropped: Ray's ports, " +
		"restartPolicy, a wait for the head, ray stop. Of a volume at /dev/shm the size is kept, by objectStoreMemory. " +
		"RAY_USE_TLS becomes network.encryption, RAY_AUTH_MODE and RAY_AUTH_TOKEN authentication. " +
		"A command of the Ray container is refused."
	optionsText = "Options with a field of their own go there; true becomes a bare option, false leaves it out. " +
		"Addresses, ports and block " +
		"are the operator's and dropped. A value with $ is refused: no shell reads it."
)

// keyRules are about keys of labels and annotations, which KubeRay's users write in either.
var keyRules = []Rule{
	{
		Path: "metadata.labels[kueue.x-k8s.io/queue-name]", To: "metadata.labels", Verdict: Kept,
		Text: "Kueue takes clusters and jobs. Of a RayService it goes to clusterTemplate.metadata.labels.",
	},
	{
		Path: "metadata.labels[kueue.x-k8s.io/priority-class]", To: "metadata.labels", Verdict: Kept,
		Text: "As the queue's name.",
	},
	{Path: "metadata.labels[ray.io/priority-class-name]", To: "podDefaults.priorityClassName", Verdict: Kept},
	{
		Path: "metadata.labels[ray.io/gang-scheduling-enabled]", To: "scheduler", Verdict: Changed, Differs: true,
		Text: "spec.scheduler asks for a gang by the scheduler's name. Where no label names it, set scheduler.name.",
	},
	{
		Path: "metadata.labels[volcano.sh/queue-name]", To: "scheduler", Verdict: Changed, Differs: true,
		Text: "spec.scheduler names Volcano and the queue, and places the cluster as one gang.",
	},
	{
		Path: "metadata.labels[volcano.sh/network-topology-mode]", Verdict: Dropped, Differs: true,
		Text: "Gangs have no topology; ask for one by affinity in the templates.",
	},
	{
		Path: "metadata.labels[volcano.sh/network-topology-highest-tier-allowed]", Verdict: Dropped, Differs: true,
		Text: "Gangs have no topology; ask for one by affinity in the templates.",
	},
	{
		Path: "metadata.labels[yunikorn.apache.org/queue]", To: "scheduler", Verdict: Changed, Differs: true,
		Text: "spec.scheduler names YuniKorn and the queue, and places the cluster as one gang.",
	},
	{
		Path: "metadata.labels[yunikorn.apache.org/app-id]", Verdict: Dropped,
		Text: "The operator gives each cluster an application of its own.",
	},
	{
		Path: "metadata.labels[yunikorn.apache.org/task-groups]", Verdict: Dropped,
		Text: "The operator writes the task groups.",
	},
	{
		Path: "metadata.labels[yunikorn.apache.org/task-group-name]", Verdict: Dropped,
		Text: "The operator writes the task groups.",
	},
	{
		Path: "metadata.labels[kai.scheduler/queue]", To: "scheduler", Verdict: Changed, Differs: true,
		Text: "spec.scheduler names KAI and the queue, and places the cluster as one gang.",
	},
	{
		Path: "metadata.annotations[ray.io/ft-enabled]", To: "controlStore.redis", Verdict: Changed,
		Text: "RAY_REDIS_ADDRESS, REDIS_USERNAME and REDIS_PASSWORD of the head become controlStore.redis.",
	},
	{
		Path: "metadata.annotations[ray.io/external-storage-namespace]", To: "controlStore.redis.namespace", Verdict: Kept,
		Text: "Of a RayService it is dropped: each cluster of a service has a memory of its own.",
	},
	{
		Path: "metadata.annotations[ray.io/gcs-ft-deletion-timeout]", Verdict: Dropped,
		Text: "Nothing holds up a deletion; keys in a Redis are swept afterwards.",
	},
	{
		Path: "metadata.annotations[ray.io/overwrite-container-cmd]", Verdict: Refused,
		Text: "The operator starts Ray. Pass options by rayStartParams, do the rest in an init container, and take " +
			"the annotation and the command out.",
	},
	{
		Path: "metadata.annotations[ray.io/enable-serve-service]", Verdict: Dropped, Differs: true,
		Text: "A cluster alone has no Service for Serve: write a ClusterService with clusterRef. The head's Service " +
			"has port 8000.",
	},
	{
		Path: "metadata.annotations[ray.io/initializing-timeout]", To: "upgradeStrategy.healthyDeadlineSeconds", Verdict: Changed, Differs: true,
		Text: "A version that is not healthy in time is taken back; nothing has to be deleted and made again.",
	},
	{
		Path: "metadata.annotations[ray.io/disable-provisioned-head-restart]", Verdict: Dropped, Differs: true,
		Text: "A lost head ends the attempt of its job; retry says whether another follows.",
	},
	{Path: "metadata.labels[ray.io/*]", Verdict: Dropped, Text: "KubeRay's own marks mean nothing to Heliostat."},
}
