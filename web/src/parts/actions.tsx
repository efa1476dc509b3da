/** Buttons of actions, and the one question before each. */

import {useSignal} from "@preact/signals";
import {useEffect, useRef} from "preact/hooks";
import {ask, Refusal, remove} from "../api/client.ts";
import type {Line} from "../api/types.ts";
import {type Action, type Answer, groupsOf, removedBy, type Verb} from "../lib/actions.ts";
import {isKind, kindOfManifest} from "../lib/kinds.ts";
import {can} from "../lib/permissions.ts";
import {announce} from "../state/announcer.ts";
import {go} from "../state/location.ts";
import {isKnown, meet, namespaces} from "../state/session.ts";
import * as strings from "../strings.ts";
import {Text} from "./texts.tsx";

interface ButtonProps {
  action: Action;
  line: Line;
  isMain?: boolean;
  onAsk: (verb: Verb) => void;
}

/** ActionButton asks for an action. One that the caller cannot perform stays, and names the missing permission. */
export function ActionButton({action, line, isMain, onAsk}: ButtonProps) {
  const namespace = line.namespace ?? "";
  const isMissing = isKnown.value && !can(namespaces.value, namespace, action.need);
  const reason = isMissing ? strings.action.missing(action.need, namespace) : "";
  const id = `missing-${action.verb}${isMain ? "-main" : ""}`;
  const kind = action.verb === "delete" || action.verb === "stop" ? "danger" : "";
  return (
    <span class="action">
      <button
        type="button"
        class={isMain ? "main" : kind}
        aria-disabled={isMissing}
        aria-describedby={isMissing ? id : undefined}
        onClick={() => !isMissing && onAsk(action.verb)}
      >
        {strings.actions[action.verb]}
      </button>
      {isMissing && (
        <span class="missing" id={id} role="tooltip">
          {reason}
        </span>
      )}
    </span>
  );
}

interface QuestionProps {
  verb: Verb;
  detail: Answer;
  onClose: () => void;
  onDone: () => void;
}

/** Question asks whether an action is meant, and names what it removes. */
export function Question({verb, detail, onClose, onDone}: QuestionProps) {
  const line = detail.line ?? {};
  const dialog = useRef<HTMLDialogElement>(null);
  const busy = useSignal(false),
    refusal = useSignal<Error | undefined>(undefined);
  const groups = groupsOf(detail);
  const group = useSignal(groups[0]?.name ?? ""),
    replicas = useSignal(String(groups[0]?.replicas ?? 0)),
    version = useSignal("");
  useEffect(() => dialog.current?.showModal(), []);

  const act = async (event: SubmitEvent) => {
    event.preventDefault();
    busy.value = true;
    refusal.value = undefined;
    try {
      await perform(verb, line, {group: group.value, replicas: Number(replicas.value), version: version.value});
      dialog.current?.close();
      onDone();
    } catch (error) {
      if (error instanceof Refusal && error.code === 401) meet(error);
      refusal.value = error as Error;
    } finally {
      busy.value = false;
    }
  };

  const kind = isKind(line.kind) ? strings.kindNames[line.kind].one : "";
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="question">
      <form onSubmit={act}>
        <h2 id="question">{strings.action.question(verb, kind, line.name ?? "")}</h2>
        <p>{strings.action.effectOf(verb, line.kind)}</p>
        <RemovedList verb={verb} detail={detail} />
        {verb === "scale" && (
          <>
            <label>
              {strings.action.group}
              <select
                value={group.value}
                onChange={(event) => {
                  group.value = event.currentTarget.value;
                  replicas.value = String(groups.find((one) => one.name === group.value)?.replicas ?? 0);
                }}
              >
                {groups.map((one) => (
                  <option key={one.name} value={one.name}>
                    {one.name}
                  </option>
                ))}
              </select>
            </label>
            <label>
              {strings.action.replicas}
              <input
                type="number"
                min="0"
                step="1"
                required
                value={replicas.value}
                onInput={(event) => (replicas.value = event.currentTarget.value)}
              />
            </label>
          </>
        )}
        {verb === "undo" && (
          <label>
            {strings.action.version}
            <input
              value={version.value}
              onInput={(event) => (version.value = event.currentTarget.value)}
              aria-describedby="version-hint"
            />
            <small id="version-hint">{strings.action.versionHint}</small>
          </label>
        )}
        {refusal.value && <Refused error={refusal.value} />}
        <div class="buttons">
          <button type="button" onClick={() => dialog.current?.close()}>
            {strings.action.cancel}
          </button>
          <button
            type="submit"
            class={verb === "delete" || verb === "stop" ? "main danger" : "main"}
            disabled={busy.value}
          >
            {busy.value ? strings.action.busy : strings.actions[verb]}
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** Refused is why something was refused, and what helps. */
export function Refused({error}: {error: Error}) {
  const problem = error instanceof Refusal ? error.problem : undefined;
  return (
    <div class="notice bad" role="alert">
      <p>
        <Text>{error.message}</Text>
      </p>
      {problem?.remedy && (
        <p>
          {strings.detail.helps} <Text>{problem.remedy}</Text>
        </p>
      )}
    </div>
  );
}

function RemovedList({verb, detail}: {verb: Verb; detail: Answer}) {
  const removed = removedBy(verb, detail);
  if (!removed) return null;
  const line = detail.line ?? {};
  const kind = isKind(line.kind) ? strings.kindNames[line.kind].one.toLowerCase() : "";
  const isNothing = removed.isKept && removed.pods.length + removed.clusters.length + removed.jobs.length === 0;
  if (isNothing) return null;
  return (
    <div class="removed">
      <p>{strings.action.removes}</p>
      <ul>
        {!removed.isKept && (
          <li>
            {kind}{" "}
            <b>
              <Text>{line.name}</Text>
            </b>
          </li>
        )}
        {removed.clusters.map((name) => (
          <li key={name}>
            {strings.action.removesCluster}{" "}
            <b>
              <Text>{name}</Text>
            </b>
          </li>
        ))}
        <Names title={strings.action.removesJobs(removed.jobs.length)} names={removed.jobs} />
        <Names title={strings.action.removesPods(removed.pods.length)} names={removed.pods} />
      </ul>
    </div>
  );
}

function Names({title, names}: {title: string; names: string[]}) {
  if (names.length === 0) return null;
  return (
    <li>
      {title}:{" "}
      <span class="names">
        {names.map((name) => (
          <code key={name}>
            <Text>{name}</Text>
          </code>
        ))}
      </span>
    </li>
  );
}

interface Given {
  group: string;
  replicas: number;
  version: string;
}

async function perform(verb: Verb, line: Line, given: Given): Promise<void> {
  const path = {namespace: line.namespace ?? "", kind: line.kind ?? "", name: line.name ?? ""};
  if (verb === "delete") {
    await remove(line);
    announce(`${strings.action.done.delete}: ${line.name}`);
    go({page: "list"});
    return;
  }
  const answer = await call(verb, path, given);
  announce(answer.isChanged ? `${strings.action.done[verb]}: ${line.name}` : strings.action.nothing);
  const metadata = answer.object?.metadata,
    kind = kindOfManifest(answer.object?.kind);
  if (verb === "retry" && kind && metadata?.name)
    go({page: "detail", kind, namespace: metadata.namespace, name: metadata.name});
}

function call(verb: Exclude<Verb, "delete">, path: Record<string, string>, given: Given) {
  switch (verb) {
    case "scale":
      return ask("POST /v1/namespaces/{namespace}/{kind}/{name}:scale", {
        path,
        body: {group: given.group, replicas: given.replicas},
      });
    case "undo":
      return ask("POST /v1/namespaces/{namespace}/{kind}/{name}:undo", {
        path,
        body: given.version ? {version: given.version} : {},
      });
    default:
      return ask(`POST /v1/namespaces/{namespace}/{kind}/{name}:${verb}`, {path});
  }
}
