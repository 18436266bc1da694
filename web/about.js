import { el, words, ms, span, when, facts, section } from "./dom.js";
import { lostOnPurpose } from "./numbers.js";

/** Members of the metadata that have words of their own, in this order. */
const NAMES = /** @type {Record<string, string>} */ ({
  codec: "Codec", transport: "Transport", remote_address: "Far address", target: "Called", sip_call_id: "Call-ID", platform_call_id: "Call at the platform", platform: "Platform", trunk: "Trunk", caller_number: "Number of the caller",
  voice: "Voice", synthesizer: "Synthesizer", speaker: "Worded by", recognizer: "Recognizer", judge_model: "Judge", languages: "Languages", impairment: "Line made worse on purpose",
});
/** Members that stand elsewhere, or that nobody needs: where, or why. */
const ELSEWHERE = /** @type {Record<string, string>} */ ({ warnings: "under Why", channel_layout: "the lanes have their names", playback: "under Why" });

/**
 * A value of the metadata on one line.
 * @param {any} value
 * @returns {string}
 */
function inLine(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map(inLine).filter(Boolean).join("; ");
  if (typeof value !== "object") return String(value);
  return Object.entries(value).map(([name, part]) => [name, inLine(part)]).filter(([, text]) => text).map(([name, text]) => name.replace(/_/g, " ") + " " + text).join(", ");
}

/**
 * What the call was: who called, how, from which seed; and every member of its metadata.
 * @param {any} data
 */
export function about(data) {
  const { result, human } = data;
  const metadata = result.metadata || {};
  const plain = (/** @type {string} */ name) => name.replace(/^engine\./, "");
  const order = Object.keys(NAMES);
  const place = (/** @type {string} */ name) => (order.includes(plain(name)) ? order.indexOf(plain(name)) : order.length);
  const shown = Object.keys(metadata).filter((name) => !ELSEWHERE[plain(name)]).sort((one, other) => place(one) - place(other));
  const hidden = Object.keys(metadata).filter((name) => ELSEWHERE[plain(name)]);
  const member = (/** @type {string} */ name) => /** @type {[string, any]} */ ([NAMES[plain(name)] || plain(name).replace(/_/g, " ").replace(/^./, (first) => first.toUpperCase()),
    el("span", { data: { member: name } }, words(inLine(metadata[name]) || "\u2013", 300))]);
  return section("This call", facts(["Intent", human && human.intent && words(human.intent)], ["Success is", human && human.success_criteria && words(human.success_criteria)], ["Began", when(result.start_time)], ["Length", span(result.duration_ms)],
    ["Seed", result.seed], ["Attempt", result.attempt > 1 ? result.attempt : null], ["Tags", (result.tags || []).length ? words(result.tags.join(", ")) : null], ["SIP code", result.sip_code], ["Cause (Q.850)", result.q850_cause],
    ["Setting up took", setup(result)], ["Lost on purpose", lostOnPurpose(result)], ...shown.map(member)),
  hidden.length ? el("p", { class: "note" }, "Not repeated here: ", hidden.map((name, at) => el("span", { data: { member: name } }, (at ? "; " : "") + plain(name).replace(/_/g, " ") + " (" + ELSEWHERE[plain(name)] + ")")), ".") : null);
}

/** @param {any} result */
function setup(result) {
  const found = (result.metrics || []).find((/** @type {any} */ metric) => metric.name === "setup_ms");
  return found && typeof found.value === "number" ? ms(found.value) : null;
}
