import { el, words, clock, facts, table, section } from "./dom.js";
import { lostOnPurpose } from "./numbers.js";
import { chip, codeWords, endWords, faultWords, ownerWords, sentence, wordOf } from "./told.js";

/** Reviewed parts of an evaluation: name, judged member, human member. */
const PARTS = [["Goal reached", "goal_success", "goal"], ["Hallucination", "hallucination", "hallucination"],
  ["Redundancy", "redundancy", "redundancy"], ["Pronunciation", "pronunciation_score", "pronunciation"]];

/**
 * A judged value in words.
 * @param {any} value
 */
function told(value) {
  return value === null || value === undefined ? "\u2013" : value === true ? "yes" : value === false ? "no" : String(value);
}

/**
 * The verdict of a call, and what it rests on.
 * @param {any} result
 * @param {((at: number) => void) | null} play null where there is nothing to hear
 */
export function why(result, play) {
  const evaluation = (result.evaluations || [])[0];
  const verdict = result.verdict;
  const end = [endWords(result.end_reason), !/^(dh_end_call|agent_hangup|api_hangup)$/.test(result.end_reason) && result.conversation_ended_by && "by " + (result.conversation_ended_by === "USER" ? "the Digital Human" : "the agent")];
  const basic = facts(["Verdict", chip(wordOf(result))], ["Why", verdict && verdict.reason && words(verdict.reason)], ["Where", verdict && place(verdict.at_ms, play)],
    ["Error", result.error_code && el("span", {}, codeWords(result.error_code)[0] + " (", el("code", {}, result.error_code), ")")], ["Reason", result.error_message && words(result.error_message)],
    ["What to do", result.error_code && codeWords(result.error_code)[1]], ["Who has to act", ownerWords(result.error_owner)], ["End", end.filter(Boolean).join(", ")],
    ["Warnings", (result.metadata && result.metadata.warnings || []).map((/** @type {any} */ text) => el("p", {}, words(text)))]);
  const parts = [basic];
  if ((result.expectations || []).length) parts.push(el("h3", {}, "Expectations"), expectationTable(result.expectations, play));
  const steps = result.metadata && (result.metadata["engine.playback"] || result.metadata.playback);
  if (Array.isArray(steps) && steps.length) {
    parts.push(el("h3", {}, "Steps"), table("Steps of the playback", ["Step", "Verdict", "Heard", "Reason"], steps.map((/** @type {any} */ step) => [step.index + 1, stepChip(step.status), words(step.heard ?? "", 120), words(step.reason ?? "", 160)])));
  }
  if ((result.own_faults || []).length) {
    parts.push(el("h3", {}, "Faults of this side"), el("p", { class: "note" }, "What follows from these is not charged to the agent."), table("Faults of this side", ["What", "Where", "What to do"],
      result.own_faults.map((/** @type {any} */ fault) => [el("span", {}, faultWords(fault.code)[0], " ", el("code", {}, fault.code)), fault.turn ? "turn " + fault.turn : place(fault.at_ms, play) || "whole call", faultWords(fault.code)[1]])));
  }
  if (evaluation) parts.push(...judged(evaluation));
  else parts.push(el("p", { class: "empty" }, "There is no evaluation."));
  if (result.tool_calls && result.tool_calls.length) {
    parts.push(el("h3", {}, "Tool calls"), table("Tool calls", ["Name", "Expected", "Made"],
      result.tool_calls.map((/** @type {any} */ call) => [words(call.name), words(JSON.stringify(call.expected)), words(JSON.stringify(call.actual))])));
  }
  parts.push(el("h3", {}, "Engine"), engine(result));
  return section("Why", ...parts);
}

/** @param {string} status */
function stepChip(status) {
  return chip(status === "unknown" ? "not judged" : status);
}

/**
 * A moment that can be heard.
 * @param {number | null} at milliseconds
 * @param {((at: number) => void) | null} play
 */
function place(at, play) {
  if (at === null || at === undefined) return "";
  return play ? el("button", { type: "button", class: "at", data: { from: at }, onclick: () => play(at) }, clock(at)) : clock(at);
}

/**
 * Expectations as sentences, failed ones first.
 * @param {any[]} list
 * @param {((at: number) => void) | null} play
 */
function expectationTable(list, play) {
  const order = ["failed", "unknown", "not_reached", "passed"];
  const sorted = [...list].sort((one, other) => order.indexOf(one.status) - order.indexOf(other.status));
  const measured = (/** @type {any} */ value) => (value === null || value === undefined ? "\u2013" : typeof value === "object" ? JSON.stringify(value) : typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: 3 }) : String(value));
  return table("Expectations", ["Expected", "Verdict", "Measured", "Reason", "Where"], sorted.map((one) => [words(sentence(one.expected), 200), stepChip(one.status), words(measured(one.measured), 120), words(one.reason ?? "", 200), place(one.at_ms, play)]));
}

/** @param {any} result */
function engine(result) {
  const quality = result.engine_quality;
  if (!quality) return el("p", { class: "empty" }, "There are no figures of the engine.");
  return el("div", {},
    el("p", {}, quality.trusted ? "The times of this call can be relied on." : "The times of this call are not to be relied on: " + (quality.untrusted_reason || "no reason was told") + "."),
    facts(["Sending error, 99th percentile", quality.pacing_p99_ms + " ms"], ["Frames not sent in time", quality.late_frames],
      ["Packets lost by the network", quality.lost_packets], ["Lost on purpose", lostOnPurpose(result)], ["Made up for losses", quality.concealed_ms + " ms"],
      ["Echo", quality.echo && quality.echo.delay_ms + " ms, " + quality.echo.erl_db + " dB below"]));
}

/**
 * Who judged, and how far that judge can be trusted.
 * @param {any} judge
 */
function judgeLine(judge) {
  const votes = judge.votes || [];
  return el("p", { class: "judge" }, "Judged by ", words(judge.model, 120), ", prompt ", judge.prompt_version, ": ", chip(judge.status), judge.reason ? el("span", {}, " ", words(judge.reason, 300)) : "",
    judge.card_id ? el("span", {}, " ", el("a", { href: "/judges/" + judge.card_id }, "Its report card")) : "",
    votes.length ? el("span", {}, " Votes: ", words(votes.map((/** @type {any} */ one) => one.name + " " + one.answer.replace(/_/g, " ")).join(", "), 300)) : "");
}

/** @param {any} evaluation */
function judged(evaluation) {
  const rows = PARTS.map(([name, member, part]) => {
    const human = evaluation[part === "pronunciation" ? "human_pronunciation_score" : part === "goal" ? "human_goal_success" : "human_" + part];
    const reasons = [evaluation[part + "_reasoning"], evaluation["human_" + part + "_reasoning"], evaluation["override_" + part + "_reason_code"], evaluation["override_" + part + "_notes"]].filter(Boolean);
    return [name, told(evaluation[member]), human === null || human === undefined ? "" : el("b", {}, told(human)), reasons.map((text) => el("p", {}, words(text)))];
  });
  const parts = [el("h3", {}, "Evaluation"),
    evaluation.not_evaluated_reason ? el("p", {}, words(evaluation.not_evaluated_reason)) : null,
    evaluation.call_summary ? el("p", {}, words(evaluation.call_summary)) : null,
    table("Evaluation", ["Part", "Judged", "A person", "Reasons"], rows), evaluation.judge ? judgeLine(evaluation.judge) : null];
  if (evaluation.custom_metrics && evaluation.custom_metrics.length) {
    parts.push(el("h3", {}, "Custom metrics"), table("Custom metrics", ["Metric", "Judged", "A person", "Reasons"],
      evaluation.custom_metrics.map((/** @type {any} */ metric) => [words(metric.name),
        metric.status === "evaluated" ? words(metric.response_value) : metric.status.replace(/_/g, " "),
        metric.human_response_value ? el("b", {}, words(metric.human_response_value)) : "",
        [metric.reasoning, metric.reason, metric.human_reasoning, metric.override_reason_code, metric.override_notes].filter(Boolean).map((text) => el("p", {}, words(text)))])));
  }
  if (evaluation.reviewer) parts.push(el("p", {}, "Last reviewed by ", words(evaluation.reviewer), "."));
  return parts;
}
