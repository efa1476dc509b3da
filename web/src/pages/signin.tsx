/** The ways to sign in. */

import {useSignal} from "@preact/signals";
import {Refused} from "../parts/actions.tsx";
import {Heading} from "../parts/frame.tsx";
import {Text} from "../parts/texts.tsx";
import {session, signIn} from "../state/session.ts";
import * as strings from "../strings.ts";

export function SigninPage() {
  const titles = strings.signin,
    state = session.value;
  const token = useSignal(""),
    isBusy = useSignal(false),
    refusal = useSignal<Error | undefined>(undefined);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    isBusy.value = true;
    refusal.value = undefined;
    try {
      await signIn(token.value.trim());
      location.assign(state?.to ?? "/ui/"); // what was read for one caller is not shown to the next
    } catch (error) {
      refusal.value = error as Error;
      isBusy.value = false;
    }
  };
  if (!state) return <Heading title={titles.title} />;
  const has = (kind: string) => state.ways.find((one) => one.kind === kind);
  const issuer = has("OIDC");
  return (
    <div class="signin">
      <Heading title={titles.title} />
      <p>{titles.intro}</p>
      {state.signedIn && (
        <p class="notice plain">
          {titles.already(state.user ?? "")} <a href={state.to}>{titles.goOn}</a>
        </p>
      )}
      {state.why && (
        <p class="notice warning">
          <Text>{state.why}</Text>
        </p>
      )}
      {issuer && (
        <a class="button main" href={`/session/oidc?${new URLSearchParams({to: state.to})}`}>
          {titles.oidc(issuer.name)}
        </a>
      )}
      {issuer && has("Token") && <p class="or">{titles.or}</p>}
      {has("Token") && (
        <form onSubmit={submit}>
          <label for="token">{titles.token}</label>
          <input
            id="token"
            type="password"
            autocomplete="off"
            required
            value={token.value}
            aria-describedby="token-hint"
            onInput={(event) => (token.value = event.currentTarget.value)}
          />
          <small id="token-hint">
            {titles.tokenHint} <code>{titles.tokenCommand}</code>
          </small>
          {refusal.value && <Refused error={refusal.value} />}
          <div class="buttons">
            <button type="submit" class={issuer ? "" : "main"} disabled={isBusy.value}>
              {titles.submit}
            </button>
          </div>
        </form>
      )}
      {has("FrontProxy") && <p class="note">{titles.frontProxy}</p>}
      {state.ways.length === 0 && <p class="note">{titles.none}</p>}
    </div>
  );
}
