import { el, words, when } from "./dom.js";
import { ask } from "./api.js";

/** Choices of a verdict: none, yes, no. */
const VERDICTS = [["", "as judged"], ["true", "yes"], ["false", "no"]];

/** Parts that a person may overrule: label, value, and how the other members of it are named. */
const PARTS = [["Goal reached", "human_goal_success", "goal"], ["Hallucination", "human_hallucination", "hallucination"],
  ["Redundancy", "human_redundancy", "redundancy"], ["Pronunciation", "human_pronunciation_score", "pronunciation"]];

/** Values of custom metrics by their type, where they are few. */
const VALUES = /** @type {Record<string, string[]>} */ ({ pass_fail: ["pass", "fail"], tool_call: ["pass", "fail"], yes_no: ["yes", "no"], boolean: ["true", "false"] });

/**
 * A field for a text beside a value.
 * @param {string} label
 * @param {string} about
 * @param {string | null | undefined} value
 * @param {string} [name]
 * @param {number} [most]
 */
function note(label, about, value, name, most = 10000) {
  return el("input", { name, "aria-label": label + ": " + about, placeholder: about, value: value || "", maxLength: most });
}

/**
 * A choice, of which the first one leaves what was judged.
 * @param {string} label
 * @param {string[][]} options
 * @param {string} value
 * @param {string} [name]
 */
function choice(label, options, value, name) {
  return el("select", { name, "aria-label": label }, options.map(([word, text]) => el("option", { value: word, selected: word === value }, text)));
}

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
  const rows = PARTS.map(([label, name, part]) => {
    const now = String(evaluation[name] ?? "");
    const isScore = part === "pronunciation";
    const value = isScore ? el("input", { name, type: "number", min: "0", max: "100", step: "any", "aria-label": label, placeholder: "as judged, 0 to 100", value: now }) : choice(label, VERDICTS, now, name);
    const members = ["human_" + part + "_reasoning", "override_" + part + "_reason_code", "override_" + part + "_notes"];
    const texts = [note(label, "reason", evaluation[members[0]], members[0]), note(label, "reason code", evaluation[members[1]], members[1], 200), note(label, "notes", evaluation[members[2]], members[2])];
    return { name, isScore, value, members, texts, node: el("div", { class: "line" }, el("span", {}, label), value, texts) };
  });
  const customs = (evaluation.custom_metrics || []).map((/** @type {any} */ metric) => {
    const few = metric.response_type === "enum" ? metric.enum_options : VALUES[metric.response_type];
    const now = metric.human_response_value || "";
    const value = few ? choice(metric.name, [["", "as judged"], ...few.map((/** @type {string} */ one) => [one, one])], now) :
      el("input", { "aria-label": metric.name, value: now, placeholder: "as judged", maxLength: 10000 });
    const texts = [note(metric.name, "reason", metric.human_reasoning), note(metric.name, "reason code", metric.override_reason_code, undefined, 200), note(metric.name, "notes", metric.override_notes)];
    return { metric, value, texts, node: el("div", { class: "line" }, words(metric.name, 80), value, texts) };
  });
  const send = el("button", { type: "submit" }, "Save the review");
  const form = el("form", { class: "review" }, el("div", { class: "line" }, el("label", {}, "Reviewer ", reviewer)),
    rows.map((row) => row.node), customs.map((/** @type {any} */ row) => row.node), el("p", {}, send));
  form.onsubmit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    send.disabled = true;
    sessionStorage.setItem("ringer-reviewer", reviewer.value);
    /** @type {Record<string, any>} */
    const body = { reviewer: reviewer.value };
    for (const row of rows) {
      body[row.name] = row.value.value === "" ? null : row.isScore ? Number(row.value.value) : row.value.value === "true";
      row.members.forEach((member, n) => { body[member] = row.texts[n].value || null; });
    }
    if (customs.length) {
      body.metrics = customs.map((/** @type {any} */ row) => ({ metric_id: row.metric.metric_id, human_response_value: row.value.value || null, human_reasoning: row.texts[0].value || null,
        override_reason_code: row.texts[1].value || null, override_notes: row.texts[2].value || null }));
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
  return el("ol", { class: "audit" }, list.map((/** @type {any} */ review) => el("li", {}, el("b", {}, words(review.reviewer, 80)), " ", when(review.at), review.changes.length ? el("ul", {}, review.changes.map(change)) : ": as judged")));
}
