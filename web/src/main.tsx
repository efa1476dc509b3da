/** The page: who is signed in, and what the address says. */

import {render} from "preact";
import {Frame, Heading} from "./parts/frame.tsx";
import {DetailPage} from "./pages/detail.tsx";
import {ListPage} from "./pages/list.tsx";
import {MePage} from "./pages/me.tsx";
import {NewPage} from "./pages/new.tsx";
import {SigninPage} from "./pages/signin.tsx";
import {watchClock} from "./state/clock.ts";
import {route, watchLocation} from "./state/location.ts";
import {askToSignIn, isSignedIn, loadSession, session} from "./state/session.ts";
import {watchVisibility} from "./state/stream.ts";
import * as strings from "./strings.ts";

function Page() {
  const at = route.value;
  if (at.page === "signin") return <SigninPage />;
  if (!isSignedIn.value) return <p class="loading">{strings.frame.loading}</p>;
  switch (at.page) {
    case "list":
      return <ListPage />;
    case "detail":
      return (
        <DetailPage
          key={`${at.kind}/${at.namespace}/${at.name}`}
          kind={at.kind}
          namespace={at.namespace}
          name={at.name}
        />
      );
    case "new":
      return <NewPage />;
    case "me":
      return <MePage />;
    case "none":
      return (
        <>
          <Heading title={strings.frame.notFound} />
          <p>
            <a href="/ui/">{strings.frame.notFoundHelp}</a>
          </p>
        </>
      );
  }
}

watchLocation();
watchClock();
watchVisibility();
render(
  <Frame>
    <Page />
  </Frame>,
  document.getElementById("page")!,
);
void loadSession().then(() => {
  if (session.value && !isSignedIn.value) askToSignIn();
});
