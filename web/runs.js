import { el, words, asMs, isPressed, Rows, span, when } from "./dom.js";
import { get } from "./api.js";
import { ticking } from "./compare.js";
import { callSample } from "./start.js";
import { chip, countsOf, runWord, tally } from "./told.js";

/** Time between two looks at a list in which something goes on, and at one that rests, in milliseconds. */
const LOOK_MS = 2000;
const REST_MS = 6000;
/** Runs behind the first page that are asked for at one look. */
const MOST_RENEWED = 5;
const FIELDS = ["agent_id", "simulation_id", "status", "outcome", "q", "tag", "since"];

/**
 * The list of runs, filtered by what stands in the address.
 * @param {import("./app.js").Page} page
 */
export async function runsPage(page) {
  const query = new URLSearchParams(location.search);
  const wanted = new URLSearchParams();
  FIELDS.forEach((name) => { if (query.get(name)) wanted.set(name, query.get(name) || ""); });
  // A day begins where this clock says so.
  if (/^\d{4}-\d\d-\d\d$/.test(wanted.get("since") || "")) wanted.set("since", new Date(wanted.get("since") + "T00:00:00").toISOString().replace(/\.\d+Z/, "Z"));
  const path = "/v1/simulation-runs?" + wanted;
  page.title("Runs");
  const [first, agents] = await Promise.all([get(path), get("/v1/all-agents").catch(() => [])]);
  if (!first.simulation_runs.length && ![...wanted].length) return page.show(welcome(page));
  const rows = runRows("");
  const ticks = ticking(page);
  const empty = el("p", { class: "empty" });
  const more = el("button", { type: "button" }, "Older runs");
  let [runs, cursor] = [first.simulation_runs, first.next_cursor];
  const fill = () => {
    rows.show(runs, (run) => [ticks.box(run), ...runCells(run)]);
    rows.node.hidden = !runs.length;
    empty.textContent = runs.length ? "" : "No run is like this.";
    more.hidden = cursor === null;
  };
  more.onclick = async () => {
    more.disabled = true;
    try {
      const next = await get(path + "&cursor=" + cursor);
      [runs, cursor] = [runs.concat(next.simulation_runs), next.next_cursor];
      fill();
    } catch (error) {
      page.refused(error);
    }
    more.disabled = false;
  };
  fill();
  page.show(el("h1", {}, "Runs"), filters(query, agentList(agents), page), rows.node, el("p", {}, ticks.go), empty, more, sampleButton(page));
  const look = async () => {
    if (page.isGone()) return;
    const isMoving = runs.some((/** @type {any} */ run) => run.status !== "COMPLETED");
    let isRevoked = false;
    // A list that rests is asked for its newest run alone, and one that nobody looks at not at all.
    const fresh = document.hidden ? null : await get(isMoving ? path : path + "&limit=1").catch((error) => {
      isRevoked = error.status === 401;
      page.refused(error);
      return null;
    });
    if (isRevoked) return;
    if (fresh && !page.isGone()) {
      page.connected(true);
      const ids = new Set(fresh.simulation_runs.map((/** @type {any} */ run) => run.id));
      // What a whole page leaves out is like this no more, or was deleted.
      const last = isMoving ? (fresh.next_cursor === null ? 0 : Math.min(...ids)) : Infinity;
      runs = fresh.simulation_runs.concat(await renewed(path, runs.filter((/** @type {any} */ run) => !ids.has(run.id) && run.id < last)));
      if (!isPressed()) fill();
    }
    setTimeout(look, runs.some((/** @type {any} */ run) => run.status !== "COMPLETED") ? LOOK_MS : REST_MS);
  };
  setTimeout(look, LOOK_MS);
}

/**
 * Runs behind the first page; those that go on are asked for again, and left out where they are like this no more.
 * @param {string} path of the list
 * @param {any[]} runs
 */
async function renewed(path, runs) {
  const some = runs.filter((run) => run.status !== "COMPLETED").slice(0, MOST_RENEWED);
  const fresh = new Map();
  for (const run of some) {
    const found = await get(path + "&limit=1&cursor=" + (run.id + 1)).catch(() => null);
    if (found) fresh.set(run.id, found.simulation_runs.find((/** @type {any} */ one) => one.id === run.id));
  }
  return runs.map((run) => (fresh.has(run.id) ? fresh.get(run.id) : run)).filter(Boolean);
}

/** @param {any} answer */
export function agentList(answer) {
  return Array.isArray(answer) ? answer : answer.agents || [];
}

/** @param {...string} before heads of columns before those of the run */
function runRows(...before) {
  return new Rows("Runs", [...before, "Run", "Agent", "Simulation", "Status", "Results", "p50", "p95", "Tags", "Started", "Took", "By"]);
}

/** @param {any} run */
function runCells(run) {
  return [el("span", {}, el("a", { href: "/runs/" + run.id }, String(run.id)), run.name ? words(" " + run.name, 60) : ""), words(run.agent_name ?? run.agent_id, 60), words(run.simulation_name ?? run.simulation_id, 60),
    chip(runWord(run)), tally(countsOf(run)), asMs(run.p50_agent_latency), asMs(run.p95_agent_latency), words((run.tags || []).join(", "), 60), when(run.started_at), span(run.duration_ms), words(run.created_by ?? "", 40)];
}

/** @param {any[]} runs */
export function runTable(runs) {
  const rows = runRows();
  rows.show(runs, runCells);
  return rows.node;
}

/**
 * @param {URLSearchParams} query
 * @param {any[]} agents
 * @param {import("./app.js").Page} page
 */
function filters(query, agents, page) {
  const choice = (/** @type {string} */ name, /** @type {string} */ label, /** @type {[string, string][]} */ options) => el("label", {}, label,
    el("select", { name }, options.map(([value, text]) => el("option", { value, selected: value === (query.get(name) || "") }, text))));
  const form = el("form", { class: "filters", role: "search" },
    el("label", {}, "Search", el("input", { name: "q", type: "search", placeholder: "name, number, tag", value: query.get("q") || "" })),
    choice("agent_id", "Agent", [["", "all"], ...agents.slice(0, 500).map((agent) => /** @type {[string, string]} */ ([String(agent.id ?? agent.agent_id), String(agent.name).slice(0, 60)]))]),
    choice("status", "Status", [["", "all"], ["RUNNING", "running"], ["COMPLETED", "completed"]]),
    choice("outcome", "Verdict", [["", "all"], ["failed", "failed"], ["warning", "warning"], ["passed", "passed"]]),
    el("label", {}, "Tag", el("input", { name: "tag", value: query.get("tag") || "" })),
    el("label", {}, "Since", el("input", { name: "since", type: "date", value: (query.get("since") || "").slice(0, 10) })),
    el("button", { type: "submit" }, "Filter"));
  form.onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const wanted = new URLSearchParams();
    new FormData(form).forEach((value, name) => { if (value) wanted.set(name, String(value)); });
    page.go("/" + (wanted.size ? "?" + wanted : ""));
  };
  return form;
}

/** @param {import("./app.js").Page} page */
function sampleButton(page) {
  const button = el("button", { type: "button", id: "sample", class: "big" }, "Call the sample agent");
  button.onclick = async () => {
    button.disabled = true;
    await callSample(page).catch(page.refused);
    button.disabled = false;
  };
  return el("p", { class: "needs-write" }, button);
}

/** @param {import("./app.js").Page} page */
function welcome(page) {
  return el("div", { class: "welcome" }, el("h1", {}, "No call was made yet"),
    el("p", {}, "A simulated caller, a Digital Human, calls a voice agent, and the call is measured: how fast the agent answers, who interrupts whom, what was said."),
    el("p", { class: "needs-write" }, "There is a sample agent on this machine, an appointment desk. One click calls it, and shows the call as it goes on."),
    sampleButton(page),
    el("p", {}, el("span", { class: "needs-write" }, "For an agent of your own: ", el("a", { href: "/call" }, "call an address"), ". "), "All of it is also in the ", el("a", { href: "/docs" }, "API"), "."));
}
