import { el, words, chip, ms, asMs, isPressed, span, swap, when, table, section, facts } from "./dom.js";
import { ask, follow, post, save } from "./api.js";

/** Least time between two drawings of a run that goes on, in milliseconds. */
const DRAW_MS = 200;

/**
 * One run: its results, its latencies, its verdicts by caller. It moves while the run goes on.
 * @param {string} id
 * @param {import("./app.js").Page} page
 */
export async function runPage(id, page) {
  page.title("Run " + id);
  const stop = new AbortController();
  page.after(() => stop.abort());
  /** @type {Map<number, any>} */
  const results = new Map();
  /** @type {any} */
  let run = null;
  const parts = { head: el("div"), dots: el("div"), callers: el("div"), list: el("div") };
  let drawing = 0;
  const draw = () => {
    drawing = 0;
    if (!run) return;
    // What is being clicked is not taken away.
    if (isPressed()) { drawing = window.setTimeout(draw, DRAW_MS); return; }
    const list = [...results.values()].sort((one, other) => one.id - other.id);
    swap(parts.head, head(run, page));
    swap(parts.dots, section("Latency of the agent", dots(list, page)));
    swap(parts.callers, section("By caller", byCaller(list)));
    swap(parts.list, section("Results", resultTable(list)));
  };
  page.show(parts.head, parts.list, parts.dots, parts.callers);
  const take = (/** @type {string} */ event, /** @type {any} */ data) => {
    if (event === "run") run = data;
    if (event === "result") results.set(data.id, data);
    if (event === "run" && !drawing) drawing = results.size ? window.setTimeout(draw, parts.list.childElementCount ? DRAW_MS : 0) : window.setTimeout(draw, 0);
  };
  const over = follow("/v1/simulation-run/" + id + "/events", take, stop.signal, (connected) => page.connected(connected));
  over.then(() => { if (!stop.signal.aborted) draw(); }, (error) => { if (run) page.refused(error); else page.failed(error); });
}

/**
 * @param {any} run
 * @param {import("./app.js").Page} page
 */
function head(run, page) {
  const refuse = (/** @type {Error} */ error) => page.refused(error);
  const button = (/** @type {string} */ text, /** @type {() => Promise<any>} */ act) => el("button", { type: "button", onclick: () => act().catch(refuse) }, text);
  const again = () => post("/v1/queue-simulation-run", { simulation_id: String(run.simulation_id), seed: run.seed }).then((made) => page.go("/runs/" + made.simulation_run_id));
  const cancel = () => ask("POST", "/v1/simulation-run/" + run.id + "/cancel?hangup=true");
  const keep = (/** @type {string} */ format, /** @type {string} */ end) => button(format === "junit" ? "JUnit" : format.toUpperCase(), () => save("/v1/simulation-run/" + run.id + "/export?format=" + format, "run-" + run.id + end));
  return el("div", {}, el("h1", {}, "Run " + run.id), el("p", { class: "chips" }, chip(run.outcome || run.status),
    " ", el("a", { href: "/agents/" + run.agent_id }, words(run.agent_name ?? "agent " + run.agent_id, 80)), " ", el("a", { href: "/simulations/" + run.simulation_id }, words(run.simulation_name ?? "simulation " + run.simulation_id, 80))),
  facts(["Passed", String(run.tests_passed)], ["Failed", String(run.tests_failed)], ["Cancelled", String(run.tests_cancelled)], ["Not evaluated", String(run.tests_not_evaluated)],
    ["Completed", run.tests_completed + " of " + run.total_tests], ["Latency, median", asMs(run.p50_agent_latency)], ["Latency, 95th percentile", asMs(run.p95_agent_latency)],
    ["Started", when(run.started_at)], ["Took", span(run.duration_ms)], ["By", run.created_by && words(run.created_by, 60)], ["Seed", run.seed], ["Summary", run.summary && words(run.summary)]),
  el("p", { class: "downloads" }, button("Run again with this seed", again), run.status === "RUNNING" ? button("Cancel", cancel) : null,
    " Export: ", keep("csv", ".csv"), keep("json", ".json"), keep("junit", ".xml")));
}

/** @param {any[]} list */
function resultTable(list) {
  if (!list.length) return el("p", { class: "empty" }, "This run has no results.");
  const mean = (/** @type {number[] | null} */ all) => all && all.length ? asMs(all.reduce((sum, one) => sum + one, 0) / all.length) : "";
  return table("Results", ["Result", "Caller", "Outcome", "Reason", "Owner", "Mean latency", "By agent", "By caller", "Pacing", "Length"], list.map((one) => [
    el("a", { href: "/results/" + one.id }, String(one.id)), el("span", {}, words(one.digital_human_name ?? "deleted", 60), one.repetition > 1 ? " " + one.repetition : ""),
    el("span", {}, chip(one.verdict || one.outcome || one.status), one.human_edited ? " reviewed" : ""), words([one.error_code, one.reason].filter(Boolean).join(": "), 120), one.error_owner || "",
    mean(one.latency), one.agent_interruption_count ?? "", one.customer_interruption_count ?? "", one.trusted === null ? "" : one.trusted ? "trusted" : "not trusted", span(one.duration_ms)]));
}

/**
 * Each answer of the agent as a dot; a click leads to it.
 * @param {any[]} list
 * @param {import("./app.js").Page} page
 */
function dots(list, page) {
  const all = list.flatMap((one) => (one.latency || []).map((/** @type {number} */ seconds, /** @type {number} */ turn) => ({ one, turn, at: seconds * 1000 })));
  if (!all.length) return el("p", { class: "empty" }, "No answer was measured yet.");
  const most = Math.max(1000, ...all.map((dot) => dot.at)) * 1.05;
  const NS = "http://www.w3.org/2000/svg";
  const draw = (/** @type {string} */ name, /** @type {Record<string, any>} */ set, /** @type {string} */ text = "") => {
    const node = document.createElementNS(NS, name);
    Object.entries(set).forEach(([key, value]) => node.setAttribute(key, String(value)));
    node.textContent = text;
    return node;
  };
  const [width, height] = [800, 130];
  const svg = draw("svg", { viewBox: "0 0 " + width + " " + (height + 20), class: "dots", role: "group", "aria-label": all.length + " answers by their latency" });
  const step = most > 8000 ? 2000 : most > 3000 ? 1000 : 250;
  for (let at = 0; at <= most; at += step) {
    svg.append(draw("line", { x1: (at / most) * width, x2: (at / most) * width, y1: 0, y2: height, class: "grid" }), draw("text", { x: (at / most) * width, y: height + 14, "text-anchor": at === 0 ? "start" : at > most * 0.95 ? "end" : "middle" }, at + " ms"));
  }
  const stacks = new Map();
  for (const { one, turn, at } of all) {
    const column = Math.round((at / most) * (width / 7));
    const up = stacks.get(column) || 0;
    stacks.set(column, up + 1);
    const y = height - 6 - ((up * 7) % (height - 12));
    const link = draw("a", { href: "/results/" + one.id + "#turn=" + turn, "aria-label": ms(at) + ", result " + one.id + ", turn " + (turn + 1) });
    link.append(draw("circle", { cx: Math.min(width - 4, Math.max(4, (at / most) * width)), cy: y, r: 3.5 }));
    svg.append(link);
  }
  return el("div", { class: "scroll", tabIndex: 0, role: "group", "aria-label": "Latencies" }, svg);
}

/** @param {any[]} list */
function byCaller(list) {
  const callers = new Map();
  for (const one of list) {
    const name = one.digital_human_name ?? "deleted";
    const counts = callers.get(name) || { passed: 0, failed: 0, other: 0, latency: [] };
    const told = one.verdict || one.outcome;
    counts[told === "passed" || told === "failed" ? told : "other"] += 1;
    counts.latency.push(...(one.latency || []));
    callers.set(name, counts);
  }
  const median = (/** @type {number[]} */ all) => all.length ? asMs([...all].sort((a, b) => a - b)[Math.floor((all.length - 1) / 2)]) : "";
  return table("Outcomes by caller", ["Caller", "Passed", "Failed", "Other", "Median latency"], [...callers].map(([name, counts]) => [words(name, 60), counts.passed, counts.failed, counts.other, median(counts.latency)]));
}
