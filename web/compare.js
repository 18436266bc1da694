import { el, words, asMs, span, table, section, when, facts } from "./dom.js";
import { get, ask, save } from "./api.js";
import { chip, countsOf, runWord, tally, wordOf } from "./told.js";

/** Changes of a call in words, those that need somebody first. */
const CHANGES = [["regressed", "Regressed"], ["still_failing", "Still failing"], ["mended", "Mended"], ["not_told", "Not told"], ["new", "New"], ["gone", "Gone"], ["still_passing", "Still passing"]];

const FIGURES = /** @type {Record<string, string>} */ ({ p50_agent_latency: "Latency, median", p95_agent_latency: "Latency, 95th percentile", agent_interruption_count: "Cut-ins by the agent, a call", silence_percentage: "Dead air" });

/**
 * Ticks of runs: the two latest are compared.
 * @param {import("./app.js").Page} page
 */
export function ticking(page) {
  /** @type {Map<number, any>} */
  const ticked = new Map();
  const compare = (/** @type {number[]} */ two) => {
    const [a, b] = [...two].sort((one, other) => one - other);
    page.go("/compare?a=" + a + "&b=" + b);
  };
  const go = el("button", { type: "button", class: "big", disabled: true, onclick: () => compare([...ticked.keys()]) }, "Compare the two ticked runs");
  const box = (/** @type {any} */ run) => {
    const made = el("input", { type: "checkbox", checked: ticked.has(run.id), "aria-label": "Compare run " + run.id, onchange: () => {
      ticked.delete(run.id);
      if (made.checked) ticked.set(run.id, made);
      const [first] = ticked;
      if (ticked.size > 2) { first[1].checked = false; ticked.delete(first[0]); }
      go.disabled = ticked.size !== 2;
    } });
    // A row that is drawn anew keeps its tick.
    if (ticked.has(run.id)) ticked.set(run.id, made);
    return made;
  };
  return { box, go, compare };
}

/**
 * Runs with ticks: two of them are compared.
 * @param {any[]} runs
 * @param {import("./app.js").Page} page
 * @param {string} [simulation] its baseline is offered, where it has one
 */
export function tickTable(runs, page, simulation) {
  const { box, go, compare } = ticking(page);
  const base = el("span", { class: "toggles needs-write" });
  if (simulation) void baseline(simulation, runs, base, compare, page);
  return el("div", {}, table("Runs to compare", ["", "Run", "Agent", "Scenario", "Status", "Results", "p50", "p95", "Seed", "Started", "Took"], runs.map((run) => [
    box(run), el("a", { href: "/runs/" + run.id }, String(run.id)), words(run.agent_name ?? run.agent_id, 40), words(run.simulation_name ?? run.simulation_id, 40), chip(runWord(run)), tally(countsOf(run)),
    asMs(run.p50_agent_latency), asMs(run.p95_agent_latency), run.seed, when(run.started_at), span(run.duration_ms)])), el("p", { class: "downloads" }, go, base));
}

/**
 * The run that others of a simulation are compared with.
 * @param {string} id
 * @param {any[]} runs
 * @param {HTMLElement} place
 * @param {(two: number[]) => void} compare
 * @param {import("./app.js").Page} page
 */
async function baseline(id, runs, place, compare, page) {
  const simulation = await get("/v1/simulation/" + id).catch(() => null);
  if (!simulation) return;
  const now = simulation.settings && simulation.settings.baseline_run_id;
  const choice = el("select", { "aria-label": "Baseline", onchange: () => {
    const body = { baseline_run_id: choice.value ? Number(choice.value) : null };
    ask("PUT", "/v1/simulation/" + id, { body }).then(() => { place.replaceChildren(); return baseline(id, runs, place, compare, page); }).catch(page.refused);
  } }, el("option", { value: "" }, "none"), [...new Set([...(now ? [now] : []), ...runs.map((run) => run.id)])].map((run) => el("option", { value: String(run), selected: run === now }, "run " + run)));
  const last = runs.find((run) => run.id !== now && run.status === "COMPLETED");
  place.replaceChildren(el("label", {}, "Baseline ", choice), now && last ? el("button", { type: "button", onclick: () => compare([now, last.id]) }, "Compare run " + last.id + " with it") : "");
}

/**
 * A difference with its interval, in the unit of its figure.
 * @param {any} one
 */
function change(one) {
  if (one.difference === null) return "";
  const shown = (/** @type {number} */ value) => (value > 0 ? "+" : value < 0 ? "\u2212" : "") + (one.unit === "s" ? asMs(Math.abs(value)) : Math.abs(value).toFixed(2) + (one.unit === "%" ? " %" : ""));
  return shown(one.difference) + " (" + shown(one.low) + " to " + shown(one.high) + ")";
}

/**
 * @param {any} one
 * @param {number | null} value
 */
function figure(one, value) {
  return value === null ? "" : one.unit === "s" ? asMs(value) : value.toFixed(2) + (one.unit === "%" ? " %" : "");
}

/**
 * A value of a setting in a cell.
 * @param {any} value
 */
function shortly(value) {
  return words(value === null || value === undefined ? "\u2013" : typeof value === "string" ? value : JSON.stringify(value), 120);
}

/**
 * Two runs beside each other; without two, the list to tick them on.
 * @param {import("./app.js").Page} page
 */
export async function comparePage(page) {
  const query = new URLSearchParams(location.search);
  const [a, b] = [query.get("a"), query.get("b")];
  page.title("Compare");
  if (!a || !b) {
    const { simulation_runs: runs } = await get("/v1/simulation-runs?limit=100");
    return page.show(el("h1", {}, "Compare two runs"), runs.length > 1 ? tickTable(runs, page) : el("p", { class: "empty" }, "There are not two runs yet."));
  }
  const found = await get("/v1/simulation-runs/compare?a=" + encodeURIComponent(a) + "&b=" + encodeURIComponent(b));
  const run = (/** @type {any} */ one) => el("span", {}, el("a", { href: "/runs/" + one.id }, "run " + one.id), " (", words(one.agent_name ?? "agent", 40), ", ", words(one.simulation_name ?? "scenario", 40), ", ", when(one.started_at), ") ",
    el("button", { type: "button", class: "more", onclick: () => save("/v1/simulation-run/" + one.id + "/page", "run-" + one.id + ".html").catch(page.refused) }, "Save run " + one.id + " as one file"));
  const counts = CHANGES.filter(([name]) => found.counts[name]).map(([name, label]) => el("span", { class: "chip " + (name === "regressed" || name === "still_failing" ? "bad" : name === "mended" ? "good" : "plain") }, label + ": " + found.counts[name]));
  const call = (/** @type {any} */ one) => one ? el("a", { href: "/results/" + one.id }, String(one.id)) : "";
  const both = (/** @type {any} */ one) => one.a && one.b ? el("a", { href: "/compare/calls?a=" + one.a.id + "&b=" + one.b.id }, "side by side") : "";
  const rows = found.calls.map((/** @type {any} */ one) => [
    chip((CHANGES.find(([name]) => name === one.change) || ["", one.change])[1]), el("span", {}, words(one.digital_human_name ?? "deleted", 60), one.repetition > 1 ? " " + one.repetition : ""), call(one.a), one.a ? chip(wordOf(one.a)) : "",
    one.a ? asMs(one.a.p50_agent_latency) : "", call(one.b), one.b ? chip(wordOf(one.b)) : "", one.b ? asMs(one.b.p50_agent_latency) : "", words((one.b && one.b.reason) || (one.a && one.a.reason) || "", 120), both(one)]);
  page.show(el("h1", {}, "Run " + found.a.id + " and run " + found.b.id), el("p", {}, "Earlier: ", run(found.a)), el("p", {}, "Later: ", run(found.b)), el("p", { class: "chips" }, counts),
    facts(["Verdicts", found.says], ["By chance alone", "p = " + found.p.toFixed(3)]),
    section("Figures", table("Figures of both runs", ["Figure", "Earlier", "Later", "Difference (95 % interval)", ""], found.figures.map((/** @type {any} */ one) => [FIGURES[one.name] || one.name, figure(one, one.a), figure(one, one.b), change(one), one.says]))),
    section("What differed", found.differs.length ? table("Settings that differ", ["Of", "Field", "Earlier", "Later", "Callers"], found.differs.map((/** @type {any} */ one) => [one.of.replace(/_/g, " "), one.field.replace(/_/g, " "), shortly(one.a), shortly(one.b), words(one.callers.join(", "), 80)])) :
      el("p", { class: "empty" }, "Nothing: the same settings and seeds.")),
    section("Calls", rows.length ? table("Calls of both runs", ["Change", "Caller", "Earlier", "", "Median", "Later", "", "Median", "Reason", ""], rows) : el("p", { class: "empty" }, "There is no call.")));
}
