/** What every page has: the way past the navigation, the navigation, whether the page is live, one heading. */

import type {ComponentChildren} from "preact";
import {useEffect, useRef} from "preact/hooks";
import type {Route} from "../lib/router.ts";
import {announcement} from "../state/announcer.ts";
import {path, route} from "../state/location.ts";
import {isSignedIn, loadSession, session, trouble} from "../state/session.ts";
import {connection} from "../state/stream.ts";
import * as strings from "../strings.ts";
import {Refused} from "./actions.tsx";
import {Text} from "./texts.tsx";

export function Frame({children}: {children: ComponentChildren}) {
  return (
    <>
      <a class="skip" href="#content">
        {strings.frame.skip}
      </a>
      <header class="top">
        <a class="brand" href="/ui/">
          <Mark />
          {strings.app}
        </a>
        {isSignedIn.value && (
          <nav aria-label={strings.frame.navigation}>
            <Place to="list" href="/ui/" text={strings.frame.objects} />
            <Place to="new" href="/ui/new" text={strings.frame.create} />
          </nav>
        )}
        <span class="grow" />
        {isSignedIn.value && <Connection />}
        {isSignedIn.value && (
          <a class="user" href="/ui/me" aria-current={route.value.page === "me" ? "page" : undefined}>
            <span class="visually-hidden">{strings.frame.me}: </span>
            <Text>{session.value?.user}</Text>
          </a>
        )}
      </header>
      <main id="content" tabIndex={-1}>
        {trouble.value && <Trouble error={trouble.value} />}
        {children}
      </main>
      <div class="visually-hidden" role="status" aria-live="polite">
        {announcement.value}
      </div>
    </>
  );
}

function Mark() {
  return (
    <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
      <circle cx="10" cy="10" r="4" />
      <path d="M10 0v3M10 17v3M0 10h3M17 10h3M3 3l2 2M15 15l2 2M17 3l-2 2M5 15l-2 2" />
    </svg>
  );
}

function Place({to, href, text}: {to: Route["page"]; href: string; text: string}) {
  return (
    <a href={href} aria-current={route.value.page === to ? "page" : undefined}>
      {text}
    </a>
  );
}

function Connection() {
  const state = connection.value;
  if (state === "off") return null;
  return (
    <span class={`connection ${state}`} role="status" title={strings.frame.connectionTitle[state]}>
      <span class="dot" aria-hidden="true" />
      {strings.frame.connection[state]}
    </span>
  );
}

function Trouble({error}: {error: Error}) {
  return (
    <div class="trouble">
      <Refused error={error} />
      <button type="button" onClick={() => void loadSession()}>
        {strings.frame.tryAgain}
      </button>
    </div>
  );
}

interface HeadingProps {
  title: string;
  /** back is the kind of the object that the heading names: above it is the way to the list. */
  back?: string;
  /** aside stands beside the title. */
  aside?: ComponentChildren;
  children?: ComponentChildren;
}

/** Heading is the one h1 of a page. It gets the focus when the page is another one. */
export function Heading({title, back, aside, children}: HeadingProps) {
  const h1 = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · ${strings.app}`;
    if (hasMoved(path.peek())) h1.current?.focus({preventScroll: true});
  }, [title]);
  return (
    <div class="heading">
      <div class="title">
        {back && (
          <p class="crumb">
            <a href="/ui/">{strings.frame.objects}</a> / {back}
          </p>
        )}
        <h1 ref={h1} tabIndex={-1}>
          {back ? <Text>{title}</Text> : title} {aside}
        </h1>
      </div>
      {children}
    </div>
  );
}

let shown = "";

// The browser itself puts the focus where a page begins that was loaded.
function hasMoved(to: string): boolean {
  const before = shown;
  shown = to;
  return before !== "" && before !== to;
}
