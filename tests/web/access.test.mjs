// What axe finds on each place: in light, dark, forced colours, and on a screen of 320 px.
import {test} from "node:test";
import assert from "node:assert/strict";
import {bed, checkAccess, open, useBrowser} from "./browser.mjs";

useBrowser();

const looks = {
  light: {colorScheme: "light"},
  dark: {colorScheme: "dark"},
  narrow: {viewport: {width: 320, height: 640}},
  forced: {forcedColors: "active"},
};
const places = {
  list: ["/ui/", ".objects tbody tr"],
  "list-empty": [`/ui/?namespace=${bed.empty}`, ".empty"],
  cluster: [`/ui/clusters/${bed.namespace}/training`, ".phases"],
  job: [`/ui/jobs/${bed.namespace}/evaluate`, ".end"],
  schedule: [`/ui/schedules/${bed.namespace}/report`, "#jobs"],
  service: [`/ui/services/${bed.namespace}/sort`, ".traffic"],
  new: ["/ui/new", ".options"],
  me: ["/ui/me", ".rights"],
  signin: ["/ui/signin", "#token"],
  none: ["/ui/nothing/here", "h1"],
};

/** outside are the dashboard proxy's own pages, by their headings. The first one leads on by itself, to sign in. */
const outside = {
  Opening: `/${bed.namespace}/demo/`,
  Dashboards: "/",
  Suspended: `/${bed.namespace}/notebook/`,
  Starting: `/services/${bed.namespace}/sort/`,
  Forbidden: `/${bed.namespace}/none/`,
  "Bad Request": "/a%2fb",
  "Open this address?": `/-/go?${new URLSearchParams({to: `/${bed.namespace}/demo/api/version`})}`,
  "Sign out of the dashboards": "/-/sign-out",
};

/** fits fails where a place is wider than its screen. */
async function fits(page, what) {
  const {wide, screen} = await page.evaluate(() => ({
    wide: document.documentElement.scrollWidth,
    screen: innerWidth,
  }));
  assert.ok(wide <= screen, `${what} fits: ${wide} of ${screen}`);
}

for (const [look, settings] of Object.entries(looks)) {
  test(`nothing keeps anybody out: ${look}`, async (t) => {
    const page = await open(t, "/ui/", {context: {...settings, bypassCSP: true}});
    for (const [name, [path, sign]] of Object.entries(places)) {
      await page.goto(path);
      await page.locator(sign).first().waitFor();
      await checkAccess(page, `${name}, ${look}`);
      assert.equal(await page.locator("h1").count(), 1, `${name} has one h1`);
      await fits(page, `${name}, ${look}`);
    }
  });
}

for (const [look, settings] of Object.entries(looks)) {
  test(`the dashboard proxy's own pages keep nobody out: ${look}`, async (t) => {
    const page = await open(t, "/ui/", {context: {...settings, bypassCSP: true}, allowed: ["40", "503"]});
    await page.route("**/step.js", (route) => route.fulfill({contentType: "text/javascript", body: ""}));
    for (const [title, path] of Object.entries(outside)) {
      await page.goto(bed.dashboards + path);
      await page.locator("h1", {hasText: title}).waitFor();
      await checkAccess(page, `${title}, ${look}`);
      await fits(page, `${title}, ${look}`);
      if (title !== "Opening") continue;
      await page.unroute("**/step.js");
      await page.goto(bed.dashboards + path);
      await page.waitForURL((url) => url.pathname === path && !url.search);
    }
  });
}

test("at 200 %, with reduced motion, all fits and nothing moves", async (t) => {
  const [path, sign] = places.cluster,
    moves = (page) => page.evaluate(() => document.getAnimations().length);
  const plain = await open(t, path);
  await plain.locator(sign).waitFor();
  assert.ok((await moves(plain)) > 0, "what goes on moves otherwise");
  const page = await open(t, "/ui/", {
    context: {viewport: {width: 640, height: 400}, deviceScaleFactor: 2, reducedMotion: "reduce"},
  });
  for (const [name, [path, sign]] of Object.entries(places)) {
    await page.goto(path);
    await page.locator(sign).first().waitFor();
    await fits(page, `${name}, 200 %`);
    assert.equal(await moves(page), 0, `${name} stands still`);
  }
});
