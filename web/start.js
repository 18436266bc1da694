import { el, facts } from "./dom.js";
import { get, post } from "./api.js";

/** What the Digital Human of the one-click call wants. */
export const SAMPLE = "Hello, I would like to book an appointment for my knee. Tuesday is good for me. Yes, that is right.";

/** Most characters of a name that comes from an intent. */
const NAME_CHARS = 48;

/**
 * A name of the first words of an intent.
 * @param {string} intent
 */
function nameOf(intent) {
  const text = intent.trim().replace(/\s+/g, " ");
  if (text.length <= NAME_CHARS) return text;
  const cut = text.slice(0, NAME_CHARS);
  return cut.slice(0, cut.lastIndexOf(" ") > 10 ? cut.lastIndexOf(" ") : NAME_CHARS) + "\u2026";
}

/**
 * Starts the sample agent, and calls it. It is one agent, however often it is started.
 * @param {import("./app.js").Page} page
 */
export async function callSample(page) {
  page.notice("Starting the sample agent.");
  const { sip_uri, agent_id } = await post("/v1/sample-agent");
  const agent = agent_id ?? await agentAt(sip_uri, "Sample agent");
  await call(page, agent, { name: "Sam", intent: SAMPLE, language: "en", gender: "male", custom_voice_id: "kokoro:am_michael" });
}

/**
 * The agent with this address; one is made where there is none.
 * @param {string} address
 * @param {string} name
 */
async function agentAt(address, name) {
  const agents = await get("/v1/all-agents");
  const known = agents.find((/** @type {any} */ agent) => agent.sip_uri === address);
  return known ? known.id : (await post("/v1/add-agent", { name, type: "INBOUND", connection_type: "SIP", sip_uri: address })).agent_id;
}

/**
 * Calls an agent: a simulation and a Digital Human are made for it, then a run. They are named by what the caller wants.
 * @param {import("./app.js").Page} page
 * @param {number} agent
 * @param {any} human
 */
async function call(page, agent, human) {
  const { simulation_id } = await post("/v1/create-simulation", { agent_id: String(agent), name: nameOf(human.intent) });
  await post("/v1/create-digital-human", { digital_human: human, simulation_ids: [simulation_id] });
  const run = await post("/v1/queue-simulation-run", { simulation_id: String(simulation_id) });
  page.notice("");
  page.go("/results/" + run.simulation_result_ids[0]);
}

/**
 * The levers of a caller: name of the field, label, and the number behind each level.
 * @param {any} of
 * @returns {[string, string, [string, string][], string][]}
 */
export function levers(of) {
  const line = (/** @type {any} */ one) => one.loss_pct + " % loss, jitter to " + 2 * one.jitter_ms + " ms";
  const sound = (/** @type {any} */ one) => one.low_hz + " to " + one.high_hz + " Hz" + (one.clip_dbfs < 0 ? ", clips at " + one.clip_dbfs + " dBFS" : "") + (one.noise_snr_db < 100 ? ", noise at " + one.noise_snr_db + " dB" : "");
  const halting = (/** @type {any} */ one) => one.fillers_per_100_words + " fillers in 100 words, pauses of " + one.pause_from_ms + " to " + one.pause_to_ms + " ms";
  const noises = ["none", "office", "talking", "traffic", "cafe", "park", "tv", "noisy_restaurant", "hospital"];
  return [
    ["voice_speed", "Speed", ["slowest", "slow", "normal", "fast", "fastest"].map((level) => [level, of.speed[level] + " words a minute"]), "normal"],
    ["verbosity", "Words in a turn", ["low", "medium", "high"].map((level) => [level, "about " + of.verbosity[level].target + ", at most " + of.verbosity[level].maximum]), "medium"],
    ["fluency", "Fluency", [["native", "no hesitation"], ["intermediate", halting(of.fluency.intermediate)], ["beginner", halting(of.fluency.beginner)]], "native"],
    ["audio_quality", "Microphone", [["high", "unchanged"], ...["medium", "low", "horrible"].map((level) => /** @type {[string, string]} */ ([level, sound(of.audio[level])]))], "high"],
    ["connection_quality", "Line", [["high", "unchanged"], ...["medium", "low", "horrible"].map((level) => /** @type {[string, string]} */ ([level, line(of.connection[level])]))], "high"],
    ["background_noise", "Noise", noises.map((noise) => [noise, ""]), "none"],
  ];
}

/**
 * A form that calls an agent now.
 * @param {import("./app.js").Page} page
 */
export async function startPage(page) {
  page.title("Call an agent");
  if (document.body.dataset.scope === "read") return page.show(el("h1", {}, "Call an agent"), el("p", { class: "empty" }, "The key of this page may only read. A key of scope write may call."));
  const of = await get("/v1/behaviour-levels");
  const choices = levers(of);
  const selects = choices.map(([name, label, levels, normal]) => {
    const select = el("select", { name }, levels.map(([level, about]) => el("option", { value: level, selected: level === normal }, level.replace(/_/g, " ") + (about ? " (" + about + ")" : ""))));
    return el("label", { class: "field" }, label, select);
  });
  const volume = el("input", { type: "range", min: "0", max: "1", step: "0.05", value: "0.8", name: "background_noise_volume" });
  const loud = el("output");
  const noise = selects[choices.findIndex(([name]) => name === "background_noise")].control;
  const shown = () => {
    volume.disabled = noise.value === "none";
    if (volume.disabled) { loud.textContent = "no noise"; return; }
    const snr = of.noise_quietest_snr_db + (of.noise_loudest_snr_db - of.noise_quietest_snr_db) * Number(volume.value);
    loud.textContent = "speech " + snr.toFixed(1) + " dB above the noise";
  };
  noise.onchange = shown;
  volume.oninput = shown;
  shown();
  const address = el("input", { name: "sip_uri", required: true, maxLength: 2000, placeholder: "sip:desk@127.0.0.1:5080", value: new URLSearchParams(location.search).get("address") || "" });
  const intent = el("textarea", { name: "intent", required: true, rows: 3, value: SAMPLE });
  const send = el("button", { type: "submit", class: "big" }, "Call");
  const sample = el("button", { type: "button" }, "Use the sample agent");
  sample.onclick = async () => {
    sample.disabled = true;
    try { address.value = (await post("/v1/sample-agent")).sip_uri; } catch (error) { page.refused(error); }
    sample.disabled = false;
  };
  const form = el("form", { class: "start" }, el("label", { class: "field" }, "Address", address), el("p", {}, sample), el("label", { class: "field" }, "Intent", intent),
    el("fieldset", {}, el("legend", {}, "How the caller is"), selects, el("label", { class: "field" }, "Noise volume", volume), loud), el("p", {}, send));
  form.onsubmit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    send.disabled = true;
    /** @type {Record<string, any>} */
    const human = { name: nameOf(intent.value), intent: intent.value, language: "en", background_noise_volume: Number(volume.value) };
    for (const [name] of choices) human[name] = /** @type {HTMLSelectElement} */ (form.elements.namedItem(name)).value;
    const to = address.value.trim();
    await agentAt(to, to.replace(/^sips?:/, "").slice(0, 80)).then((agent) => call(page, agent, human)).catch(page.refused);
    send.disabled = false;
  };
  page.show(el("h1", {}, "Call an agent"), form, facts(["The caller gives way after", of.yield_after_ms + " ms of the agent's speech"],
    ["After it has cut in it holds on for", of.hold_floor_ms + " ms"]));
}
