/** What a preset makes of options: checked while somebody types, and created once. */

import {batch, signal} from "@preact/signals";
import {ask, Refusal} from "../api/client.ts";
import type {CreateObjectResponse, KubernetesObject, Problem} from "../api/types.ts";
import {meet} from "./session.ts";

/** after is how long nothing must be typed before it is checked. */
const after = 300;

export class DryRun {
  readonly state = signal<"waiting" | "checking" | "good" | "bad">("waiting");
  readonly errors = signal<NonNullable<Problem["errors"]>>([]);
  readonly failure = signal<Error | undefined>(undefined);
  readonly warnings = signal<string[]>([]);
  /** object is what would be created, of the last options that were good. */
  readonly object = signal<KubernetesObject | undefined>(undefined);
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asking: AbortController | undefined;
  private key = crypto.randomUUID();
  private sent = "";

  constructor(
    private readonly namespace: string,
    private readonly preset: string,
  ) {}

  /** check asks what would be created, a moment after the last change. */
  check(options: Record<string, unknown>): void {
    this.end();
    this.state.value = "checking";
    this.timer = setTimeout(() => void this.run(options), after);
  }

  /** wait is for options that are not whole: nothing is asked. */
  wait(): void {
    this.end();
    batch(() => {
      this.state.value = "waiting";
      this.errors.value = [];
      this.failure.value = undefined;
    });
  }

  /** create creates the object. The same options again find the one that they created. */
  create(options: Record<string, unknown>): Promise<CreateObjectResponse> {
    const text = JSON.stringify(options);
    if (text !== this.sent) this.key = crypto.randomUUID();
    this.sent = text;
    return this.ask(options, false);
  }

  /** meet notes why something was refused. */
  meet(error: unknown): void {
    if (error instanceof Refusal && error.code === 401) meet(error);
    batch(() => {
      this.state.value = "bad";
      this.errors.value = error instanceof Refusal ? (error.problem.errors ?? []) : [];
      this.failure.value = error as Error;
    });
  }

  /** end stops what is under way. */
  end(): void {
    clearTimeout(this.timer);
    this.asking?.abort();
  }

  private async run(options: Record<string, unknown>): Promise<void> {
    const asking = (this.asking = new AbortController());
    try {
      const answer = await this.ask(options, true, asking.signal);
      batch(() => {
        this.state.value = "good";
        this.errors.value = [];
        this.failure.value = undefined;
        this.warnings.value = answer.warnings ?? [];
        this.object.value = answer.object;
      });
    } catch (error) {
      if (!asking.signal.aborted) this.meet(error);
    }
  }

  private ask(options: Record<string, unknown>, dryRun: boolean, signal?: AbortSignal): Promise<CreateObjectResponse> {
    return ask("POST /v1/namespaces/{namespace}/objects", {
      path: {namespace: this.namespace},
      body: {preset: this.preset, options, dryRun},
      headers: {"Idempotency-Key": this.key},
      signal,
    });
  }
}
