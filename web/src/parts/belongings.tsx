/** What belongs to an object, as tables: groups, pods, events, attempts, versions. */

import type {ComponentChildren} from "preact";
import type {GetObjectResponse} from "../api/types.ts";
import type {Answer} from "../lib/actions.ts";
import {spanOf} from "../lib/format.ts";
import {pathOf} from "../lib/router.ts";
import {now} from "../state/clock.ts";
import * as strings from "../strings.ts";
import {Status, Toned} from "./status.tsx";
import {Age, Text} from "./texts.tsx";

interface Props {
  detail: GetObjectResponse;
}

interface TableProps {
  id: string;
  title: string;
  heads: string[];
  rows: {key: string; cells: ComponentChildren[]}[];
  none: string;
  note?: string | false;
}

function Table({id, title, heads, rows, none, note}: TableProps) {
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {note && <p class="note">{note}</p>}
      {rows.length === 0 ? (
        !note && <p class="note">{none}</p>
      ) : (
        <div class="wide" tabIndex={0} role="group" aria-labelledby={id}>
          <table class="small">
            <caption class="visually-hidden">{title}</caption>
            <thead>
              <tr>
                {heads.map((head) => (
                  <th key={head} scope="col">
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map(({key, cells: [first, ...others]}) => (
                <tr key={key}>
                  <th scope="row">{first}</th>
                  {others.map((cell, i) => (
                    <td key={i}>{cell}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

export function Groups({detail}: Props) {
  const status: Record<string, any>[] = detail.object?.status?.groups ?? [];
  const groups: Record<string, any>[] = detail.object?.spec?.workerGroups ?? [];
  const rows = groups.map((one) => {
    const seen = status.find((other) => other.name === one.name);
    return {
      key: String(one.name),
      cells: [
        <Text>{String(one.name)}</Text>,
        <meter
          min={0}
          max={Math.max(1, seen?.desired ?? 0)}
          value={seen?.ready ?? 0}
          aria-label={`${seen?.ready ?? 0} / ${seen?.desired ?? 0}`}
        />,
        `${seen?.ready ?? 0} / ${seen?.desired ?? one.replicas ?? 0}`,
        seen?.reason ? (
          <>
            <b>{seen.reason}</b> <Text>{String(seen.message ?? "")}</Text>
          </>
        ) : (
          ""
        ),
      ],
    };
  });
  const titles = strings.detail.groupColumns;
  return (
    <Table
      id="groups"
      title={strings.detail.sections.groups}
      heads={[titles.name, titles.ready, titles.desired, titles.why]}
      rows={rows}
      none={strings.detail.noGroups}
    />
  );
}

/** Jobs are those of a schedule. */
export function Jobs({detail}: {detail: Answer}) {
  const titles = strings.detail.jobColumns,
    isHidden = detail.hidden?.includes("jobs");
  const rows = (detail.jobs ?? []).map((job) => ({
    key: job.name ?? "",
    cells: [
      <a href={pathOf({page: "detail", kind: "jobs", namespace: job.namespace ?? "", name: job.name ?? ""})}>
        <Text>{job.name}</Text>
      </a>,
      <Status phase={job.phase} />,
      <span class="long">
        <Text>{job.message}</Text>
      </span>,
      <Age time={job.created} />,
    ],
  }));
  return (
    <Table
      id="jobs"
      title={strings.detail.sections.jobs}
      heads={[titles.name, titles.phase, titles.why, titles.created]}
      rows={rows}
      none={strings.detail.noJobs}
      note={isHidden && strings.detail.hidden("jobs")}
    />
  );
}

export function Pods({detail}: Props) {
  const titles = strings.detail.podColumns,
    isHidden = detail.hidden?.includes("pods");
  const rows = (detail.pods ?? []).map((pod) => ({
    key: pod.name ?? "",
    cells: [
      <code>
        <Text>{pod.name}</Text>
      </code>,
      <Text>{pod.group ? `${pod.role} · ${pod.group}` : pod.role}</Text>,
      <Toned
        tone={pod.ready ? "good" : pod.phase === "Failed" ? "bad" : "waiting"}
        word={pod.ready ? strings.detail.ready : pod.phase || strings.detail.notReady}
      />,
      pod.restarts || "",
      <Text>{pod.node}</Text>,
      <Age time={pod.created} />,
    ],
  }));
  return (
    <Table
      id="pods"
      title={strings.detail.sections.pods}
      heads={[titles.name, titles.role, titles.phase, titles.restarts, titles.node, titles.age]}
      rows={rows}
      none={strings.detail.noPods}
      note={isHidden && strings.detail.hidden("pods")}
    />
  );
}

export function Events({detail}: Props) {
  const titles = strings.detail.eventColumns,
    isHidden = detail.hidden?.includes("events");
  const rows = (detail.events ?? []).map((event, i) => ({
    key: `${event.time} ${event.reason} ${i}`,
    cells: [
      <Age time={event.time} />,
      <Toned tone={event.type === "Warning" ? "warning" : "stopped"} word={event.type ?? ""} />,
      <Text>{event.reason}</Text>,
      <span class="long">
        <Text>{event.message}</Text>
      </span>,
      (event.count ?? 0) > 1 ? `× ${event.count}` : "",
    ],
  }));
  return (
    <Table
      id="events"
      title={strings.detail.sections.events}
      heads={[titles.time, titles.type, titles.reason, titles.message, titles.count]}
      rows={rows}
      none={strings.detail.noEvents}
      note={isHidden && strings.detail.hidden("events")}
    />
  );
}

interface AttemptProps extends Props {
  shown: number;
  show: (attempt: number) => void;
}

export function Attempts({detail, shown, show}: AttemptProps) {
  const titles = strings.detail.attemptColumns;
  const attempts: Record<string, any>[] = [...(detail.object?.status?.attempts ?? [])].reverse();
  const rows = attempts.map((one) => ({
    key: String(one.number),
    cells: [
      String(one.number),
      <Age time={one.startTime ?? one.submitTime} />,
      one.startTime ? spanOf(one.startTime, one.endTime, now.value) : "",
      <>
        {one.reason ? <b>{one.reason}</b> : strings.detail.running}{" "}
        <span class="long">
          <Text>{one.message}</Text>
        </span>
      </>,
      one.exitCode ?? "",
      <button
        type="button"
        class="quiet"
        aria-pressed={one.number === shown}
        aria-label={strings.detail.showOutput(one.number)}
        onClick={() => show(one.number)}
      >
        {strings.detail.show}
      </button>,
    ],
  }));
  return (
    <Table
      id="attempts"
      title={strings.detail.sections.attempts}
      heads={[titles.number, titles.start, titles.took, titles.end, titles.exit, titles.output]}
      rows={rows}
      none={strings.detail.noAttempts}
    />
  );
}

export function Versions({detail}: Props) {
  const titles = strings.detail.versionColumns,
    status = detail.object?.status,
    namespace = detail.line?.namespace ?? "";
  const versions = (
    [
      ["active", status?.active],
      ["candidate", status?.candidate],
    ] as const
  ).filter((one) => one[1]);
  const rows = versions.map(([role, one]) => ({
    key: role,
    cells: [
      <Text>{String(one.revision ?? "")}</Text>,
      strings.detail.roles[role],
      <span class="traffic">
        <meter min={0} max={100} value={one.trafficPercent ?? 0} aria-label={`${one.trafficPercent ?? 0} %`} />{" "}
        {one.trafficPercent ?? 0} %
      </span>,
      one.clusterName ? (
        <a href={pathOf({page: "detail", kind: "clusters", namespace, name: one.clusterName})}>
          <Text>{one.clusterName}</Text>
        </a>
      ) : (
        ""
      ),
      <Text>{applicationsOf(one)}</Text>,
      String(one.readyEndpoints ?? 0),
      <Toned
        tone={one.healthy ? "good" : "warning"}
        word={one.healthy ? strings.detail.healthy : strings.detail.unhealthy}
      />,
    ],
  }));
  return (
    <Table
      id="versions"
      title={strings.detail.sections.versions}
      heads={[
        titles.version,
        titles.role,
        titles.traffic,
        titles.cluster,
        titles.applications,
        titles.endpoints,
        titles.state,
      ]}
      rows={rows}
      none={strings.detail.noVersions}
    />
  );
}

// Each application in the words of Serve, with how many of its replicas run.
function applicationsOf(version: Record<string, any>): string {
  const all: Record<string, any>[] = version.applications ?? [];
  return all
    .map((one) =>
      [one.name, one.state, `${one.runningReplicas ?? 0}/${one.desiredReplicas ?? 0}`].filter(Boolean).join(" "),
    )
    .join(", ");
}
