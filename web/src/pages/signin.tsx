/** The ways to sign in. */

import {useComputed, useSignal} from "@preact/signals";
import {isOurs} from "../lib/router.ts";
import {Refused} from "../parts/actions.tsx";
import {Heading} from "../parts/frame.tsx";
import {query} from "../state/location.ts";
import {session, signIn} from "../state/session.ts";
import * as strings from "../strings.ts";

export function SigninPage() {
  const titles = strings.signin;
  const ways = session.value?.ways ?? [];
  const to = useComputed(() => {
    const given = new URLSearchParams(query.value).get("to") ?? "";
    return isOurs(given) ? given : "/ui/";
  });
  const token = useSignal(""), isBusy = useSignal(false), refusal = useSignal<Error | undefined>(undefined);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    isBusy.value = true;
    refusal.value = undefined;
    try {
      await signIn(token.value.trim());
      location.assign(to.value); // what was read for one caller is not shown to the next
    } catch (error) {
      refusal.value = error as Error;
      isBusy.value = false;
    }
  };
  if (!session.value) return <Heading title={titles.title} />;
  return (
    <div class="signin">
      <Heading title={titles.title} />
      <p>{titles.intro}</p>
      {session.value.isSignedIn && <p class="notice plain">{titles.already(session.value.user ?? "")} <a href={to.value}>{titles.goOn}</a></p>}
      {ways.includes("oidc") && <a class="button main" href={`/session/oidc?to=${encodeURIComponent(to.value)}`}>{titles.oidc}</a>}
      {ways.includes("oidc") && ways.includes("token") && <p class="or">{titles.or}</p>}
      {ways.includes("token") && (
        <form onSubmit={submit}>
          <label for="token">{titles.token}</label>
          <input
            id="token" type="password" autocomplete="off" required value={token.value} aria-describedby="token-hint"
            onInput={(event) => (token.value = event.currentTarget.value)}
          />
          <small id="token-hint">{titles.tokenHint} <code>{titles.tokenCommand}</code></small>
          {refusal.value && <Refused error={refusal.value} />}
          <div class="buttons"><button type="submit" class="main" disabled={isBusy.value}>{titles.submit}</button></div>
        </form>
      )}
      {ways.includes("frontProxy") && <p class="note">{titles.frontProxy}</p>}
      {ways.length === 0 && <p class="note">{titles.none}</p>}
    </div>
  );
}
