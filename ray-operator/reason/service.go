package reason

// Problems of a service.
var (
	ServeCollision = Reason{
		"ServeCollision", Warning, "Two services on one cluster request the same application or route. The older one has it.",
		"%s belongs to ClusterService %s on ComputeCluster %s, which is older",
		"Choose another name and route_prefix", nil,
	}
	ServeOptionsDiffer = Reason{
		"ServeOptionsDiffer", Warning, "Services on one cluster request different options of Serve, which has only one set of them.",
		"ClusterService %s, which is older, requests other options of Serve, such as http_options or logging_config, on ComputeCluster %s",
		"Request the same, or use a cluster of your own", nil,
	}
	ServeConfigRefused = Reason{
		"ServeConfigRefused", Warning, "Serve does not accept the serveConfig.",
		"Ray Serve on ComputeCluster %s does not accept the serveConfig: %s",
		"Correct spec.serveConfig; the running applications continue meanwhile", nil,
	}
	ApplicationFailed = Reason{
		"ApplicationFailed", Warning, "An application could not be deployed.",
		"application %s on ComputeCluster %s could not be deployed: %s",
		"Correct it, or restore the previous spec", nil,
	}
	ApplicationUnhealthy = Reason{
		"ApplicationUnhealthy", Warning, "An application was deployed and is not healthy.",
		"application %s on ComputeCluster %s is not healthy: %s",
		"Check the log of its replicas; Serve restarts them by itself", nil,
	}
	ServeHeadUnauthorized = Reason{
		"ServeHeadUnauthorized", Warning, "The head rejects the cluster's token, or the token's Secret cannot be read.",
		"the head of ComputeCluster %s rejects the operator: %s",
		"Check the cluster's condition UpToDate; the head must run with the token in the Secret", nil,
	}
	ServeSilent = Reason{
		"ServeSilent", Warning, "The head or Serve's controller does not answer the operator.",
		"Ray Serve on ComputeCluster %s has not answered since %s: %s",
		"Check the head, and network policies that block the operator; the running applications continue meanwhile", nil,
	}
	ServeNotHealthyInTime = Reason{
		"ServeNotHealthyInTime", Warning, "A version did not become healthy within upgradeStrategy.healthyDeadlineSeconds.",
		"it was not healthy after %s: %s",
		"Check what it waits for, or raise upgradeStrategy.healthyDeadlineSeconds", nil,
	}
	ProxyFailing = Reason{
		"ProxyFailing", Warning, "A proxy does not answer its probe, or answers with an error.",
		"the proxy in pod %s does not answer %s: %s",
		"Check the log of the proxy and of the application's replicas", nil,
	}
	NoEndpoints = Reason{
		"NoEndpoints", Warning, "Applications run, and no pod has a proxy that accepts requests.",
		"no pod of ComputeCluster %s accepts requests: %s",
		"Serve has a proxy on each node with a replica; give the workers room for one, or set service.headEndpoints", nil,
	}
	UpgradeHeld = Reason{
		"UpgradeHeld", Warning, "The change needs other pods, which upgradeStrategy.type does not allow.",
		"the change needs other pods, and upgradeStrategy.type is None",
		"Set it to Surge or InPlace to roll the change out", nil,
	}
	UpgradeNotInPlace = Reason{
		"UpgradeNotInPlace", Warning, "The change needs another cluster, which upgradeStrategy.type InPlace does not create.",
		"the change cannot be made on ComputeCluster %s: %s",
		"Set upgradeStrategy.type to Surge for this change, or revert it", nil,
	}
	UpgradeRolledBack = Reason{
		"UpgradeRolledBack", Warning, "The version of the spec failed, and the previous version receives the requests again.",
		"version %s was rolled back to version %s: %s",
		"Correct the spec, or set the annotation heliostat.dev/retry to retry the same", nil,
	}
	GatewayAPIMissing = Reason{
		"GatewayAPIMissing", Warning, "upgradeStrategy.gateway is set, and the API server does not serve HTTPRoutes.",
		"Gateway API is not installed",
		"Install its CRDs, or leave upgradeStrategy.gateway out; the Service works, and upgrades split requests by endpoints meanwhile", nil,
	}
	GatewayNotAccepted = Reason{
		"GatewayNotAccepted", Warning, "The gateway does not accept the service's HTTPRoute, or not all of it.",
		"Gateway %s does not accept HTTPRoute %s: %s",
		"Check its listeners, the namespaces that they allow routes from, and hostnames", nil,
	}
)

func serviceObstacles() Section {
	return Section{"Problems of a service", []Reason{
		ServeCollision, ServeOptionsDiffer, ServeConfigRefused, ApplicationFailed, ApplicationUnhealthy, ServeHeadUnauthorized, ServeSilent,
		ServeNotHealthyInTime, ProxyFailing, NoEndpoints, UpgradeHeld, UpgradeNotInPlace, UpgradeRolledBack, GatewayNotAccepted, GatewayAPIMissing,
	}}
}

// Progress of a service.
var (
	ServeClusterStarting = Reason{
		"ServeClusterStarting", Progress, "The cluster has no head yet that answers.",
		"ComputeCluster %s has no head yet that answers: %s", "", nil,
	}
	ServeDeploying = Reason{
		"ServeDeploying", Progress, "Serve deploys the applications.",
		"applications are being deployed on ComputeCluster %s: %s", "", nil,
	}
	ServeProving = Reason{
		"ServeProving", Progress, "Applications run, and their proxies are probed before they get requests.",
		"the proxies of ComputeCluster %s are being probed", "", nil,
	}
	UpgradePreparing = Reason{
		"UpgradePreparing", Progress, "The cluster of another version gets ready; it receives no requests yet.",
		"version %s is getting ready on ComputeCluster %s: %s", "", nil,
	}
	UpgradeWaiting = Reason{
		"UpgradeWaiting", Progress, "A previous cluster must be deleted before the next one is created.",
		"ComputeCluster %s must be deleted before the next one is created", "", nil,
	}
	UpgradeShifting = Reason{
		"UpgradeShifting", Progress, "Requests move to another version, step by step.",
		"version %s on ComputeCluster %s has %s", "", nil,
	}
	UpgradeRouting = Reason{
		"UpgradeRouting", Progress, "The next step of an upgrade waits until the gateway has applied the previous one.",
		"version %s will receive %s of the requests: %s", "", nil,
	}
	GatewayPending = Reason{
		"GatewayPending", Progress, "The gateway has not accepted the current HTTPRoute of the service yet.",
		"Gateway %s has not accepted the current HTTPRoute %s yet",
		"If this persists, check that the Gateway exists and its controller runs", nil,
	}
	UpgradeBaking = Reason{
		"UpgradeBaking", Progress, "The new version receives all requests, and the previous one is kept for a rollback.",
		"version %s receives all requests; the previous one is kept until %s", "", nil,
	}
	UpgradeReturning = Reason{
		"UpgradeReturning", Progress, "Requests return to the previous version.",
		"requests return to version %s: %s", "", nil,
	}
	UpgradeInPlace = Reason{
		"UpgradeInPlace", Progress, "Workers are replaced in place, one at a time; the others answer.",
		"the workers of ComputeCluster %s are replaced in place, for version %s: %s", "", nil,
	}
	UpgradeRecreating = Reason{
		"UpgradeRecreating", Progress, "All pods are replaced in place, at once; the service does not answer meanwhile.",
		"all pods of ComputeCluster %s are replaced at once, for version %s, and the service does not answer meanwhile: %s", "", nil,
	}
	ConfigChanging = Reason{
		"ConfigChanging", Progress, "The running applications get another configuration.",
		"version %s is being applied on ComputeCluster %s: %s", "", nil,
	}
	ServiceDraining = Reason{
		"ServiceDraining", Progress, "The service receives no new requests, and requests in flight may end.",
		"requests in flight may end until %s", "", nil,
	}
	ServiceLeaving = Reason{
		"ServiceLeaving", Progress, "The service's applications are being removed.",
		"applications are being removed from ComputeCluster %s", "", nil,
	}
)

func serviceProgress() Section {
	return Section{"Progress of a service", []Reason{
		ServiceLeaving, ServiceDraining, UpgradeReturning, ServeClusterStarting, UpgradeWaiting, UpgradePreparing, ServeDeploying, ServeProving,
		UpgradeRouting, UpgradeShifting, UpgradeBaking, UpgradeRecreating, UpgradeInPlace, ConfigChanging, GatewayPending,
	}}
}

// Good states of a service, and its events.
var (
	ServiceServes = Reason{
		"ServiceServes", Fine, "All applications run, and pods accept requests for them.",
		"version %s serves on ComputeCluster %s", "", nil,
	}
	ServiceSuspended = Reason{
		"ServiceSuspended", Fine, "The service is suspended.", "suspended by spec.suspend", "Set it to false to resume", nil,
	}
	GatewayProgrammed = Reason{
		"GatewayProgrammed", Fine, "The gateway has accepted the current HTTPRoute of the service.",
		"Gateway %s routes requests by HTTPRoute %s", "", nil,
	}
	UpgradeBegan = Reason{
		"UpgradeBegan", Fine, "An upgrade started.", "version %s will replace version %s", "", nil,
	}
	UpgradeDone = Reason{
		"UpgradeDone", Fine, "An upgrade succeeded.", "version %s replaced version %s", "", nil,
	}
	UpgradeWithdrawn = Reason{
		"UpgradeWithdrawn", Fine, "The previous spec was restored before an upgrade ended.",
		"version %s was withdrawn; version %s receives all requests", "", nil,
	}
	LeaveAbandoned = Reason{
		"LeaveAbandoned", Warning, "Applications could not be removed from a shared cluster.",
		"the applications of %s may still run on ComputeCluster %s: %s",
		"Delete them there with the Serve API or serve.delete", nil,
	}
)

func serviceStates() Section {
	return Section{"States of a service", []Reason{
		ServiceServes, ServiceSuspended, GatewayProgrammed, UpgradeBegan, UpgradeDone, UpgradeWithdrawn, LeaveAbandoned,
	}}
}
