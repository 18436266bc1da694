import { el, words, when } from "./dom.js";
import { ask } from "./api.js";

/** Choices of a verdict: none, yes, no. */
const VERDICTS = [["", "as judged"], ["true", "yes"], ["false", "no"]];

/** Parts that a person may overrule: label, value, reason, why it was changed. */
const FIELDS = [
  ["Goal reached", "human_goal_success", "human_goal_reasoning", "override_goal_reason_code"],
  ["Hallucination", "human_hallucination", "human_hallucination_reasoning", "override_hallucination_reason_code"],
  ["Redundancy", "human_redundancy", "human_redundancy_reasoning", "override_redundancy_reason_code"],
];

/**
 * A form by which a person overrules the judge.
 * @param {string} id
 * @param {any} result
 * @param {() => Promise<void>} done
 * @param {{ notice: (text: string) => void }} page
 */
export function reviewForm(id, result, done, page) {
  const evaluation = result.evaluations[0];
  const reviewer = el("input", { name: "reviewer", required: true, maxLength: 200, value: sessionStorage.getItem("ringer-reviewer") || "", autocomplete: "name" });
  const rows = FIELDS.map(([label, value, reason, code]) => {
    const now = evaluation[value];
    const choice = el("select", { name: value, "aria-label": label }, VERDICTS.map(([word, name]) =>
      el("option", { value: word, selected: word === (now === null || now === undefined ? "" : String(now)) }, name)));
    const text = el("input", { name: reason, "aria-label": label + ": reason", value: evaluation[reason] || "", maxLength: 10000, placeholder: "reason" });
    const short = el("input", { name: code, "aria-label": label + ": reason code", value: evaluation[code] || "", maxLength: 200, placeholder: "reason code" });
    return { value, reason, code, choice, text, short, node: el("div", { class: "line" }, el("span", {}, label), choice, text, short) };
  });
  const score = el("input", { type: "number", min: "0", max: "100", step: "any", "aria-label": "Pronunciation", placeholder: "as judged", value: evaluation.human_pronunciation_score ?? "" });
  const customs = (evaluation.custom_metrics || []).map((/** @type {any} */ metric) => {
    const value = el("input", { "aria-label": metric.name, value: metric.human_response_value || "", placeholder: "as judged" });
    const reason = el("input", { "aria-label": metric.name + ": reason", value: metric.human_reasoning || "", placeholder: "reason" });
    return { metric, value, reason, node: el("div", { class: "line" }, words(metric.name, 80), value, reason) };
  });
  const send = el("button", { type: "submit" }, "Save the review");
  const form = el("form", { class: "review" }, el("div", { class: "line" }, el("label", {}, "Reviewer ", reviewer)),
    rows.map((row) => row.node), el("div", { class: "line" }, el("span", {}, "Pronunciation (0 to 100)"), score), customs.map((/** @type {any} */ row) => row.node), el("p", {}, send));
  form.onsubmit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    send.disabled = true;
    sessionStorage.setItem("ringer-reviewer", reviewer.value);
    /** @type {Record<string, any>} */
    const body = { reviewer: reviewer.value };
    for (const row of rows) {
      body[row.value] = row.choice.value === "" ? null : row.choice.value === "true";
      body[row.reason] = row.text.value || null;
      body[row.code] = row.short.value || null;
    }
    body.human_pronunciation_score = score.value === "" ? null : Number(score.value);
    if (customs.length) {
      body.metrics = customs.map((/** @type {any} */ row) => ({ metric_id: row.metric.metric_id, human_response_value: row.value.value || null, human_reasoning: row.reason.value || null,
        override_reason_code: row.metric.override_reason_code, override_notes: row.metric.override_notes }));
    }
    /** @type {Record<string, string>} */
    const headers = evaluation.last_edited_at ? { "If-Match": '"' + evaluation.last_edited_at + '"' } : {};
    try {
      await ask("PUT", "/v1/simulation-result/" + id + "/review", { body, headers });
      page.notice("The review is saved.");
      await done();
    } catch (error) {
      const { status, message } = /** @type {any} */ (error);
      page.notice(status === 412 ? "Somebody else has changed the review meanwhile. What you wrote is still here: reload to see theirs." : message);
    }
    send.disabled = false;
  };
  return form;
}

/**
 * Who changed what, and when.
 * @param {any} reviews
 * @param {any} result
 */
export function reviewList(reviews, result) {
  const list = (reviews && reviews.reviews) || [];
  if (!list.length) return el("p", { class: "empty" }, "Nobody has reviewed this call.");
  const names = new Map((result.evaluations[0].custom_metrics || []).map((/** @type {any} */ metric) => [metric.metric_id, metric.name]));
  const change = (/** @type {any} */ one) => el("li", {}, words((one.metric_id ? (names.get(one.metric_id) || one.metric_id) + ": " : "") + one.field.replace(/_/g, " ") + ": " +
    JSON.stringify(one.from) + " \u2192 " + JSON.stringify(one.to)));
  return el("ol", { class: "audit" }, list.map((/** @type {any} */ review) => el("li", {}, el("b", {}, words(review.reviewer, 80)), " ", when(review.at), el("ul", {}, review.changes.map(change)))));
}
