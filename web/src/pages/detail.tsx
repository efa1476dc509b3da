/** One object: how far it is, why, what helps, and all that belongs to it. */

import {useComputed, useSignal} from "@preact/signals";
import {useEffect, useMemo} from "preact/hooks";
import {Refusal} from "../api/client.ts";
import type {GetObjectResponse, Line} from "../api/types.ts";
import {actionsOf, remedyOf, type Verb} from "../lib/actions.ts";
import {type Kind, scheduleLabel} from "../lib/kinds.ts";
import {can} from "../lib/permissions.ts";
import {pathOf} from "../lib/router.ts";
import {linksOf} from "../lib/session.ts";
import {ActionButton, Question, Refused} from "../parts/actions.tsx";
import {Attempts, Events, Groups, Jobs, Pods, Versions} from "../parts/belongings.tsx";
import {Heading} from "../parts/frame.tsx";
import {OutputView} from "../parts/output.tsx";
import {Phases} from "../parts/phases.tsx";
import {Shape, Status} from "../parts/status.tsx";
import {Age, Moment, Text} from "../parts/texts.tsx";
import {Detail} from "../state/detail.ts";
import {now} from "../state/clock.ts";
import {isKnown, namespaces, session} from "../state/session.ts";
import * as strings from "../strings.ts";

interface Props {
  kind: Kind;
  namespace: string;
  name: string;
}

export function DetailPage({kind, namespace, name}: Props) {
  const detail = useMemo(() => new Detail(kind, namespace, name), [kind, namespace, name]);
  const asked = useSignal<Verb | undefined>(undefined);
  const attempt = useSignal(0);
  useEffect(() => detail.begin(), [detail]);
  const answer = detail.answer.value;
  const line = answer?.line;
  if (!answer || !line) {
    return (
      <>
        <Heading title={name} back={strings.kindNames[kind].one} />
        {detail.trouble.value ? (
          <Refused error={detail.trouble.value} />
        ) : (
          <p class="loading">{strings.frame.loading}</p>
        )}
      </>
    );
  }
  return (
    <>
      <Heading title={name} back={strings.kindNames[kind].one} aside={<Status phase={line.phase} />}>
        <Buttons line={line} dashboard={answer.dashboard} ask={(verb) => (asked.value = verb)} />
      </Heading>
      {detail.isGone.value && (
        <div class="notice warning" role="alert">
          <p>
            {strings.detail.deleted} <a href="/ui/">{strings.detail.deletedHelp}</a>
          </p>
        </div>
      )}
      {detail.trouble.value && !(detail.trouble.value instanceof Refusal && detail.isGone.value) && (
        <Refused error={detail.trouble.value} />
      )}
      <Why line={line} answer={answer} ask={(verb) => (asked.value = verb)} />
      <Phases phases={answer.phases ?? []} />
      <Facts line={line} answer={answer} />
      {kind === "clusters" && <Groups detail={answer} />}
      {kind === "services" && <Versions detail={answer} />}
      {kind === "jobs" && (
        <Attempts
          detail={answer}
          shown={attempt.value || line.attempt || 0}
          show={(number) => (attempt.value = number)}
        />
      )}
      {kind === "jobs" && <JobOutput detail={detail} line={line} attempt={attempt.value || line.attempt || 0} />}
      {kind === "schedules" ? <Jobs detail={answer} /> : <Pods detail={answer} />}
      <Events detail={answer} />
      {asked.value && (
        <Question
          verb={asked.value}
          detail={answer}
          onClose={() => (asked.value = undefined)}
          onDone={() => void detail.refresh()}
        />
      )}
    </>
  );
}

function Buttons({line, dashboard, ask}: {line: Line; dashboard?: string; ask: (verb: Verb) => void}) {
  return (
    <div class="actions" role="group" aria-label={strings.detail.sections.actions}>
      <Links line={line} dashboard={dashboard} />
      {actionsOf(line).map((action) => (
        <ActionButton key={action.verb} action={action} line={line} onAsk={ask} />
      ))}
    </div>
  );
}

/** Links leads to where more is: the dashboard, and what the administrator has set up. */
function Links({line, dashboard}: {line: Line; dashboard?: string}) {
  const namespace = line.namespace ?? "";
  const need = {verb: "get", resource: line.kind === "services" ? "clusterservices/proxy" : "computeclusters/proxy"};
  const isMissing = isKnown.value && !can(namespaces.value, namespace, need);
  const title = line.kind === "services" ? strings.detail.open : strings.detail.dashboard;
  return (
    <>
      {dashboard &&
        (isMissing ? (
          <span class="action">
            <a role="link" aria-disabled="true" tabIndex={0} class="button" aria-describedby="missing-dashboard">
              {title}
            </a>
            <span class="missing" id="missing-dashboard" role="tooltip">
              {strings.action.missing(need, namespace)}
            </span>
          </span>
        ) : (
          <a class="button" href={dashboard} target="_blank" rel="noopener">
            {title}
          </a>
        ))}
      {linksOf(session.value, line, now.value).map((link) => (
        <a key={link.url} class="button" href={link.url} target="_blank" rel="noopener noreferrer">
          <Text>{link.title}</Text>
        </a>
      ))}
    </>
  );
}

/** Why is the one line that says why, and what helps: a button where that is an action. */
function Why({line, answer, ask}: {line: Line; answer: GetObjectResponse; ask: (verb: Verb) => void}) {
  const helping = actionsOf(line).find((action) => action.verb === remedyOf(line));
  const chain = (answer.why ?? []).slice(1);
  const tone = line.phase === "Failed" ? "bad" : line.remedy && !helping ? "warning" : "plain";
  return (
    <section class={`why notice ${tone}`} aria-labelledby="why">
      <h2 id="why" class="visually-hidden">
        {strings.detail.sections.why}
      </h2>
      <p>
        {tone !== "plain" && <Shape tone={tone} />} <b>{line.code}</b> <Text>{line.message}</Text>
      </p>
      {(line.remedy || helping) && (
        <p class="remedy">
          {line.remedy && (
            <span>
              {strings.detail.helps} <Text>{line.remedy}</Text>
            </span>
          )}
          {helping && <ActionButton action={helping} line={line} isMain onAsk={ask} />}
        </p>
      )}
      {chain.length > 0 && (
        <ol class="chain">
          {chain.map((cause, i) => (
            <li key={i}>
              <Text>{`${cause.kind} ${cause.name}`}</Text>: <b>{cause.code}</b> <Text>{cause.message}</Text>
              {cause.remedy && cause.remedy !== line.remedy && (
                <>
                  {" "}
                  {strings.detail.helps} <Text>{cause.remedy}</Text>
                </>
              )}
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

function Facts({line, answer}: {line: Line; answer: GetObjectResponse}) {
  const spec = answer.object?.spec,
    status = answer.object?.status,
    titles = strings.detail.facts;
  const linkTo = (kind: Kind, name: string | undefined) =>
    name && (
      <a href={pathOf({page: "detail", kind, namespace: line.namespace ?? "", name})}>
        <Text>{name}</Text>
      </a>
    );
  const times = spec?.schedule && <Text>{[spec.schedule, spec.timeZone || "UTC"].join(" · ")}</Text>;
  const facts: [string, preact.ComponentChildren][] = [
    [titles.namespace, <Text>{line.namespace}</Text>],
    [titles.owner, line.owner && <Text>{line.owner}</Text>],
    [titles.created, line.created && <Age time={line.created} />],
    [titles.cluster, linkTo("clusters", line.cluster)],
    [titles.schedule, times || (line.kind === "jobs" && linkTo("schedules", line.labels?.[scheduleLabel]))],
    [titles.last, line.lastScheduleTime && <Moment time={line.lastScheduleTime} />],
    [titles.next, line.nextScheduleTime && <Moment time={line.nextScheduleTime} />],
    [titles.policy, times && strings.detail.policies[String(spec?.concurrencyPolicy ?? "Allow")]],
    [titles.rayVersion, spec?.rayVersion && <Text>{String(spec.rayVersion)}</Text>],
    [titles.gpus, line.gpus || ""],
    [titles.idleSince, line.idleSince && <Age time={line.idleSince} />],
    [titles.gang, status?.gang && <Text>{strings.detail.gang(status.gang)}</Text>],
    [
      titles.entrypoint,
      spec?.entrypoint && (
        <code>
          <Text>{String(spec.entrypoint)}</Text>
        </code>
      ),
    ],
    [
      titles.url,
      status?.url && (
        <code>
          <Text>{String(status.url)}</Text>
        </code>
      ),
    ],
  ];
  return (
    <section aria-labelledby="facts">
      <h2 id="facts" class="visually-hidden">
        {strings.detail.sections.facts}
      </h2>
      <dl class="facts">
        {facts
          .filter((fact) => fact[1])
          .map(([title, value]) => (
            <div key={title}>
              <dt>{title}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
    </section>
  );
}

// While it is read, the output is the stream of the tab, and the object is asked for now and then.
function JobOutput({detail, line, attempt}: {detail: Detail; line: Line; attempt: number}) {
  const namespace = line.namespace ?? "";
  const need = {verb: "get", resource: "clusterjobs/log"};
  const mayRead = useComputed(() => !isKnown.value || can(namespaces.value, namespace, need));
  return (
    <section aria-labelledby="output">
      <h2 id="output">{strings.detail.sections.output}</h2>
      {mayRead.value ? (
        <OutputView
          key={attempt}
          namespace={namespace}
          name={line.name ?? ""}
          attempt={attempt}
          onGoing={(is) => detail.yieldStream(is)}
        />
      ) : (
        <p class="note">
          {strings.output.none} {strings.action.missing(need, namespace)}.
        </p>
      )}
    </section>
  );
}
