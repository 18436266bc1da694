import { el, words, when, section, table } from "./dom.js";
import { chip } from "./told.js";
import { ask, get, maybe, post } from "./api.js";
import { form, schemas, sure } from "./forms.js";

/** Parts of the engine in words, and the line of ringer.toml that sets what is missing. */
const PARTS = /** @type {Record<string, [string, string]>} */ ({
  database: ["Database", "[database] url = \"postgres://...\""], queue: ["Queue", ""], recordings: ["Folder of recordings", ""], synthesizer: ["Voices", "[synthesizer] kind = \"kokoro\", model = \"...\""],
  recognizer: ["Recognizer of speech", "[recognizer] kind = \"whisper\"; ringer models add tiny.en"], language_model: ["Language model: judges, and words the callers", "[language_model] base_url = \"...\", model = \"...\", api_key = \"...\""], sip: ["SIP", "[sip] listen"],
});

/** @param {import("./app.js").Page} page */
export async function settingsPage(page) {
  page.title("Settings");
  const refusedToo = (/** @type {any} */ error) => { if (error.status === 403) return null; throw error; };
  const [health, models, key, engines, keys, hooks, agents] = await Promise.all([get("/health/deps").catch((error) => { if (error.status === 0) throw error; return null; }), maybe("/v1/models").catch(() => []), maybe("/v1/key").catch(() => null), get("/v1/internal/engines").catch(refusedToo),
    get("/v1/api-keys").catch(refusedToo), get("/v1/webhooks").catch(refusedToo), get("/v1/all-agents")]);
  const again = () => settingsPage(page);
  page.show(el("h1", {}, "Settings"), key ? el("p", {}, "This page uses the key ", words(key.name || key.id, 60), ", which may ", key.scope === "admin" ? "do everything" : key.scope === "write" ? "change things, but no keys" : "read", ".") : null,
    section("The engine", health ? engine(health, models || []) : el("p", { class: "empty" }, "The engine does not tell its state.")),
    section("Engines of the database", engines ? engineList(engines.engines) : el("p", { class: "empty" }, "Engines are shown to a key of scope admin, where no internal token is set.")),
    section("API keys", keys ? keyList(keys, again, page) : el("p", { class: "empty" }, "Keys are shown to a key of scope admin.")),
    section("Webhooks", hooks ? hookList(hooks.webhooks || [], agents, await schemas(), again, page) : el("p", { class: "empty" }, "Webhooks are shown to a key of scope write.")));
}

/**
 * @param {any} health
 * @param {any[]} models
 */
function engine(health, models) {
  const rows = Object.entries(health.deps).map(([name, part]) => {
    const isThere = part.status === "ok";
    return [(PARTS[name] || [name])[0], chip(isThere ? "yes" : part.status === "down" ? "failed" : "not set"), el("span", {}, words(part.detail || "", 160), name === "language_model" ? el("span", {}, " ", el("a", { href: "/judges" }, "report cards")) : ""), isThere ? "" : el("code", {}, (PARTS[name] || ["", ""])[1])];
  });
  const ear = models.find((one) => one.kind === "audio");
  const trunks = health.trunks || [];
  const kept = health.retention;
  const limit = (/** @type {number} */ most, /** @type {string} */ unit) => most ? most + " " + unit : "no limit";
  return el("div", {}, table("Parts of the engine", ["Part", "State", "About", "Line of ringer.toml"], [...rows,
    ["Model that judges sound", chip(ear ? "yes" : "not set"), ear ? words(ear.name + ": " + ear.model, 120) : "", ear ? "" : el("code", {}, "[audio_model] base_url = \"...\", model = \"...\"")],
    ...(kept ? [["Kept", chip(kept.results_days || kept.recordings_days || kept.disk_quota_mb ? "yes" : "not set"), "results " + limit(kept.results_days, "days") + ", recordings " + limit(kept.recordings_days, "days") + ", " + limit(kept.disk_quota_mb, "MB"),
      el("code", {}, "[retention] results_days = 90, recordings_days = 30, disk_quota_mb = 50000")]] : []),
    ["Trunks of telephone lines", chip(trunks.length ? "yes" : "not set"), "", trunks.length ? "" : el("code", {}, "[sip.trunks.NAME] host = \"...\", numbers = [\"+1...\"], allowed_prefixes = [\"+1\"]")]]),
  trunks.length ? table("Trunks", ["Trunk", "Registration", "Keep-alive"], trunks.map((/** @type {any} */ one) => [one.name, one.registration ? one.registration.state + (one.registration.error ? ": " + one.registration.error : "") : "none needed", one.keepalive ? one.keepalive.state : "off"])) : "");
}

/** @param {any[]} engines */
function engineList(engines) {
  return el("div", {}, table("Engines", ["Engine", "State", "Calls", "Version", "Address", "Since"], engines.map((one) => [el("span", {}, words(one.name, 60), one.answers ? " (this one)" : ""), chip(one.state), one.calls + " of " + one.capacity, one.version, words(one.address || "", 60), when(one.started_at)])),
  el("p", { class: "note" }, "Whoever runs them has one begin nothing new by ", el("code", {}, "ringer engines drain NAME"), "."));
}

/**
 * @param {any[]} keys
 * @param {() => Promise<void>} done
 * @param {import("./app.js").Page} page
 */
function keyList(keys, done, page) {
  const name = el("input", { id: "f-keyname", maxLength: 200 });
  const scope = el("select", { id: "f-scope" }, ["read", "write", "admin"].map((one) => el("option", {}, one)));
  const shown = el("p", { role: "status" });
  const make = async () => {
    const made = await post("/v1/api-keys", { scope: scope.value, name: name.value.trim() });
    await done();
    page.notice("The new key, shown this once: " + made.api_key);
  };
  const rows = keys.filter((one) => !one.revoked).map((one) => [words(one.name || "\u2013", 60), one.scope, el("code", {}, one.api_key), when(one.created_at), sure("Revoke", () => ask("DELETE", "/v1/api-keys/" + one.id).then(done), page)]);
  const hours = el("input", { id: "f-hours", type: "number", min: "1", max: "168", value: "24" });
  const link = async () => {
    const made = await post("/v1/page-links", { hours: Number(hours.value) || 24 });
    await done();
    page.notice("The link, good once until " + when(made.until) + ": " + made.address);
  };
  return el("div", {}, table("Keys", ["Name", "Scope", "Begins with", "Made", ""], rows), shown, el("details", { class: "more-fields" }, el("summary", {}, "New key"),
    form("Make a key", make, el("div", { class: "field" }, el("label", { for: "f-keyname" }, "Name"), name), el("div", { class: "field" }, el("label", { for: "f-scope" }, "Scope"), scope))),
  el("details", { class: "more-fields" }, el("summary", {}, "Link for a colleague"), form("Make a link", link, el("div", { class: "field" }, el("label", { for: "f-hours" }, "Good for hours"), hours, el("small", {}, "It opens this page once, with a key that may only read.")))));
}

/**
 * @param {any[]} hooks
 * @param {any[]} agents
 * @param {any} all
 * @param {() => Promise<void>} done
 * @param {import("./app.js").Page} page
 */
function hookList(hooks, agents, all, done, page) {
  const url = el("input", { id: "f-url", type: "url", required: true, placeholder: "address of your server" });
  const agent = el("select", { id: "f-hook-agent" }, el("option", { value: "" }, "all"), agents.map((one) => el("option", { value: String(one.id) }, String(one.name).slice(0, 60))));
  const boxes = all.EventType.enum.map((/** @type {string} */ type) => el("label", {}, el("input", { type: "checkbox", value: type, checked: type === "simulation_ended" }), " " + type.replace(/_/g, " ")));
  const make = async () => {
    const types = boxes.map((/** @type {any} */ box) => box.querySelector("input")).filter((/** @type {any} */ box) => box.checked).map((/** @type {any} */ box) => box.value);
    const made = await post("/v1/webhooks", { url: url.value.trim(), event_types: types, ...(agent.value ? { agent_ids: [Number(agent.value)] } : {}) });
    await done();
    page.notice("The key that signs its events, shown this once: " + made.signing_key);
  };
  const one = (/** @type {any} */ hook) => {
    const place = el("div");
    const look = async () => {
      const { deliveries } = await get("/v1/webhooks/" + hook.id + "/deliveries");
      place.replaceChildren(deliveries.length ? table("Deliveries", ["Event", "Attempt", "Status", "Error", "At"], deliveries.map((/** @type {any} */ sent) => [sent.event, sent.attempt, sent.status ?? "", words(sent.error || "", 120), when(sent.at)])) : el("p", { class: "empty" }, "Nothing was sent yet."));
    };
    const test = () => post("/v1/webhooks/" + hook.id + "/test").then((told) => { page.notice((told.delivered ? "The test was taken. " : "The test was not taken. ") + told.message); return look(); });
    return el("article", { class: "monitor" }, el("h3", {}, words(hook.url, 120)), el("p", { class: "chips" }, chip(hook.enabled ? "on" : "off"), words(hook.event_types.join(", ").replace(/_/g, " "), 200), hook.last_status ? "last answer " + hook.last_status : ""),
      el("p", { class: "downloads needs-write" }, el("button", { type: "button", onclick: () => test().catch(page.refused) }, "Test"), el("button", { type: "button", onclick: () => look().catch(page.refused) }, "Deliveries"),
        el("button", { type: "button", onclick: () => ask("PUT", "/v1/webhooks/" + hook.id, { body: { enabled: !hook.enabled } }).then(done).catch(page.refused) }, hook.enabled ? "Switch off" : "Switch on"), sure("Delete", () => ask("DELETE", "/v1/webhooks/" + hook.id).then(done), page)), place);
  };
  return el("div", {}, hooks.length ? hooks.map(one) : el("p", { class: "empty" }, "There is no webhook."), el("details", { class: "more-fields" }, el("summary", {}, "New webhook"),
    form("Add the webhook", make, el("div", { class: "field" }, el("label", { for: "f-url" }, "Address"), url), el("fieldset", {}, el("legend", {}, "Events"), boxes), el("div", { class: "field" }, el("label", { for: "f-hook-agent" }, "Agent"), agent))));
}
