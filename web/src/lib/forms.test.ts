import assert from "node:assert/strict";
import {test} from "node:test";
import {actionsOf, groupsOf, remedyOf, removedBy} from "./actions.ts";
import {absoluteOf, ageOf, countOf, durationOf, spanOf} from "./format.ts";
import {can, whereCan} from "./permissions.ts";
import {fieldsOf, initialValues, optionsOf} from "./schema.ts";
import {linksOf, type Session} from "./session.ts";
import {documentOf, toYaml} from "./yaml.ts";

const nobody: Session = {signedIn: false, ways: [], links: [], to: "/ui/"};

const schema = {
  type: "object",
  required: ["name", "size"],
  properties: {
    workers: {type: "integer", title: "Workers", minimum: 0, maximum: 4, default: 1},
    name: {type: "string", maxLength: 40},
    size: {enum: ["small", 2, true]},
    spot: {type: "boolean", default: true},
    packages: {type: "array", items: {type: "string"}, default: ["numpy"]},
  },
};

test("schema: a form has a field for each option, required ones first", () => {
  const fields = fieldsOf(schema);
  assert.deepEqual(
    fields.map((field) => [field.name, field.title, field.input, field.initial]),
    [
      ["name", "name", "text", ""],
      ["size", "size", "choice", ""],
      ["workers", "Workers", "number", "1"],
      ["spot", "spot", "yesno", "true"],
      ["packages", "packages", "list", "numpy"],
    ],
  );
  assert.deepEqual(fieldsOf(undefined), []);
});

test("schema: a form says options in the types of their schemas", () => {
  const fields = fieldsOf(schema);
  assert.deepEqual(optionsOf(fields, initialValues(fields)), {workers: 1, spot: true, packages: ["numpy"]});
  const filled = {name: "a", size: "2", workers: "x", spot: "false", packages: " torch \n\nray"};
  assert.deepEqual(optionsOf(fields, filled), {
    name: "a",
    size: 2,
    workers: "x",
    spot: false,
    packages: ["torch", "ray"],
  });
});

test("yaml: a manifest is what kubectl reads", () => {
  const object = {
    apiVersion: "heliostat.dev/v1beta1",
    kind: "ClusterJob",
    metadata: {name: "a", uid: "1", annotations: {"heliostat.dev/owner": "me", note: "1"}},
    status: {phase: "x"},
    spec: {
      entrypoint: "python -c \"print('yes')\"",
      env: [
        {name: "ON", value: "yes"},
        {name: "LEVEL", value: "1"},
      ],
      steps: [[1, 2], []],
      script: "a\nb",
      none: {},
    },
  };
  assert.equal(
    documentOf(object),
    `apiVersion: heliostat.dev/v1beta1
kind: ClusterJob
metadata:
  name: a
  annotations:
    note: "1"
spec:
  entrypoint: "python -c \\"print('yes')\\""
  env:
  - name: "ON"
    value: "yes"
  - name: LEVEL
    value: "1"
  steps:
  - - 1
    - 2
  - []
  script: |-
    a
    b
  none: {}
`,
  );
  assert.equal(toYaml(" a\nb\u2028"), ' " a\\nb\u2028"\n');
});

test("permissions: they hold in their namespace", () => {
  const here = [{name: "a", permissions: [{resource: "clusterjobs", verbs: ["list", "patch"]}]}, {name: "b"}];
  const need = {verb: "patch", resource: "clusterjobs"};
  assert.ok(
    can(here, "a", need) &&
      !can(here, "b", need) &&
      !can(here, "c", need) &&
      !can(here, "a", {...need, verb: "delete"}),
  );
  assert.deepEqual(whereCan(here, need), ["a"]);
});

test("actions: they follow from kind and phase", () => {
  const cases: [string, string, string, string | undefined][] = [
    ["clusters", "Ready", "suspend scale delete", undefined],
    ["clusters", "Suspended", "resume scale delete", "resume"],
    ["jobs", "Running", "suspend stop delete", undefined],
    ["jobs", "Failed", "retry delete", "retry"],
    ["jobs", "Succeeded", "retry delete", undefined],
    ["schedules", "Running", "suspend delete", undefined],
    ["schedules", "Suspended", "resume delete", "resume"],
    ["services", "Ready", "suspend undo delete", undefined],
    ["services", "Degraded", "suspend undo delete", "undo"],
    ["clusters", "Deleting", "", undefined],
  ];
  for (const [kind, phase, want, helps] of cases) {
    assert.equal(
      actionsOf({kind, phase})
        .map((action) => action.verb)
        .join(" "),
      want,
      `${kind} ${phase}`,
    );
    assert.equal(remedyOf({kind, phase}), helps, `${kind} ${phase}`);
  }
  assert.deepEqual(
    actionsOf({kind: "jobs", phase: "Failed"}).map((action) => action.need.verb),
    ["create", "delete"],
  );
});

test("actions: what is removed is named, and what is shared is not", () => {
  const pods = [{name: "p"}];
  const cluster = {
    line: {kind: "clusters"},
    object: {spec: {workerGroups: [{name: "cpu", replicas: 2, maxReplicas: 4}]}},
    pods,
  };
  assert.deepEqual(removedBy("suspend", cluster), {pods: ["p"], clusters: [], jobs: [], isKept: true});
  assert.deepEqual(removedBy("delete", cluster), {pods: ["p"], clusters: [], jobs: [], isKept: false});
  assert.equal(removedBy("resume", cluster), undefined);
  assert.deepEqual(groupsOf(cluster), [{name: "cpu", replicas: 2, minimum: 0, maximum: 4}]);
  const shared = {line: {kind: "jobs"}, object: {spec: {clusterRef: {name: "c"}}, status: {clusterName: "c"}}, pods};
  assert.deepEqual(removedBy("delete", shared), {pods: [], clusters: [], jobs: [], isKept: false});
  const own = {
    line: {kind: "services"},
    object: {spec: {clusterTemplate: {}}, status: {active: {clusterName: "s-1"}, candidate: {clusterName: "s-2"}}},
    pods,
  };
  assert.deepEqual(removedBy("delete", own), {pods: ["p"], clusters: ["s-1", "s-2"], jobs: [], isKept: false});
  const schedule = {line: {kind: "schedules"}, object: {spec: {}}, jobs: [{name: "nightly-1"}]};
  assert.deepEqual(removedBy("delete", schedule), {pods: [], clusters: [], jobs: ["nightly-1"], isKept: false});
  assert.deepEqual(removedBy("suspend", schedule), {pods: [], clusters: [], jobs: [], isKept: true});
});

test("session: links are of the web, with what they are about escaped", () => {
  const links = [
    {name: "logs", urlTemplate: "https://l/?q=${namespace}/${name}&from=${start}&to=${end}&x=${what}"},
    {name: "bad", urlTemplate: "javascript:alert(1)"},
    {name: "jobs", urlTemplate: "https://j/", kind: "ClusterJob"},
  ];
  const line = {kind: "clusters", namespace: "a", name: "b&c", created: "1970-01-01T00:00:01Z"};
  assert.deepEqual(linksOf({...nobody, links}, line, 2000), [
    {title: "logs", url: "https://l/?q=a/b%26c&from=1000&to=2000&x="},
  ]);
});

test("format: spans have their two largest units, ages one", () => {
  const cases: [number, string][] = [
    [0, "0 s"],
    [999, "1 s"],
    [61_000, "1 min 1 s"],
    [3_600_000, "1 h"],
    [90_000_000, "1 d 1 h"],
  ];
  for (const [span, want] of cases) assert.equal(durationOf(span), want);
  const now = Date.parse("2026-01-01T01:00:30Z");
  assert.equal(ageOf("2026-01-01T00:59:00Z", now), "1 min");
  assert.equal(ageOf("2026-01-01T02:00:00Z", now), "0 s", "clocks differ");
  assert.equal(ageOf(undefined, now), "");
  assert.equal(spanOf("2026-01-01T01:00:00Z", undefined, now), "30 s");
  assert.equal(spanOf(undefined, undefined, now), "");
  assert.equal(absoluteOf("never"), "never");
  assert.equal(countOf(1, "line", "lines"), "1 line");
});
