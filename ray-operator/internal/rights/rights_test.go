package rights_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
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
			if !strings.HasPrefix(demand.Says, "spec") && !strings.HasPrefix(demand.Says, "metadata") || !strings.Contains(demand.Says, "you may n") || !strings.Contains(demand.Says, demand.Name) {
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
		cluster := &v1beta1.ComputeCluster{}
		cluster.Spec.Network = &v1beta1.Network{AllowTo: []v1beta1.EgressRule{{To: peers}}}
		return rights.OfCluster(cluster, rights.ChartSite())
	}
	policy := desired.NetworkPolicy(&v1beta1.ComputeCluster{}, desired.Site{})
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

// reviewed are the fields of pods by what was decided of each: "plain" fields give nothing that needs a right. Fields that
// are "refused" a rule keeps out of a template, or Kubernetes out of a pod: a priority that is not its class's. Those "of a
// live object" are not a template's.
var reviewed = map[reflect.Type]map[string]string{
	reflect.TypeFor[corev1.PodSpec](): fields("plain", "restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy hostname subdomain schedulerName "+
		"hostAliases dnsConfig readinessGates preemptionPolicy topologySpreadConstraints setHostnameAsFQDN os hostUsers schedulingGates resources hostnameOverride "+
		"shareProcessNamespace enableServiceLinks overhead schedulingGroup workloadRef evictionResponders",
		"by its entries", "volumes initContainers containers ephemeralContainers", "account", "serviceAccountName serviceAccount automountServiceAccountToken",
		"host", "hostNetwork hostPID hostIPC securityContext", "node", "nodeSelector affinity", "toleration", "tolerations", "refused", "nodeName priority",
		"priority-class", "priorityClassName", "runtime-class", "runtimeClassName", "secret", "imagePullSecrets", "resource-claim", "resourceClaims"),
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
	reflect.TypeFor[corev1.PodTemplateSpec](): fields("by its entries", "metadata spec"),
	reflect.TypeFor[metav1.ObjectMeta](): fields("pod-metadata", "labels annotations", "refused", "name generateName namespace ownerReferences finalizers",
		"of a live object", "selfLink uid resourceVersion generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds managedFields"),
	reflect.TypeFor[v1beta1.PodDefaults](): fields("account", "serviceAccountName", "secret", "imagePullSecrets", "secret or config-map", "env envFrom",
		"pod-metadata", "labels annotations", "node", "nodeSelector", "toleration", "tolerations", "priority-class", "priorityClassName"),
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

// reached puts a value of a reviewed type where a cluster may have it.
var reached = map[reflect.Type]func(*v1beta1.ComputeClusterSpec, any){
	reflect.TypeFor[corev1.PodSpec]():   inTemplate(func(p *corev1.PodTemplateSpec, v any) { p.Spec = *v.(*corev1.PodSpec) }),
	reflect.TypeFor[corev1.Container](): inTemplate(func(p *corev1.PodTemplateSpec, v any) { p.Spec.Containers = []corev1.Container{*v.(*corev1.Container)} }),
	reflect.TypeFor[corev1.SecurityContext](): inTemplate(func(p *corev1.PodTemplateSpec, v any) {
		p.Spec.Containers = []corev1.Container{{SecurityContext: v.(*corev1.SecurityContext)}}
	}),
	reflect.TypeFor[corev1.PodSecurityContext](): inTemplate(func(p *corev1.PodTemplateSpec, v any) { p.Spec.SecurityContext = v.(*corev1.PodSecurityContext) }),
	reflect.TypeFor[corev1.VolumeSource](): inTemplate(func(p *corev1.PodTemplateSpec, v any) {
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: *v.(*corev1.VolumeSource)}}
	}),
	reflect.TypeFor[corev1.VolumeProjection](): inTemplate(func(p *corev1.PodTemplateSpec, v any) {
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{*v.(*corev1.VolumeProjection)}}}}}
	}),
	reflect.TypeFor[corev1.EnvVarSource](): inTemplate(func(p *corev1.PodTemplateSpec, v any) {
		p.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{{ValueFrom: v.(*corev1.EnvVarSource)}}}}
	}),
	reflect.TypeFor[corev1.EnvFromSource](): inTemplate(func(p *corev1.PodTemplateSpec, v any) {
		p.Spec.Containers = []corev1.Container{{EnvFrom: []corev1.EnvFromSource{*v.(*corev1.EnvFromSource)}}}
	}),
	reflect.TypeFor[corev1.PersistentVolumeClaimSpec](): func(spec *v1beta1.ComputeClusterSpec, v any) {
		spec.WorkerGroups = []v1beta1.WorkerGroup{{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{Spec: *v.(*corev1.PersistentVolumeClaimSpec)}}}}
	},
	reflect.TypeFor[corev1.PodTemplateSpec](): inTemplate(func(p *corev1.PodTemplateSpec, v any) { *p = *v.(*corev1.PodTemplateSpec) }),
	reflect.TypeFor[metav1.ObjectMeta]():      inTemplate(func(p *corev1.PodTemplateSpec, v any) { p.ObjectMeta = *v.(*metav1.ObjectMeta) }),
	reflect.TypeFor[v1beta1.PodDefaults]():    func(spec *v1beta1.ComputeClusterSpec, v any) { spec.PodDefaults = v.(*v1beta1.PodDefaults) },
}

func inTemplate(put func(*corev1.PodTemplateSpec, any)) func(*v1beta1.ComputeClusterSpec, any) {
	return func(spec *v1beta1.ComputeClusterSpec, value any) {
		spec.Head.Template = &corev1.PodTemplateSpec{}
		put(spec.Head.Template, value)
	}
}

// TestFieldsOfPods_NeedWhatWasDecided walks over each field of a pod and of its metadata, with values of many sorts below it: a
// plain field never needs a right, whatever it has, and each of the others needs its own for some value.
func TestFieldsOfPods_NeedWhatWasDecided(t *testing.T) {
	t.Parallel()
	sorts := []sample{
		{"x", 1, true}, {"x", 0, false}, {"Unconfined", 1, true}, {corev1.LabelHostname, 0, true}, {"example.com/key", 1, false},
	}
	for kind, known := range reviewed {
		for i := range kind.NumField() {
			name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			decision := known[name]
			if decision == "by its entries" || decision == "refused" || decision == "of a live object" || name == "" {
				continue
			}
			all := map[string]bool{}
			for _, sort := range sorts {
				value := reflect.New(kind)
				sort.fill(value.Elem().Field(i))
				var spec v1beta1.ComputeClusterSpec
				reached[kind](&spec, value.Interface())
				for _, demand := range rights.OfCluster(&v1beta1.ComputeCluster{Spec: spec}, rights.ChartSite()) {
					all[demand.Need.ID] = true
				}
			}
			needed := slices.Sorted(maps.Keys(all))
			switch {
			case decision == "plain" && len(needed) > 0:
				t.Errorf("%s.%s is plain, and needs %q", kind.Name(), name, needed)
			case decision != "plain" && !slices.ContainsFunc(needed, func(need string) bool { return slices.Contains(strings.Split(decision, " or "), need) }):
				t.Errorf("%s.%s needs %q, and it was decided that it needs %s", kind.Name(), name, needed, decision)
			}
		}
	}
}

// sample is what all texts, numbers and switches below a field are.
type sample struct {
	text   string
	number int64
	is     bool
}

// fill gives a value, and all that lies below it, what the sample is. Lists and maps get one entry.
func (s sample) fill(value reflect.Value) {
	switch value.Kind() {
	case reflect.String:
		value.SetString(s.text)
	case reflect.Bool:
		value.SetBool(s.is)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value.SetInt(s.number)
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		s.fill(value.Elem())
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		s.fill(value.Index(0))
	case reflect.Map:
		key, entry := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		s.fill(key)
		s.fill(entry)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, entry)
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Field(i).CanSet() {
				s.fill(value.Field(i))
			}
		}
	}
}
