package reason

// Why the history of a cluster is kept or not.
var (
	HistoryOff = Reason{
		"HistoryOff", Warning, "The spec asks for history, and Heliostat is installed without it.",
		"nothing is kept of the cluster: spec.history is set, and Heliostat is installed without history",
		"Set the chart's value history.enabled, or remove spec.history", nil,
	}
	HistoryBlocked = Reason{
		"HistoryBlocked", Warning, "Collectors run, and have had no stream to the archiver for a minute.",
		"the collectors of %d of %d pods cannot reach the archiver, such as that of %s",
		"Allow egress from the cluster's pods to port %d of the archiver; nothing is lost while the pods stay", nil,
	}
	HistoryBehind = Reason{
		"HistoryBehind", Warning, "The oldest byte that no archive has is at least a minute old.",
		"bytes wait for the archive for more than a minute: %s",
		"Check the archiver's log; nothing is lost while the pods stay and Ray keeps the files",
		[]Case{
			{"Store", "Check the store, its credentials and the archiver's log; nothing is lost while the pods stay and Ray keeps the files"},
			{"Spool", "Check the store, or raise the chart's value history.spool.size; nothing is lost while the pods stay and Ray keeps the files"},
			{"Rate", "Print less, or raise the chart's values history.limits.podRate and namespaceRate; nothing is lost while the pods stay and Ray keeps the files"},
			{"Away", "Check the archiver's pods; nothing is lost while the cluster's pods stay and Ray keeps the files"},
		},
	}
	HistoryLimited = Reason{
		"HistoryLimited", Warning, "Limits of the installation displaced bytes of the archive.",
		"limits displaced %s of what was kept of the cluster",
		"Print less, lower keepFor, or raise the chart's values history.limits.cluster and history.limits.namespace", nil,
	}
	HistoryPartly = Reason{
		"HistoryPartly", Warning, "Pods run without a collector, such as those from before history was switched on.",
		"%d of %d pods have no collector, so their files are not kept",
		"Replace them at a convenient time; a pod whose directory of sessions is a volume that others share never gets one", nil,
	}
	HistoryKept = Reason{
		"HistoryKept", Fine, "All that must be kept of the cluster is in the archive, or on its way.",
		"the archive keeps %s of the cluster", "", nil,
	}
)

// history has them in the order in which one of them is told.
func history() Section {
	return Section{"History", []Reason{HistoryOff, HistoryBlocked, HistoryBehind, HistoryLimited, HistoryPartly, HistoryKept}}
}
