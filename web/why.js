import { el, words, chip, facts, table, section } from "./dom.js";

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
 */
export function why(result) {
  const evaluation = (result.evaluations || [])[0];
  const quality = result.engine_quality;
  const end = [result.end_reason, result.conversation_ended_by && "by " + (result.conversation_ended_by === "USER" ? "the Digital Human" : "the agent")];
  const told = result.verdict;
  const basic = facts(["Verdict", chip(told ? told.word : result.outcome || result.status)], ["Why", told && told.reason && words(told.reason)],
    ["Outcome", result.outcome], ["Error", result.error_code],
    ["Reason", result.error_message && words(result.error_message)], ["Who has to act", result.error_owner],
    ["SIP", result.sip_code], ["Cause (Q.850)", result.q850_cause], ["End", end.filter(Boolean).join(", ")],
    ["Call at the platform", result.metadata && result.metadata.platform_call_id && words(result.metadata.platform_call_id)],
    ["Warnings", (result.metadata && result.metadata.warnings || []).map((/** @type {any} */ text) => el("p", {}, words(text)))]);
  const parts = [basic];
  for (const name of ["expectations", "own_faults"]) {
    if (Array.isArray(result[name]) && result[name].length) parts.push(el("h3", {}, name === "expectations" ? "Expectations" : "Faults of this side"), listed(result[name]));
  }
  if (evaluation) parts.push(...judged(evaluation));
  else parts.push(el("p", { class: "empty" }, "There is no evaluation."));
  if (result.tool_calls && result.tool_calls.length) {
    parts.push(el("h3", {}, "Tool calls"), table("Tool calls", ["Name", "Expected", "Made"],
      result.tool_calls.map((/** @type {any} */ call) => [words(call.name), words(JSON.stringify(call.expected)), words(JSON.stringify(call.actual))])));
  }
  parts.push(el("h3", {}, "Engine"), engine(quality));
  return section("Why", ...parts);
}

/** @param {any[]} rows */
function listed(rows) {
  const line = (/** @type {any} */ row) => typeof row === "object" ? Object.entries(row).map(([name, value]) => name + ": " + (typeof value === "object" ? JSON.stringify(value) : value)).join(", ") : String(row);
  return el("ul", {}, rows.map((row) => el("li", {}, words(line(row)))));
}

/** @param {any} quality */
function engine(quality) {
  if (!quality) return el("p", { class: "empty" }, "There are no figures of the engine.");
  return el("div", {},
    el("p", {}, quality.trusted ? "The times of this call can be relied on." : "The times of this call are not to be relied on: " + (quality.untrusted_reason || "no reason was told") + "."),
    facts(["Sending error, 99th percentile", quality.pacing_p99_ms + " ms"], ["Frames not sent in time", quality.late_frames],
      ["Packets lost", quality.lost_packets], ["Made up for losses", quality.concealed_ms + " ms"],
      ["Echo", quality.echo && quality.echo.delay_ms + " ms, " + quality.echo.erl_db + " dB below"]));
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
    table("Evaluation", ["Part", "Judged", "A person", "Reasons"], rows)];
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
