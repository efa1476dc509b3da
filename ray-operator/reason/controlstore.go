package reason

// What becomes of the store behind a head.
var (
	StoreInUse = Reason{
		"StoreInUse", Warning, "The namespace in the Redis holds the memory of another cluster.",
		"the control store holds the memory of another cluster (%s)",
		"Give this cluster another namespace. If the other one is gone for good: %s", nil,
	}
	StoreDataLost = Reason{
		"StoreDataLost", Warning, "The store does not hold the cluster's memory any more: flushed, emptied, or another in its place.",
		"the control store has lost what it held: %s; a new session begins with fresh workers, as without a store",
		"Find out who emptied it, and restore a backup while the cluster is suspended if you need what was there", nil,
	}
	StoreUnreachable = Reason{
		"StoreUnreachable", Warning, "Nobody answers at the store's address.",
		"the control store at %s does not answer: %s",
		"Start it, or correct its address or the network policies on the way; heads come back by themselves", nil,
	}
	StoreWrongPassword = Reason{
		"StoreWrongPassword", Warning, "The store refuses the user or the password, or takes us for another user.",
		"the control store at %s refuses the credentials: %s",
		"Correct the Secrets that usernameSecret and passwordSecret name; a changed Secret is read within half a minute", nil,
	}
	StoreNotPermitted = Reason{
		"StoreNotPermitted", Warning, "The store's user lacks a permission.",
		"the user %s of the control store at %s may not do what Ray does: %s",
		"Grant it: %s", nil,
	}
	StoreSecretMissing = Reason{
		"StoreSecretMissing", Warning, "A Secret of the store, or a key of it, is not there.",
		"the control store's %s", "Make the Secret with this key, or correct the reference",
		[]Case{{"managed", "Delete StatefulSet %s; both are recreated, and the data stays"}},
	}
	StoreNotTrusted = Reason{
		"StoreNotTrusted", Warning, "The store's certificate is not trusted, or it does not take ours.",
		"the control store at %s cannot be trusted: %s",
		"Correct tls.caSecret, or the server's certificate and its names", nil,
	}
	StoreNotAllowed = Reason{
		"StoreNotAllowed", Warning, "The store, or a server that it leads to, is at an address that the operator does not connect to.",
		"the control store at %s is not asked: %s",
		"Give it an address that pods can reach; an administrator lists allowed ranges in the chart's controlStore.allow", nil,
	}
	StoreUnsupported = Reason{
		"StoreUnsupported", Warning, "Ray cannot work with a Redis of this kind.",
		"the control store at %s cannot serve Ray: %s",
		"Use a single server, a Redis Cluster of one shard, or Sentinels with one primary", nil,
	}
	StoreReadOnly = Reason{
		"StoreReadOnly", Warning, "The store takes no writes.",
		"the control store at %s takes no writes: %s",
		"Point the address at the primary, or mend what keeps it from writing to its disk", nil,
	}
	StoreFull = Reason{
		"StoreFull", Warning, "The store is out of memory.",
		"the control store at %s is out of memory: %s",
		"Raise its maxmemory, or free some", nil,
	}
	StoreSlow = Reason{
		"StoreSlow", Warning, "The store answers, but so late that a head cannot start with it.",
		"the control store at %s takes more than %s for an answer",
		"Find out what slows it; a head that runs goes on, and one that ends comes back when the store is faster", nil,
	}
	StoreVolumeMissing = Reason{
		"StoreVolumeMissing", Warning, "The claim that the store uses does not exist.",
		"the claim %s of the control store is not there", "Make it, or correct existingClaim", nil,
	}
	VolumeHeldByLostNode = Reason{
		"VolumeHeldByLostNode", Warning, "The head's node is lost, and the store's volume is on it or may still be in use there.",
		"the control store's volume is held by node %s, which is lost; no second head is started",
		"Bring the node back; or, if it is off for good, say so: kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", nil,
	}
	StoreVolumeLost = Reason{
		"StoreVolumeLost", Warning, "The volume behind the store's claim is gone.",
		"the claim %s of the control store has lost its volume", "Restore the volume, or make a new cluster", nil,
	}
	StoreVolumeFull = Reason{
		"StoreVolumeFull", Warning, "The store's volume is full.",
		"the control store's volume is full: %s", "Enlarge the PersistentVolumeClaim %s", nil,
	}
	OldHeadRemains = Reason{
		"OldHeadRemains", Warning, "A head of a former epoch may still write to the store, so no new one is started yet.",
		"head pod %s of a former epoch is not gone, and may still write to the control store",
		"It goes as soon as its node says so. If node %s is off for good, say so: kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", nil,
	}
	StoreRecordFailed = Reason{
		"StoreRecordFailed", Warning, "The operator cannot write down whose keys are in the Redis, and without that no head is started.",
		"the operator cannot write down that this cluster has keys in a Redis: %s",
		"Start the operator with --namespace set to the namespace that it runs in; the chart does",
		[]Case{{"left", "Bring their Redis back, or remove the keys by hand and delete the notes; they say why: kubectl get configmap -n %s -l %s -o yaml"}},
	}
	StoreKeysLeft = Reason{
		"StoreKeysLeft", Warning, "The keys of a cluster are still in a Redis a day after its namespace is gone, and the operator tries no longer.",
		"ComputeCluster %s is gone with its namespace, and its keys are left in %s: %s",
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
		"StoreChecking", Progress, "The store was not asked yet.",
		"the control store is being asked", "", nil,
	}
	HeadRecovering = Reason{
		"HeadRecovering", Progress, "The head comes back with the memory that it had.",
		"head pod %s comes back with what the control store kept; workers go on and rejoin", "", nil,
	}
	StoreServes = Reason{
		"StoreServes", Fine, "The store serves, and holds this cluster's memory.",
		"the control store serves: %s", "", nil,
	}
	HeadRestarted = Reason{
		"HeadRestarted", Fine, "The head's container ended and was started again in its pod; the control store kept its memory.",
		"Ray ended in head pod %s and was started again; workers, actors and placement groups stay, what ran on the head is lost", "", nil,
	}
	HeadRecovered = Reason{
		"HeadRecovered", Fine, "The head is back with the memory that it had.",
		"head pod %s is back with what the control store kept", "", nil,
	}
	HeadWithdrawn = Reason{
		"HeadWithdrawn", Warning, "The head ended because its store is away. Its pod goes, so that no back-off delays the next one.",
		"head pod %s has no control store (%s), and goes until the store serves again", "Workers stay", nil,
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
