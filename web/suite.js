// A scenario as the YAML of a suite, as `ringer run` reads it.

/**
 * A text as YAML: bare where that cannot be read as something else.
 * @param {any} value
 */
function scalar(value) {
  if (typeof value !== "string") return JSON.stringify(value);
  const isBare = /^[A-Za-z][A-Za-z0-9 _.,'!?()/-]*$/.test(value) && !/^(true|false|null|yes|no|on|off)$/i.test(value) && !/[ ]$/.test(value);
  return isBare ? value : JSON.stringify(value);
}

/**
 * A value as YAML, in lines.
 * @param {any} value
 * @param {string} indent
 * @returns {string}
 */
export function toYaml(value, indent = "") {
  if (Array.isArray(value)) {
    return value.map((one) => {
      if (one === null || typeof one !== "object") return indent + "- " + scalar(one) + "\n";
      const isShort = JSON.stringify(one).length < 100 && Object.values(one).every((part) => typeof part !== "object");
      if (isShort && Object.keys(one).length && !("name" in one)) return indent + "- { " + Object.entries(one).map(([key, part]) => key + ": " + (typeof part === "string" ? JSON.stringify(part) : part)).join(", ") + " }\n";
      return indent + "- " + toYaml(one, indent + "  ").slice(indent.length + 2);
    }).join("");
  }
  return Object.entries(value).map(([key, part]) => {
    if (part === null || typeof part !== "object" || !Object.keys(part).length) return indent + key + ": " + scalar(part) + "\n";
    return indent + key + ":\n" + toYaml(part, indent + "  ");
  }).join("");
}

/** Members of a Digital Human that the engine sets, or that a file does not need. */
const OWN = new Set(["id", "created_at", "updated_at", "created_by", "updated_by", "svc_as_code_id", "simulation_ids", "simulations", "warnings", "name", "intent", "role_description", "success_criteria", "expectations", "traits", "suite_name",
  "organization_id", "always_on_active", "formatted_transcript"]);
/** Values that are the same as none. */
const USUAL = /** @type {Record<string, any>} */ ({ language: "en", background_noise: "none", background_noise_volume: 0.8, voice_speed: "normal", audio_quality: "high", connection_quality: "high", fluency: "native", verbosity: "medium",
  allow_end_call_tool: true, allow_dtmf_tool: true, allow_silence_tool: true, default_dtmf_or_voiced: "voiced", silence_tool_instructions: "default", endpointing_delay: 1.5, creativity: 0.7, num_runs: 1, scripted_responses_ordered: false, stop_on_failure: false, always_on_mode: false });

/**
 * A Digital Human as a scenario of a suite.
 * @param {any} human
 */
export function scenarioOf(human) {
  /** @type {Record<string, any>} */
  const scenario = { name: human.name || human.test_name || "caller" };
  const put = (/** @type {string} */ name, /** @type {any} */ value) => { if (value) scenario[name] = value; };
  put("persona", human.role_description);
  put("goal", human.intent);
  if (Array.isArray(human.traits) && human.traits.length) scenario.traits = Object.fromEntries(human.traits.map((/** @type {any} */ one) => [one.trait_name, one.value]));
  for (const [name, value] of Object.entries(human)) {
    const isNone = value === null || value === undefined || value === "" || (Array.isArray(value) && !value.length);
    if (!OWN.has(name) && !isNone && USUAL[name] !== value) scenario[name] = value;
  }
  put("success", human.success_criteria);
  if (human.expectations && human.expectations.length) scenario.expect = human.expectations.map((/** @type {any} */ one) => Object.fromEntries(Object.entries(one).filter(([, value]) => value !== null)));
  return scenario;
}

/**
 * How a suite reaches an agent.
 * @param {any} agent
 */
function connectOf(agent) {
  if (agent.type === "INBOUND" || !agent.type) {
    if (agent.connection_type === "SIP" && agent.sip_uri) return { sip: agent.sip_uri };
    if (agent.connection_type === "PHONE" && agent.phone_number) return { phone: agent.phone_number };
    if (agent.connection_type === "WEBSOCKET" && agent.websocket_url) return { ws: agent.websocket_url, ...(agent.websocket_dialect ? { dialect: agent.websocket_dialect } : {}) };
    if (agent.connection_type === "HTTP_WEBHOOK" && agent.http_webhook) return { http: agent.http_webhook };
  }
  return { agent: agent.name };
}

/**
 * A whole simulation as a suite.
 * @param {any} agent
 * @param {any} simulation
 * @param {any[]} humans
 */
export function suiteOf(agent, simulation, humans) {
  const set = simulation.settings || {};
  /** @type {Record<string, any>} */
  const defaults = {};
  if (set.runs_per_digital_human > 1) defaults.repeat = set.runs_per_digital_human;
  if (set.max_call_duration) defaults.max_seconds = set.max_call_duration * (set.max_call_duration_units === "seconds" ? 1 : 60);
  const names = new Set();
  const scenarios = humans.map((human) => {
    const scenario = scenarioOf(human);
    for (let n = 2; names.has(scenario.name); n += 1) scenario.name = (human.name || "caller") + " " + n;
    names.add(scenario.name);
    return scenario;
  });
  return "version: 1\n" + toYaml({ connect: connectOf(agent), ...(Object.keys(defaults).length ? { defaults } : {}), scenarios });
}
