package service

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/services"
	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
)

// How often heads are asked.
const (
	// whileMoving: a version that sickens has to be back within 10 s.
	whileMoving = time.Second
	// whileSteady: a proxy that is not well is seen by the operator so late at most; a pod
	// that is not, Kubernetes sees by itself.
	whileSteady = 3 * time.Second
)

// requestConfiguration says what is wanted of the head of a version's cluster.
func (v *provisioner) requestConfiguration(version versionState) {
	cluster, revision := version.cluster, version.configured
	if !canBeAsked(cluster) || revision.ID == "" {
		return
	}
	isCandidate := v.record.isCandidate(version.Version)
	if isCandidate && isUncounted(v.view, v.active) {
		v.addWant(cluster, nil)
		return
	}
	digest, owns := version.digest(), ownsClusters(v.service)
	config := &services.Config{
		Digest: digest, Applications: map[string]json.RawMessage{}, Options: optionsOf(revision, version.capacity, cluster.Head),
		Taken: version.Taken == digest && version.Head == string(cluster.Head.UID), Alone: owns,
		Retry: revision.ID == version.Good || !isCandidate && version.Good == "",
	}
	for _, application := range revision.Config.Applications {
		config.Applications[application.Name] = application.Bounded(version.bounds[application.Name])
	}
	if !owns {
		for _, name := range askedNames(v.record.Applications, cluster, v.seen.Revisions) {
			if config.Applications[name] == nil {
				config.Drop = append(config.Drop, name)
			}
		}
	}
	v.addWant(cluster, config)
}

// askedNames returns the names of the applications that were asked for last, by their hashes, as far as they are known: from
// what the head of a cluster shows, and from the versions that are kept.
func askedNames(hashes []string, cluster *Cluster, kept map[string]Revision) []string {
	var names []string
	add := func(name string) {
		if slices.Contains(hashes, hashOf(name)) {
			names = append(names, name)
		}
	}
	for name := range cluster.Answer.Serving.Applications {
		add(name)
	}
	for _, revision := range kept {
		for _, name := range revision.applicationNames() {
			add(name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// addWant adds what is wanted of a cluster's head.
func (v *provisioner) addWant(cluster *Cluster, config *services.Config) {
	want := Want{Cluster: cluster, Want: services.Want{
		At:     services.Place{Head: cluster.Head.UID, Address: address(cluster.Head, pod.DashboardPort(cluster.Head))},
		Config: config, Close: v.closing[cluster.Name], Every: whileSteady,
	}}
	active := &v.record.Active
	moves := v.record.Candidate != nil || active.Revision != active.Good || active.Renewing != ""
	if moves || config != nil && !config.Taken {
		want.Every = whileMoving
	}
	for _, pod := range v.proxies.probedPods(cluster) {
		want.Probes = append(want.Probes, v.proxies.probeOf(cluster, pod))
	}
	if door, there := v.proxies.candidateDoor(cluster); there {
		want.Probes = append(want.Probes, door)
	}
	if door, there := v.proxies.serviceDoor(); there && !wasReady(v.service) { // nobody looks at its answer otherwise
		want.Probes = append(want.Probes, door)
		want.Every = whileMoving
	}
	v.wants = append(v.wants, want)
}

// optionsOf returns the rest of a configuration, with how much of its capacity Serve must have, and with the host where
// its proxies listen.
func optionsOf(revision Revision, capacity int, head *corev1.Pod) json.RawMessage {
	options := revision.Config.Options
	all := map[string]json.RawMessage{}
	if capacity < 100 && json.Unmarshal(options, &all) == nil { // it was read before
		all["target_capacity"] = json.RawMessage(strconv.Itoa(capacity))
		options, _ = json.Marshal(all) // raw JSON always marshals
	}
	if pod.IsIPv6(head) {
		options = serveconfig.ListenOnIPv6(options)
	}
	return options
}

// askLast keeps on asking a head that gets no more requests.
func (v *provisioner) askLast(cluster *Cluster) {
	if canBeAsked(cluster) {
		v.addWant(cluster, nil)
	}
}
