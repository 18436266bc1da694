import { el, ms } from "./dom.js";
import { PER_MS, deadAir, figureList, lengthOf, overlapsOf } from "./numbers.js";

/**
 * A number that stands on top of a call, with what it should be.
 * @typedef {import("./numbers.js").Figure & { aim: string, isMet: boolean | null }} Headline
 */

/** What is usually aimed at, where the call has no expectation of its own: most seconds. */
const AIMS = /** @type {Record<string, number>} */ ({ p50_agent_latency: 0.8, p95_agent_latency: 1.5, max_agent_latency: 3 });
/** Longest time in which a side that is cut in on should fall silent, in milliseconds. */
const YIELD_MS = 500;

/**
 * The eight numbers that tell most of a call.
 * @param {any} data
 * @param {import("./numbers.js").Figure[]} figures
 * @returns {Headline[]}
 */
export function headlines(data, figures) {
  const turns = (data.turns && data.turns.turns) || [];
  const latencies = [["p50_agent_latency", "Latency, median"], ["p95_agent_latency", "Latency, 95 %"], ["max_agent_latency", "Latency, longest"]].map(([kind, name]) => latency(data.result, figures, kind, name));
  return [...latencies, ...cutIns(overlapsOf(data)), silence(turns, lengthOf(data)), understood(turns), exactness(data.result)];
}

/**
 * @param {string} name
 * @param {string} value
 * @param {import("./numbers.js").Span[]} spans
 * @param {string} kind
 * @param {string} aim
 * @param {boolean | null} isMet null where there is nothing to compare
 * @returns {Headline}
 */
function headline(name, value, spans, kind, aim, isMet) {
  return { group: "", name, value, spans, kind, aim, isMet };
}

/**
 * @param {any} result
 * @param {import("./numbers.js").Figure[]} figures
 * @param {string} kind
 * @param {string} name
 */
function latency(result, figures, kind, name) {
  const metric = (result.metrics || []).find((/** @type {any} */ one) => one.name === kind);
  const found = figures.find((figure) => figure.kind === kind);
  const asked = (result.expectations || []).map((/** @type {any} */ one) => one.expectation || one).find((/** @type {any} */ one) => one.metric === kind && typeof one.at_most === "number");
  const most = asked ? asked.at_most : AIMS[kind];
  const aim = (asked ? "asked: at most " : "aim: at most ") + ms(most * 1000);
  if (!metric || typeof metric.value !== "number") return headline(name, "not measured", [], kind, aim, null);
  return headline(name, ms(metric.value * 1000), found ? found.spans : [], kind, aim, metric.value <= most);
}

/** @param {import("./numbers.js").Overlap[]} overlaps */
function cutIns(overlaps) {
  const counted = overlaps.filter((one) => one.counted);
  const [agent, caller] = ["AGENT", "USER"].map((by) => counted.filter((one) => one.by === by));
  const stops = caller.map((one) => one.stop_ms).filter((stop) => stop !== null);
  const slowest = stops.length ? Math.max(...stops.map(Number)) : null;
  const yields = !caller.length ? "never cut in on" : slowest === null ? "did not stop" : stops.length + " of " + caller.length + ", slowest " + ms(slowest);
  return [
    headline("Cuts in", "agent " + agent.length + ", caller " + caller.length, counted, "cut_ins", "aim: agent 0", agent.length === 0),
    headline("Agent yields", yields, caller.map(({ from, to }) => ({ from, to })), "yields", "aim: within " + ms(YIELD_MS), caller.length ? stops.length === caller.length && slowest !== null && slowest <= YIELD_MS : null),
  ].map((one) => ({ ...one, spans: one.spans.map(({ from, to }) => ({ from, to })) }));
}

/**
 * Dead air by whose turn it was.
 * @param {any[]} turns
 * @param {number} whole length of the call in milliseconds
 */
function silence(turns, whole) {
  const all = deadAir(turns, whole);
  const [agent, caller] = ["AGENT", "USER"].map((side) => all.filter(({ by }) => by === side).reduce((sum, { from, to }) => sum + to - from, 0));
  const seconds = (/** @type {number} */ value) => (value / 1000).toFixed(1) + " s";
  return headline("Dead air", "agent " + seconds(agent) + ", caller " + seconds(caller), all.map(({ from, to }) => ({ from, to })), "dead_airs", "aim: agent 0 s", turns.length ? agent === 0 : null);
}

/** @param {any[]} turns */
function understood(turns) {
  const spoken = turns.filter((turn) => turn.speaker === "AGENT");
  const lost = spoken.filter((turn) => turn.text_missing);
  const spans = lost.map((turn) => ({ from: turn.from_sample / PER_MS, to: turn.to_sample / PER_MS }));
  return headline("Words understood", spoken.length ? spoken.length - lost.length + " of " + spoken.length + " turns" : "no turns", spans, "understood", "aim: all", spoken.length ? lost.length === 0 : null);
}

/** @param {any} result */
function exactness(result) {
  const quality = result.engine_quality;
  if (!quality) return headline("Exactness", "not told", [], "exactness", "aim: times can be relied on", null);
  return headline("Exactness", quality.trusted ? "sent within " + quality.pacing_p99_ms + " ms" : "times cannot be relied on", [], "exactness", "aim: times can be relied on", Boolean(quality.trusted));
}

/**
 * The numbers of a call: eight with their aims, and all others behind a click.
 * @param {Headline[]} first
 * @param {import("./numbers.js").Figure[]} figures
 * @param {((figure: import("./numbers.js").Figure) => void) | null} play null where there is nothing to hear
 * @param {{ isOpen: boolean }} all whether all are shown; it is kept up
 */
export function numbersOf(first, figures, play, all) {
  const cards = first.map((one) => {
    const [span] = one.spans;
    const inside = [el("span", { class: "name" }, one.name), el("b", {}, one.value), el("small", {}, (one.isMet === null ? "" : one.isMet ? "\u2713 " : "\u2717 ") + one.aim)];
    const look = "headline" + (one.isMet === false ? " missed" : "");
    if (!span || !play) return el("li", {}, el("span", { class: "number " + look, data: { kind: one.kind || "" } }, inside));
    const data = { from: span.from, to: span.to, kind: one.kind || "", lit: one.spans.map(({ from, to }) => from + "-" + to).join(",") };
    return el("li", {}, el("button", { type: "button", class: "figure " + look, data, onclick: () => play(one) }, inside));
  });
  const rest = el("details", { class: "all-numbers", open: all.isOpen, ontoggle: () => { all.isOpen = rest.open; } }, el("summary", {}, "All numbers (" + figures.length + ")"), ...figureList(figures, play));
  return [el("ul", { class: "headlines" }, cards), rest];
}
