import { el, words, asMs, span, table, facts, when, bytesOf } from "./dom.js";
import { CallView } from "./call.js";
import { chip, codeWords, countsOf, runWord, tally, wordOf } from "./told.js";

/** Place of the number of channels in the head of an Ogg Opus file (RFC 7845). */
const CHANNELS_AT = 37;

/**
 * A call of a file: nothing is asked of a server.
 * @param {any} data
 * @param {string} sound in base64; empty where there is none
 */
export function viewOfFile(data, sound) {
  const outline = data.peaks && { stepMs: data.peaks.step_ms, fromMs: data.peaks.from_ms, durationMs: data.peaks.duration_ms,
    levels: new Int8Array(bytesOf(data.peaks.levels).buffer) };
  const bytes = sound ? bytesOf(sound) : new Uint8Array();
  return new CallView({
    data, tracks: bytes.length > CHANNELS_AT && bytes[CHANNELS_AT] === 2 ? ["both", "0", "1"] : ["both"],
    peaks: async () => outline,
    audio: async () => (sound ? { blob: new Blob([bytes], { type: "audio/ogg" }), from: 0, to: null } : null),
  });
}

/**
 * A run in a file: its list, and one of its calls at a time.
 * @param {any} data
 * @param {HTMLElement} main
 */
export function showRun(data, main) {
  const { run } = data;
  const calls = new Map(data.calls.map((/** @type {any} */ call) => [call.result.id, call]));
  const place = el("div", {});
  /** @type {CallView | null} */
  let open = null;
  const show = (/** @type {number} */ id) => {
    const call = calls.get(id);
    const row = data.results.find((/** @type {any} */ one) => one.id === id);
    Object.assign(call, { caller: call.caller || (row && row.digital_human_name), agent: call.agent || run.agent_name });
    if (open) open.player.pause();
    open = viewOfFile(call, call.sound || "");
    const out = call.left_out || [];
    place.replaceChildren(out.length ? el("p", { class: "warn" }, words("Left out of this file, because it would be too large: " + out.join(", "))) : "", open.node);
    void open.start();
    place.scrollIntoView({ block: "start" });
  };
  const rows = data.results.map((/** @type {any} */ one) => [
    calls.has(one.id) ? el("button", { type: "button", class: "open-call", onclick: () => show(one.id) }, "Call " + one.id) : "Call " + one.id, words(one.digital_human_name ?? "deleted", 60), chip(wordOf(one)), words([one.error_code && codeWords(one.error_code)[0], one.reason].filter(Boolean).join(": "), 160),
    one.latency && one.latency.length ? asMs(one.latency.reduce((/** @type {number} */ sum, /** @type {number} */ value) => sum + value, 0) / one.latency.length) : "", span(one.duration_ms)]);
  document.title = "Run " + run.id;
  main.replaceChildren(el("h1", {}, "Run " + run.id), el("p", { class: "chips" }, chip(runWord(run)), " ", tally(countsOf(run)), " ", words(run.agent_name ?? "", 80), " ", words(run.simulation_name ?? "", 80)),
    facts(["All", String(run.total_tests)], ["Latency, median", asMs(run.p50_agent_latency)], ["Latency, 95th percentile", asMs(run.p95_agent_latency)],
      ["Started", when(run.started_at)], ["Took", span(run.duration_ms)], ["Seed", run.seed], ["Summary", run.summary && words(run.summary)]),
    table("Calls, those that did not pass first", ["Call", "Caller", "Verdict", "Reason", "Mean latency", "Length"], rows), place);
  return { key: (/** @type {KeyboardEvent} */ event) => open !== null && open.player.key(event) };
}
