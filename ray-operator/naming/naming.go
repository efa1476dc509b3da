// Package naming derives the names, labels and hashes of what belongs to a
// cluster. It is the only package that shortens a name or hashes anything. It also
// has the words that pods of a cluster are built with and rules are judged by: their
// ports, volumes, variables and devices.
//
// In: the cluster's name and UID, and the place of what belongs to it: group, slot,
// epoch. Out: names that are functions of these alone, so that a stale view can ask for
// the same object twice but never for a twin of it.
//
// It is pure. It never looks at what exists, and it never draws a random number.
package naming

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

const (
	// MaxCluster is the longest name of a cluster, in characters: with the suffixes
	// of its Service and Secret it stays within the 63 of a DNS label.
	MaxCluster = 50
	// MaxGroup is the longest name of a worker group, in characters.
	MaxGroup = 40
	// maxLabel is the longest name that holds a slot, in characters. A pod's name is
	// its host name, which the kubelet cuts at 63; a replica's is the value of a label.
	maxLabel = 63
	// shortHash and longHash are lengths in characters of 5 bits each. A name that
	// was cut leans on its hash alone, hence the longer one.
	shortHash, longHash = 5, 13
)

// Place is where a pod sits in its cluster. Its zero slot and group are the head's.
type Place struct {
	Group string
	Slot  int
	Epoch int64
}

// Pod is the name of a pod: <cluster>-<group>-<slot>-<hash>, or
// <cluster>-head-<hash> where the place has no group. The hash covers the cluster's
// UID and the whole place; a name that would be too long is cut, and then carries a
// longer hash, so that different places never share a name.
func Pod(cluster string, uid types.UID, at Place) string {
	base := cluster + "-head"
	if at.Group != "" {
		base = fmt.Sprintf("%s-%s-%d", cluster, at.Group, at.Slot)
	}
	return hashed(base, hash(string(uid), cluster, at.Group, strconv.Itoa(at.Slot), strconv.FormatInt(at.Epoch, 10)))
}

// Claim is the name of the claim that a slot of a group has for one of the group's
// volumeClaimTemplates: <cluster>-<group>-<slot>-<template>-<hash>. No epoch is in
// it, because a claim outlives the pods in its slot.
func Claim(cluster string, uid types.UID, group string, slot int, template string) string {
	base := fmt.Sprintf("%s-%s-%d-%s", cluster, group, slot, template)
	return hashed(base, hash("claim", string(uid), cluster, group, strconv.Itoa(slot), template))
}

// Replica is the name of a set of hosts, <cluster>-<group>-<replica>-<hash>: what Ray
// calls the TPU slice or the GPU domain. It fits into a label's value.
func Replica(cluster string, uid types.UID, group string, replica int) string {
	base := fmt.Sprintf("%s-%s-%d", cluster, group, replica)
	return hashed(base, hash("replica", string(uid), cluster, group, strconv.Itoa(replica)))
}

// hashed ends a name with as much of its digest as it needs: little where the whole
// base stands before it, more where the base had to be cut.
func hashed(base, digest string) string {
	if len(base)+1+shortHash <= maxLabel {
		return base + "-" + digest[:shortHash]
	}
	return strings.TrimRight(base[:maxLabel-1-longHash], "-") + "-" + digest[:longHash]
}

// JobCluster is the name of a cluster that a job makes for itself: <job>-<hash>, of at most
// MaxCluster characters. number counts the job's clusters, from 1.
func JobCluster(job string, uid types.UID, number int32) string {
	digest := hash("job", string(uid), job, strconv.Itoa(int(number)))
	if len(job)+1+shortHash <= MaxCluster {
		return job + "-" + digest[:shortHash]
	}
	return strings.TrimRight(job[:MaxCluster-1-longHash], "-") + "-" + digest[:longHash]
}

// ScheduledJob is the name of the job of a schedule for a time, <schedule>-<minutes since 1970>: a time has one name, so
// that no time starts twice.
func ScheduledJob(schedule string, at time.Time) string {
	return fmt.Sprintf("%s-%d", schedule, at.Unix()/60)
}

// ScheduledTime is the time that the name of a job of a schedule stands for, and reports whether it is such a name.
func ScheduledTime(schedule, job string) (time.Time, bool) {
	minutes, err := strconv.ParseInt(strings.TrimPrefix(job, schedule+"-"), 10, 64)
	at := time.Unix(minutes*60, 0).UTC()
	return at, err == nil && ScheduledJob(schedule, at) == job
}

// ServiceCluster is the name of a cluster that a service makes for itself:
// <service>-<number>-<hash>, of at most MaxCluster characters. number counts the service's
// clusters, from 1.
func ServiceCluster(service string, uid types.UID, number int) string {
	digest := hash("service", string(uid), service, strconv.Itoa(number))
	if base := fmt.Sprintf("%s-%d", service, number); len(base)+1+shortHash <= MaxCluster {
		return base + "-" + digest[:shortHash]
	}
	return strings.TrimRight(service[:MaxCluster-1-longHash], "-") + "-" + digest[:longHash]
}

// ServiceRevision is the name of what remembers a version of a service, by what it holds.
func ServiceRevision(service, revision string) string { return service + "-" + revision }

// ServePolicy is the name of the policy that says who reaches a service's proxies.
func ServePolicy(service string) string { return service + "-serve" }

// ServeVersion is the name of the Service of the version that runs on a cluster.
func ServeVersion(cluster string) string { return cluster + "-serve" }

// RouteLabel is the key of the label on pods that may take requests for a service by way of a
// gateway.
func RouteLabel(service string) string { return v1beta1.LabelRoutePrefix + service }

// ServeLabel is the key of the label on pods that take requests for a service.
func ServeLabel(service string) string { return v1beta1.LabelServePrefix + service }

// ServiceLabels are the labels of every object that belongs to a service.
func ServiceLabels(service string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       "ray-serve",
		"app.kubernetes.io/instance":   service,
		"app.kubernetes.io/managed-by": "heliostat",
		v1beta1.LabelService:           service,
		v1beta1.LabelCluster:           "", // of no one cluster; what has the label is held by the cache
	}
}

// Submission is the name in Ray of an attempt of a job, <job>-<attempt>-<hash>: a function
// of the job's UID and the attempt's number, so that asking twice is asking once.
func Submission(job string, uid types.UID, attempt int32) string {
	return fmt.Sprintf("%s-%d-%s", job, attempt, hash("submission", string(uid), job, strconv.Itoa(int(attempt)))[:longHash])
}

// Retry is the name of a job that runs again what a job that has ended ran: <first>-<hash>, where the first job of them
// is cut where it is too long. The hash covers the UID of the job that has ended.
func Retry(first string, uid types.UID) string {
	return label(first, "retry") + "-" + hash("retry", string(uid))[:longHash]
}

// Request is the name of an object that was created without one: <prefix>-<hash>. The hash covers who asked for it and
// by which key, so that asking twice is asking once.
func Request(prefix, caller, namespace, key string) string {
	return label(prefix, "request") + "-" + hash("request", caller, namespace, key)[:longHash]
}

// label is as much of a text as can begin a name that ends with a long hash: lower-case letters, digits and '-', with a letter
// first. Names of ConfigMaps and annotations have other characters too. Of a text without a letter it is another one.
func label(text, other string) string {
	text = strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(text))
	text = strings.TrimLeft(text, "-0123456789")
	text = strings.TrimRight(text[:min(len(text), MaxCluster-1-longHash)], "-")
	if text == "" {
		return other
	}
	return text
}

// HeadService is the name of the Service in front of a cluster's head.
func HeadService(cluster string) string { return cluster + "-head" }

// TokenSecret is the name of the Secret that holds a cluster's token.
func TokenSecret(cluster string) string { return cluster + "-token" }

// AuthoritySecret returns the name of the Secret that holds a cluster's certificate authority.
func AuthoritySecret(cluster string) string { return cluster + "-ca" }

// Gang is the object by which a scheduler knows that a cluster's pods belong together.
func Gang(cluster string) string { return cluster + "-gang" }

// Workload returns the name of the Workload by which Kueue knows an object of a kind: <kind>-<name>-<hash>, in lower case.
func Workload(kind, name string, uid types.UID) string {
	return hashed(strings.ToLower(kind)+"-"+name, hash("workload", string(uid), kind, name))
}

// NetworkPolicy is the name of the policy around a cluster's pods.
func NetworkPolicy(cluster string) string { return cluster + "-network" }

// Ingress is the name of the way from outside to a cluster's dashboard.
func Ingress(cluster string) string { return cluster + "-dashboard" }

// HostsService is the name of the Service that gives the hosts of a cluster's
// replicas their DNS names.
func HostsService(cluster string) string { return cluster + "-hosts" }

// HeadBudget is the name of the disruption budget of a cluster's head.
func HeadBudget(cluster string) string { return cluster + "-head" }

// ClusterLabels are the labels of every object that belongs to a cluster.
func ClusterLabels(cluster string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       "ray",
		"app.kubernetes.io/instance":   cluster,
		"app.kubernetes.io/managed-by": "heliostat",
		v1beta1.LabelCluster:           cluster,
	}
}

// PodLabels are the labels of the pod at a place.
func PodLabels(cluster string, at Place) map[string]string {
	labels := ClusterLabels(cluster)
	labels[v1beta1.LabelEpoch] = strconv.FormatInt(at.Epoch, 10)
	labels[v1beta1.LabelRole] = v1beta1.RoleHead
	if at.Group != "" {
		labels[v1beta1.LabelRole] = v1beta1.RoleWorker
		labels[v1beta1.LabelGroup] = at.Group
		labels[v1beta1.LabelSlot] = strconv.Itoa(at.Slot)
	}
	return labels
}

// SlotLabels are the labels of what belongs to a slot of a group and not to one epoch.
func SlotLabels(cluster, group string, slot int) map[string]string {
	labels := ClusterLabels(cluster)
	labels[v1beta1.LabelGroup] = group
	labels[v1beta1.LabelSlot] = strconv.Itoa(slot)
	return labels
}

// ClusterSelector selects all pods of a cluster, of any epoch.
func ClusterSelector(cluster string) map[string]string {
	return map[string]string{v1beta1.LabelCluster: cluster}
}

// RoleSelector selects the heads or the workers of a cluster, of any epoch.
func RoleSelector(cluster, role string) map[string]string {
	return map[string]string{v1beta1.LabelCluster: cluster, v1beta1.LabelRole: role}
}

// HeadSelector selects the head pod of one epoch and no other.
func HeadSelector(cluster string, epoch int64) map[string]string {
	return map[string]string{
		v1beta1.LabelCluster: cluster,
		v1beta1.LabelRole:    v1beta1.RoleHead,
		v1beta1.LabelEpoch:   strconv.FormatInt(epoch, 10),
	}
}

// ParsePlace reads a pod's place from its labels, or fails where they were not made
// by PodLabels.
func ParsePlace(labels map[string]string) (Place, error) {
	epoch, err := strconv.ParseInt(labels[v1beta1.LabelEpoch], 10, 64)
	if err != nil || epoch < 1 {
		return Place{}, fmt.Errorf("parse label %s: %q is not a positive number", v1beta1.LabelEpoch, labels[v1beta1.LabelEpoch])
	}
	if labels[v1beta1.LabelRole] == v1beta1.RoleHead {
		return Place{Epoch: epoch}, nil
	}
	slot, err := strconv.Atoi(labels[v1beta1.LabelSlot])
	if err != nil || slot < 0 || labels[v1beta1.LabelGroup] == "" {
		return Place{}, fmt.Errorf("parse labels of a worker: group %q, slot %q", labels[v1beta1.LabelGroup], labels[v1beta1.LabelSlot])
	}
	return Place{Group: labels[v1beta1.LabelGroup], Slot: slot, Epoch: epoch}, nil
}

// IntentHash is the hash of a user's intent, with the version of the normal form it
// was taken from. The normal form must marshal to JSON; map keys are sorted there.
func IntentHash(version string, normal any) (string, error) {
	text, err := json.Marshal(normal)
	if err != nil {
		return "", fmt.Errorf("hash intent: %w", err)
	}
	return version + "-" + hash(string(text))[:longHash], nil
}

// ObjectHash is the hash of an object as it was applied. The object must marshal to
// JSON; map keys are sorted there.
func ObjectHash(form any) (string, error) {
	text, err := json.Marshal(form)
	if err != nil {
		return "", fmt.Errorf("hash object: %w", err)
	}
	return hash(string(text))[:longHash], nil
}

// hash is the lower-case base32 of the SHA-256 of the parts, each with its length
// before it, so that no two lists of parts read alike.
func hash(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum.Sum(nil)))
}
