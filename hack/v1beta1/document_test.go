package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// spec returns an object of v1alpha1 with a spec.
func spec(kind, text string) string {
	return "apiVersion: heliostat.dev/v1alpha1\nkind: " + kind + "\nmetadata:\n  name: a\nspec:\n" + text
}

// want returns the expected result.
func want(kind, text string) string {
	return strings.Replace(spec(kind, text), "v1alpha1", "v1beta1", 1)
}

// fields are parts of specs as v1alpha1 and v1beta1 have them.
var fields = map[string]struct{ kind, from, to string }{
	"no field":   {"ComputeCluster", "  rayVersion: \"2.60.0\" # the newest\n", "  rayVersion: \"2.60.0\" # the newest\n"},
	"do nothing": {"ComputeCluster", "  upgradeStrategy: {type: OnDelete}\n", "  upgradeStrategy: {type: None}\n"},
	"recreate":   {"ComputeCluster", "  upgradeStrategy: {type: Recreate}\n", "  upgradeStrategy: {type: Recreate}\n"},
	"pace": {
		"ComputeCluster",
		"  upgradeStrategy:\n    type: RollingWorkers\n    # slowly\n    rolling: {maxUnavailable: 1, maxSurge: 0}\n",
		"  upgradeStrategy:\n    type: RollingWorkers\n    # slowly\n    rollingWorkers: {maxUnavailable: 1, maxSurge: 0}\n",
	},
	"encryption": {
		"ComputeCluster", "  network:\n    encryption: Required # TLS\n",
		"  network:\n    encryption: Enabled # TLS\n",
	},
	"empty texts of a cluster": {
		"ComputeCluster",
		"  image: \"\"\n  autoscaling: {image: '', pace: Default}\n  workerGroups:\n  - name: cpu\n    image: \"\" # the cluster's\n" +
			"  - {image: '', name: gpu}\n  - {image: a, name: tpu}\n  controlStore: {managedRedis: {image: \"\", storageClassName: \"\"}}\n",
		"  autoscaling: {pace: Default}\n  workerGroups:\n  - name: cpu\n  - {name: gpu}\n  - {image: a, name: tpu}\n" +
			"  controlStore: {managedRedis: {storageClassName: \"\"}}\n",
	},
	"empty texts of a service": {
		"ClusterService",
		"  healthPath: \"\"\n  upgrade:\n    gateway: {parentRef: {name: a, namespace: '', sectionName: ''}}\n" +
			"  clusterTemplate: {spec: {rayVersion: a, image: ''}}\n",
		"  upgradeStrategy:\n    gateway: {parentRef: {name: a}}\n  clusterTemplate: {spec: {rayVersion: a}}\n",
	},
	"empty texts of a job": {
		"ClusterJob", "  clusterTemplate: {spec: {rayVersion: a, image: ''}}\n", "  clusterTemplate: {spec: {rayVersion: a}}\n",
	},
	"empty texts of a schedule": {
		"ClusterJobSchedule",
		"  schedule: '@daily'\n  timeZone: \"\"\n  jobTemplate: {spec: {clusterTemplate: {spec: {rayVersion: a, image: ''}}}}\n",
		"  schedule: '@daily'\n  jobTemplate: {spec: {clusterTemplate: {spec: {rayVersion: a}}}}\n",
	},
	"null is no text": {"ComputeCluster", "  rayVersion: a\n  image: null\n", "  rayVersion: a\n  image: null\n"},
	"no encryption":   {"ComputeCluster", "  network: {encryption: Disabled}\n", "  network: {encryption: Disabled}\n"},
	"ports of Ray": {
		"ComputeCluster",
		"  head:\n    service:\n      type: NodePort\n      nodePorts: {client: 30001, dashboard: 30002}\n" +
			"      sessionAffinity: ClientIP\n",
		"  head:\n    service:\n      type: NodePort\n" +
			"      ports: [{name: client, nodePort: 30001}, {name: dashboard, nodePort: 30002}]\n      sessionAffinity: ClientIP\n",
	},
	"a port that has an entry": {
		"ComputeCluster",
		"  head:\n    service:\n      ports:\n      - name: web\n        port: 80\n      nodePorts:\n" +
			"        web: 30080 # of the firewall\n        # Ray's own\n        gcs: 30001\n",
		"  head:\n    service:\n      ports:\n      - name: web\n        port: 80\n" +
			"        nodePort: 30080 # of the firewall\n      # Ray's own\n      - name: gcs\n        nodePort: 30001\n",
	},
	"no node ports": {
		"ComputeCluster", "  head:\n    service:\n      type: NodePort\n      nodePorts: {}\n",
		"  head:\n    service:\n      type: NodePort\n",
	},
	"a job's cluster": {
		"ClusterJob", "  clusterTemplate:\n    spec:\n      network: {encryption: Required}\n", "  clusterTemplate:\n" +
			"    spec:\n      network: {encryption: Enabled}\n",
	},
	"a job without a cluster": {"ClusterJob", "  clusterRef: {name: b}\n", "  clusterRef: {name: b}\n"},
	"a schedule's cluster": {
		"ClusterJobSchedule",
		"  jobTemplate:\n    spec:\n      clusterTemplate:\n        spec:\n          upgradeStrategy: {type: OnDelete}\n",
		"  jobTemplate:\n    spec:\n      clusterTemplate:\n        spec:\n          upgradeStrategy: {type: None}\n",
	},
	"a service's cluster and ports": {
		"ClusterService",
		"  service:\n    ports: [{name: http, port: 80}]\n    nodePorts: {http: 30080, grpc: 30090}\n  clusterTemplate:\n" +
			"    spec:\n      upgradeStrategy: {type: OnDelete}\n",
		"  service:\n    ports: [{name: http, port: 80, nodePort: 30080}, {name: grpc, nodePort: 30090}]\n" +
			"  clusterTemplate:\n    spec:\n      upgradeStrategy: {type: None}\n",
	},
	"an upgrade": {
		"ClusterService",
		"  upgrade:\n    strategy: Surge\n    maxSurgePercent: 50 # half\n    stepPercent: 10\n    intervalSeconds: 5\n" +
			"    drainSeconds: 60 # of requests\n  suspend: true\n",
		"  upgradeStrategy:\n    type: Surge\n    surge:\n      maxSurgePercent: 50 # half\n      stepPercent: 10\n" +
			"      intervalSeconds: 5\n    drainSeconds: 60 # of requests\n  suspend: true\n",
	},
	"an upgrade without a strategy": {
		"ClusterService", "  upgrade: {stepPercent: 10, autoRollback: false}\n",
		"  upgradeStrategy: {surge: {stepPercent: 10}, autoRollback: false}\n",
	},
	"no upgrade for now": {
		"ClusterService", "  upgrade: {strategy: None, stepPercent: 10}\n",
		"  upgradeStrategy: {type: None, surge: {stepPercent: 10}}\n",
	},
	"defaults of another strategy": {
		"ClusterService",
		"  upgrade:\n    autoRollback: true\n    intervalSeconds: 10\n    maxSurgePercent: 100\n    stepPercent: 20\n" +
			"    strategy: InPlace\n",
		"  upgradeStrategy:\n    autoRollback: true\n    type: InPlace\n",
	},
	"an anchor": {
		"ComputeCluster", "  head:\n    template: &code {spec: {}}\n  workerGroups:\n  - name: cpu\n    template: *code\n",
		"  head:\n    template: &code {spec: {}}\n  workerGroups:\n  - name: cpu\n    template: *code\n",
	},
}

func TestRewrite_MapsFields(t *testing.T) {
	for name, c := range fields {
		t.Run(name, func(t *testing.T) {
			expect(t, spec(c.kind, c.from), want(c.kind, c.to))
		})
	}
}

// expect rewrites a text twice: what was rewritten stays as it is.
func expect(t *testing.T, from, to string, notes ...string) {
	t.Helper()
	got, said, err := Rewrite([]byte(from))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(to, string(got)); diff != "" {
		t.Errorf("it is written otherwise (- wanted):\n%s", diff)
	}
	if diff := cmp.Diff(notes, said); diff != "" {
		t.Errorf("it says other things (- wanted):\n%s", diff)
	}
	again, said, err := Rewrite(got)
	if err != nil || !bytes.Equal(again, got) || len(said) > 0 {
		t.Errorf("a second time it is %q, %q, %v", again, said, err)
	}
}

func TestRewrite_KeepsWhatIsNotOurs(t *testing.T) {
	const other = "# words\n---  # a divider\n\napiVersion: v1\nkind:   ConfigMap # spaced\nmetadata: { name: c }\n"
	const current = "apiVersion: heliostat.dev/v1beta1\nkind: ComputeCluster\nmetadata: { name: a, uid: b }\nstatus: {phase: Ready}\n"
	for _, text := range []string{"", "# words\n", "---\n", other, current, other + "---\n" + current + "---\n", "[1, 2]\n"} {
		expect(t, text, text)
	}
	expect(t, other+"---\n# Above.\n\n"+spec("ComputeCluster", "  network: {encryption: Required}\n")+"# Below.\n---\n"+other,
		other+"---\n# Above.\n\n"+want("ComputeCluster", "  network: {encryption: Enabled}\n")+"# Below.\n---\n"+other)
}

func TestRewrite_TakesOutWhatOthersSet(t *testing.T) {
	const from = `apiVersion: heliostat.dev/v1alpha1
kind: ComputeCluster
metadata:
  annotations:
    heliostat.dev/record: "{}"
    heliostat.dev/resume: now
    kubectl.kubernetes.io/last-applied-configuration: "{}"
    example.com/mine: a
  creationTimestamp: "2026-11-29T00:00:00Z"
  finalizers: [heliostat.dev/run, example.com/mine]
  generation: 3
  labels: {heliostat.dev/schedule: b}
  managedFields: []
  name: a
  ownerReferences:
  - {apiVersion: heliostat.dev/v1alpha1, kind: ClusterJob, name: b, uid: c}
  - {apiVersion: v1, kind: ConfigMap, name: b, uid: c, controller: true}
  resourceVersion: "5"
  selfLink: /a
  uid: d
spec:
  rayVersion: 2.60.0
status:
  phase: Ready
`
	expect(t, from, `apiVersion: heliostat.dev/v1beta1
kind: ComputeCluster
metadata:
  annotations:
    heliostat.dev/resume: now
    example.com/mine: a
  finalizers: [example.com/mine]
  name: a
  ownerReferences:
  - {apiVersion: v1, kind: ConfigMap, name: b, uid: c, controller: true}
spec:
  rayVersion: 2.60.0
`)
}

func TestRewrite_LeavesOut(t *testing.T) {
	const head = "apiVersion: heliostat.dev/v1alpha1\nkind: ClusterJob\nmetadata: {name: a, namespace: ns"
	const owner = ", ownerReferences: [{apiVersion: heliostat.dev/v1alpha1, kind: ClusterJobSchedule, name: nightly, controller: true}]"
	for name, c := range map[string]struct{ text, note string }{
		"what is owned": {head + owner + "}\n", "left out: it belongs to ClusterJobSchedule/nightly, which creates its own again"},
		"what is deleted": {
			head + ", deletionTimestamp: 2026-11-29T00:00:00Z}\n",
			"left out: it is being deleted since 2026-11-29T00:00:00Z",
		},
		"a job that succeeded": {
			head + "}\nstatus: {conditions: [{type: Complete, status: 'True'}]}\n",
			"left out: it has ended as Complete, and would run once more",
		},
		"a job that failed": {
			head + "}\nstatus: {conditions: [{type: Complete, status: 'False'}, {type: Failed, status: 'True'}]}\n",
			"left out: it has ended as Failed, and would run once more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, "---\n"+c.text+"---\na: 1\n", "---\n---\na: 1\n", "document 1, ClusterJob/a in ns: "+c.note)
		})
	}
	const running = head + "}\nstatus: {conditions: [{type: Complete, status: 'False'}]}\n"
	expect(t, running, "apiVersion: heliostat.dev/v1beta1\nkind: ClusterJob\nmetadata: {name: a, namespace: ns}\n")
	expect(t, spec("ClusterService", "  upgrade: {strategy: InPlace, stepPercent: 50}\n"),
		want("ClusterService", "  upgradeStrategy: {type: InPlace}\n"),
		"document 1, ClusterService/a: spec.upgrade.stepPercent: 50 is left out, because it has no effect with InPlace")
	const preset = "apiVersion: v1\nkind: ConfigMap\ndata: {a: \"apiVersion: heliostat.dev/v1alpha1\"}\n"
	got, said, err := Rewrite([]byte(preset))
	if err != nil || string(got) != preset || len(said) != 1 || !strings.Contains(said[0], "rewrite that by hand") {
		t.Errorf("a preset is %q, %q, %v", got, said, err)
	}
}

func TestRewrite_ReadsLists(t *testing.T) {
	const list = `apiVersion: v1
items:
- apiVersion: heliostat.dev/v1alpha1
  kind: ComputeCluster
  metadata: {name: a}
  spec: {network: {encryption: Required}}
- apiVersion: heliostat.dev/v1alpha1
  kind: ComputeCluster
  metadata: {name: b, ownerReferences: [{apiVersion: heliostat.dev/v1alpha1, kind: ClusterJob, name: c, controller: true}]}
- apiVersion: v1
  kind: ConfigMap
kind: List
metadata:
  resourceVersion: ""
`
	expect(t, list, `apiVersion: v1
items:
- apiVersion: heliostat.dev/v1beta1
  kind: ComputeCluster
  metadata: {name: a}
  spec: {network: {encryption: Enabled}}
- apiVersion: v1
  kind: ConfigMap
kind: List
metadata:
  resourceVersion: ""
`, "document 1, ComputeCluster/b: left out: it belongs to ClusterJob/c, which creates its own again")
	const head, tail = `{"apiVersion": "v1", "items": [{"apiVersion": "heliostat.dev/`, `}}}], "kind": "List"}` + "\n"
	expect(t, head+`v1alpha1", "kind": "ClusterService", "spec": {"service": {"nodePorts": {"http": 30080}`+tail,
		head+`v1beta1", "kind": "ClusterService", "spec": {"service": {"ports": [{"name": "http", "nodePort": 30080}]`+tail)
}

func TestRewrite_NamesWhatItCannotRewrite(t *testing.T) {
	for name, c := range map[string]struct{ kind, text, want string }{
		"an unknown kind": {"ComputeClusters", "", "kind: there is no ComputeClusters"},
		"an unknown strategy": {
			"ComputeCluster", "  upgradeStrategy: {type: Surge}\n",
			`spec.upgradeStrategy.type: v1alpha1 has no "Surge"`,
		},
		"a field of v1beta1": {
			"ComputeCluster", "  upgradeStrategy: {rollingWorkers: {}}\n",
			"spec.upgradeStrategy.rollingWorkers: v1alpha1 does not have it",
		},
		"a port that is missing": {
			"ComputeCluster", "  head: {service: {nodePorts: {web: 30080}}}\n",
			"spec.head.service.nodePorts.web: spec.head.service.ports has no such port",
		},
		"a port twice": {
			"ComputeCluster", "  head: {service: {nodePorts: {gcs: 1, gcs: 2}}}\n",
			"spec.head.service.nodePorts.gcs: it is there twice",
		},
		"no number": {
			"ComputeCluster", "  head: {service: {nodePorts: {gcs: \"1\"}}}\n",
			`spec.head.service.nodePorts.gcs: "1" is no number`,
		},
		"a node port beside": {
			"ClusterService", "  service: {ports: [{name: http, nodePort: 3}], nodePorts: {http: 2}}\n",
			"spec.service.ports[0].nodePort: v1alpha1 does not have it",
		},
		"an object for a text": {"ComputeCluster", "  image: {}\n", "spec.image: it is of another type"},
		"no list of groups":    {"ComputeCluster", "  workerGroups: {}\n", "spec.workerGroups: it is of another type"},
		"a group by an alias": {
			"ComputeCluster", "  x: &x {name: a}\n  workerGroups: [*x]\n", "spec.workerGroups[0]: it is an alias",
		},
		"a text for an object": {
			"ClusterService", "  clusterTemplate: {spec: a}\n",
			"spec.clusterTemplate.spec: it is of another type",
		},
		"both upgrades": {
			"ClusterService", "  upgrade: {}\n  upgradeStrategy: {}\n",
			"spec.upgradeStrategy: v1alpha1 does not have it",
		},
		"an alias": {"ClusterService", "  x: &x {stepPercent: 3}\n  upgrade: *x\n", "spec.upgrade: it is an alias"},
		"a merge": {
			"ClusterService", "  x: &x {stepPercent: 3}\n  upgrade: {<<: *x}\n",
			"spec.upgrade.<<: it has the key <<",
		},
		"no YAML":    {"ClusterService", "  a: [\n", "yaml"},
		"two in one": {"ClusterService", "  a: b\n--- {c: d}\n", "line 7 of it begins or ends a document"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := Rewrite([]byte("a: 1\n---\n" + spec(c.kind, c.text)))
			if got != nil || err == nil || !strings.Contains(err.Error(), "document 2") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it is %q, %v, and not %q", got, err, c.want)
			}
		})
	}
}

func TestRun_ReadsFilesOrItsInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	text := spec("ComputeCluster", "  rayVersion: a")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var fromFiles, fromInput, notes bytes.Buffer
	if err := run([]string{file, file}, nil, &fromFiles, &notes); err != nil {
		t.Fatal(err)
	}
	if err := run(nil, strings.NewReader(text+"\n---\n"+text+"\n"), &fromInput, &notes); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fromInput.String(), fromFiles.String()); diff != "" || notes.Len() > 0 {
		t.Errorf("files are read otherwise, with %q:\n%s", notes.String(), diff)
	}
	fromInput.Reset()
	if err := run(nil, strings.NewReader(text+"\n---\n"+spec("X", "")), &fromInput, &notes); err == nil || fromInput.Len() > 0 {
		t.Errorf("of an object that it cannot rewrite it writes %q: %v", fromInput.String(), err)
	}
}
