/** Who is signed in, how to sign in, and what the caller can do where. */

import {computed, signal} from "@preact/signals";
import {ask, check, Refusal} from "../api/client.ts";
import type {GetMeResponse, Namespace} from "../api/types.ts";
import type {Session} from "../lib/session.ts";
import {go, path, query} from "./location.ts";

export const session = signal<Session | undefined>(undefined);
export const me = signal<GetMeResponse | undefined>(undefined);
export const namespaces = signal<readonly Namespace[]>([]);
/** isKnown is that the namespaces have been read: before, nobody knows what can be done. */
export const isKnown = signal(false);
export const trouble = signal<Error | undefined>(undefined);
export const isSignedIn = computed(() => session.value?.signedIn ?? false);

/** loadSession asks who is signed in, and what that caller can do. */
export async function loadSession(): Promise<void> {
  try {
    // Where a sign-in leads to is for the server to judge.
    const to = path.value === "/ui/signin" ? new URLSearchParams(query.value).get("to") : null;
    const answer = await fetch(`/session${to ? `?${new URLSearchParams({to})}` : ""}`, {
      headers: {Accept: "application/json"},
    });
    await check(answer);
    session.value = (await answer.json()) as Session;
    trouble.value = undefined;
    if (session.value.signedIn) await loadPermissions();
  } catch (error) {
    meet(error);
  }
}

/** loadPermissions asks what the caller can do. */
export async function loadPermissions(): Promise<void> {
  const [who, where] = await Promise.all([ask("GET /v1/me"), ask("GET /v1/namespaces")]);
  me.value = who;
  namespaces.value = where.namespaces ?? [];
  isKnown.value = true;
}

/** meet notes why a call failed. Without a session, only signing in helps. */
export function meet(error: unknown): void {
  if (error instanceof DOMException && error.name === "AbortError") return;
  if (error instanceof Refusal && error.code === 401) {
    askToSignIn();
    return;
  }
  trouble.value = error instanceof Error ? error : new Error(String(error));
}

/** askToSignIn shows the page to sign in on. That leads back to this place, or to where it was asked to lead. */
export function askToSignIn(): void {
  if (session.value) session.value = {...session.value, signedIn: false};
  if (path.value === "/ui/signin") return; // where that leads to stands in the session
  const to = path.value + query.value;
  if (session.value) session.value = {...session.value, to};
  go(`/ui/signin?${new URLSearchParams({to})}`, true);
}

/** signIn signs in by a token. */
export async function signIn(token: string): Promise<void> {
  await check(
    await fetch("/session", {
      method: "POST",
      headers: {"Content-Type": "application/json"},
      body: JSON.stringify({token}),
    }),
  );
}

/** signOut ends the session. */
export async function signOut(): Promise<void> {
  await check(await fetch("/session", {method: "DELETE"}));
  location.assign("/ui/signin"); // what was read for one caller is not shown to the next
}
