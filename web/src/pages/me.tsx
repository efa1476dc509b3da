/** Who the caller is, and what it can do where. */

import {absoluteOf} from "../lib/format.ts";
import {Heading} from "../parts/frame.tsx";
import {Text} from "../parts/texts.tsx";
import {me, meet, namespaces, session, signOut} from "../state/session.ts";
import * as strings from "../strings.ts";

export function MePage() {
  const titles = strings.account,
    who = me.value;
  const facts: [string, string | undefined][] = [
    [titles.name, who?.name],
    [titles.groups, who?.groups?.join(", ")],
    [titles.method, who?.method],
    [titles.issuer, who?.issuer],
    [titles.until, session.value?.expires && absoluteOf(session.value.expires)],
  ];
  return (
    <>
      <Heading title={titles.title}>
        <div class="actions">
          <button type="button" onClick={() => void signOut().catch(meet)}>
            {titles.signOut}
          </button>
        </div>
      </Heading>
      <dl class="facts">
        {facts
          .filter((fact) => fact[1])
          .map(([title, value]) => (
            <div key={title}>
              <dt>{title}</dt>
              <dd>
                <Text>{value}</Text>
              </dd>
            </div>
          ))}
      </dl>
      <section aria-labelledby="rights">
        <h2 id="rights">{titles.namespaces}</h2>
        {namespaces.value.length === 0 && <p class="note">{strings.list.noNamespace}</p>}
        {namespaces.value.map((one) => (
          <div key={one.name} class="wide" tabIndex={0} role="group" aria-label={one.name}>
            <table class="small rights">
              <caption>
                <Text>{one.name}</Text>
              </caption>
              <thead>
                <tr>
                  <th scope="col">{titles.columns.resource}</th>
                  <th scope="col">{titles.columns.verbs}</th>
                </tr>
              </thead>
              <tbody>
                {(one.permissions ?? []).map((permission) => (
                  <tr key={permission.resource}>
                    <th scope="row">{permission.resource}</th>
                    <td>{permission.verbs?.join(", ") || titles.noVerbs}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ))}
      </section>
    </>
  );
}
