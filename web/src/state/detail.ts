/**
 * One object, kept up to date. The watch of it is the tab's stream, unless an output needs that: then the object is
 * asked for each five seconds.
 */

import {effect, signal} from "@preact/signals";
import {ask, Refusal} from "../api/client.ts";
import type {Answer} from "../lib/actions.ts";
import {keyOf} from "../lib/lines.ts";
import {type Kind, scheduleLabel} from "../lib/kinds.ts";
import * as strings from "../strings.ts";
import {announce} from "./announcer.ts";
import {meet} from "./session.ts";
import {follow} from "./stream.ts";
import {Watch} from "./watch.ts";

const often = 5000,
  seldom = 15_000;
/** settle is how long changes are collected before the object is asked for. */
const settle = 250;

export class Detail {
  readonly answer = signal<Answer | undefined>(undefined);
  readonly trouble = signal<Error | undefined>(undefined);
  readonly isGone = signal(false);
  private readonly hasStream = signal(true);
  private readonly watch: Watch;
  private readonly key: string;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asking: AbortController | undefined;

  constructor(
    private readonly kind: Kind,
    private readonly namespace: string,
    private readonly name: string,
  ) {
    this.watch = new Watch({kinds: kind, namespaces: namespace, text: name});
    this.key = keyOf({kind, namespace, name});
  }

  /** begin keeps the object up to date until the function that it returns is called. */
  begin(): () => void {
    void this.refresh();
    const ends = [
      effect(() => (this.hasStream.value ? follow(this.watch) : undefined)),
      effect(() => {
        if (this.watch.version.value === 0) return;
        const line = this.watch.lines.all.get(this.key),
          shown = this.answer.peek()?.line;
        if (!line || line.resourceVersion !== shown?.resourceVersion) this.later(settle);
      }),
    ];
    const shown = () => !document.hidden && this.later(0);
    document.addEventListener("visibilitychange", shown);
    return () => {
      for (const end of ends) end();
      document.removeEventListener("visibilitychange", shown);
      clearTimeout(this.timer);
      this.asking?.abort();
    };
  }

  /** yieldStream gives the tab's stream to somebody else, or takes it back. */
  yieldStream(is: boolean): void {
    this.hasStream.value = !is;
  }

  /** refresh asks for the object now. */
  async refresh(): Promise<void> {
    clearTimeout(this.timer);
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    try {
      this.put(await this.read(asking.signal));
    } catch (error) {
      if (asking.signal.aborted) return;
      if (error instanceof Refusal && error.code === 401) return meet(error);
      this.isGone.value = error instanceof Refusal && error.code === 404 && this.answer.peek() !== undefined;
      this.trouble.value = error as Error;
    }
    this.later(this.hasStream.peek() ? seldom : often);
  }

  private async read(signal: AbortSignal): Promise<Answer> {
    const path = {namespace: this.namespace, kind: this.kind, name: this.name};
    const answer: Answer = await ask("GET /v1/namespaces/{namespace}/{kind}/{name}", {path, signal});
    if (this.kind !== "schedules") return answer;
    const query = {
      kinds: "jobs",
      namespaces: this.namespace,
      labels: `${scheduleLabel}=${this.name}`,
      sort: "-created",
    };
    try {
      answer.jobs = (await ask("GET /v1/objects", {query, signal})).lines ?? [];
    } catch (error) {
      if (!(error instanceof Refusal && error.code === 403)) throw error;
      answer.hidden = [...(answer.hidden ?? []), "jobs"];
    }
    return answer;
  }

  private put(answer: Answer): void {
    const before = this.answer.peek()?.line;
    this.answer.value = answer;
    this.trouble.value = undefined;
    this.isGone.value = false;
    const {name = "", phase = ""} = answer.line ?? {};
    if (before && before.phase !== phase) announce(strings.detail.announce(name, phase));
  }

  private later(milliseconds: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (!document.hidden) void this.refresh();
    }, milliseconds);
  }
}
