import { el, ms, clock } from "./dom.js";

/**
 * A number of the page, with the stretch of the call that it tells of.
 * @typedef {{ name: string, value: string, from: number, to: number, group: string, kind?: string, bad?: boolean, title?: string }} Figure
 */

/** Samples a millisecond. */
const PER_MS = 16;
/** Silence of both sides from which it is shown as dead air, in milliseconds. */
const DEAD_AIR_MS = 2000;
/** Most figures of one group that are shown at once. */
const SHOWN = 40;

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
  return [...ofAgent, ...cuts(events), ...silences(turns, whole), ...ofCaller, ...lateness(events), ...losses(events), ...network(data, whole), ...metrics(data, turns, whole)];
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
      value: ms(turn.latency_ms), from: turn.latency_from_sample / PER_MS, to: turn.from_sample / PER_MS,
      kind: ofAgent ? "latency" : "reply",
      title: "from the end of the other side's turn to the first sound of this one",
    };
  });
}

/** @param {any[]} events */
function cuts(events) {
  return events.filter((event) => event.event === "barge_in").flatMap((event) => {
    const { by, overlap_ms, stop_ms } = event.data;
    const who = by === "agent" ? "the agent" : "the caller";
    const at = event.offset_ms;
    const overlap = { group: "Interruptions", name: "Overlap, begun by " + who, value: ms(overlap_ms), from: at, to: at + overlap_ms, kind: "overlap" };
    const stop = stop_ms === null || stop_ms === undefined ? [] :
      [{ group: "Interruptions", name: "Other side stopped after", value: ms(stop_ms), from: at, to: at + stop_ms, kind: "stop" }];
    return [overlap, ...stop];
  });
}

/**
 * @param {any[]} turns
 * @param {number} whole
 */
function silences(turns, whole) {
  const found = [];
  let end = 0;
  for (const turn of [...turns, { from_sample: whole * PER_MS, to_sample: whole * PER_MS }]) {
    const from = turn.from_sample / PER_MS;
    if (turns.length && from - end >= DEAD_AIR_MS) {
      found.push({ group: "Dead air", name: "At " + clock(end), value: ms(from - end), from: end, to: from, kind: "dead_air" });
    }
    end = Math.max(end, turn.to_sample / PER_MS);
  }
  return found;
}

/**
 * @param {any} data
 * @param {number} whole
 */
function network(data, whole) {
  const quality = data.result && data.result.engine_quality;
  return quality ? [{ group: "Whole call", name: "Packets lost", value: String(quality.lost_packets), from: 0, to: whole, kind: "lost_packets" }] : [];
}

/** @param {any[]} events */
function lateness(events) {
  return events.filter((event) => event.event === "late_turn").map((event) => ({
    group: "Engine", name: "Digital Human late", value: ms(event.data.late_ms), from: Math.max(0, event.offset_ms - event.data.late_ms),
    to: event.offset_ms, kind: "late_turn", title: "a delay of this side, not charged to the agent",
  }));
}

/** @param {any[]} events */
function losses(events) {
  let lost = 0;
  return events.filter((event) => event.event === "network").flatMap((event) => {
    const more = event.data.lost - lost;
    lost = Math.max(lost, event.data.lost);
    const from = Math.max(0, event.offset_ms - 1000);
    return more > 0 ? [{ group: "Network", name: "Packets lost", value: String(more), from, to: event.offset_ms, kind: "loss" }] : [];
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
  const nearest = (/** @type {number} */ value) => answers.reduce((/** @type {any} */ best, turn) =>
    !best || Math.abs(turn.latency_ms - value) < Math.abs(best.latency_ms - value) ? turn : best, null);
  return list.filter((/** @type {any} */ metric) => typeof metric.value === "number").map((/** @type {any} */ metric) => {
    const isSeconds = /_latency$|^yield_latency$|^time_to_first/.test(metric.name);
    const isMs = /_ms$|^duration$|_duration_avg$/.test(metric.name);
    const own = [metric.name.replace(/_ms$/, "").replace(/_/g, " "), isSeconds ? "s" : isMs ? "ms" : /_percentage$/.test(metric.name) ? "%" : ""];
    const [name, unit] = /** @type {any} */ (METRICS)[metric.name] || own;
    // A latency of several turns is heard at the turn that is nearest to it.
    const turn = /_agent_latency$/.test(metric.name) ? nearest(metric.value * 1000) : null;
    const [from, to] = turn ? [turn.latency_from_sample / PER_MS, turn.from_sample / PER_MS] : [0, whole];
    const value = unit === "s" ? ms(metric.value * 1000) : unit === "ms" ? ms(metric.value) : metric.value.toLocaleString("en") + (unit ? " " + unit : "");
    return { group: "Whole call", name, value, from, to, kind: metric.name };
  });
}

/**
 * Buttons of the figures by group; a click lights the stretch up and plays it.
 * @param {Figure[]} figures
 * @param {(figure: Figure) => void} play
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
 * @param {(figure: Figure) => void} play
 */
export function figureButton(figure, play) {
  const data = { from: figure.from, to: figure.to, kind: figure.kind || "" };
  return el("button", { type: "button", class: "figure", data, title: figure.title, onclick: () => play(figure) },
    el("span", { class: "name" }, figure.name), " ", el("b", {}, figure.value));
}
