package rights_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/metadata"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/rights"
)

// Every need has a row, and every row has the need that it is about, whichever kind it is laid over.
func TestDemands_AreThoseOfTheRows(t *testing.T) {
	t.Parallel()
	rows, shown := map[string]corpus.RightsRow{}, map[string]bool{}
	for _, row := range corpus.RightsRows() {
		rows[row.Name] = row
	}
	for input, err := range corpus.Rights(corpus.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		row := rows[strings.TrimSuffix(input.Name, "; ")]
		var have []string
		for _, demand := range input.Demands {
			have = append(have, demand.Need)
			if !strings.HasPrefix(demand.Says, "spec") || !strings.Contains(demand.Says, "you may n") || !strings.Contains(demand.Says, demand.Name) {
				t.Errorf("%s of %s: %q names not the field, the right and the remedy", row.Name, input.Resource, demand.Says)
			}
		}
		if row.Need == "" && len(have) > 0 || row.Need != "" && !slices.Contains(have, row.Need) {
			t.Errorf("%s of %s needs %v, want %q", row.Name, input.Resource, have, row.Need)
		}
		shown[row.Need] = true
	}
	for _, need := range rights.Needs() {
		if !shown[need.ID] {
			t.Errorf("no row needs %s", need.ID)
		}
	}
}

func TestMissing_IsWhatTheUserLacks(t *testing.T) {
	t.Parallel()
	var account, secret, own *rights.Need
	all := rights.Needs()
	for i := range all {
		switch all[i].ID {
		case "account":
			account = &all[i]
		case "secret":
			secret = &all[i]
		case "own-secret":
			own = &all[i]
		}
	}
	demands := []rights.Demand{{Need: account, Field: "spec.a", Name: "reader"}, {Need: own, Field: "spec.b", Name: "token"}}
	for i := range secret.Most + 2 {
		demands = append(demands, rights.Demand{Need: secret, Field: "spec.c", Name: string(rune('a' + i))})
	}
	may := func(names ...string) func(rights.Demand) bool {
		return func(d rights.Demand) bool { return slices.Contains(names, d.Name) }
	}
	everything := func(rights.Demand) bool { return true }
	for name, c := range map[string]struct {
		mayPods bool
		may     func(rights.Demand) bool
		want    []string
	}{
		"pods, and what is not a pod's":         {true, may("token"), nil},
		"pods alone":                            {true, may(), []string{"spec.b"}},
		"all by name, but too many names":       {false, everything, []string{"spec"}},
		"one account, and a Secret of the most": {false, may("reader", "token", "b"), append(slices.Repeat([]string{"spec.c"}, secret.Most-1), "spec")},
	} {
		var have []string
		for _, err := range rights.Missing(demands, c.mayPods, c.may) {
			have = append(have, err.Field)
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("%s: %v, want %v", name, have, c.want)
		}
	}
}

// Each block that the policy of a cluster excepts needs the right, and what the policy lets through needs none.
func TestDemands_AreForWhatThePolicyHoldsBack(t *testing.T) {
	t.Parallel()
	of := func(peers []networkingv1.NetworkPolicyPeer) []rights.Demand {
		cluster := &v1alpha1.ComputeCluster{}
		cluster.Spec.Network = &v1alpha1.Network{AllowTo: []v1alpha1.EgressRule{{To: peers}}}
		return rights.OfCluster(cluster)
	}
	policy := desired.NetworkPolicy(&v1alpha1.ComputeCluster{}, desired.Site{})
	var everything []networkingv1.NetworkPolicyPeer
	for _, rule := range policy.Spec.Egress {
		everything = append(everything, rule.To...)
	}
	if demands := of(everything); len(demands) > 0 {
		t.Errorf("%s: it is what each cluster reaches", demands[0].Text())
	}
	excepted := 0
	for _, peer := range everything {
		if peer.IPBlock == nil {
			continue
		}
		for _, block := range peer.IPBlock.Except {
			excepted++
			if len(of([]networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: block}}})) != 1 {
				t.Errorf("%s needs no right", block)
			}
		}
	}
	if want := len(metadata.Closed()); excepted != want {
		t.Errorf("%d blocks are excepted, want %d", excepted, want)
	}
}

// reviewed are the fields of pods by what was decided of each: "plain" fields give nothing that needs a right.
var reviewed = map[reflect.Type]map[string]string{
	reflect.TypeFor[corev1.PodSpec](): fields("plain", "restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy hostname subdomain schedulerName "+
		"hostAliases dnsConfig readinessGates preemptionPolicy topologySpreadConstraints setHostnameAsFQDN os hostUsers schedulingGates resources hostnameOverride "+
		"shareProcessNamespace enableServiceLinks overhead schedulingGroup workloadRef evictionResponders",
		"by its entries", "volumes initContainers containers ephemeralContainers", "account", "serviceAccountName serviceAccount automountServiceAccountToken",
		"host", "hostNetwork hostPID hostIPC securityContext", "node", "nodeSelector affinity tolerations", "refused", "nodeName",
		"priority-class", "priorityClassName priority", "runtime-class", "runtimeClassName", "secret", "imagePullSecrets", "resource-claim", "resourceClaims"),
	reflect.TypeFor[corev1.Container](): fields("plain", "name image command args workingDir resources resizePolicy restartPolicy restartPolicyRules volumeMounts volumeDevices "+
		"terminationMessagePath terminationMessagePolicy imagePullPolicy stdin stdinOnce tty", "secret or config-map", "env envFrom",
		"host", "ports securityContext livenessProbe readinessProbe startupProbe lifecycle"),
	reflect.TypeFor[corev1.SecurityContext](): fields("plain", "runAsGroup readOnlyRootFilesystem", "host",
		"capabilities privileged seLinuxOptions windowsOptions runAsUser runAsNonRoot allowPrivilegeEscalation procMount seccompProfile appArmorProfile"),
	reflect.TypeFor[corev1.PodSecurityContext](): fields("plain", "runAsGroup supplementalGroups supplementalGroupsPolicy fsGroup fsGroupChangePolicy seLinuxChangePolicy", "host",
		"seLinuxOptions windowsOptions runAsUser runAsNonRoot sysctls seccompProfile appArmorProfile"),
	reflect.TypeFor[corev1.VolumeSource](): fields("plain", "emptyDir downwardAPI image", "by its entries", "projected ephemeral", "secret", "secret",
		"config-map", "configMap", "claim", "persistentVolumeClaim", "host", "hostPath gcePersistentDisk awsElasticBlockStore gitRepo nfs iscsi glusterfs rbd flexVolume "+
			"cinder cephfs flocker fc azureFile vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO storageos csi"),
	reflect.TypeFor[corev1.VolumeProjection](): fields("plain", "downwardAPI clusterTrustBundle", "secret", "secret", "config-map", "configMap",
		"account", "serviceAccountToken podCertificate"),
	reflect.TypeFor[corev1.EnvVarSource]():  fields("plain", "fieldRef resourceFieldRef fileKeyRef", "secret", "secretKeyRef", "config-map", "configMapKeyRef"),
	reflect.TypeFor[corev1.EnvFromSource](): fields("plain", "prefix", "secret", "secretRef", "config-map", "configMapRef"),
	reflect.TypeFor[corev1.PersistentVolumeClaimSpec](): fields("plain", "accessModes selector resources storageClassName volumeMode volumeAttributesClassName",
		"data", "volumeName dataSource dataSourceRef"),
}

// fields takes pairs of a decision and the fields that it is about.
func fields(pairs ...string) map[string]string {
	all := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		for name := range strings.FieldsSeq(pairs[i+1]) {
			all[name] = pairs[i]
		}
	}
	return all
}

// A newer Kubernetes has fields that nobody has decided about: whether they need a right is asked here.
func TestFieldsOfPods_AreReviewed(t *testing.T) {
	t.Parallel()
	for kind, known := range reviewed {
		for i := range kind.NumField() {
			name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			if name != "" && known[name] == "" {
				t.Errorf("%s.%s is not reviewed: decide which right it needs, if any", kind.Name(), name)
			}
		}
	}
}
