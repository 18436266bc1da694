import { el, words, when, section, table, facts } from "./dom.js";
import { chip } from "./told.js";
import { get, maybe, post } from "./api.js";

/** Verdicts that a card is about, in words. */
const SUBJECTS = /** @type {Record<string, string>} */ ({ goal_success: "goals", metric: "a custom metric", meaning: "the meaning of an expectation" });
/** Time between two looks at a card that is made, in milliseconds. */
const LOOK_MS = 2000;
const PROPERTIES = /** @type {Record<string, string>} */ ({ length: "Length", evidence: "Place of what decides", language: "Language", channel: "Channel" });

/** @param {number | null | undefined} share */
const percent = (share) => share === null || share === undefined ? "" : (100 * share).toFixed(1).replace(/\.0$/, "") + " %";

/**
 * A share with its interval.
 * @param {any} rate
 */
export function rateWords(rate) {
  return rate && rate.of ? percent(rate.share) + " (" + percent(rate.low) + " to " + percent(rate.high) + "), " + rate.hits + " of " + rate.of : "nothing counted";
}

/**
 * The rate of reached goals beside the counted one.
 * @param {any} corrected
 */
export function correctedLine(corrected) {
  const told = (/** @type {any} */ one) => one ? percent(one.share) + " (" + percent(one.low) + " to " + percent(one.high) + ")" : "not defined";
  return el("div", { class: "corrected" }, facts(["Goals reached, as judged", rateWords(corrected.counted)], ["Corrected by the judge's card (PPI)", told(corrected.ppi)], ["By its error rates (Rogan and Gladen)", told(corrected.rogan_gladen)]),
    el("p", { class: "note" }, el("a", { href: "/judges/" + corrected.card_id }, "Report card of the judge"), " with " + corrected.labelled + " labelled conversations. It changes no verdict. ", words(corrected.says.join(" "), 400)));
}

/** @param {import("./app.js").Page} page */
export async function judgesPage(page) {
  page.title("Judges");
  const [list, models, metrics, agents] = await Promise.all([get("/v1/judge-cards"), maybe("/v1/models").catch(() => []), maybe("/v1/metrics").catch(() => null), get("/v1/all-agents").catch(() => [])]);
  const cards = list.judge_cards || [];
  page.show(el("h1", {}, "Judges"), el("p", {}, "A language model that judges errs. A report card has it judge conversations again whose verdict a person gave, and tells how often it agrees."),
    section("Report cards", cards.length ? table("Report cards", ["Card", "Judge", "About", "Trust", "True found (TPR)", "False found (TNR)", "Conversations"], cards.map(cardRow)) : el("p", { class: "empty" }, "There is no report card. Verdicts of judges without one are said to have no card.")),
    section("A new card", cardForm(page, (models || []).filter((/** @type {any} */ one) => one.kind !== "audio"), named(metrics), named(agents))));
  if (cards.some(isUnderWay)) again(page, () => judgesPage(page));
}

/**
 * Shows a view again while something in it is under way.
 * @param {import("./app.js").Page} page
 * @param {() => Promise<void>} view
 */
function again(page, view) {
  const timer = setTimeout(() => view().catch(page.refused), LOOK_MS);
  page.after(() => clearTimeout(timer));
}

/** @param {any} answer */
function named(answer) {
  const list = Array.isArray(answer) ? answer : Object.values(answer || {}).find(Array.isArray) || [];
  return list.map((/** @type {any} */ one) => ({ id: String(one.id ?? one.agent_id), name: one.name ?? one.agent_name ?? String(one.id) }));
}

/** @param {any} card */
const isUnderWay = (card) => card.status === "queued" || card.status === "running";

/** @param {any} card */
function cardRow(card) {
  const figures = card.figures;
  return [el("a", { href: "/judges/" + card.id }, when(card.created_at)), words(card.model, 80), SUBJECTS[card.subject] || card.subject,
    card.status === "completed" ? el("span", {}, chip(card.judge_status), card.in_force ? " in force" : "") : chip(card.status), figures ? rateWords(figures.tpr) : words(card.reason || "", 120), figures ? rateWords(figures.tnr) : "", figures ? figures.conversations : ""];
}

/**
 * @param {import("./app.js").Page} page
 * @param {any[]} models
 * @param {any[]} metrics
 * @param {any[]} agents
 */
function cardForm(page, models, metrics, agents) {
  const choice = (/** @type {string} */ id, /** @type {string} */ first, /** @type {any[]} */ list) => el("select", { id }, el("option", { value: "" }, first), list.map((one) => el("option", { value: one.id ?? one.name }, one.name)));
  const model = choice("f-judge", "the one that judges now", models.map((one) => ({ id: one.name, name: one.name + ": " + one.model })));
  const metric = choice("f-metric", "goals", metrics), agent = choice("f-agent", "all agents", agents);
  const labels = el("textarea", { id: "f-labels", rows: 5, placeholder: '{"result_id": 4711, "label": false}' });
  const repeat = el("input", { id: "f-repeat", type: "number", min: "1", max: "10", value: "3" });
  const field = (/** @type {any} */ node, /** @type {string} */ label, note = "") => el("p", {}, el("label", { for: node.id }, label), node, note ? el("small", {}, note) : null);
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const body = /** @type {any} */ ({ repeat: Number(repeat.value) });
    if (model.value) body.model = model.value;
    if (metric.value) body.metric_id = metric.value;
    if (agent.value) body.agent_id = agent.value;
    try {
      if (labels.value.trim()) body.labels = labelsOf(labels.value);
      const card = await post("/v1/judge-cards", body);
      page.go("/judges/" + card.id);
    } catch (error) {
      page.refused(error);
    }
  };
  return el("form", { class: "start", onsubmit: send }, field(model, "Judge"), field(metric, "It judges"), field(agent, "Calls of"), field(labels, "Labels", "One JSON object a line. Without any, what people said in reviews are the labels."), field(repeat, "Times that each conversation is judged"), el("button", { type: "submit" }, "Make a report card"));
}

/**
 * Labels of a text: one JSON object a line.
 * @param {string} text
 */
function labelsOf(text) {
  const lines = text.split("\n").map((line, at) => /** @type {[string, number]} */ ([line.trim(), at + 1])).filter(([line]) => line);
  return lines.map(([line, at]) => {
    let one;
    try {
      one = JSON.parse(line);
    } catch {
      throw new Error("Labels, line " + at + ": this is no JSON object.");
    }
    const { result_id: result, label, ...rest } = one;
    const verdict = [true, "true", "pass", "yes", 1].includes(label) ? true : [false, "false", "fail", "no", 0].includes(label) ? false : null;
    if (verdict === null) throw new Error("Labels, line " + at + ": label must be true or false.");
    return { ...rest, ...(result === undefined ? {} : { simulation_result_id: String(result) }), label: verdict, line: at };
  });
}

/**
 * @param {string} id
 * @param {import("./app.js").Page} page
 */
export async function judgePage(id, page) {
  const card = await get("/v1/judge-cards/" + id);
  page.title("Report card of " + card.model);
  const figures = card.figures;
  page.show(el("h1", {}, "Report card"), el("p", { class: "chips" }, words(card.model, 120), " ", card.status === "completed" ? chip(card.judge_status) : chip(card.status), card.in_force ? " in force" : "", card.judge_reason ? el("span", {}, " ", words(card.judge_reason, 300)) : ""),
    facts(["About", SUBJECTS[card.subject] || card.subject], ["Meaning", card.meaning && words(card.meaning, 200)], ["Prompt", card.prompt_version], ["Asked for", when(card.created_at)], ["Labels", card.from_reviews ? "reviews of people" : "a list"], ["Each judged", card.repeat + " times"], ["Reason", card.reason && words(card.reason, 300)]),
    figures ? el("div", {}, ...figureParts(figures)) : el("p", { class: "empty" }, isUnderWay(card) ? "The conversations are being judged." : "There are no figures."),
    card.conversations ? section("Conversations", conversations(card.conversations)) : null, el("p", {}, el("a", { href: "/judges" }, "All report cards")));
  if (isUnderWay(card)) again(page, () => judgePage(id, page));
}

/** @param {any} figures */
function figureParts(figures) {
  const kappa = figures.kappa;
  const bounds = kappa && kappa.low !== null ? " (" + kappa.low.toFixed(2) + " to " + kappa.high.toFixed(2) + ")" : "";
  const answers = figures.answers;
  return [section("How often it agrees with people", el("div", {}, facts(["Of those true, called true (TPR)", rateWords(figures.tpr)], ["Of those false, called false (TNR)", rateWords(figures.tnr)], ["Called as labelled", rateWords(figures.accuracy)],
    ["Kappa", kappa ? kappa.value.toFixed(2) + bounds : "not defined"], ["The same answer each time", rateWords(figures.same_answer)], ["Labels", figures.labelled_true + " true, " + figures.labelled_false + " false"],
    ["No verdict", figures.without_verdict ? figures.without_verdict + " conversations" : null], ["Left out", figures.left_out ? figures.left_out + " conversations" : null],
    ["Answers", answers.verdicts + " verdicts of " + answers.asked + ", " + answers.unreadable + " unreadable, " + answers.not_known + " not known, " + answers.failed + " not reached"]),
  figures.says.length ? el("ul", {}, figures.says.map((/** @type {string} */ text) => el("li", {}, words(text, 300)))) : null)),
  ...figures.groups.filter((/** @type {any} */ one) => one.groups.length).map((/** @type {any} */ by) => section(PROPERTIES[by.by] || by.by, el("div", {}, table(PROPERTIES[by.by] || by.by, ["Group", "Conversations", "True found", "False found", "As labelled"], by.groups.map((/** @type {any} */ one) => [words(one.name, 60), one.conversations, rateWords(one.tpr), rateWords(one.tnr), rateWords(one.accuracy)])), el("p", { class: "note" }, words(by.says.join("; "), 400)))))];
}

/** @param {any[]} list */
function conversations(list) {
  const told = (/** @type {string} */ answer) => answer.replace(/_/g, " ");
  const differs = (/** @type {any} */ one) => one.answers.length > 0 && one.answers[0] !== String(one.label);
  const sorted = [...list].sort((a, b) => Number(differs(b)) - Number(differs(a)) || a.line - b.line);
  return table("Conversations", ["Conversation", "A person", "The judge", "Agrees", "Words"], sorted.map((one) => [one.simulation_result_id ? el("a", { href: "/results/" + one.simulation_result_id }, "result " + one.simulation_result_id) : "line " + one.line, String(one.label),
    one.answers.length ? one.answers.map(told).join(", ") : words(one.reason || "left out", 120), one.answers.length ? (differs(one) ? el("b", {}, "no") : "yes") : "", one.words]));
}
