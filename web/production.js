import { el, words, clock, when, span, table, facts, section } from "./dom.js";
import { get } from "./api.js";
import { chip } from "./told.js";

/** @param {any[]} calls */
export function productionTable(calls) {
  return table("Production calls", ["Call", "Began", "Took", "Status", "Missing"], calls.map((call) => [
    el("a", { href: "/calls/" + call.id }, call.id.slice(0, 8)), when(call.start_time_utc), span(call.duration_ms), chip(call.status), words(call.error_message ?? "", 80)]));
}

/** @param {number | null} confidence */
function percent(confidence) {
  return confidence === null || confidence === undefined ? "not told" : Math.round(confidence * 100) + " %";
}

/** @param {any[]} stretches */
function heard(stretches) {
  return table("Recognized words", ["From", "To", "Speaker", "Words", "Confidence"], stretches.map((one) => [
    clock(one.start_offset_ms), clock(one.end_offset_ms), one.speaker === "USER" ? "caller" : "agent",
    one.text ? el("span", { title: one.words.map((/** @type {any} */ word) => clock(word.start_offset_ms) + " " + word.text).join(", ") }, words(one.text)) : el("em", {}, "not understood"),
    percent(one.confidence)]));
}

/**
 * A call that the agent had with a real person.
 * @param {string} id
 * @param {import("./app.js").Page} page
 */
export async function productionPage(id, page) {
  const call = (await get("/v1/retrieve-call-log/" + id)).call_log;
  page.title("Call " + id.slice(0, 8));
  const evaluation = call.evaluations[0];
  const customs = (evaluation && evaluation.custom_metrics) || [];
  const metadata = call.metadata || {};
  const warnings = Array.isArray(metadata.warnings) ? metadata.warnings : [];
  page.show(el("h1", {}, "Production call"), facts(["Id", call.id], ["Agent", el("a", { href: "/agents/" + call.agent_id }, String(call.agent_id))], ["Began", when(call.start_time_utc)],
    ["Took", span(call.duration_ms)], ["Status", chip(call.status)], ["Missing", call.error_message && words(call.error_message)], ["Recognizer", metadata.recognizer && words([metadata.recognizer.kind, metadata.recognizer.model].filter(Boolean).join(" "))],
    ["Warnings", warnings.map((/** @type {any} */ text) => el("p", {}, words(text)))]),
  section("Recognized words", call.recognized === null ? el("p", { class: "empty" }, "The recording was not transcribed: words came with the call, or there was nothing to hear.")
    : call.recognized.length ? heard(call.recognized) : el("p", { class: "empty" }, "No speech was found in the recording.")),
  section("Judgements", customs.length ? table("Judgements", ["Metric", "Answer", "Reason"], customs.map((/** @type {any} */ one) => [words(one.name, 80), chip(one.response_value), words(one.reasoning ?? "", 200)])) : el("p", { class: "empty" }, "No metric of its own was judged.")),
  section("Measures", call.metrics.length ? table("Measures", ["Name", "Value"], call.metrics.map((/** @type {any} */ one) => [one.name, words(typeof one.value === "object" ? JSON.stringify(one.value) : one.value, 80)])) : el("p", { class: "empty" }, "Nothing was measured.")));
}
