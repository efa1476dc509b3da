package rights

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/metadata"
)

// Expressions speak of variables.spec, the spec of the object or of a schedule's jobs, which lies at variables.at; of
// variables.path, where the spec of the cluster lies, of variables.cluster, that spec, empty where
// there is none, and of variables.nodes: the head and the groups, each n with n.path, n.spec, n.pod and n.containers,
// which are those of the pod with its init containers. Their results are joined with commas: no name has one.

// perNode is an expression for the entries of all nodes.
func perNode(entries string) string { return "variables.nodes.map(n, (" + entries + ").join(','))" }

// perContainer is an expression for the entries of all containers of a node.
func perContainer(entries string) string {
	return "n.containers.map(c, (" + entries + ").join(','))"
}

// environmentEntries is an expression for what variables name, by the keys of what holds the name.
func environmentEntries(key, all string) string {
	of := func(path, holder string) string {
		return fmt.Sprintf("%[2]s.?env.orValue([]).map(e, %[1]s + '.env ' + e.?valueFrom.?%[3]s.?name.orValue('')) + "+
			"%[2]s.?envFrom.orValue([]).map(e, %[1]s + '.envFrom ' + e.?%[4]s.?name.orValue(''))", path, holder, key, all)
	}
	return "variables.spec.?env.orValue([]).map(e, variables.at + '.env ' + e.?valueFrom.?" + key + ".?name.orValue('')) + " +
		of("variables.path + '.podDefaults'", "variables.cluster.?podDefaults") + " + " +
		perNode(perContainer(of("n.path + '.template.spec.containers[*]'", "c")))
}

// Expressions for what volumes name, and for the service account of a node's pods, of which they have a token or a
// certificate.
const (
	ofVolumes  = "n.pod.?volumes.orValue([]).map(v, n.path + '.template.spec.volumes ' + %s)"
	ofSources  = "n.pod.?volumes.orValue([]).map(v, v.?projected.?sources.orValue([]).map(s, n.path + '.template.spec.volumes ' + s.?%s.?name.orValue('')).join(','))"
	ofAccounts = "(n.pod.?serviceAccountName.orValue('') != '' ? n.pod.serviceAccountName : n.pod.?serviceAccount.orValue('') != '' ? n.pod.serviceAccount : " +
		"variables.cluster.?podDefaults.?serviceAccountName.orValue('') != '' ? variables.cluster.podDefaults.serviceAccountName : variables." + SiteAccount + ")"
)

// when is an expression for one entry where something is so.
func when(holds, field string) string {
	return "(" + holds + " ? [" + field + " + ' -'] : [])"
}

var needs = slices.Concat(podNeeds, objectNeeds, doorNeeds, placeNeeds)

var podNeeds = []Need{
	{
		ID: "account", Family: Pods, Verb: "use", Resource: "serviceaccounts", IsNamed: true, OrPods: true, Most: 8,
		Fields: "`serviceAccountName` other than `default`; `automountServiceAccountToken: true` and a projected token, for any",
		Entries: "[variables.path + '.podDefaults.serviceAccountName ' + variables.cluster.?podDefaults.?serviceAccountName.orValue('')].filter(e, !e.endsWith(' default')) + " +
			perNode("[n.path + '.template.spec.serviceAccountName ' + n.pod.?serviceAccountName.orValue(''), n.path + '.template.spec.serviceAccount ' + n.pod.?serviceAccount.orValue('')]"+
				".filter(e, !e.endsWith(' default')) + "+
				"(n.pod.?automountServiceAccountToken.orValue(false) ? [n.path + '.template.spec.automountServiceAccountToken ' + "+ofAccounts+"] : []) + "+
				"(n.pod.?volumes.orValue([]).exists(v, v.?projected.?sources.orValue([]).exists(s, has(s.serviceAccountToken) || has(s.podCertificate))) ? [n.path + '.template.spec.volumes ' + "+ofAccounts+"] : [])"),
		find: findAccounts,
	},
	{
		ID: "priority-class", Family: Pods, Verb: "use", Group: "scheduling.k8s.io", Resource: "priorityclasses", IsClusterWide: true, IsNamed: true, OrPods: true, Most: 4,
		Fields: "`priorityClassName`",
		Entries: "[variables.path + '.podDefaults.priorityClassName ' + variables.cluster.?podDefaults.?priorityClassName.orValue('')] + " +
			perNode("[n.path + '.template.spec.priorityClassName ' + n.pod.?priorityClassName.orValue('')]"),
		find: func(o *object, found func(field, name string)) {
			found(o.path+".podDefaults.priorityClassName", o.defaults().PriorityClassName)
			for _, n := range o.nodes() {
				found(n.template("priorityClassName"), n.pod.PriorityClassName)
			}
		},
	},
	{
		ID: "runtime-class", Family: Pods, Verb: "use", Group: "node.k8s.io", Resource: "runtimeclasses", IsClusterWide: true, IsNamed: true, OrPods: true, Most: 4,
		Fields: "`runtimeClassName`", Entries: perNode("[n.path + '.template.spec.runtimeClassName ' + n.pod.?runtimeClassName.orValue('')]"),
		find: func(o *object, found func(field, name string)) {
			for _, n := range o.nodes() {
				if n.pod.RuntimeClassName != nil {
					found(n.template("runtimeClassName"), *n.pod.RuntimeClassName)
				}
			}
		},
	},
	{
		ID: "host", Family: Pods, Verb: "create", Resource: "pods", OrPods: true,
		Fields:  "what Pod Security's restricted level forbids: namespaces, ports and volumes of the node or of drivers, privileges, capabilities, root, sysctls; probes of other hosts; annotations for AppArmor",
		Refused: "a pod with access to its node, with privileges, with volumes of drivers or with probes of other hosts is for those who may create pods",
		Entries: keysOfPods + ".map(m, " + when("m.annotations.exists(k, k.startsWith('"+appArmor+"'))", "m.path + '.annotations'") + ".join(',')) + " +
			perNode(when(hostExpression, "n.path + '.template.spec'")),
		find: func(o *object, found func(field, name string)) {
			for _, m := range o.ofPods() {
				if hasAppArmor(m.annotations) {
					found(m.path+".annotations", "")
				}
			}
			for _, n := range o.nodes() {
				if isHosted(n.pod) || slices.ContainsFunc(n.containers(), func(c corev1.Container) bool { return isPrivileged(&c) || asksElsewhere(&c) }) ||
					slices.ContainsFunc(n.pod.Volumes, func(v corev1.Volume) bool { return !isPlain(&v.VolumeSource) }) {
					found(n.path+".template.spec", "")
				}
			}
		},
	},
	{
		ID: "node", Family: Pods, Verb: "create", Resource: "pods", OrPods: true,
		Fields:  "a selector or an affinity of certain nodes or of control planes; an affinity or anti-affinity to pods of named namespaces",
		Refused: "a pod on a certain node, on one of a control plane, or placed by pods of named namespaces, is for those who may create pods",
		Entries: when(specialKey("variables.cluster.?podDefaults.?nodeSelector.orValue({})"), "variables.path + '.podDefaults.nodeSelector'") +
			" + " + perNode(when(specialKey("n.pod.?nodeSelector.orValue({})")+" || "+chosen+" || "+across, "n.path + '.template.spec'")),
		find: func(o *object, found func(field, name string)) {
			if hasSpecialKey(o.defaults().NodeSelector) {
				found(o.path+".podDefaults.nodeSelector", "")
			}
			for _, n := range o.nodes() {
				if hasSpecialKey(n.pod.NodeSelector) || choosesNode(n.pod.Affinity) || crossesNamespaces(n.pod.Affinity) {
					found(n.path+".template.spec", "")
				}
			}
		},
	},
	tolerationNeed,
	metadataNeed,
}

func findAccounts(o *object, found func(field, name string)) {
	named := func(field, name string) {
		if name != defaultAccount {
			found(field, name)
		}
	}
	named(o.path+".podDefaults.serviceAccountName", o.defaults().ServiceAccountName)
	for _, n := range o.nodes() {
		named(n.template("serviceAccountName"), n.pod.ServiceAccountName)
		named(n.template("serviceAccount"), n.pod.DeprecatedServiceAccount)
		if is(n.pod.AutomountServiceAccountToken) {
			found(n.template("automountServiceAccountToken"), o.account(&n))
		}
		if slices.ContainsFunc(n.pod.Volumes, func(v corev1.Volume) bool {
			return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil || s.PodCertificate != nil })
		}) {
			found(n.template("volumes"), o.account(&n))
		}
	}
}

// hostExpression is the counterpart of isHosted, isPrivileged, asksElsewhere and isPlain.
var hostExpression = strings.Join([]string{
	"n.pod.?hostNetwork.orValue(false)", "n.pod.?hostPID.orValue(false)", "n.pod.?hostIPC.orValue(false)",
	"size(n.pod.?securityContext.?sysctls.orValue([])) > 0", weak("n.pod.?securityContext"),
	"n.containers.exists(c, c.?ports.orValue([]).exists(p, p.?hostPort.orValue(0) != 0))",
	"n.containers.exists(c, " + strings.Join([]string{
		"c.?securityContext.?privileged.orValue(false)", "c.?securityContext.?allowPrivilegeEscalation.orValue(false)",
		"size(c.?securityContext.?capabilities.?add.orValue([])) > 0", "c.?securityContext.?procMount.hasValue()", weak("c.?securityContext"),
	}, " || ") + ")",
	"n.containers.exists(c, [c.?livenessProbe, c.?readinessProbe, c.?startupProbe, c.?lifecycle.?postStart, c.?lifecycle.?preStop].exists(p, " +
		"p.?httpGet.?host.orValue('') != '' || p.?tcpSocket.?host.orValue('') != ''))",
	"n.pod.?volumes.orValue([]).exists(v, v.exists(k, !(k in ['" + strings.Join(plainVolumes, "', '") + "'])))",
}, " || ")

// weak is an expression for what the security contexts of pods and containers have in common.
func weak(context string) string {
	return strings.ReplaceAll("S.?runAsUser.orValue(1) == 0 || !S.?runAsNonRoot.orValue(true) || S.?seLinuxOptions.hasValue() || S.?windowsOptions.hasValue() || "+
		"S.?seccompProfile.?type.orValue('') == 'Unconfined' || S.?appArmorProfile.?type.orValue('') == 'Unconfined'", "S", context)
}

// special is the counterpart of isSpecialNode.
func special(key string) string {
	return strings.ReplaceAll("(KEY in ['"+strings.Join(specialNodes, "', '")+"'] || KEY.startsWith('"+controlPlane+"'))", "KEY", key)
}

// specialKey, tolerated and chosen are the counterparts of hasSpecialKey, isReserved and choosesNode.
func specialKey(labels string) string { return "(" + labels + ").exists(k, " + special("k") + ")" }

func tolerated(list string) string {
	return "(" + list + ").map(t, t.?key.orValue('')).exists(k, " + special("k") + " || !" + listedKey(SiteTolerations, "k") + ")"
}

var chosen = "(n.pod.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution.?nodeSelectorTerms.orValue([]) + " +
	"n.pod.?affinity.?nodeAffinity.?preferredDuringSchedulingIgnoredDuringExecution.orValue([]).map(p, p.preference))" +
	".exists(t, size(t.?matchFields.orValue([])) > 0 || t.?matchExpressions.orValue([]).exists(e, " + special("e.key") + "))"

// across is the counterpart of crossesNamespaces.
const across = "[n.pod.?affinity.?podAffinity, n.pod.?affinity.?podAntiAffinity].exists(a, (a.?requiredDuringSchedulingIgnoredDuringExecution.orValue([]) + " +
	"a.?preferredDuringSchedulingIgnoredDuringExecution.orValue([]).map(p, p.podAffinityTerm)).exists(t, size(t.?namespaces.orValue([])) > 0 || has(t.namespaceSelector)))"

var objectNeeds = []Need{
	{
		ID: "secret", Family: Objects, Verb: "get", Resource: "secrets", IsNamed: true, OrPods: true, Most: 9,
		Fields: "a Secret in variables, `envFrom`, volumes, projections, `imagePullSecrets`",
		Entries: environmentEntries("secretKeyRef", "secretRef") +
			" + variables.cluster.?podDefaults.?imagePullSecrets.orValue([]).map(s, variables.path + '.podDefaults.imagePullSecrets ' + s.?name.orValue('')) + " +
			perNode("n.pod.?imagePullSecrets.orValue([]).map(s, n.path + '.template.spec.imagePullSecrets ' + s.?name.orValue('')) + "+
				fmt.Sprintf(ofVolumes, "v.?secret.?secretName.orValue('')")+" + "+fmt.Sprintf(ofSources, "secret")),
		find: func(o *object, found func(field, name string)) {
			o.environment(secretOf, found)
			for _, ref := range o.defaults().ImagePullSecrets {
				found(o.path+".podDefaults.imagePullSecrets", ref.Name)
			}
			for _, n := range o.nodes() {
				for _, ref := range n.pod.ImagePullSecrets {
					found(n.template("imagePullSecrets"), ref.Name)
				}
			}
			o.volumes(func(path string, v *corev1.Volume) { namedIn(v, path, secretIn, secretProjected, found) })
		},
	},
	{
		ID: "config-map", Family: Objects, Verb: "get", Resource: "configmaps", IsNamed: true, OrPods: true, Most: 6,
		Fields: "a ConfigMap in variables, `envFrom`, volumes, projections",
		Entries: environmentEntries("configMapKeyRef", "configMapRef") + " + " +
			perNode(fmt.Sprintf(ofVolumes, "v.?configMap.?name.orValue('')")+" + "+fmt.Sprintf(ofSources, "configMap")),
		find: func(o *object, found func(field, name string)) {
			o.environment(configMapOf, found)
			o.volumes(func(path string, v *corev1.Volume) { namedIn(v, path, configMapIn, configMapProjected, found) })
		},
	},
	{
		ID: "claim", Family: Objects, Verb: "use", Resource: "persistentvolumeclaims", IsNamed: true, OrPods: true, Most: 5,
		Fields: "a PersistentVolumeClaim in volumes; `controlStore.embedded.existingClaim`; `sharedVolumes[*].claimName`",
		Entries: "[variables.path + '.controlStore.embedded.existingClaim ' + variables.cluster.?controlStore.?embedded.?existingClaim.orValue('')] + " +
			"variables.cluster.?sharedVolumes.orValue([]).map(v, variables.path + '.sharedVolumes ' + v.?claimName.orValue('')) + " +
			perNode(fmt.Sprintf(ofVolumes, "v.?persistentVolumeClaim.?claimName.orValue('')")),
		find: func(o *object, found func(field, name string)) {
			if store := o.cluster.ControlStore; store != nil && store.Embedded != nil {
				found(o.path+".controlStore.embedded.existingClaim", store.Embedded.ExistingClaim)
			}
			for i := range o.cluster.SharedVolumes {
				found(o.path+".sharedVolumes", o.cluster.SharedVolumes[i].ClaimName)
			}
			o.volumes(func(path string, v *corev1.Volume) {
				if v.PersistentVolumeClaim != nil {
					found(path, v.PersistentVolumeClaim.ClaimName)
				}
			})
		},
	},
	{
		ID: "resource-claim", Family: Objects, Verb: "use", Group: "resource.k8s.io", Resource: "resourceclaims", IsNamed: true, OrPods: true, Most: 2,
		Fields:  "`resourceClaims[*].resourceClaimName`",
		Entries: perNode("n.pod.?resourceClaims.orValue([]).map(r, n.path + '.template.spec.resourceClaims ' + r.?resourceClaimName.orValue(''))"),
		find:    resourceClaims(func(claim *corev1.PodResourceClaim) *string { return claim.ResourceClaimName }),
	},
	{
		ID: "resource-claim-template", Family: Objects, Verb: "use", Group: "resource.k8s.io", Resource: "resourceclaimtemplates", IsNamed: true, OrPods: true, Most: 2,
		Fields:  "`resourceClaims[*].resourceClaimTemplateName`",
		Entries: perNode("n.pod.?resourceClaims.orValue([]).map(r, n.path + '.template.spec.resourceClaims ' + r.?resourceClaimTemplateName.orValue(''))"),
		find:    resourceClaims(func(claim *corev1.PodResourceClaim) *string { return claim.ResourceClaimTemplateName }),
	},
	{
		ID: "shared-claim", Family: Objects, Verb: "create", Resource: "persistentvolumeclaims",
		Fields:  "`sharedVolumes[*].claim`, which outlives pods",
		Entries: when("variables.cluster.?sharedVolumes.orValue([]).exists(v, has(v.claim))", "variables.path + '.sharedVolumes'"),
		find: func(o *object, found func(field, name string)) {
			if slices.ContainsFunc(o.cluster.SharedVolumes, func(v v1beta1.SharedVolume) bool { return v.Claim != nil }) {
				found(o.path+".sharedVolumes", "")
			}
		},
	},
	{
		ID: "data", Family: Objects, Verb: "create", Resource: "persistentvolumeclaims", OrPods: true,
		Fields:  "`volumeName`, `dataSource` or `dataSourceRef` of a claim that is made for a worker or a pod, and its annotations with a prefix that `tenancy.podAnnotations` lacks",
		Refused: "a claim that takes over a volume or a copy of data, or has annotations that its driver may obey, is for those who may make it themselves",
		Entries: perNode(when("(n.spec.?volumeClaimTemplates.orValue([]) + n.pod.?volumes.orValue([]).map(v, v.?ephemeral.?volumeClaimTemplate.orValue({})))"+
			".exists(t, t.?spec.?volumeName.orValue('') != '' || t.?spec.?dataSource.hasValue() || t.?spec.?dataSourceRef.hasValue() || t.?metadata.?annotations.orValue({}).exists(k, "+obeyedKey+"))", "n.path")),
		find: func(o *object, found func(field, name string)) {
			for _, n := range o.nodes() {
				takes := n.group != nil && slices.ContainsFunc(n.group.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool { return o.site.takesOver(&c.Spec, &c.ObjectMeta) })
				takes = takes || slices.ContainsFunc(n.pod.Volumes, func(v corev1.Volume) bool {
					if v.Ephemeral == nil || v.Ephemeral.VolumeClaimTemplate == nil {
						return false
					}
					claim := v.Ephemeral.VolumeClaimTemplate
					return o.site.takesOver(&claim.Spec, &claim.ObjectMeta)
				})
				if takes {
					found(n.path, "")
				}
			}
		},
	},
}

// namedIn finds what a volume names by itself and in its projections.
func namedIn(v *corev1.Volume, path string, alone func(*corev1.Volume) string, projected func(*corev1.VolumeProjection) string, found func(field, name string)) {
	found(path, alone(v))
	if v.Projected != nil {
		for i := range v.Projected.Sources {
			found(path, projected(&v.Projected.Sources[i]))
		}
	}
}

func secretIn(v *corev1.Volume) string {
	if v.Secret == nil {
		return ""
	}
	return v.Secret.SecretName
}

func secretProjected(s *corev1.VolumeProjection) string {
	if s.Secret == nil {
		return ""
	}
	return s.Secret.Name
}

func configMapIn(v *corev1.Volume) string {
	if v.ConfigMap == nil {
		return ""
	}
	return v.ConfigMap.Name
}

func configMapProjected(s *corev1.VolumeProjection) string {
	if s.ConfigMap == nil {
		return ""
	}
	return s.ConfigMap.Name
}

func resourceClaims(name func(*corev1.PodResourceClaim) *string) func(*object, func(field, name string)) {
	return func(o *object, found func(field, name string)) {
		for _, n := range o.nodes() {
			for i := range n.pod.ResourceClaims {
				if given := name(&n.pod.ResourceClaims[i]); given != nil {
					found(n.template("resourceClaims"), *given)
				}
			}
		}
	}
}

var doorNeeds = []Need{
	{
		ID: "own-secret", Family: Doors, Verb: "get", Resource: "secrets", IsNamed: true, Most: 6,
		Fields: "a Secret of `controlStore.redis` and `authentication.secretName`, which the operator reads itself",
		Entries: "['usernameSecret', 'passwordSecret'].map(k, variables.path + '.controlStore.redis.' + k + ' ' + variables.cluster.?controlStore.?redis[?k].?name.orValue('')) + " +
			"['caSecret', 'certificateSecret', 'keySecret'].map(k, variables.path + '.controlStore.redis.tls.' + k + ' ' + variables.cluster.?controlStore.?redis.?tls[?k].?name.orValue('')) + " +
			"[variables.path + '.authentication.secretName ' + variables.cluster.?authentication.?secretName.orValue('')]",
		find: func(o *object, found func(field, name string)) {
			read := func(field string, key *v1beta1.SecretKey) {
				if key != nil {
					found(o.path+"."+field, key.Name)
				}
			}
			if store := o.cluster.ControlStore; store != nil && store.Redis != nil {
				read("controlStore.redis.usernameSecret", store.Redis.UsernameSecret)
				read("controlStore.redis.passwordSecret", store.Redis.PasswordSecret)
				if tls := store.Redis.TLS; tls != nil {
					read("controlStore.redis.tls.caSecret", tls.CASecret)
					read("controlStore.redis.tls.certificateSecret", tls.CertificateSecret)
					read("controlStore.redis.tls.keySecret", tls.KeySecret)
				}
			}
			if a := o.cluster.Authentication; a != nil {
				found(o.path+".authentication.secretName", a.SecretName)
			}
		},
	},
	{
		ID: "ingress", Family: Doors, Verb: "create", Group: "networking.k8s.io", Resource: "ingresses",
		Fields: "`head.ingress`", Entries: when("variables.cluster.?head.?ingress.hasValue()", "variables.path + '.head.ingress'"),
		find: func(o *object, found func(field, name string)) {
			if o.cluster.Head.Ingress != nil {
				found(o.path+".head.ingress", "")
			}
		},
	},
	{
		ID: "service", Family: Doors, Verb: "create", Resource: "services",
		Fields: "`head.service.type` and `service.type` other than ClusterIP, and annotations of these Services, which controllers obey",
		Entries: when("variables.cluster.?head.?service.?type.orValue('ClusterIP') != 'ClusterIP'", "variables.path + '.head.service.type'") + " + " +
			when("object.spec.?service.?type.orValue('ClusterIP') != 'ClusterIP'", "'spec.service.type'") + " + " +
			when("size(variables.cluster.?head.?service.?annotations.orValue({})) > 0", "variables.path + '.head.service.annotations'") + " + " +
			when("size(object.spec.?service.?annotations.orValue({})) > 0", "'spec.service.annotations'"),
		find: findServices,
	},
	{
		ID: "route", Family: Doors, Verb: "create", Group: "gateway.networking.k8s.io", Resource: "httproutes",
		Fields: "`upgradeStrategy.gateway`, with its hostnames", Entries: when("object.spec.?upgradeStrategy.?gateway.hasValue()", "'spec.upgradeStrategy.gateway'"),
		find: func(o *object, found func(field, name string)) {
			if o.service != nil && o.service.UpgradeStrategy != nil && o.service.UpgradeStrategy.Gateway != nil {
				found("spec.upgradeStrategy.gateway", "")
			}
		},
	},
	{
		ID: "cluster", Family: Doors, Verb: "use", Group: "heliostat.dev", Resource: "computeclusters", IsNamed: true, Most: 1,
		Fields: "`clusterRef`", Entries: "[variables.at + '.clusterRef ' + variables.spec.?clusterRef.?name.orValue('')]",
		find: func(o *object, found func(field, name string)) {
			if o.ref != nil {
				found(o.at+".clusterRef", o.ref.Name)
			}
		},
	},
	{
		ID: "open", Family: Doors, Verb: "update", Group: "heliostat.dev", Resource: "computeclusters", Subresource: "open",
		Fields: "`authentication.mode: Disabled`, `network.isolation: Disabled`, an `allowFrom` of everybody, a Service of type LoadBalancer or NodePort, " +
			"an Ingress without TLS or with annotations other than cert-manager's, which can take TLS away, a `service.allowFrom` of everybody. " +
			"Everybody is: no peer; a namespaceSelector with neither `matchLabels` nor an `In`; blocks that together have as many addresses as a /7 " +
			"(of a service as a /15, or a /47 of IPv6)",
		Refused: "what protects the cluster, or keeps it within the Kubernetes cluster, is switched off",
		Entries: when("variables.cluster.?authentication.?mode.orValue('') == 'Disabled'", "variables.path + '.authentication.mode'") + " + " +
			when("variables.cluster.?network.?isolation.orValue('') == 'Disabled'", "variables.path + '.network.isolation'") + " + " +
			when("variables.cluster.?network.?allowFrom.orValue([]).exists(r, size(r.from) == 0) || "+
				everybody("variables.cluster.?network.?allowFrom.orValue([])", "r.from", ofClusters), "variables.path + '.network.allowFrom'") + " + " +
			when("variables.cluster.?head.?service.?type.orValue('ClusterIP') != 'ClusterIP'", "variables.path + '.head.service.type'") + " + " +
			when("variables.cluster.?head.?ingress.hasValue() && (variables.cluster.?head.?ingress.?tlsSecretName.orValue('') == '' || "+
				"variables.cluster.?head.?ingress.?annotations.orValue({}).exists(k, !k.startsWith('"+certificates+"')))", "variables.path + '.head.ingress'") + " + " +
			when("object.spec.?service.?type.orValue('ClusterIP') != 'ClusterIP'", "'spec.service.type'") + " + " +
			when(everybody("[object.spec.?service.?allowFrom.orValue([])]", "r", ofServices), "'spec.service.allowFrom'"),
		find: findOpen,
	},
	{
		ID: "metadata", Family: Doors, Verb: "update", Group: "heliostat.dev", Resource: "computeclusters",
		Subresource: "open", OrPods: true,
		Fields: "`network.cloudMetadata: Enabled`, and an `allowTo` that reaches a metadata address of a cloud: " +
			"an empty `to`, or an ipBlock that holds such addresses and does not except them",
		Refused: "pods that reach the cloud's metadata addresses get the credentials of their node",
		Entries: when("variables.cluster.?network.?cloudMetadata.orValue('') == 'Enabled'",
			"variables.path + '.network.cloudMetadata'") + " + " +
			when("variables.cluster.?network.?allowTo.orValue([])"+
				".exists(r, size(r.to) == 0 || r.to.exists(p, "+givesMetadata+"))", "variables.path + '.network.allowTo'"),
		find: func(o *object, found func(field, name string)) {
			n := o.cluster.Network
			if n != nil && n.CloudMetadata == v1beta1.Enabled {
				found(o.path+".network.cloudMetadata", "")
			}
			if n != nil && slices.ContainsFunc(n.AllowTo, func(rule v1beta1.EgressRule) bool {
				return len(rule.To) == 0 || slices.ContainsFunc(rule.To, hasMetadata)
			}) {
				found(o.path+".network.allowTo", "")
			}
		},
	},
}

// givesMetadata is the counterpart of hasMetadata.
var givesMetadata = "has(p.ipBlock) && (!isCIDR(p.ipBlock.cidr) || " +
	"!" + listed(metadata.PodIdentity()) + ".exists(m, cidr(m).containsCIDR(p.ipBlock.cidr)) && " +
	listed(metadata.Closed()) + ".exists(m, (cidr(m).containsCIDR(p.ipBlock.cidr) || cidr(p.ipBlock.cidr).containsCIDR(m)) && " +
	"!p.ipBlock.?except.orValue([]).exists(e, isCIDR(e) && cidr(e).containsCIDR(m))))"

// listed returns blocks as a list of an expression.
func listed(blocks []netip.Prefix) string {
	texts := make([]string, len(blocks))
	for i, block := range blocks {
		texts[i] = "'" + block.String() + "'"
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func isOpen(kind corev1.ServiceType) bool {
	return kind != "" && kind != corev1.ServiceTypeClusterIP
}

// certificates is the prefix of annotations of an Ingress that get it a certificate and open nothing.
const certificates = "cert-manager.io/"

// isPlainText reports whether an Ingress may carry the token in plain text: without TLS, or with what may switch it off.
func isPlainText(ingress *v1beta1.IngressSpec) bool {
	for key := range ingress.Annotations {
		if !strings.HasPrefix(key, certificates) {
			return true
		}
	}
	return ingress.TLSSecretName == ""
}

func findServices(o *object, found func(field, name string)) {
	head, front := o.cluster.Head.Service, (*v1beta1.ServeService)(nil)
	if o.service != nil {
		front = o.service.Service
	}
	if head != nil && isOpen(head.Type) {
		found(o.path+".head.service.type", "")
	}
	if front != nil && isOpen(front.Type) {
		found("spec.service.type", "")
	}
	if head != nil && len(head.Annotations) > 0 {
		found(o.path+".head.service.annotations", "")
	}
	if front != nil && len(front.Annotations) > 0 {
		found("spec.service.annotations", "")
	}
}
