import { el, words, clock, span, section, facts } from "./dom.js";
import { chip, wordOf } from "./told.js";
import { ask, maybe, recording } from "./api.js";
import { Player } from "./player.js";

/** The three questions: key, words, judged member, and how the other members of it are named. */
export const QUESTIONS = [["1", "Was the goal reached?", "goal_success", "goal"], ["2", "Did the agent make something up?", "hallucination", "hallucination"], ["3", "Did the agent repeat itself?", "redundancy", "redundancy"]];
const ANSWERS = [["", "as judged"], ["true", "yes"], ["false", "no"]];
/** Values of own metrics by their type, where they are few. */
const FEW = /** @type {Record<string, string[]>} */ ({ pass_fail: ["pass", "fail"], tool_call: ["pass", "fail"], yes_no: ["yes", "no"], boolean: ["true", "false"] });
/** Moments that have a key of their own: 4 to 9. */
const MOMENTS = 6;

/** @param {any} value */
function told(value) {
  return value === null || value === undefined ? "not judged" : value === true ? "yes" : value === false ? "no" : String(value);
}

/**
 * One call with its questions.
 * @param {any} result
 * @param {() => Promise<void>} next
 * @param {import("./app.js").Page} page
 */
export async function questions(result, next, page) {
  const of = "/v1/simulation-result/" + result.id;
  const [transcript, turns] = await Promise.all([maybe(of + "/transcript?words=false"), maybe(of + "/turns?words=false")]);
  const evaluation = result.evaluations[0];
  const length = result.duration_ms || 0;
  const player = new Player({ audio: recording(result.id, () => length), onTime: () => {} });
  player.grow(length);
  page.after(() => player.close());
  const playAt = (/** @type {number} */ ms) => { player.seek(ms - 1000); void player.play(); };
  const entries = (transcript && transcript.entries) || [];
  const slow = ((turns && turns.turns) || []).filter((/** @type {any} */ turn) => turn.speaker === "AGENT" && turn.latency_ms).sort((/** @type {any} */ a, /** @type {any} */ b) => b.latency_ms - a.latency_ms).slice(0, 3);
  const moments = [...(result.expectations || []).filter((/** @type {any} */ one) => one.status === "failed" && one.at_ms !== null).map((/** @type {any} */ one) => [one.at_ms, "a failed expectation"]), ...(result.verdict && result.verdict.at_ms !== null ? [[result.verdict.at_ms, "where the verdict was decided"]] : []),
    ...slow.map((/** @type {any} */ turn) => [turn.from_sample / 16, "an answer after " + Math.round(turn.latency_ms) + " ms"])].slice(0, MOMENTS);
  const kept = "ringer-review-" + result.id;
  const draft = JSON.parse(sessionStorage.getItem(kept) || "{}");
  const seen = evaluation.last_edited_at || "";
  // A draft from before somebody else's review is offered, and does not hide it.
  const isOld = draft.seen !== undefined && draft.seen !== seen;
  const saved = isOld ? {} : draft;
  /** @type {Record<string, any>} */
  const controls = {};
  const remember = () => sessionStorage.setItem(kept, JSON.stringify({ ...Object.fromEntries(Object.entries(controls).map(([name, control]) => [name, control.value])), seen }));
  const takeDraft = () => { Object.entries(controls).forEach(([name, control]) => { control.value = draft[name] ?? control.value; }); remember(); offer.remove(); };
  const offer = el("p", { class: "warn" }, "Somebody has reviewed this call since you began. ", el("button", { type: "button", onclick: () => takeDraft() }, "Take what I had written"));
  const keep = (/** @type {string} */ name, /** @type {any} */ control, /** @type {any} */ now) => {
    control.value = saved[name] ?? now ?? "";
    control.oninput = control.onchange = remember;
    controls[name] = control;
    return control;
  };
  const choice = (/** @type {string} */ label, /** @type {string[][]} */ options) => el("select", { "aria-label": label }, options.map(([value, text]) => el("option", { value }, text)));
  const rows = QUESTIONS.map(([number, question, member, part]) => {
    const name = "human_" + (part === "goal" ? "goal_success" : part);
    const now = evaluation[name];
    return el("div", { class: "question" }, el("b", {}, number + " " + question), el("p", {}, "The judge: " + told(evaluation[member]) + ". ", words(evaluation[part + "_reasoning"] || "", 300)),
      keep(name, choice(question, ANSWERS), now === null || now === undefined ? "" : String(now)), keep("human_" + part + "_reasoning", el("input", { "aria-label": question + " Why?", placeholder: "why", maxLength: 10000 }), evaluation["human_" + part + "_reasoning"]));
  });
  const metrics = (evaluation.custom_metrics || []).map((/** @type {any} */ metric) => {
    const few = metric.response_type === "enum" ? metric.enum_options : FEW[metric.response_type];
    const control = few ? choice(metric.name, [["", "as judged"], ...few.map((/** @type {string} */ one) => [one, one])]) : el("input", { "aria-label": metric.name, placeholder: "as judged" });
    return el("div", { class: "question" }, el("b", {}, words(metric.name, 80)), el("p", {}, "The judge: " + told(metric.response_value) + ". ", words(metric.reasoning || "", 300)), keep("metric " + metric.metric_id, control, metric.human_response_value));
  });
  const reviewer = keep("reviewer", el("input", { id: "f-reviewer", required: true, maxLength: 200, autocomplete: "name" }), sessionStorage.getItem("ringer-reviewer") || "");
  const send = el("button", { type: "submit", class: "big" }, "Save and go on");
  const save = async () => {
    if (!reviewer.value.trim()) { reviewer.focus(); page.notice("Who reviews? A name is needed."); return; }
    send.disabled = true;
    sessionStorage.setItem("ringer-reviewer", reviewer.value.trim());
    /** @type {Record<string, any>} */
    const body = { reviewer: reviewer.value.trim() };
    for (const [name, control] of Object.entries(controls)) {
      if (name === "reviewer" || name.startsWith("metric ")) continue;
      body[name] = control.value === "" ? null : name.endsWith("_reasoning") ? control.value : control.value === "true";
    }
    const own = Object.entries(controls).filter(([name]) => name.startsWith("metric "));
    // What was written about a metric elsewhere stays.
    const written = (/** @type {string} */ id) => (evaluation.custom_metrics || []).find((/** @type {any} */ metric) => metric.metric_id === id) || {};
    if (own.length) {
      body.metrics = own.map(([name, control]) => {
        const { human_reasoning, override_reason_code, override_notes } = written(name.slice(7));
        return { metric_id: name.slice(7), human_response_value: control.value || null, human_reasoning, override_reason_code, override_notes };
      });
    }
    try {
      await ask("PUT", of + "/review", { body, headers: evaluation.last_edited_at ? { "If-Match": '"' + evaluation.last_edited_at + '"' } : {} });
      sessionStorage.removeItem(kept);
      page.notice("The review of call " + result.id + " is saved.");
      await next();
    } catch (error) {
      const { status, message } = /** @type {any} */ (error);
      page.notice(status === 412 ? "Somebody else has changed the review meanwhile. Reload to see theirs: what you wrote is offered then." : message);
      send.disabled = false;
    }
  };
  const keys = el("div", { class: "keys-help", hidden: true }, facts(["1 2 3", "answers the question: as judged, yes, no"], ["4 to 9", "plays the moment with that number"], ["Ctrl+Enter", "saves and goes on"], ["space", "plays and pauses; arrows 1 s, J and L 10 s"], ["?", "shows and hides these keys"]));
  const form = el("form", { class: "review-one needs-write" }, el("div", { class: "field" }, el("label", { for: "f-reviewer" }, "Reviewer"), reviewer), isOld ? offer : "", rows, metrics, el("p", {}, send, " ", el("button", { type: "button", onclick: () => { keys.hidden = !keys.hidden; } }, "Keys (?)")), keys);
  form.onsubmit = (/** @type {Event} */ event) => { event.preventDefault(); void save(); };
  const ctrl = (/** @type {KeyboardEvent} */ event) => { if (event.ctrlKey && event.key === "Enter" && form.isConnected) { event.preventDefault(); void save(); } };
  document.addEventListener("keydown", ctrl);
  page.after(() => document.removeEventListener("keydown", ctrl));
  page.key = (event) => {
    const question = QUESTIONS.find(([number]) => number === event.key);
    if (question) {
      const control = controls["human_" + (question[3] === "goal" ? "goal_success" : question[3])];
      control.selectedIndex = (control.selectedIndex + 1) % ANSWERS.length;
      remember();
      return true;
    }
    const moment = moments[Number(event.key) - 4];
    if (/^[4-9]$/.test(event.key) && moment) { playAt(moment[0]); return true; }
    if (event.key === "?") { keys.hidden = !keys.hidden; return true; }
    return player.key(event);
  };
  const said = el("ol", { class: "transcript", role: "list" }, entries.map((/** @type {any} */ entry) => el("li", { class: entry.speaker === "AGENT" ? "agent" : "dh" }, el("button", { type: "button", class: "at", onclick: () => playAt(entry.start_offset_ms + 1000) }, clock(entry.start_offset_ms)),
    el("span", { class: "who" }, entry.speaker === "AGENT" ? "Agent" : "Digital Human"), words(entry.utterance || "(words not understood)"))));
  return el("div", {}, el("p", { class: "chips" }, el("a", { href: "/results/" + result.id }, "Call " + result.id), chip(wordOf(result)), span(result.duration_ms), words(evaluation.call_summary || (result.verdict && result.verdict.reason) || "", 300)),
    el("div", { class: "columns" }, el("div", {}, section("What was said", player.node, entries.length ? said : el("p", { class: "empty" }, "Nothing was said.")),
      moments.length ? section("Moments to check", el("ol", { class: "moments", start: 4 }, moments.map(([ms, text]) => el("li", {}, el("button", { type: "button", onclick: () => playAt(ms) }, clock(ms) + " " + text))))) : ""), section("Questions", form)));
}
