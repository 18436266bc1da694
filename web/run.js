import { el, words, ms, asMs, isPressed, once, Rows, span, table, when, section, facts } from "./dom.js";
import { ask, follow, get, post, save } from "./api.js";
import { sure } from "./forms.js";
import { chip, codeWords, countsIn, groupOf, ownerWords, runWord, tally, waitWords, wordOf } from "./told.js";

/** Least time between two drawings of a run that goes on, in milliseconds. */
const DRAW_MS = 200;
/** Most answers that are drawn as dots; more of them are a histogram. */
const MOST_DOTS = 400;
/** Bars of a histogram. */
const BARS = 40;

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
  /** Results that are shown: those of this word, and those whose answers came in this time. */
  let word = "";
  /** @type {[number, number] | null} */
  let range = null;
  const part = () => /** @type {HTMLElement} */ (el("div"));
  const parts = { head: part(), counts: part(), dots: part(), callers: part(), list: part() };
  const rows = new Rows("Results", ["Result", "Caller", "Verdict", "Reason", "Who has to act", "Mean latency", "By agent", "By caller", "Pacing", "Length"]);
  const empty = el("p", { class: "empty" });
  const shown = el("p", { class: "downloads" });
  // A call's page does without them.
  const { Strips } = await import("./strips.js");
  const strips = new Strips(stop.signal);
  const forms = { name: naming(id, page, (named) => { run = named; draw(); }), tag: tagging(async () => (await get("/v1/retrieve-simulation-results/" + id)).simulation_results.map((/** @type {any} */ one) => one.id), page) };
  const glance = section("Calls at a glance", el("p", { class: "note" }, "Those that go on, then those that did not pass, then the slowest. Keys: N next, P previous."), strips.node);
  page.key = (event) => step(event, strips.node);
  parts.list.append(section("Results", shown, rows.node, empty));
  let drawing = 0;
  const draw = () => {
    drawing = 0;
    if (!run) return;
    // What is being clicked is not taken away.
    if (isPressed()) { drawing = window.setTimeout(draw, DRAW_MS); return; }
    const list = [...results.values()].sort((one, other) => one.id - other.id);
    once(parts.head, [run, failedIn(list)], () => head(run, failedIn(list), page, forms));
    strips.show(list);
    once(parts.counts, [countsIn(list), word, reasons(list)], () => counters(list, word, (chosen) => { word = chosen; draw(); }));
    once(parts.dots, [run.p50_agent_latency, run.p95_agent_latency, list.map((one) => [one.id, one.latency])], () => section("Latency of the agent", latencies(list, run, (from, to) => { range = [from, to]; draw(); parts.list.scrollIntoView({ block: "start" }); })));
    once(parts.callers, list.map((one) => [one.digital_human_name, groupOf(one), one.latency]), () => section("By caller", byCaller(list)));
    const wanted = list.filter((one) => (!word || groupOf(one) === word) && (!range || (one.latency || []).some((/** @type {number} */ at) => range && at * 1000 >= range[0] && at * 1000 < range[1])));
    rows.show(wanted, resultCells);
    empty.textContent = wanted.length ? "" : list.length ? "No result is like this." : "This run has no results.";
    const filter = [word, range && "an answer of " + Math.round(range[0]) + " to " + ms(range[1])].filter(Boolean).join(", ");
    shown.hidden = !filter;
    once(shown, filter, () => filter ? el("span", {}, "Only: " + filter + " ", el("button", { type: "button", onclick: () => { word = ""; range = null; draw(); } }, "Show all")) : "");
  };
  page.show(parts.head, parts.counts, glance, parts.list, parts.dots, parts.callers);
  const take = (/** @type {string} */ event, /** @type {any} */ data) => {
    if (event === "run" && !run) forms.name.text.value = data.name || "";
    if (event === "run") run = data;
    if (event === "result") results.set(data.id, data);
    if (event === "run" && !drawing) drawing = window.setTimeout(draw, results.size && parts.head.childElementCount ? DRAW_MS : 0);
  };
  const over = follow("/v1/simulation-run/" + id + "/events", take, stop.signal, (connected) => page.connected(connected));
  const rate = async () => {
    if (results.size > MOST_CORRECTED) return;
    const { corrected } = (await get("/v1/retrieve-simulation-results/" + id)).simulation_run;
    if (!corrected) return;
    const { correctedLine } = await import("./judges.js");
    if (!page.isGone()) parts.counts.after(correctedLine(corrected));
  };
  over.then(() => { if (!stop.signal.aborted) { draw(); rate().catch(page.refused); } }, (error) => { if (run) page.refused(error); else page.failed(error); });
}

/** Most results of a run that are read again for the corrected rate. */
const MOST_CORRECTED = 1000;

/**
 * N and P move the focus to the next and the previous call.
 * @param {KeyboardEvent} event
 * @param {HTMLElement} list
 */
function step(event, list) {
  const by = { n: 1, p: -1 }[event.key.toLowerCase()];
  if (!by || event.ctrlKey || event.metaKey || event.altKey) return false;
  const links = [...list.querySelectorAll("a")];
  const now = links.indexOf(/** @type {HTMLAnchorElement} */ (document.activeElement));
  const next = links[Math.min(links.length - 1, Math.max(0, now + by))];
  if (next) next.focus();
  return Boolean(next);
}

/**
 * Callers whose calls failed or did not reach the agent, each once.
 * @param {any[]} list
 */
function failedIn(list) {
  return [...new Set(list.filter((one) => ["failed", "unreachable"].includes(groupOf(one)) && one.digital_human_id).map((one) => one.digital_human_id))];
}

/**
 * Adds a tag to every result of a run.
 * @param {() => Promise<number[]>} ids of the results
 * @param {import("./app.js").Page} page
 */
function tagging(ids, page) {
  const text = el("input", { "aria-label": "Tag", maxLength: 60, required: true, placeholder: "tag" });
  const form = el("form", { class: "inline needs-write", onsubmit: async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      for (const id of await ids()) await post("/v1/update-simulation-result", { simulation_result_id: String(id), tags: [text.value.trim()] });
      page.notice("The calls of the run have the tag " + text.value.trim() + ".");
      text.value = "";
    } catch (error) { page.refused(/** @type {Error} */ (error)); }
  } }, text, " ", el("button", { type: "submit" }, "Tag"));
  return form;
}

/**
 * Gives a run its name. The form stays while the run is drawn anew.
 * @param {string} id
 * @param {import("./app.js").Page} page
 * @param {(run: any) => void} done
 */
function naming(id, page, done) {
  const text = /** @type {HTMLInputElement} */ (el("input", { "aria-label": "Name of the run", maxLength: 200, placeholder: "name" }));
  const node = el("form", { class: "inline needs-write", onsubmit: (/** @type {Event} */ event) => {
    event.preventDefault();
    ask("PATCH", "/v1/simulation-run/" + id, { body: { name: text.value } }).then((answer) => answer.json()).then(done).catch(page.refused);
  } }, text, " ", el("button", { type: "submit" }, "Name"));
  return { node, text };
}

/**
 * @param {any} run
 * @param {number[]} failed callers that are called again
 * @param {import("./app.js").Page} page
 * @param {{ name: { node: HTMLElement }, tag: HTMLElement }} forms
 */
function head(run, failed, page, forms) {
  const refuse = (/** @type {Error} */ error) => page.refused(error);
  const button = (/** @type {string} */ text, /** @type {() => Promise<any>} */ act, more = "") => el("button", { type: "button", class: more, onclick: () => act().catch(refuse) }, text);
  const again = () => post("/v1/queue-simulation-run", { simulation_id: String(run.simulation_id), seed: run.seed }).then((made) => page.go("/runs/" + made.simulation_run_id));
  const failedAgain = () => post("/v1/queue-simulation-run", { simulation_id: String(run.simulation_id), seed: run.seed, digital_human_ids: failed }).then((made) => page.go("/runs/" + made.simulation_run_id));
  const cancel = () => ask("POST", "/v1/simulation-run/" + run.id + "/cancel?hangup=true");
  const keep = (/** @type {string} */ format, /** @type {string} */ end) => button(format === "junit" ? "JUnit" : format.toUpperCase(), () => save("/v1/simulation-run/" + run.id + "/export?format=" + format, "run-" + run.id + end));
  return el("div", {}, el("h1", {}, "Run " + run.id, run.name ? words(": " + run.name, 120) : ""), el("p", { class: "chips" }, chip(runWord(run)),
    " ", el("a", { href: "/agents/" + run.agent_id }, words(run.agent_name ?? "agent " + run.agent_id, 80)), " ", el("a", { href: "/simulations/" + run.simulation_id }, words(run.simulation_name ?? "simulation " + run.simulation_id, 80))),
  facts(["Completed", run.tests_completed + " of " + run.total_tests], ["Latency, median", asMs(run.p50_agent_latency)], ["Latency, 95th percentile", asMs(run.p95_agent_latency)],
    ["Started", when(run.started_at)], ["Took", span(run.duration_ms)], ["By", run.created_by && words(run.created_by, 60)], ["Seed", run.seed], ["Tags", (run.tags || []).length ? words(run.tags.join(", ")) : null], ["Summary", run.summary && words(run.summary)]),
  el("p", { class: "downloads" }, button("Run again with this seed", again, "needs-write"), failed.length ? button("Call the " + failed.length + " failed again", failedAgain, "needs-write") : null, run.status === "RUNNING" ? button("Hang up all", cancel, "needs-write danger") : null,
    forms.name.node, forms.tag, run.status === "RUNNING" ? null : el("span", { class: "needs-write" }, sure("Delete the run", () => ask("DELETE", "/v1/simulation-run/" + run.id).then(() => page.go("/")), page)),
    " Export: ", keep("csv", ".csv"), keep("json", ".json"), keep("junit", ".xml"), button("One HTML file", () => save("/v1/simulation-run/" + run.id + "/page", "run-" + run.id + ".html"))));
}

/**
 * Why results were not judged, each reason once.
 * @param {any[]} list
 */
function reasons(list) {
  return [...new Set(list.filter((one) => groupOf(one) === "not judged").map((one) => one.reason || (one.error_code && codeWords(one.error_code)[0])).filter(Boolean))].slice(0, 3);
}

/**
 * The counters of a run; a click shows exactly the results that one counts.
 * @param {any[]} list
 * @param {string} word
 * @param {(word: string) => void} choose
 */
function counters(list, word, choose) {
  const why = reasons(list);
  return el("div", {}, el("p", { class: "counters", role: "group", "aria-label": "Results by their verdict" }, Object.entries(countsIn(list)).map(([one, count]) => el("button", { type: "button", class: "count", "aria-pressed": String(word === one), data: { word: one, count }, onclick: () => choose(word === one ? "" : one) }, chip(one, count + " ")))),
    why.length ? el("p", { class: "note" }, words("Not judged: " + why.join("; "), 400)) : null);
}

/** @param {any} one */
function resultCells(one) {
  const mean = (/** @type {number[] | null} */ all) => all && all.length ? asMs(all.reduce((sum, at) => sum + at, 0) / all.length) : "";
  const waits = !one.verdict && (one.queue_reason || one.queue_reason_text);
  const about = waits ? waitWords(one) : [one.error_code && codeWords(one.error_code)[0], one.reason].filter(Boolean).join(": ");
  return [el("a", { href: "/results/" + one.id }, String(one.id)), el("span", {}, words(one.digital_human_name ?? "deleted", 60), one.repetition > 1 ? " " + one.repetition : ""),
    el("span", {}, chip(wordOf(one)), one.human_edited ? " reviewed" : ""), words(about, 120), ownerWords(one.error_owner),
    mean(one.latency), one.agent_interruption_count ?? "", one.customer_interruption_count ?? "", one.trusted === null ? "" : one.trusted ? "trusted" : "not trusted", span(one.duration_ms)];
}

/**
 * The answers of the agent by their latency: each as a dot that leads to it, or many as bars that show their results.
 * @param {any[]} list
 * @param {any} run
 * @param {(from: number, to: number) => void} choose
 */
function latencies(list, run, choose) {
  const all = list.flatMap((one) => (one.latency || []).map((/** @type {number} */ seconds, /** @type {number} */ turn) => ({ one, turn, at: seconds * 1000 })));
  if (!all.length) return el("p", { class: "empty" }, "No answer was measured yet.");
  const sorted = all.map((dot) => dot.at).sort((a, b) => a - b);
  const rank = (/** @type {number} */ share) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  const most = Math.max(1000, sorted[sorted.length - 1]) * 1.05;
  const NS = "http://www.w3.org/2000/svg";
  const draw = (/** @type {string} */ name, /** @type {Record<string, any>} */ set, /** @type {string} */ text = "") => {
    const node = document.createElementNS(NS, name);
    Object.entries(set).forEach(([key, value]) => node.setAttribute(key, String(value)));
    node.textContent = text;
    return node;
  };
  const [width, height] = [800, 130];
  const svg = draw("svg", { viewBox: "0 -28 " + width + " " + (height + 48), class: "dots", role: "group", "aria-label": all.length + " answers by their latency" });
  const step = most > 8000 ? 2000 : most > 3000 ? 1000 : 250;
  for (let at = 0; at <= most; at += step) {
    svg.append(draw("line", { x1: (at / most) * width, x2: (at / most) * width, y1: 0, y2: height, class: "grid" }), draw("text", { x: (at / most) * width, y: height + 14, "text-anchor": at === 0 ? "start" : at > most * 0.95 ? "end" : "middle" }, at + " ms"));
  }
  if (all.length > MOST_DOTS) bars(all, most, choose, draw, svg);
  else {
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
  }
  for (const [name, seconds, share] of /** @type {[string, number | null, number][]} */ ([["median", run.p50_agent_latency, 0.5], ["95 %", run.p95_agent_latency, 0.95]])) {
    const at = seconds === null || seconds === undefined ? rank(share) : seconds * 1000;
    const x = (at / most) * width;
    svg.append(draw("line", { x1: x, x2: x, y1: 0, y2: height, class: "rank" }), draw("text", { x, y: share < 0.9 ? -3 : -16, "text-anchor": x > width * 0.9 ? "end" : "middle" }, name + " " + ms(at)));
  }
  return el("div", { class: "scroll", tabIndex: 0, role: "group", "aria-label": "Latencies" }, svg);
}

/**
 * @param {any[]} all
 * @param {number} most
 * @param {(from: number, to: number) => void} choose
 * @param {(name: string, set: Record<string, any>, text?: string) => Element} draw
 * @param {Element} svg
 */
function bars(all, most, choose, draw, svg) {
  const wide = most / BARS;
  const counts = Array.from({ length: BARS }, (_, n) => all.filter((dot) => Math.min(BARS - 1, Math.floor(dot.at / wide)) === n).length);
  const top = Math.max(...counts);
  counts.forEach((count, n) => {
    if (!count) return;
    const [from, to] = [n * wide, (n + 1) * wide];
    const high = Math.max(2, (count / top) * 118);
    const bar = draw("g", { class: "bar", role: "button", tabindex: 0, "data-count": count, "aria-label": count + " answers of " + Math.round(from) + " to " + ms(to) + ": show their results" });
    bar.append(draw("rect", { x: (n / BARS) * 800 + 1, y: 130 - high, width: 800 / BARS - 2, height: high }));
    bar.addEventListener("click", () => choose(from, to));
    bar.addEventListener("keydown", (event) => { if (["Enter", " "].includes(/** @type {KeyboardEvent} */ (event).key)) { event.preventDefault(); choose(from, to); } });
    svg.append(bar);
  });
}

/** @param {any[]} list */
function byCaller(list) {
  const callers = new Map();
  for (const one of list) {
    const name = one.digital_human_name ?? "deleted";
    callers.set(name, [...(callers.get(name) || []), one]);
  }
  const median = (/** @type {any[]} */ all) => { const list = all.flatMap((one) => one.latency || []).sort((a, b) => a - b); return list.length ? asMs(list[Math.floor((list.length - 1) / 2)]) : ""; };
  return table("Verdicts by caller", ["Caller", "Results", "Median latency"], [...callers].map(([name, all]) => [words(name, 60), tally(countsIn(all)), median(all)]));
}
