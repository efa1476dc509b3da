/** Every text of the page, so that it can be translated. Nouns are those of the API. */

import {countOf} from "./lib/format.ts";
import type {Kind} from "./lib/kinds.ts";
import type {Need} from "./lib/permissions.ts";
import type {Verb} from "./lib/actions.ts";

export const app = "Heliostat";

export const kindNames: Record<Kind, {one: string; many: string}> = {
  clusters: {one: "Cluster", many: "Clusters"},
  jobs: {one: "Job", many: "Jobs"},
  schedules: {one: "Schedule", many: "Schedules"},
  services: {one: "Service", many: "Services"},
};

export const frame = {
  skip: "Skip to the content",
  navigation: "Main",
  objects: "Objects",
  create: "Create",
  me: "Account",
  loading: "Loading …",
  connection: {
    connecting: "Connecting",
    live: "Live",
    reconnecting: "Reconnecting",
    stale: "May be old",
    off: "Not live",
  },
  connectionTitle: {
    connecting: "The page asks for changes",
    live: "Changes show as they happen",
    reconnecting: "The connection broke, and the page connects again. What you see may be old",
    stale: "The server does not hear from Kubernetes. What you see may be old",
    off: "Nothing is followed here",
  },
  trouble: "That did not work",
  tryAgain: "Try again",
  notFound: "There is nothing at this address",
  notFoundHelp: "Go to the list of objects",
};

export const list = {
  title: "Objects",
  all: "All",
  kinds: "Kinds",
  filters: "Filters",
  search: "Search",
  searchHint: "Name, owner or reason",
  namespace: "Namespace",
  everyNamespace: "All namespaces",
  phase: "Phase",
  everyPhase: "All phases",
  clear: "Clear filters",
  caption: (kind: string) =>
    kind ? `${kind}, one line each` : "Clusters, jobs, schedules and services, one line each",
  columns: {name: "Name", phase: "Phase", why: "Why", owner: "Owner", gpus: "GPUs", since: "Since"},
  sortHint: "Sort by",
  count: (shown: number, all: number) =>
    shown === all
      ? countOf(all, "object", "objects")
      : `${shown.toLocaleString()} of ${countOf(all, "object", "objects")}`,
  more: (count: number) => `Show ${count.toLocaleString()} more`,
  waiting: (count: number) => `${countOf(count, "change", "changes")} of rows wait until you leave the table`,
  gone: "Deleted",
  next: (message: string, time: string) => `${message}; next on ${time}`,
  none: "No object is there yet",
  noneFound: "No object matches the filters",
  noneHelp: "Create one from a preset, or with kubectl:",
  noNamespace: "There is no namespace in which you can list anything",
  noNamespaceHelp: "An administrator can give you the role view or edit in a namespace:",
  noNamespaceCommand: (user: string) =>
    `kubectl create rolebinding ray-users -n NAMESPACE --clusterrole=edit --user='${user.replace(/'/g, "'\\''")}'`,
  fill: (kind: Kind | "", namespace: string) => fillCommand(kind, namespace || "NAMESPACE"),
};

const samples: Record<Kind, string> = {
  clusters: `kind: ComputeCluster
metadata: {name: demo}
spec:
  rayVersion: 2.60.0
  workerGroups:
  - {name: cpu, replicas: 1}`,
  jobs: `kind: ClusterJob
metadata: {name: hello}
spec:
  clusterRef: {name: demo}
  entrypoint: python -c "print('hello')"`,
  schedules: `kind: ClusterJobSchedule
metadata: {name: nightly}
spec:
  schedule: "30 2 * * *"
  jobTemplate:
    spec:
      clusterRef: {name: demo}
      entrypoint: python report.py`,
  services: `kind: ClusterService
metadata: {name: api}
spec:
  clusterRef: {name: demo}
  serveConfig:
    applications:
    - {name: app, import_path: "app:app"}`,
};

function fillCommand(kind: Kind | "", namespace: string): string {
  return `kubectl apply -n ${namespace} -f - <<'EOF'\napiVersion: heliostat.dev/v1beta1\n${samples[kind || "clusters"]}\nEOF`;
}

export const detail = {
  sections: {
    why: "Why",
    phases: "Phases",
    groups: "Worker groups",
    jobs: "Jobs",
    pods: "Pods",
    events: "Events",
    attempts: "Attempts",
    versions: "Versions",
    output: "Output",
    links: "Links",
    actions: "Actions",
    facts: "Facts",
  },
  facts: {
    namespace: "Namespace",
    owner: "Owner",
    created: "Created",
    gpus: "GPUs",
    cluster: "Cluster",
    rayVersion: "Ray version",
    idleSince: "Idle since",
    gang: "Gang",
    schedule: "Schedule",
    last: "Last job for",
    next: "Next job",
    policy: "While a job runs",
    entrypoint: "Entrypoint",
    url: "Address",
  },
  gang: (gang: {ready?: number; replicas?: number; restarts?: number}) =>
    `${gang.ready ?? 0} of ${gang.replicas ?? 0} replicas ready, ${countOf(gang.restarts ?? 0, "restart", "restarts")}`,
  dashboard: "Ray dashboard",
  open: "Open the service",
  helps: "What helps:",
  deleted: "This object was deleted.",
  deletedHelp: "Go to the list of objects",
  about: (kind: string, name: string) => `${kind} ${name}`,
  hidden: (what: string) => `You cannot list ${what} here, so they are left out.`,
  groupColumns: {name: "Group", ready: "Ready", desired: "Wanted", why: "Why"},
  policies: {
    Allow: "The next one starts beside it",
    Forbid: "The next one waits for its end",
    Replace: "It is deleted for the next one",
  } as Record<string, string>,
  jobColumns: {name: "Job", phase: "Phase", why: "Why", created: "Created"},
  podColumns: {name: "Pod", role: "Role", phase: "Phase", restarts: "Restarts", node: "Node", age: "Age"},
  eventColumns: {time: "When", type: "Type", reason: "Reason", message: "Message", count: "Count"},
  attemptColumns: {
    number: "Attempt",
    start: "Began",
    took: "Took",
    end: "How it ended",
    exit: "Exit code",
    output: "Output",
  },
  versionColumns: {
    version: "Version",
    role: "Role",
    traffic: "Traffic",
    cluster: "Cluster",
    applications: "Applications",
    endpoints: "Ready endpoints",
    state: "State",
  },
  roles: {active: "Active", candidate: "Candidate"},
  healthy: "Healthy",
  unhealthy: "Not healthy",
  ready: "Ready",
  notReady: "Not ready",
  noJobs: "No job has started yet, or none is kept.",
  noPods: "There is no pod.",
  noEvents: "There is no event from the last hour.",
  noGroups: "There is no worker group.",
  noAttempts: "There was no attempt yet.",
  noVersions: "There is no version yet.",
  showOutput: (attempt: number) => `Show the output of attempt ${attempt}`,
  show: "Show",
  running: "Runs",
  phaseStates: {Done: "Done", Current: "Now", Failed: "Failed", Pending: "To come"} as Record<string, string>,
  announce: (name: string, phase: string) => `${name} is ${phase}`,
  ago: (age: string) => `${age} ago`,
};

export const output = {
  label: (name: string, attempt: number) => (attempt ? `Output of ${name}, attempt ${attempt}` : `Output of ${name}`),
  search: "Search the output",
  matches: (at: number, count: number, most: boolean) =>
    count === 0 ? "No match" : `${at} of ${count.toLocaleString()}${most ? " or more" : ""}`,
  previous: "Previous match",
  next: "Next match",
  follow: "Follow",
  newLines: (count: number) => `${countOf(count, "new line", "new lines")} below`,
  whole: "Open the whole output",
  lines: (count: number) => countOf(count, "line", "lines"),
  dropped: (count: number) => `The first ${countOf(count, "line is", "lines are")} left out here.`,
  waiting: "Nothing has been written yet.",
  outcomes: {
    Succeeded: "The job succeeded",
    Failed: "The job failed",
    Stopped: "The job was stopped",
    Pending: "The job has not begun",
    Running: "The job runs",
    Broken: "The output could not be read to its end",
  } as Record<string, string>,
  exitCode: (code: number) => `exit code ${code}`,
  again: "Read again",
  none: "You cannot read the output.",
};

export const actions: Record<Verb, string> = {
  suspend: "Suspend",
  resume: "Resume",
  scale: "Scale",
  stop: "Stop",
  retry: "Retry",
  undo: "Undo",
  delete: "Delete",
};

const scheduleEffects: Partial<Record<Verb, string>> = {
  suspend: "No more jobs start. Jobs that have started go on.",
  resume: "Jobs start again at the times that follow.",
  delete: "The schedule is deleted for good, with all of its jobs.",
};

export const action = {
  cancel: "Cancel",
  missing: (need: Need, namespace: string) => `You need the permission ${need.verb} ${need.resource} in ${namespace}`,
  question: (verb: Verb, kind: string, name: string) => `${actions[verb]} ${kind.toLowerCase()} ${name}?`,
  effect: {
    suspend: "Its pods are deleted, and what runs in them ends. The object stays, and can be resumed.",
    resume: "Its pods are created again.",
    scale: "Pods are created, or drained and deleted, until the group has as many.",
    stop: "The job ends for good. The object stays.",
    retry: "A new job is created from the spec of this one.",
    undo: "The service goes back to an earlier version. Requests go on while it does.",
    delete: "The object is deleted for good, with all that belongs to it.",
  } as Record<Verb, string>,
  effectOf: (verb: Verb, kind: string | undefined) =>
    (kind === "schedules" && scheduleEffects[verb]) || action.effect[verb],
  removes: "This removes:",
  removesPods: (count: number) => countOf(count, "pod", "pods"),
  removesJobs: (count: number) => countOf(count, "job", "jobs"),
  removesCluster: "cluster",
  group: "Worker group",
  replicas: "Replicas",
  version: "Version",
  versionHint: "Leave it empty for the version before",
  done: {
    suspend: "Suspending",
    resume: "Resuming",
    scale: "Scaling",
    stop: "Stopping",
    retry: "Created again",
    undo: "Going back",
    delete: "Deleting",
  } as Record<Verb, string>,
  nothing: "There was nothing to do",
  busy: "Working …",
};

export const create = {
  title: "Create from a preset",
  namespace: "Namespace",
  preset: "Preset",
  choose: "Choose a preset",
  options: "Options",
  required: "required",
  unset: "Not set",
  perLine: "One entry per line",
  submit: "Create",
  preview: "What will be created",
  manifest: "Manifest",
  command: "The same with kubectl",
  commandText: (namespace: string, manifest: string) => `kubectl create -n ${namespace} -f - <<'EOF'\n${manifest}EOF`,
  checking: "Checking …",
  good: "Everything is in order.",
  bad: (count: number) => countOf(count, "thing needs a change", "things need a change"),
  before: "Fill in the options to see the manifest.",
  warnings: "Warnings",
  unusable: "This preset cannot be used:",
  none: "There is no preset in this namespace",
  noneHelp: "An administrator can add one. Or create an object with kubectl:",
  noNamespace: "There is no namespace in which you can create something",
  copy: "Copy",
  copied: "Copied",
  done: "Created",
};

export const account = {
  title: "Account",
  name: "Name",
  groups: "Groups",
  method: "Signed in by",
  issuer: "Issuer",
  until: "Until",
  namespaces: "What you can do where",
  columns: {namespace: "Namespace", resource: "Resource", verbs: "Verbs"},
  noVerbs: "none",
  signOut: "Sign out",
};

export const signin = {
  title: "Sign in",
  intro: "See your clusters, jobs, schedules and services, why they wait, and their output.",
  oidc: (name: string) => `Sign in at ${name}`,
  or: "or",
  token: "Kubernetes token",
  tokenHint: "A token that the API server accepts, for example of:",
  tokenCommand: "kubectl create token ACCOUNT -n NAMESPACE",
  submit: "Sign in",
  frontProxy: "You are signed in by the proxy before this page. Ask its administrator where it does not let you in.",
  none: "No way to sign in is set up. Ask the administrator of this server.",
  already: (user: string) => `You are signed in as ${user}.`,
  goOn: "Go on",
};
