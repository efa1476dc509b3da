/** One reading of a job's output: it is the stream of its tab as long as it goes on. */

import {signal} from "@preact/signals";
import {pathOf, type Refusal} from "../api/client.ts";
import type {ServerEvent} from "../lib/lines.ts";
import {bytesOf, Output} from "../lib/output.ts";
import {follow, refusal, type Source} from "./stream.ts";

export interface End {
  outcome: string;
  exitCode?: number;
  code: string;
  message: string;
  remedy?: string;
}

export class Reading implements Source {
  readonly output = new Output();
  readonly lines = signal(0);
  readonly dropped = signal(0);
  readonly notice = signal("");
  readonly end = signal<End | undefined>(undefined);
  readonly refusal = signal<Refusal | undefined>(undefined);
  /** isGoing is that the tab's stream is this one. */
  readonly isGoing = signal(false);
  private offset = 0;
  private paint: () => void = () => undefined;
  private leave: () => void = () => undefined;

  constructor(
    private readonly namespace: string,
    private readonly name: string,
    private readonly attempt: number,
  ) {}

  url(): string {
    return `${this.path()}?${this.query({follow: "true", offset: String(this.offset)})}`;
  }

  /** wholeURL is where a browser gets all of the output as a text. */
  wholeURL(): string {
    const query = this.query({});
    return this.path() + (query && `?${query}`);
  }

  /** begin reads until the function that it returns is called. */
  begin(paint: () => void): () => void {
    this.paint = paint;
    this.again();
    const watching = refusal.subscribe((error) => {
      if (this.isGoing.peek() && error) this.settle(error);
    });
    return () => {
      watching();
      this.isGoing.value = false;
      this.leave();
    };
  }

  /** again goes on from where the output was read to. */
  again(): void {
    this.end.value = undefined;
    this.isGoing.value = true;
    this.leave = follow(this);
  }

  isOver(): boolean {
    return this.end.peek() !== undefined;
  }

  take(event: ServerEvent): void {
    if (event.id) this.offset = Number(event.id);
    switch (event.type) {
      case "data":
        this.output.push(bytesOf((JSON.parse(event.data) as {data: string}).data));
        this.lines.value = this.output.count;
        this.dropped.value = this.output.dropped;
        this.paint();
        break;
      case "notice":
        this.notice.value = (JSON.parse(event.data) as {message: string}).message;
        break;
      case "end":
        this.notice.value = "";
        this.end.value = JSON.parse(event.data) as End;
        this.settle();
        break;
    }
  }

  private settle(error?: Refusal): void {
    this.refusal.value = error;
    this.isGoing.value = false;
  }

  private path(): string {
    return pathOf("/v1/namespaces/{namespace}/jobs/{name}/log", {namespace: this.namespace, name: this.name});
  }

  private query(more: Record<string, string>): string {
    return new URLSearchParams(this.attempt ? {attempt: String(this.attempt), ...more} : more).toString();
  }
}
