import { el, ms, clock } from "./dom.js";

/**
 * A number of the page, with the stretches of the call that it tells of; a count of nothing has none.
 * @typedef {{ from: number, to: number }} Span
 * @typedef {{ name: string, value: string, spans: Span[], group: string, kind?: string, title?: string }} Figure
 * @typedef {{ by: string, from: number, to: number, overlap_ms: number, stop_ms: number | null, counted: boolean, why: string }} Overlap
 */

/** Samples a millisecond. */
export const PER_MS = 16;
/** Silence of both sides from which it is shown as dead air, in milliseconds. */
const DEAD_AIR_MS = 2000;
/** Shortest overlap that counts where nobody stopped, in milliseconds: older servers do not tell what counts. */
const COUNTED_MS = 200;
/** Why an overlap is not counted, in words. */
const NOT_COUNTED = /** @type {Record<string, string>} */ ({ short: "under 200 ms, and nobody stopped", continued: "a part of the interruption before it", other: "a short sound, or at the end of a turn" });
/** Most figures of one group that are shown at once. */
const SHOWN = 48;

/** Names and units of the metrics that are shown as numbers of the whole call; the others follow by their own names. */
const METRICS = {
  p50_agent_latency: ["Latency, median", "s"], p95_agent_latency: ["Latency, 95th percentile", "s"],
  max_agent_latency: ["Latency, longest", "s"], avg_agent_latency: ["Latency, mean", "s"],
  agent_snr: ["Agent: speech above noise", "dB"], agent_audio_clarity: ["Agent: clarity", "%"],
  agent_perceived_loudness: ["Agent: loudness", "LUFS"], silence_percentage: ["Neither speaks", "%"],
  overlap_percentage: ["Both speak", "%"], agent_speak_percentage: ["Agent speaks", "%"],
  agent_interruption_count: ["Interruptions by the agent", ""], customer_interruption_count: ["Interruptions by the caller", ""],
};

/**
 * Every number of a call, each with its stretch.
 * @param {any} data
 * @returns {Figure[]}
 */
export function figuresOf(data) {
  const turns = (data.turns && data.turns.turns) || [];
  const events = (data.timeline && data.timeline.events) || [];
  const whole = lengthOf(data);
  const [ofAgent, ofCaller] = ["latency", "reply"].map((kind) => latencies(turns).filter((figure) => figure.kind === kind));
  return [...ofAgent, ...cuts(overlapsOf(data)), ...silences(turns, whole), ...ofCaller, ...lateness(events), ...losses(events), ...network(data, events, whole), ...metrics(data, turns, whole)];
}

/**
 * Overlaps of a call, as the server counts them.
 * @param {any} data
 * @returns {Overlap[]}
 */
export function overlapsOf(data) {
  const told = data.turns && data.turns.overlaps;
  if (told) return told.map((/** @type {any} */ one) => stretchOf(one.by, one.at_sample / PER_MS, one, one.counted, NOT_COUNTED[one.why_not] || ""));
  const events = ((data.timeline && data.timeline.events) || []).filter((/** @type {any} */ event) => event.event === "barge_in");
  return events.map((/** @type {any} */ { offset_ms: at, data: one }) => {
    const counted = one.overlap_ms >= COUNTED_MS || (one.stop_ms ?? null) !== null;
    return stretchOf(one.by === "agent" ? "AGENT" : "USER", at, one, counted, counted ? "" : NOT_COUNTED.short);
  });
}

/**
 * @param {string} by
 * @param {number} from
 * @param {any} one
 * @param {boolean} counted
 * @param {string} why
 */
function stretchOf(by, from, one, counted, why) {
  return { by, from, to: from + Math.max(one.overlap_ms, one.stop_ms ?? 0), overlap_ms: one.overlap_ms, stop_ms: one.stop_ms ?? null, counted, why };
}

/**
 * Length of a call in milliseconds, as far as it is known.
 * @param {any} data
 */
export function lengthOf(data) {
  const events = (data.timeline && data.timeline.events) || [];
  const last = events.reduce((/** @type {number} */ most, /** @type {any} */ event) => Math.max(most, event.offset_ms), 0);
  return Math.max((data.result && data.result.duration_ms) || 0, last);
}

/** @param {any[]} turns */
function latencies(turns) {
  let number = 0;
  return turns.filter((turn) => turn.latency_ms !== null).map((turn) => {
    const ofAgent = turn.speaker === "AGENT";
    if (ofAgent) number += 1;
    return {
      group: ofAgent ? "Latency of the agent" : "Latency of the Digital Human",
      name: ofAgent ? "Turn " + number : "At " + clock(turn.from_sample / PER_MS),
      value: ms(turn.latency_ms), spans: [{ from: turn.latency_from_sample / PER_MS, to: turn.from_sample / PER_MS }],
      kind: ofAgent ? "latency" : "reply",
      title: "from the end of the other side's turn to the first sound of this one",
    };
  });
}

/** @param {Overlap[]} overlaps */
function cuts(overlaps) {
  return overlaps.flatMap(({ by, from, overlap_ms, stop_ms, counted, why }) => {
    const group = counted ? "Interruptions" : "Overlaps that are not counted";
    const overlap = { group, name: "Overlap, begun by " + (by === "AGENT" ? "the agent" : "the caller"), value: ms(overlap_ms), spans: [{ from, to: from + overlap_ms }], kind: counted ? "overlap" : "not_counted", title: why };
    return counted && stop_ms !== null ? [overlap, { group, name: "Other side stopped after", value: ms(stop_ms), spans: [{ from, to: from + stop_ms }], kind: "stop" }] : [overlap];
  });
}

/**
 * Stretches of dead air, each with the side whose turn it was: the one that speaks next, at the end the one that did not speak last.
 * @param {any[]} turns
 * @param {number} whole length of the call in milliseconds
 */
export function deadAir(turns, whole) {
  const found = [];
  let [end, last] = [0, "USER"];
  for (const turn of [...turns, { from_sample: whole * PER_MS, to_sample: whole * PER_MS, speaker: "" }]) {
    const from = turn.from_sample / PER_MS;
    if (turns.length && from - end >= DEAD_AIR_MS) found.push({ from: end, to: from, by: turn.speaker || (last === "AGENT" ? "USER" : "AGENT") });
    [end, last] = [Math.max(end, turn.to_sample / PER_MS), turn.speaker];
  }
  return found;
}

/**
 * @param {any[]} turns
 * @param {number} whole
 */
function silences(turns, whole) {
  return deadAir(turns, whole).map(({ from, to }) => ({ group: "Dead air", name: "At " + clock(from), value: ms(to - from), spans: [{ from, to }], kind: "dead_air" }));
}

/**
 * What the network lost, beside what was lost on purpose.
 * @param {any} data
 * @param {any[]} events
 * @param {number} whole
 */
function network(data, events, whole) {
  const { engine_quality: quality } = data.result || {};
  if (!quality) return [];
  const places = losses(events).flatMap((figure) => figure.spans);
  const all = [{ from: 0, to: whole }];
  const own = lostOnPurpose(data.result);
  const lost = { group: "Whole call", name: "Packets lost by the network", value: String(quality.lost_packets), spans: quality.lost_packets ? (places.length ? places : all) : [], kind: "lost_packets" };
  return own ? [lost, { group: "Whole call", name: "Lost on purpose", value: own, spans: all, kind: "simulated_loss" }] : [lost];
}

/**
 * Share of the packets that the simulated bad line lost, in words; empty where it lost none.
 * @param {any} result
 */
export function lostOnPurpose(result) {
  const made = result.metadata && (result.metadata["engine.impairment"] || result.metadata.impairment);
  const share = (result.engine_quality && result.engine_quality.simulated_loss_pct) || (made && { sent: made.sent_loss_pct, received: made.received_loss_pct });
  if (!share || !(share.sent || share.received)) return "";
  const percent = (/** @type {number} */ value) => (value || 0).toLocaleString("en", { maximumFractionDigits: 1 }) + " %";
  return percent(share.sent) + " of what was sent, " + percent(share.received) + " of what came";
}

/** @param {any[]} events */
function lateness(events) {
  return events.filter((event) => event.event === "late_turn").map((event) => ({
    group: "Engine", name: "Digital Human late", value: ms(event.data.late_ms), spans: [{ from: Math.max(0, event.offset_ms - event.data.late_ms), to: event.offset_ms }],
    kind: "late_turn", title: "a delay of this side, not charged to the agent",
  }));
}

/** @param {any[]} events */
function losses(events) {
  let lost = 0;
  return events.filter((event) => event.event === "network").flatMap((event) => {
    const more = event.data.lost - lost;
    lost = Math.max(lost, event.data.lost);
    const from = Math.max(0, event.offset_ms - 1000);
    return more > 0 ? [{ group: "Network", name: "Packets lost", value: String(more), spans: [{ from, to: event.offset_ms }], kind: "loss" }] : [];
  });
}

/**
 * @param {any} data
 * @param {any[]} turns
 * @param {number} whole
 */
function metrics(data, turns, whole) {
  const list = (data.result && data.result.metrics) || [];
  const answers = turns.filter((turn) => turn.speaker === "AGENT" && turn.latency_ms !== null);
  const counted = overlapsOf(data).filter((one) => one.counted);
  /** @type {Record<string, Span[]>} */
  const counts = {
    agent_interruption_count: counted.filter((one) => one.by === "AGENT"), customer_interruption_count: counted.filter((one) => one.by === "USER"),
    num_turns: turns.filter((turn) => turn.speaker === "AGENT").map((turn) => ({ from: turn.from_sample / PER_MS, to: turn.to_sample / PER_MS })),
  };
  const nearest = (/** @type {number} */ value) => answers.reduce((/** @type {any} */ best, turn) =>
    !best || Math.abs(turn.latency_ms - value) < Math.abs(best.latency_ms - value) ? turn : best, null);
  return list.filter((/** @type {any} */ metric) => typeof metric.value === "number").map((/** @type {any} */ metric) => {
    const isSeconds = /_latency$|_pause$|^yield_latency$|^time_to_first/.test(metric.name);
    const isMs = /_ms$|^duration$|_duration_avg$/.test(metric.name);
    const own = [metric.name.replace(/_ms$/, "").replace(/_/g, " "), isSeconds ? "s" : isMs ? "ms" : /_percentage$/.test(metric.name) ? "%" : ""];
    const [name, unit] = /** @type {any} */ (METRICS)[metric.name] || own;
    // A latency of several turns is heard at the turn that is nearest to it.
    const turn = /_agent_latency$/.test(metric.name) ? nearest(metric.value * 1000) : null;
    const spans = counts[metric.name] || (turn ? [{ from: turn.latency_from_sample / PER_MS, to: turn.from_sample / PER_MS }] : metric.value === 0 && !unit ? [] : [{ from: 0, to: whole }]);
    const value = unit === "s" ? ms(metric.value * 1000) : unit === "ms" ? ms(metric.value) : metric.value.toLocaleString("en") + (unit ? " " + unit : "");
    return { group: "Whole call", name, value, spans: spans.map(({ from, to }) => ({ from, to })), kind: metric.name };
  });
}

/**
 * Buttons of the figures by group; a click lights their stretches up and plays one.
 * @param {Figure[]} figures
 * @param {((figure: Figure) => void) | null} play null where there is nothing to hear
 */
export function figureList(figures, play) {
  const groups = new Map();
  for (const figure of figures) groups.set(figure.group, [...(groups.get(figure.group) || []), figure]);
  return [...groups].map(([group, list]) => {
    const items = list.map((/** @type {Figure} */ figure) => el("li", {}, figureButton(figure, play)));
    const rest = items.splice(SHOWN);
    const box = el("ul", { class: "figures" }, items);
    const more = rest.length ? el("button", { type: "button", class: "more", onclick: () => { box.append(...rest); more.remove(); } }, rest.length + " more") : null;
    return el("div", { class: "group" }, el("h3", {}, group), box, more);
  });
}

/**
 * @param {Figure} figure
 * @param {((figure: Figure) => void) | null} play
 */
function figureButton(figure, play) {
  const shown = [el("span", { class: "name" }, figure.name), " ", el("b", {}, figure.value)];
  const [first] = figure.spans;
  if (!first || !play) return el("span", { class: "number", title: figure.title, data: { kind: figure.kind || "" } }, shown);
  const data = { from: first.from, to: first.to, kind: figure.kind || "", lit: figure.spans.map(({ from, to }) => from + "-" + to).join(",") };
  return el("button", { type: "button", class: "figure", data, title: figure.title || undefined, onclick: () => play(figure) }, shown);
}
