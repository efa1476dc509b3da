package reason

// What keeps a service from being what its spec asks for.
var (
	ServeCollision = Reason{
		"ServeCollision", Warning, "Two services on one cluster ask for the same application or route. The older one has it.",
		"%s is that of ClusterService %s on ComputeCluster %s, which is older",
		"Choose another name and route_prefix", nil,
	}
	ServeOptionsDiffer = Reason{
		"ServeOptionsDiffer", Warning, "Services on one cluster ask for other options of Serve, which has but one set of them.",
		"ClusterService %s, which is older, asks for other http_options, grpc_options, controller_options or proxy_location on ComputeCluster %s",
		"Ask for the same, or use a cluster of your own", nil,
	}
	ServeConfigRefused = Reason{
		"ServeConfigRefused", Warning, "Serve does not take the serveConfig.",
		"Ray Serve on ComputeCluster %s does not take the serveConfig: %s",
		"Correct spec.serveConfig; what serves goes on meanwhile", nil,
	}
	ApplicationFailed = Reason{
		"ApplicationFailed", Warning, "An application could not be deployed.",
		"application %s on ComputeCluster %s could not be deployed: %s",
		"Correct it, or set the former spec again", nil,
	}
	ApplicationUnhealthy = Reason{
		"ApplicationUnhealthy", Warning, "An application was deployed and is not healthy now.",
		"application %s on ComputeCluster %s is not healthy: %s",
		"See the log of its replicas; Serve starts them again by itself", nil,
	}
	ServeHeadUnauthorized = Reason{
		"ServeHeadUnauthorized", Warning, "The head does not take the cluster's token, or the token's Secret cannot be read.",
		"the head of ComputeCluster %s does not let the operator in: %s",
		"See the cluster's condition UpToDate; the head must run with the token that is in the Secret", nil,
	}
	ServeSilent = Reason{
		"ServeSilent", Warning, "The head or Serve's controller does not answer the operator.",
		"Ray Serve on ComputeCluster %s has not answered since %s: %s",
		"See whether the head is well, and whether a network policy keeps the operator out; what serves goes on meanwhile", nil,
	}
	ServeNotHealthyInTime = Reason{
		"ServeNotHealthyInTime", Warning, "A version did not become healthy within upgrade.healthyDeadlineSeconds.",
		"it was not healthy after %s: %s",
		"See what it waits for, or raise upgrade.healthyDeadlineSeconds", nil,
	}
	ProxyFailing = Reason{
		"ProxyFailing", Warning, "A proxy does not answer, or with an error.",
		"the proxy in pod %s does not answer %s: %s",
		"See the log of the proxy and of the application's replicas", nil,
	}
	NoEndpoints = Reason{
		"NoEndpoints", Warning, "Applications run, and there is no pod whose proxy takes requests.",
		"no pod of ComputeCluster %s takes requests: %s",
		"Serve has a proxy on each node with a replica; give the workers room for one, or set service.headEndpoints", nil,
	}
	UpgradeHeld = Reason{
		"UpgradeHeld", Warning, "The change needs other pods, which upgrade.strategy does not allow.",
		"the change needs other pods, and upgrade.strategy is None",
		"Set it to Surge or InPlace to roll the change out", nil,
	}
	UpgradeNotInPlace = Reason{
		"UpgradeNotInPlace", Warning, "The change needs another cluster, which upgrade.strategy InPlace does not make.",
		"the change cannot be made on ComputeCluster %s: %s",
		"Set upgrade.strategy to Surge for this change, or take it back", nil,
	}
	UpgradeRolledBack = Reason{
		"UpgradeRolledBack", Warning, "What the spec asks for failed, and the former version has the requests again.",
		"version %s was taken back to version %s: %s",
		"Correct the spec, or set the annotation heliostat.dev/retry to try the same again", nil,
	}
	GatewayAPIMissing = Reason{
		"GatewayAPIMissing", Warning, "upgrade.gateway is given, and the API server knows no HTTPRoutes.",
		"Gateway API is not installed",
		"Install its CRDs, or leave upgrade.gateway out; requests to the Service are answered, and upgrades go by endpoints meanwhile", nil,
	}
	GatewayNotAccepted = Reason{
		"GatewayNotAccepted", Warning, "The gateway does not take the service's HTTPRoute, or not all of it.",
		"Gateway %s does not take HTTPRoute %s: %s",
		"See its listeners, which namespaces they allow routes of, and hostnames", nil,
	}
)

func serviceObstacles() Section {
	return Section{"What keeps a service from being what its spec asks for", []Reason{
		ServeCollision, ServeOptionsDiffer, ServeConfigRefused, ApplicationFailed, ApplicationUnhealthy, ServeHeadUnauthorized, ServeSilent,
		ServeNotHealthyInTime, ProxyFailing, NoEndpoints, UpgradeHeld, UpgradeNotInPlace, UpgradeRolledBack, GatewayNotAccepted, GatewayAPIMissing,
	}}
}

// What is under way by itself.
var (
	ServeClusterStarting = Reason{
		"ServeClusterStarting", Progress, "The cluster has no head yet that answers.",
		"ComputeCluster %s has no head yet that answers: %s", "", nil,
	}
	ServeDeploying = Reason{
		"ServeDeploying", Progress, "Serve is about to run the applications.",
		"applications are being deployed on ComputeCluster %s: %s", "", nil,
	}
	ServeProving = Reason{
		"ServeProving", Progress, "Applications run, and their proxies are asked before they get requests.",
		"the proxies of ComputeCluster %s are being asked", "", nil,
	}
	UpgradePreparing = Reason{
		"UpgradePreparing", Progress, "The cluster of another version gets ready; it has no requests yet.",
		"version %s is getting ready on ComputeCluster %s: %s", "", nil,
	}
	UpgradeWaiting = Reason{
		"UpgradeWaiting", Progress, "A former cluster has to be gone before the next one is made.",
		"ComputeCluster %s has to be gone before there is another", "", nil,
	}
	UpgradeShifting = Reason{
		"UpgradeShifting", Progress, "Requests go over to another version, step by step.",
		"version %s on ComputeCluster %s has %s", "", nil,
	}
	UpgradeRouting = Reason{
		"UpgradeRouting", Progress, "The next step of an upgrade waits until the gateway has done the one before.",
		"version %s is to have %s of the requests: %s", "", nil,
	}
	GatewayPending = Reason{
		"GatewayPending", Progress, "The gateway has yet to take the service's HTTPRoute as it is.",
		"Gateway %s has yet to take HTTPRoute %s as it is now",
		"If this stays, see whether the Gateway is there and its controller runs", nil,
	}
	UpgradeBaking = Reason{
		"UpgradeBaking", Progress, "The new version has all requests, and the former one is kept a while to go back to.",
		"version %s has all requests; the former one is kept until %s", "", nil,
	}
	UpgradeReturning = Reason{
		"UpgradeReturning", Progress, "Requests go back to the former version.",
		"requests go back to version %s: %s", "", nil,
	}
	UpgradeInPlace = Reason{
		"UpgradeInPlace", Progress, "Workers are replaced where they are, one at a time; the others answer.",
		"the workers of ComputeCluster %s are replaced where they are, for version %s: %s", "", nil,
	}
	UpgradeRecreating = Reason{
		"UpgradeRecreating", Progress, "All pods are replaced where they are, at once; nothing answers meanwhile.",
		"all pods of ComputeCluster %s are replaced at once, for version %s, and the service does not answer meanwhile: %s", "", nil,
	}
	ConfigChanging = Reason{
		"ConfigChanging", Progress, "Another configuration was given to the applications that run.",
		"version %s is being applied on ComputeCluster %s: %s", "", nil,
	}
	ServiceDraining = Reason{
		"ServiceDraining", Progress, "The service gets no more requests, and those that it has may end.",
		"requests may end until %s", "", nil,
	}
	ServiceLeaving = Reason{
		"ServiceLeaving", Progress, "The service's applications are being taken away.",
		"applications are being taken from ComputeCluster %s", "", nil,
	}
)

func serviceProgress() Section {
	return Section{"What a service has under way by itself", []Reason{
		ServiceLeaving, ServiceDraining, UpgradeReturning, ServeClusterStarting, UpgradeWaiting, UpgradePreparing, ServeDeploying, ServeProving,
		UpgradeRouting, UpgradeShifting, UpgradeBaking, UpgradeRecreating, UpgradeInPlace, ConfigChanging, GatewayPending,
	}}
}

// States of a service that is as it should be, and what is told once.
var (
	ServiceServes = Reason{
		"ServiceServes", Fine, "All applications run, and pods take requests for them.",
		"version %s serves on ComputeCluster %s", "", nil,
	}
	ServiceSuspended = Reason{
		"ServiceSuspended", Fine, "The service is suspended.", "suspended by spec.suspend", "Set it to false to resume", nil,
	}
	GatewayProgrammed = Reason{
		"GatewayProgrammed", Fine, "The gateway has taken the service's HTTPRoute as it is.",
		"Gateway %s leads requests as HTTPRoute %s has it", "", nil,
	}
	UpgradeBegan = Reason{
		"UpgradeBegan", Fine, "An upgrade began.", "version %s is to follow version %s", "", nil,
	}
	UpgradeDone = Reason{
		"UpgradeDone", Fine, "An upgrade ended well.", "version %s follows version %s", "", nil,
	}
	UpgradeWithdrawn = Reason{
		"UpgradeWithdrawn", Fine, "The former spec was set again before an upgrade ended.",
		"version %s was withdrawn; version %s has all requests", "", nil,
	}
	LeaveAbandoned = Reason{
		"LeaveAbandoned", Warning, "Applications could not be taken from a cluster that is not the service's own.",
		"the applications of %s may still run on ComputeCluster %s: %s",
		"Delete them there with the Serve API or serve.delete", nil,
	}
)

func serviceStates() Section {
	return Section{"States of a service", []Reason{
		ServiceServes, ServiceSuspended, GatewayProgrammed, UpgradeBegan, UpgradeDone, UpgradeWithdrawn, LeaveAbandoned,
	}}
}
