import { el, words, section } from "./dom.js";
import { get, post } from "./api.js";
import { Fields, form, more, schemas } from "./forms.js";
import { lineCheck } from "./line.js";

/**
 * Kinds of agents: name, what it is, what is set with it, its fields, and the fields by which one is known again.
 * @typedef {{ id: string, name: string, about: string, set: Record<string, any>, fields: (string | [string, string])[], is: (agent: any) => boolean }} Kind
 */

/** Fields of each platform. */
const PLATFORMS = /** @type {Record<string, string[]>} */ ({
  P3: ["P3_agent_id"], P4: ["P4_agent_id"], P5: ["P5_assistant_id"], P6: ["P6_app_id", "P6_deployment_id"],
  P7: ["P7_project_id", "P7_location", "P7_agent_id"], P8: ["P8_base_url", "P8_domain_code", "P8_flow_name", "P8_agent_name"],
  P9: ["P9_agent_id", "P9_pathway_id", "P9_call_settings"], P10: ["P10_agent_token", "P10_release", "P10_agent_parameters"],
  P11: ["P11_host", "P11_bot_id", "P11_client_id", "P11_client_secret"],
});

/** @type {Kind[]} */
const KINDS = [
  { id: "sip", name: "SIP", about: "It has a SIP address and is called there.", set: { connection_type: "SIP" }, is: (agent) => agent.connection_type === "SIP",
    fields: ["sip_uri", "sip_username", "sip_password", "custom_sip_headers"] },
  { id: "phone", name: "Telephone", about: "It has a telephone number and is called through a trunk.", set: { connection_type: "PHONE" }, is: (agent) => agent.connection_type === "PHONE", fields: ["phone_number"] },
  { id: "websocket", name: "WebSocket", about: "It takes calls on a WebSocket, in one of several dialects.", set: { connection_type: "WEBSOCKET" }, is: (agent) => agent.connection_type === "WEBSOCKET",
    fields: ["websocket_url", "websocket_dialect", "websocket_username", "websocket_password", "websocket_parameters"] },
  { id: "pipeline", name: "Pipeline", about: "A voice pipeline (P2) is started for each call.", set: { connection_type: "P2" }, is: (agent) => agent.connection_type === "P2", fields: ["P2_agent_name", "P2_agent_configuration", "P2_room_properties"] },
  { id: "room", name: "Room", about: "It meets the caller in a media room (P1).", set: { connection_type: "P1" }, is: (agent) => agent.connection_type === "P1",
    fields: ["P1_agent_name", "P1_metadata", "P1_token_webhook_url", "P1_token_webhook_auth", "P1_customer_tool_topic"] },
  { id: "platform", name: "Platform", about: "It lives on a voice-agent platform (P3 to P11).", set: {}, is: (agent) => agent.connection_type in PLATFORMS, fields: [] },
  { id: "calls", name: "Calls you", about: "It places the call: a webhook makes it begin.", set: { type: "OUTBOUND" }, is: (agent) => agent.type === "OUTBOUND",
    fields: ["outbound_trigger_webhook_url", "outbound_trigger_payload_template", "phone_number", "sip_uri", "enable_outbound_call_auto_start"] },
  { id: "chat", name: "Webhook or chat", about: "It writes: messages are posted to it, or it is a chat-completions endpoint (P12).", set: { mode: "TEXT" }, is: (agent) => agent.mode === "TEXT" && agent.connection_type !== "SMS",
    fields: ["http_webhook", "http_webhook_sync_reply", "P12_base_url", "P12_model", "P12_api_key"] },
  { id: "mail", name: "SMS or e-mail", about: "It answers text messages, or mails.", set: {}, is: (agent) => agent.mode === "EMAIL" || agent.connection_type === "SMS",
    fields: ["email_address", "email_reply_addresses", ["phone_number", "Phone number for SMS"]] },
];

/** Fields that every kind begins with. */
const FIRST = ["name"];
/** Members that the kind decides. */
const DECIDED = ["connection_type", "svc_as_code_id", "provider"];

/**
 * What is missing in the settings for a kind, in words; "" where nothing is.
 * @param {string} id
 * @param {any} health
 */
function missing(id, health) {
  if (id === "phone" && health && !(health.trunks || []).length) return "No trunk is set: a telephone number needs [sip.trunks.NAME] with host, numbers and allowed_prefixes in ringer.toml.";
  if (id === "pipeline") return "The key of the platform is set with PATCH /v1/integrations; [p2] in ringer.toml has the address that starts pipelines.";
  if (id === "platform") return "The key of the platform is set with PATCH /v1/integrations; [adapters.Pn] in ringer.toml has its protocol.";
  if (id === "mail") return "Mails need [email] with relay and address in ringer.toml, text messages need [sms].";
  return "";
}

/**
 * Makes an agent, or changes one.
 * @param {string} id empty for a new one
 * @param {import("./app.js").Page} page
 */
export async function agentForm(id, page) {
  const query = new URLSearchParams(location.search);
  const from = id || query.get("copy");
  const [all, old, health] = await Promise.all([schemas(), from ? get("/v1/agents/" + from) : /** @type {any} */ ({}), get("/health/deps").catch(() => null)]);
  page.title(id ? "Change agent " + id : "New agent");
  const copied = id ? old : { ...old, name: from ? old.name + " (copy)" : "", svc_as_code_id: null, external_agent_id: null };
  const known = from ? [...KINDS].reverse().find((kind) => kind.is(old)) : null;
  const wanted = query.get("kind");
  const place = el("div");
  /** @param {Kind} kind */
  const show = (kind) => {
    tiles.querySelectorAll("button").forEach((/** @type {HTMLElement} */ one) => one.setAttribute("aria-pressed", String(one.dataset.kind === kind.id)));
    const fields = new Fields(all, "AgentSpec", copied);
    const first = fields.add(FIRST);
    const platform = el("select", { id: "f-platform" }, Object.keys(PLATFORMS).map((name) => el("option", { value: name, selected: name === old.connection_type }, name)));
    const groups = kind.id !== "platform" ? [] : Object.entries(PLATFORMS).map(([name, list]) => el("div", { data: { platform: name } }, fields.add(list)));
    const pick = () => groups.forEach((group) => { group.hidden = group.dataset.platform !== platform.value; });
    platform.onchange = pick;
    pick();
    const own = kind.id === "platform" ? [el("div", { class: "field" }, el("label", { for: "f-platform" }, "Platform"), platform), ...groups] : fields.add(kind.fields);
    const decided = [...DECIDED, ...Object.keys(kind.set)];
    const rest = fields.add(Object.keys(fields.properties).filter((name) => !decided.includes(name)).sort((a, b) => Number(/^P\d/.test(a)) - Number(/^P\d/.test(b))));
    const body = () => {
      /** @type {Record<string, any>} */
      const values = { ...kind.set, ...fields.values() };
      if (kind.id === "platform") Object.assign(values, { connection_type: platform.value });
      if (kind.id === "mail") Object.assign(values, values.email_address ? { mode: "EMAIL", connection_type: "EMAIL" } : { mode: "TEXT", connection_type: "SMS" });
      if (kind.id === "chat") values.connection_type = values.P12_base_url ? "P12" : "HTTP_WEBHOOK";
      return values;
    };
    /** @param {() => Promise<any>} act */
    const tried = async (act) => {
      try { return await act(); } catch (error) {
        const rest = fields.fail(error);
        if (rest) throw new Error(rest);
      }
    };
    const save = () => tried(async () => {
      fields.fail({ details: [] });
      const made = id ? await post("/v1/update-agent", { agent_id: id, ...body() }) : await post("/v1/add-agent", body());
      page.go("/agents/" + (id || made.agent_id));
    });
    const lack = missing(kind.id, health);
    place.replaceChildren(form(id ? "Save" : "Create the agent", save, el("h2", {}, kind.name), lack ? el("p", { class: "note" }, lack) : "", first, own, more("More", rest)),
      section("Try it", lineCheck(() => tried(() => post("/v1/agents/check", { agent: body() })), "Test the line before it is saved", page)));
  };
  const tiles = el("div", { class: "tiles", role: "group", "aria-label": "Kind of agent" }, KINDS.map((kind) => el("button", { type: "button", class: "tile", data: { kind: kind.id }, "aria-pressed": "false", onclick: () => show(kind) },
    el("b", {}, kind.name), el("span", {}, kind.about))));
  page.show(el("h1", {}, id ? words("Change " + old.name, 120) : "New agent"), tiles, place);
  const begin = known || KINDS.find((kind) => kind.id === wanted);
  if (begin) show(begin);
}
