package reason

// States of a control store.
var (
	StoreInUse = Reason{
		"StoreInUse", Warning, "The namespace in the Redis holds the data of another cluster.",
		"the control store holds the data of another cluster (%s)",
		"Give this cluster another namespace. If the other cluster is permanently gone: %s", nil,
	}
	StoreDataLost = Reason{
		"StoreDataLost", Warning, "The store has lost the cluster's data: it was flushed, emptied or replaced.",
		"the control store has lost its data: %s; a new session starts with new workers, as without a store",
		"Find the cause, and restore a backup while the cluster is suspended if you need the data", nil,
	}
	StoreUnreachable = Reason{
		"StoreUnreachable", Warning, "The store does not answer at its address.",
		"the control store at %s does not answer: %s",
		"Start it, or correct its address or the network policies; heads recover by themselves", nil,
	}
	StoreWrongPassword = Reason{
		"StoreWrongPassword", Warning, "The store refuses the user or the password, or authenticates another user.",
		"the control store at %s refuses the credentials: %s",
		"Correct the Secrets that usernameSecret and passwordSecret name; a changed Secret is read within half a minute", nil,
	}
	StoreNotPermitted = Reason{
		"StoreNotPermitted", Warning, "The store's user lacks a permission.",
		"the user %s of the control store at %s lacks permissions that Ray needs: %s",
		"Grant it: %s", nil,
	}
	StoreSecretMissing = Reason{
		"StoreSecretMissing", Warning, "A Secret of the store, or a key of it, does not exist.",
		"the control store's %s", "Create the Secret with this key, or correct the reference",
		[]Case{{"managed", "Delete StatefulSet %s; both are recreated, and the data stays"}},
	}
	StoreNotTrusted = Reason{
		"StoreNotTrusted", Warning, "The store's certificate is not trusted, or the store does not accept ours.",
		"the control store at %s cannot be trusted: %s",
		"Correct tls.caSecret, or the server's certificate and its names", nil,
	}
	StoreNotAllowed = Reason{
		"StoreNotAllowed", Warning, "The store, or a server that it refers to, has an address that the operator must not connect to.",
		"the operator must not connect to the control store at %s: %s",
		"Give it an address that pods can reach; an administrator lists allowed ranges in the chart's controlStore.allow", nil,
	}
	StoreUnsupported = Reason{
		"StoreUnsupported", Warning, "Ray cannot work with a Redis of this kind.",
		"the control store at %s cannot serve Ray: %s",
		"Use a single server, a Redis Cluster of one shard, or Sentinels with one primary", nil,
	}
	StoreReadOnly = Reason{
		"StoreReadOnly", Warning, "The store accepts no writes.",
		"the control store at %s accepts no writes: %s",
		"Point the address at the primary, or fix what keeps it from writing to its disk", nil,
	}
	StoreFull = Reason{
		"StoreFull", Warning, "The store is out of memory.",
		"the control store at %s is out of memory: %s",
		"Raise its maxmemory, or free memory", nil,
	}
	StoreSlow = Reason{
		"StoreSlow", Warning, "The store answers too late for a head to start with it.",
		"the control store at %s takes more than %s to answer",
		"Find what slows it down; a running head continues, and a lost one recovers when the store is faster", nil,
	}
	StoreVolumeMissing = Reason{
		"StoreVolumeMissing", Warning, "The claim that the store uses does not exist.",
		"the claim %s of the control store does not exist", "Create it, or correct existingClaim", nil,
	}
	VolumeHeldByLostNode = Reason{
		"VolumeHeldByLostNode", Warning, "The head's node is lost, and the store's volume is on it or may still be in use there.",
		"the control store's volume is held by node %s, which is lost; no second head is started",
		"Restore the node; or, if it is permanently off, taint it: kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", nil,
	}
	StoreVolumeLost = Reason{
		"StoreVolumeLost", Warning, "The volume behind the store's claim is gone.",
		"the claim %s of the control store has lost its volume", "Restore the volume, or create a new cluster", nil,
	}
	StoreVolumeFull = Reason{
		"StoreVolumeFull", Warning, "The store's volume is full.",
		"the control store's volume is full: %s", "Enlarge the PersistentVolumeClaim %s", nil,
	}
	OldHeadRemains = Reason{
		"OldHeadRemains", Warning, "A head of an earlier epoch may still write to the store, so no new one is started yet.",
		"head pod %s of an earlier epoch still exists, and may still write to the control store",
		"It is removed when its node confirms its end. If node %s is permanently off, taint it: kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", nil,
	}
	StoreRecordFailed = Reason{
		"StoreRecordFailed", Warning, "The operator cannot record which cluster has keys in the Redis, and starts no head without that record.",
		"the operator cannot record that this cluster has keys in a Redis: %s",
		"Start the operator with --namespace set to the namespace that it runs in; the chart does",
		[]Case{{"left", "Restore their Redis, or remove the keys by hand and delete the notes, which say why: kubectl get configmap -n %s -l %s -o yaml"}},
	}
	StoreKeysLeft = Reason{
		"StoreKeysLeft", Warning, "The keys of a cluster are still in a Redis a day after its namespace was deleted, and the operator no longer retries.",
		"ComputeCluster %s was deleted with its namespace, and its keys remain in %s: %s",
		"Remove them by hand: %s", nil,
	}
	StoreLoading = Reason{
		"StoreLoading", Progress, "The store has just started and reads its data.",
		"the control store at %s reads its data from disk", "", nil,
	}
	StoreStarting = Reason{
		"StoreStarting", Progress, "The managed store starts.",
		"the control store starts: %s", "", nil,
	}
	StoreVolumePending = Reason{
		"StoreVolumePending", Progress, "The store's volume is not bound yet.",
		"the claim %s of the control store is not bound yet", "If it stays so, see kubectl describe pvc %s", nil,
	}
	StoreChecking = Reason{
		"StoreChecking", Progress, "The store was not checked yet.",
		"the control store is being checked", "", nil,
	}
	HeadRecovering = Reason{
		"HeadRecovering", Progress, "The head recovers with its stored state.",
		"head pod %s recovers from the control store; workers keep running and rejoin", "", nil,
	}
	StoreServes = Reason{
		"StoreServes", Fine, "The store serves, and holds this cluster's data.",
		"the control store serves: %s", "", nil,
	}
	HeadRestarted = Reason{
		"HeadRestarted", Fine, "The head's container restarted in its pod; the control store kept its state.",
		"Ray restarted in head pod %s; workers, actors and placement groups stay, work on the head is lost", "", nil,
	}
	HeadRecovered = Reason{
		"HeadRecovered", Fine, "The head has recovered with its stored state.",
		"head pod %s has recovered from the control store", "", nil,
	}
	HeadWithdrawn = Reason{
		"HeadWithdrawn", Warning, "The head ended because its store is unavailable. Its pod is deleted, so that no back-off delays the next one.",
		"head pod %s has no control store (%s), and is removed until the store serves again", "Workers stay", nil,
	}
)

func controlStore() Section {
	return Section{"The control store", []Reason{
		StoreInUse, StoreDataLost, StoreSecretMissing, StoreUnreachable, StoreWrongPassword, StoreNotPermitted, StoreNotTrusted, StoreNotAllowed,
		StoreUnsupported, StoreReadOnly, StoreFull, StoreSlow, StoreVolumeMissing, VolumeHeldByLostNode, StoreVolumeLost, StoreVolumeFull,
		StoreRecordFailed, StoreKeysLeft, OldHeadRemains, HeadWithdrawn, StoreLoading, StoreStarting, StoreVolumePending, StoreChecking, HeadRecovering, StoreServes,
		HeadRestarted, HeadRecovered,
	}}
}
