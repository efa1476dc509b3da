// Generated from apiserver/rest/openapi.json by "npm run types"; do not edit.

export type KubernetesObject = Record<string, any>;

export interface Problem {
  detail: string;
  errors?: {
    field: string;
    message: string;
    remedy?: string;
    rule?: string;
  }[];
  reason: string;
  remedy?: string;
  requestId?: string;
  status: number;
  title: string;
  type: string;
}

export interface ActionResponse {
  isChanged?: boolean;
  object?: KubernetesObject;
}

export interface Cause {
  code?: string;
  kind?: string;
  message?: string;
  name?: string;
  namespace?: string;
  remedy?: string;
  since?: string;
}

export interface ConvertManifestsResponse {
  differing?: number;
  fields?: ConvertedField[];
  objects?: Record<string, unknown>[];
  refused?: number;
  unread?: number;
  unused?: FieldError[];
}

export interface ConvertedField {
  differs?: boolean;
  document?: number;
  field?: string;
  kind?: string;
  line?: number;
  name?: string;
  namespace?: string;
  text?: string;
  to?: string;
  verdict?: string;
}

export interface CreateObjectResponse {
  isCreated?: boolean;
  object?: KubernetesObject;
  warnings?: string[];
}

export interface Deployment {
  application?: string;
  cluster?: string;
  name?: string;
}

export interface Event {
  count?: number;
  message?: string;
  reason?: string;
  time?: string;
  type?: string;
}

export interface FieldError {
  field?: string;
  message?: string;
  remedy?: string;
  rule?: string;
}

export interface GetMeResponse {
  groups?: string[];
  issuer?: string;
  method?: string;
  name?: string;
}

export interface GetObjectResponse {
  dashboard?: string;
  events?: Event[];
  hidden?: string[];
  line?: Line;
  object?: KubernetesObject;
  phases?: Phase[];
  pods?: Pod[];
  why?: Cause[];
}

export interface Line {
  activeJobs?: number;
  attempt?: number;
  cluster?: string;
  code?: string;
  created?: string;
  gpus?: number;
  idleSince?: string;
  kind?: string;
  labels?: Record<string, string>;
  lastScheduleTime?: string;
  message?: string;
  name?: string;
  namespace?: string;
  nextScheduleTime?: string;
  owner?: string;
  phase?: string;
  ready?: string;
  remedy?: string;
  resourceVersion?: string;
  since?: string;
  traffic?: Traffic[];
  uid?: string;
  version?: string;
}

export interface ListNamespacesResponse {
  namespaces?: Namespace[];
}

export interface ListObjectsResponse {
  continue?: string;
  cursor?: string;
  lines?: Line[];
}

export interface ListPresetsResponse {
  presets?: Preset[];
}

export interface ListReplicasResponse {
  deployments?: Deployment[];
  replicas?: Replica[];
}

export interface ListRoundsResponse {
  rounds?: Round[];
  silentNodes?: number;
  unaskedNodes?: number;
}

export interface ListSubmissionsResponse {
  submissions?: Submission[];
}

export interface Namespace {
  name?: string;
  permissions?: Permission[];
}

export interface Permission {
  resource?: string;
  verbs?: string[];
}

export interface Phase {
  name?: string;
  since?: string;
  state?: string;
  until?: string;
  waitsFor?: string;
}

export interface Pod {
  created?: string;
  group?: string;
  name?: string;
  node?: string;
  phase?: string;
  ready?: boolean;
  restarts?: number;
  role?: string;
}

export interface Preset {
  description?: string;
  error?: string;
  name?: string;
  namespace?: string;
  schema?: Record<string, unknown>;
  title?: string;
}

export interface Replica {
  application?: string;
  cluster?: string;
  deployment?: string;
  hasLog?: boolean;
  id?: string;
  state?: string;
}

export interface Round {
  hasOlder?: boolean;
  number?: number;
}

export interface Submission {
  ended?: string;
  entrypoint?: string;
  errorType?: string;
  exitCode?: number;
  id?: string;
  message?: string;
  metadata?: Record<string, string>;
  note?: string;
  started?: string;
  status?: string;
}

export interface Traffic {
  percent?: number;
  version?: string;
}

/** Answers has what each route answers. */
export interface Answers {
  "POST /v1/convert": ConvertManifestsResponse;
  "GET /v1/me": GetMeResponse;
  "GET /v1/namespaces": ListNamespacesResponse;
  "GET /v1/namespaces/{namespace}/clusters/{name}/submissions": ListSubmissionsResponse;
  "POST /v1/namespaces/{namespace}/clusters/{name}/submissions": Submission;
  "GET /v1/namespaces/{namespace}/clusters/{name}/submissions/{id}": Submission;
  "GET /v1/namespaces/{namespace}/clusters/{name}/submissions/{id}/log": string;
  "POST /v1/namespaces/{namespace}/clusters/{name}/submissions/{id}:stop": Submission;
  "GET /v1/namespaces/{namespace}/jobs/{name}/log": string;
  "GET /v1/namespaces/{namespace}/jobs/{name}/rounds": ListRoundsResponse;
  "POST /v1/namespaces/{namespace}/objects": CreateObjectResponse;
  "GET /v1/namespaces/{namespace}/presets": ListPresetsResponse;
  "GET /v1/namespaces/{namespace}/services/{name}/replicas": ListReplicasResponse;
  "GET /v1/namespaces/{namespace}/services/{name}/replicas/{id}/log": string;
  "GET /v1/namespaces/{namespace}/{kind}/{name}": GetObjectResponse;
  "POST /v1/namespaces/{namespace}/{kind}/{name}:resume": ActionResponse;
  "POST /v1/namespaces/{namespace}/{kind}/{name}:retry": ActionResponse;
  "POST /v1/namespaces/{namespace}/{kind}/{name}:scale": ActionResponse;
  "POST /v1/namespaces/{namespace}/{kind}/{name}:stop": ActionResponse;
  "POST /v1/namespaces/{namespace}/{kind}/{name}:suspend": ActionResponse;
  "POST /v1/namespaces/{namespace}/{kind}/{name}:undo": ActionResponse;
  "GET /v1/objects": ListObjectsResponse;
  "GET /v1/objects/watch": string;
}

/** Bodies has what is sent to routes that take something. */
export interface Bodies {
  "POST /v1/convert": {
    aliases?: boolean;
    command?: string;
    images?: string[];
    keepOpen?: boolean;
    labelSelectors?: string[];
    manifests?: string;
    onto?: string;
  };
  "POST /v1/namespaces/{namespace}/clusters/{name}/submissions": {
    entrypoint?: string;
    entrypointMemory?: string;
    entrypointNumCpus?: number;
    entrypointNumGpus?: number;
    entrypointResources?: Record<string, number>;
    id?: string;
    metadata?: Record<string, string>;
    runtimeEnv?: Record<string, unknown>;
  };
  "POST /v1/namespaces/{namespace}/objects": {
    dryRun?: boolean;
    idempotencyKey?: string;
    object?: Record<string, unknown>;
    options?: Record<string, unknown>;
    preset?: string;
  };
  "POST /v1/namespaces/{namespace}/{kind}/{name}:scale": {
    group?: string;
    replicas?: number;
  };
  "POST /v1/namespaces/{namespace}/{kind}/{name}:undo": {
    version?: string;
  };
}
