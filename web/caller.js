import { el, words } from "./dom.js";
import { ask, get, post } from "./api.js";
import { Fields, form, more, schemas, sure } from "./forms.js";
import { hearing } from "./hearing.js";
import { levers } from "./start.js";
import { scenarioOf, toYaml } from "./suite.js";

/** Callers to begin with: what each sets. Fields that a preset does not name go back to their defaults. */
const PRESETS = /** @type {Record<string, Record<string, any>>} */ ({
  "Calm": { voice_speed: "slow", verbosity: "medium", endpointing_delay: 1.8 },
  "Hurried": { voice_speed: "fast", verbosity: "low", endpointing_delay: 0.6, interruptions: "low" },
  "Elderly": { voice_speed: "slow", accent: "mature", fluency: "intermediate", endpointing_delay: 2.5 },
  "In a car": { background_noise: "traffic", background_noise_volume: 0.9, audio_quality: "medium", connection_quality: "medium" },
  "Bad line": { audio_quality: "low", connection_quality: "low" },
  "Barge-in tester": { interruptions: "high", verbosity: "medium" },
});

/** Fields by what they are about. */
const WHO = ["name", "language", "accent", "gender", "voice_speed", "custom_voice_id", "role_description"];
const WHERE = ["background_noise", "background_noise_volume", "audio_quality", "connection_quality"];
const HOW = ["endpointing_delay", "silence_timeout", "fluency", "verbosity"];
/** Members that are edited elsewhere or set by the engine. */
const ELSEWHERE = ["svc_as_code_id", "interruptions", "expectations", "formatted_transcript", "suite_name", "workflow_path_index", "tested_path", "always_on_active"];

/**
 * How often the caller cuts in, with the number of each level.
 * @param {any} rate
 * @param {any} old
 */
function cutting(rate, old) {
  const now = old ? old.type : "none";
  const levels = ["none", "low", "medium", "high"];
  const shown = (/** @type {string} */ level) => level === "none" ? "never" : level + (rate && rate[level] ? " (in " + Math.round(rate[level] * 100) + " % of the agent's turns)" : "");
  const options = levels.includes(now) ? levels : [now, ...levels];
  const control = el("select", { id: "f-interruptions", name: "interruptions" }, options.map((level) => el("option", { value: level, selected: level === now }, levels.includes(level) ? shown(level) : "by " + level + ", as it is")));
  const read = () => levels.includes(control.value) ? { type: control.value } : old;
  return { control, read, node: el("div", { class: "field" }, el("label", { for: "f-interruptions" }, "Cuts in"), control) };
}

/**
 * Makes a caller for a simulation, or changes one.
 * @param {string} id empty for a new one
 * @param {import("./app.js").Page} page
 */
export async function callerPage(id, page) {
  const query = new URLSearchParams(location.search);
  const simulation = query.get("simulation") || "";
  const [all, of, record] = await Promise.all([schemas(), get("/v1/behaviour-levels"), id ? get("/v1/digital-human/" + id) : { digital_human: {} }]);
  const old = record.digital_human || record;
  page.title(id ? "Caller " + id : "New caller");
  const fields = new Fields(all, "DigitalHumanSpec", old);
  const cut = cutting(of.interruption, old.interruptions);
  const who = fields.add(WHO);
  const what = fields.add(["intent", "success_criteria"]);
  const where = fields.add(WHERE);
  const how = fields.add(HOW);
  const rest = fields.add(Object.keys(fields.properties).filter((name) => !ELSEWHERE.includes(name)));
  const numbers = new Map(levers(of).map(([name, , levels]) => [name, new Map(levels)]));
  for (const [name, levels] of numbers) {
    const one = fields.fields.get(name);
    if (one) [...one.control.options].forEach((/** @type {any} */ option) => { if (levels.get(option.value)) option.textContent += " (" + levels.get(option.value) + ")"; });
  }
  const loud = el("output");
  const volume = /** @type {import("./forms.js").Field} */ (fields.fields.get("background_noise_volume"));
  volume.node.append(loud);
  const body = () => {
    /** @type {Record<string, any>} */
    const values = fields.values();
    const given = cut.read();
    if (given && (given.type !== "none" || old.interruptions)) values.interruptions = given;
    return values;
  };
  const yaml = el("pre", { class: "yaml", tabIndex: 0, role: "group", "aria-label": "The caller as a scenario of a suite" });
  const shown = () => {
    const now = { ...old, ...body() };
    yaml.textContent = toYaml([scenarioOf(now)]);
    const isQuiet = !now.background_noise || now.background_noise === "none";
    const snr = of.noise_quietest_snr_db + (of.noise_loudest_snr_db - of.noise_quietest_snr_db) * Number(now.background_noise_volume ?? 0.8);
    loud.textContent = isQuiet ? "no noise" : "speech " + snr.toFixed(1) + " dB above the noise";
  };
  const presets = el("div", { class: "presets", role: "group", "aria-label": "Presets" }, Object.entries(PRESETS).map(([name, set]) => el("button", { type: "button", onclick: () => {
    for (const one of [...WHERE, ...HOW, "voice_speed", "accent"]) {
      const known = fields.fields.get(one);
      if (known) known.control.value = String(set[one] ?? "");
    }
    cut.control.value = set.interruptions || "none";
    const named = fields.fields.get("name");
    if (named && !named.control.value) named.control.value = name;
    shown();
  } }, name)));
  /** @param {() => Promise<any>} act */
  const tried = async (act) => {
    fields.fail({ details: [] });
    try { await act(); } catch (error) {
      const rest = fields.fail(error);
      if (rest) throw new Error(rest);
    }
  };
  const copies = el("input", { id: "f-copies", type: "number", min: "1", max: "20", value: "1" });
  const back = () => page.go(simulation ? "/simulations/" + simulation : "/agents");
  const save = () => tried(async () => {
    const human = body();
    const count = id ? 1 : Math.min(20, Math.max(1, Number(copies.value) || 1));
    const named = (/** @type {number} */ at) => count === 1 ? human : { ...human, name: (human.name || "Caller") + " " + (at + 1) };
    if (id) await ask("PUT", "/v1/update-digital-human/" + id, { body: human });
    else if (count === 1) await post("/v1/create-digital-human", { digital_human: human, simulation_ids: simulation ? [Number(simulation)] : [] });
    else await post("/v1/create-digital-humans", { digital_humans: Array.from({ length: count }, (_, at) => named(at)), simulation_ids: simulation ? [Number(simulation)] : [] });
    back();
  });
  const group = (/** @type {string} */ title, /** @type {any[]} */ ...nodes) => el("fieldset", {}, el("legend", {}, title), ...nodes.flat());
  const made = form(id ? "Save" : "Add the caller", save, el("p", {}, "Begin with: ", presets), group("What", what), group("Who", who), group("Where", where), group("How", how, cut.node), more("More", rest),
    id ? "" : el("div", { class: "field" }, el("label", { for: "f-copies" }, "Copies"), copies, el("small", {}, "Each has a seed of its own, and so a voice and draws of its own.")));
  made.addEventListener("input", shown);
  shown();
  page.show(el("h1", {}, id ? words("Caller " + (old.name || id), 120) : "New caller"), el("div", { class: "columns" }, made,
    el("div", { class: "beside" }, hearing(() => ({ ...given(old), ...body() }), page), el("section", { "aria-labelledby": "s-yaml" }, el("h2", { id: "s-yaml" }, "As a suite"), yaml),
      id ? el("p", {}, sure("Delete the caller", () => ask("DELETE", "/v1/digital-human/" + id).then(back), page)) : "")));
}

/**
 * Members of a stored Digital Human that a request may hold.
 * @param {any} old
 */
export function given(old) {
  const { id, created_at, updated_at, created_by, updated_by, warnings, simulation_ids, simulations, ...rest } = old;
  return Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null));
}
