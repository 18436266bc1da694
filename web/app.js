import { el, words, usesKey } from "./dom.js";
import { ask, askTabs, get, key, onTabKey } from "./api.js";
import { callPage } from "./live.js";
import { runsPage } from "./runs.js";
import { runPage } from "./run.js";
import { startPage } from "./start.js";
import { agentsPage, agentPage } from "./agents.js";
import { agentForm } from "./agentform.js";
import { callerPage } from "./caller.js";
import { newScenario, scenarioPage } from "./scenario.js";
import { comparePage } from "./compare.js";
import { pairPage } from "./pair.js";
import { reviewPage } from "./queue.js";
import { watchPage } from "./watch.js";
import { productionPage } from "./production.js";

/**
 * What a view may do with the page.
 * @typedef {{
 *   show: (...nodes: any[]) => void, title: (text: string) => void, notice: (text: string) => void, go: (path: string) => void,
 *   after: (act: () => void) => void, isGone: () => boolean, connected: (is: boolean) => void, refused: (error: any) => void, failed: (error: any) => void,
 *   key: ((event: KeyboardEvent) => boolean) | null,
 * }} Page
 */

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const notice = /** @type {HTMLElement} */ (document.getElementById("notice"));
const keyField = /** @type {HTMLInputElement} */ (document.getElementById("key"));
const keyBox = /** @type {HTMLDetailsElement} */ (document.getElementById("keybox"));
/** Time between two questions whether the server is there, in milliseconds. */
const BEAT_MS = 3000;
/** Time until a view is tried again whose server did not answer, in milliseconds. */
const AGAIN_MS = 2000;
const LOST = "The server does not answer. What is shown stays; it goes on by itself when the server is back.";
const UNDONE = "What you asked for meanwhile was not done: do it again.";
/** Where a new key comes from after a restart. */
const NEW_LINK = "`ringer up` prints a new link at each start (" + location.origin + "/#start=..., works once, for ten minutes): open the newest one";
const REVOKED = "This key is not valid any more, as after a restart of the engine. What is shown stays. " + NEW_LINK + ", or enter a key under Key.";

/** @type {(() => void)[]} */
let ends = [];
/** @type {Page | null} */
let open = null;

/** @param {string} text */
function say(text) {
  notice.replaceChildren(words(text), el("button", { type: "button", class: "more", "aria-label": "Close this message", onclick: () => say("") }, "\u00d7"));
  notice.hidden = !text;
}

/** @param {any} error */
function failure(error) {
  if (error.status === 401) {
    isRefused = true;
    return el("div", { class: "welcome" }, el("h1", {}, key.get() ? "This key is not valid" : "No key yet"),
      el("p", {}, key.get() ? "The server does not know this key: it was revoked, or the engine was started anew." : "This page needs a key, and no other open tab has one."),
      el("p", {}, NEW_LINK + "."), el("p", {}, "Or ", el("button", { type: "button", onclick: () => { keyBox.open = true; keyField.focus(); } }, "enter an API key"), ": `ringer keys create` makes one."));
  }
  const again = el("button", { type: "button", onclick: () => void view() }, "Try again");
  const text = error.status === 0 ? "The server does not answer. This is tried again until it does." : error.status === 404 ? "This does not exist, or it belongs to another organization." : error.message;
  return el("div", { class: "welcome" }, el("h1", {}, error.status === 404 ? "Not found" : "This did not work"), el("p", {}, words(text)), el("p", {}, again));
}

/** Key whose scope the page knows. */
let known = "";
/** True while the server takes no key that the page has. */
let isRefused = false;
let isBegun = false;
/** True while something that was to be changed has not reached the server. */
let isUndone = false;

/** Notes what the key may do: what it may not is not offered. */
async function note() {
  if (!key.get() || known === key.get()) return;
  const own = await get("/v1/key").catch(() => null);
  known = own ? key.get() : "";
  if (own) isRefused = false;
  document.body.dataset.scope = own ? own.scope : "";
}

/** Shows what the address names. */
async function view() {
  ends.forEach((end) => end());
  ends = [];
  let gone = false;
  ends.push(() => { gone = true; });
  /** @type {Page} */
  const page = {
    show: (...nodes) => { if (!gone) main.replaceChildren(...nodes.filter(Boolean)); },
    title: (text) => { if (!gone) document.title = text + " \u2013 Ringer"; },
    notice: (text) => { if (!gone) say(text); },
    go, isGone: () => gone,
    after: (act) => { if (gone) act(); else ends.push(act); },
    connected: (is) => {
      if (gone || is === (notice.dataset.lost !== "1")) return;
      notice.dataset.lost = is ? "" : "1";
      say(is ? isUndone ? UNDONE : "" : LOST);
      if (is) isUndone = false;
    },
    refused: (error) => {
      if (gone) return;
      if (error.status === 0) {
        page.connected(false);
        if (error.isAct) { isUndone = true; say(LOST + " " + UNDONE); }
        return;
      }
      if (error.status === 401) { isRefused = true; known = ""; askTabs(); }
      say(error.status === 401 ? REVOKED : error.message);
    },
    failed: (error) => {
      if (gone) return;
      if (error.status === 401) { known = ""; askTabs(); }
      main.replaceChildren(failure(error));
      // Where the server is gone the view comes by itself when it is back.
      if (error.status === 0) setTimeout(() => { if (!gone) void view(); }, AGAIN_MS);
    },
    key: null,
  };
  open = page;
  const path = location.pathname;
  document.querySelectorAll("nav a").forEach((link) => {
    if (link.getAttribute("href") === path) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  });
  const id = (path.split("/")[2] || "").replace(/[^0-9]/g, "");
  keyField.placeholder = key.get() ? "another one is in use" : "rk_...";
  main.setAttribute("aria-busy", "true");
  try {
    await note();
    if (path === "/") await runsPage(page);
    else if (path.startsWith("/runs/")) await runPage(id, page);
    else if (path.startsWith("/results/")) await callPage(id, page);
    else if (path === "/call") await startPage(page);
    else if (path === "/agents") await agentsPage(page);
    else if (/^\/agents\/(new|\d+\/edit)$/.test(path)) await agentForm(id, page);
    else if (path.startsWith("/agents/")) await agentPage(id, page);
    else if (path === "/simulations/new") await newScenario(page);
    else if (path.startsWith("/simulations/")) await scenarioPage(id, page);
    else if (path.startsWith("/callers/")) await callerPage(id, page);
    else if (path === "/compare") await comparePage(page);
    else if (path === "/compare/calls") await pairPage(page);
    else if (path === "/review") await reviewPage(page);
    else if (path === "/watch") await watchPage(page);
    else if (path === "/judges") await (await import("./judges.js")).judgesPage(page);
    else if (/^\/judges\/[0-9a-f-]{36}$/.test(path)) await (await import("./judges.js")).judgePage(path.slice("/judges/".length), page);
    else if (path === "/settings") await (await import("./settings.js")).settingsPage(page);
    else if (/^\/calls\/[0-9a-f-]{36}$/.test(path)) await productionPage(path.slice("/calls/".length), page);
    else page.failed({ status: 404 });
  } catch (error) {
    page.failed(error);
  }
  if (!gone) main.removeAttribute("aria-busy");
}

/** @param {string} path */
function go(path) {
  history.pushState(null, "", path);
  if (notice.dataset.lost !== "1") say("");
  void view().then(() => main.focus({ preventScroll: true }));
  scrollTo(0, 0);
}

document.addEventListener("click", (event) => {
  const link = /** @type {Element} */ (event.target).closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  const href = link.getAttribute("href") || "";
  if (!href.startsWith("/") || href.startsWith("/docs") || link.hasAttribute("download")) return;
  event.preventDefault();
  go(href);
});
addEventListener("popstate", () => void view());
document.addEventListener("keydown", (event) => {
  const at = /** @type {Element} */ (event.target);
  if (open && open.key && !usesKey(at, event.key) && open.key(event)) event.preventDefault();
});
/** @type {HTMLFormElement} */ (document.getElementById("keyform")).onsubmit = (event) => {
  event.preventDefault();
  key.set(keyField.value.trim());
  keyField.value = "";
  keyBox.open = false;
  say("");
  void view();
};
keyBox.addEventListener("keydown", (event) => { if (event.key === "Escape") { keyBox.open = false; /** @type {HTMLElement} */ (keyBox.firstElementChild).focus(); } });

// A key that another tab has is taken where this one has none that is good.
onTabKey((found) => {
  if (!isBegun || found === key.get() || (key.get() && !isRefused)) return;
  key.set(found, false);
  isRefused = false;
  say("");
  void view();
}, () => (isRefused ? "" : key.get()));

/** Looks every few seconds whether the server is there, on every view. */
async function beat() {
  const isThere = document.hidden ? null : await fetch("/health", { cache: "no-store" }).then((answer) => answer.ok || answer.status < 500, () => false);
  const wasLost = notice.dataset.lost === "1";
  if (isThere !== null && open) open.connected(isThere);
  // After a restart the key may be another one.
  if (isThere && wasLost && key.get()) await get("/v1/key").catch((error) => { if (error.status === 401 && open) open.refused(error); });
  clearTimeout(beating);
  beating = window.setTimeout(beat, BEAT_MS);
}
let beating = 0;
for (const change of ["online", "offline", "visibilitychange"]) (change === "visibilitychange" ? document : window).addEventListener(change, () => { if (isBegun) void beat(); });

/** Changes the start token of the address for a key; the token leaves the address at once. */
async function begin() {
  const token = new URLSearchParams(location.hash.slice(1)).get("start");
  if (token) {
    history.replaceState(null, "", location.pathname + location.search);
    try {
      key.set((await (await ask("POST", "/v1/page-session", { body: { token } })).json()).api_key);
    } catch (error) {
      await askTabs();
      if (!key.get()) say("The address that opened this page was used before, or is older than ten minutes. " + NEW_LINK + ", or enter a key under Key.");
    }
  } else if (!key.get()) {
    await askTabs();
  }
  isBegun = true;
  await view();
  void beat();
}

void begin();
