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
