// @ts-nocheck
import { askTabs, key as kept } from "./api.js";
// The description of the API as a page. Everything shown comes from /openapi.json of this server; text is set as text, never as markup.
const $ = (id) => document.getElementById(id);
let spec = null;

function el(name, props = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (key === "class") node.className = value; else node[key] = value;
  }
  node.append(...children);
  return node;
}

function resolve(schema) {
  let steps = 0;
  while (schema && schema.$ref && steps++ < 8) schema = spec.components.schemas[schema.$ref.split("/").pop()];
  return schema === true || !schema ? {} : schema;
}

const isNull = (schema) => schema.type === "null";

function typeOf(schema, depth = 0) {
  const name = schema && schema.$ref && schema.$ref.split("/").pop();
  schema = resolve(schema);
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const union = schema.anyOf || schema.oneOf;
  if (union) {
    const parts = union.map((part) => (depth > 3 ? name || "any" : typeOf(part, depth + 1)));
    return parts.join(" | ");
  }
  const types = [].concat(schema.type || (schema.properties ? "object" : "any"));
  return types.map((type) => {
    if (type === "array") return (depth > 3 ? "any" : typeOf(schema.items, depth + 1)) + "[]";
    if (type === "object" && name) return name;
    return schema.format && type === "string" ? schema.format : type;
  }).join(" | ");
}

function limits(schema) {
  schema = resolve(schema);
  const words = { minimum: ">=", exclusiveMinimum: ">", maximum: "<=", exclusiveMaximum: "<", minLength: "length >=",
    maxLength: "length <=", minItems: "items >=", maxItems: "items <=", pattern: "pattern" };
  const parts = Object.keys(words).filter((key) => key in schema).map((key) => words[key] + " " + schema[key]);
  if (schema.default !== undefined) parts.push("default " + JSON.stringify(schema.default));
  return parts.join(", ");
}

function fieldRows(schema, rows = [], prefix = "", depth = 0) {
  schema = resolve(schema);
  for (const [name, property] of Object.entries(schema.properties || {})) {
    const required = (schema.required || []).includes(name);
    const shown = resolve(property);
    rows.push(el("tr", {},
      el("td", {}, el("code", {}, prefix + name), required ? el("span", { class: "need" }, " *") : ""),
      el("td", {}, el("code", {}, typeOf(property))),
      el("td", {}, [property.description || shown.description || "", limits(property)].filter(Boolean).join(" - "))));
    const union = (shown.anyOf || shown.oneOf || []).filter((part) => !isNull(part));
    const inner = union.length === 1 ? resolve(union[0]) : shown;
    const item = inner.type === "array" || (inner.type || []).includes("array") ? resolve(inner.items) : inner;
    if (item.properties && depth < 2) {
      fieldRows(item, rows, prefix + name + (item === inner ? "." : "[]."), depth + 1);
    }
  }
  return rows;
}

function table(schema) {
  const top = resolve(schema);
  const union = (top.anyOf || top.oneOf || []).filter((part) => !isNull(part));
  const rows = fieldRows(union.length === 1 ? union[0] : top);
  return rows.length ? el("table", {}, el("tbody", {}, ...rows)) : el("code", {}, typeOf(schema));
}

function example(schema, depth = 0) {
  schema = resolve(schema);
  const union = (schema.anyOf || schema.oneOf || []).filter((part) => !isNull(part));
  if (union.length) return example(union[0], depth);
  if (schema.default !== undefined && schema.default !== null) return schema.default;
  if ("const" in schema) return schema.const;
  if (schema.enum) return schema.enum[0];
  const type = [].concat(schema.type || (schema.properties ? "object" : "null"))[0];
  if (type === "object") {
    const required = depth > 4 ? [] : schema.required || [];
    return Object.fromEntries(required.map((name) => [name, example((schema.properties || {})[name], depth + 1)]));
  }
  return { string: "", integer: schema.minimum || 0, number: schema.minimum || 0, boolean: false, array: [] }[type] ?? null;
}

function tryIt(method, path, operation) {
  const form = el("form");
  const inputs = [];
  for (const parameter of operation.parameters || []) {
    const input = el("input", { name: parameter.name, placeholder: parameter.in });
    inputs.push([parameter, input]);
    form.append(el("div", {}, el("label", {}, el("code", {}, parameter.name + " "), input)));
  }
  const media = operation.requestBody && operation.requestBody.content["application/json"];
  const body = media && el("textarea", { value: JSON.stringify(example(media.schema), null, 2), spellcheck: false });
  if (body) form.append(body);
  const output = el("pre", { hidden: true });
  form.append(el("p", {}, el("button", { type: "submit" }, "Send")), output);
  form.onsubmit = async (event) => {
    event.preventDefault();
    let url = path;
    const query = new URLSearchParams();
    const headers = {};
    for (const [parameter, input] of inputs) {
      if (parameter.in === "path") url = url.replace("{" + parameter.name + "}", encodeURIComponent(input.value));
      else if (input.value && parameter.in === "query") query.set(parameter.name, input.value);
      else if (input.value) headers[parameter.name] = input.value;
    }
    if ($("key").value) headers["X-API-Key"] = $("key").value;
    if (body) headers["Content-Type"] = "application/json";
    if (query.size) url += "?" + query;
    output.hidden = false;
    output.textContent = "...";
    try {
      const response = await fetch(url, { method: method.toUpperCase(), headers, body: body ? body.value : undefined });
      const type = response.headers.get("content-type") || "";
      let text = type.startsWith("audio/") ? "(" + (await response.blob()).size + " bytes of audio)" : await response.text();
      try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* not JSON: shown as it is */ }
      output.textContent = response.status + " " + response.statusText + "\n\n" + text;
    } catch (error) {
      output.textContent = String(error);
    }
  };
  return form;
}

function operationBody(method, path, operation) {
  const box = el("div");
  const parameters = (operation.parameters || []).map((parameter) => el("tr", {},
    el("td", {}, el("code", {}, parameter.name), parameter.required ? el("span", { class: "need" }, " *") : ""),
    el("td", {}, parameter.in), el("td", {}, el("code", {}, typeOf(parameter.schema))),
    el("td", {}, [parameter.description || "", limits(parameter.schema)].filter(Boolean).join(" - "))));
  if (parameters.length) box.append(el("h4", {}, "Parameters"), el("table", {}, el("tbody", {}, ...parameters)));
  const media = operation.requestBody && operation.requestBody.content["application/json"];
  if (media) box.append(el("h4", {}, "Body"), table(media.schema));
  for (const [status, answer] of Object.entries(operation.responses)) {
    const [type, content] = Object.entries(answer.content || {})[0] || [];
    if (status >= 400) continue;
    box.append(el("h4", {}, "Answer " + status + (type && type !== "application/json" ? " " + type : "")));
    box.append(content ? table(content.schema) : el("p", {}, "No body."));
  }
  const refused = Object.entries(operation.responses).filter(([status]) => status >= 400);
  if (refused.length) box.append(el("p", {}, refused.map(([status, answer]) => status + " " + answer.description).join("; ")));
  box.append(el("h4", {}, "Try it"), tryIt(method, path, operation));
  return box;
}

function show() {
  const wanted = $("find").value.toLowerCase();
  const groups = new Map();
  for (const [path, item] of Object.entries(spec.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const text = (method + " " + path + " " + (operation.summary || "")).toLowerCase();
      if (!text.includes(wanted)) continue;
      const tag = (operation.tags || ["other"])[0];
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push([method, path, operation]);
    }
  }
  $("list").replaceChildren();
  $("tags").replaceChildren();
  for (const [tag, operations] of groups) {
    $("tags").append(el("a", { href: "#" + encodeURIComponent(tag) }, tag + " (" + operations.length + ")"));
    $("list").append(el("h2", { id: tag }, tag));
    for (const [method, path, operation] of operations) {
      const box = el("details", { class: "op" + (operation.deprecated ? " old" : "") },
        el("summary", {}, el("span", { class: "method" }, method.toUpperCase()), el("span", { class: "path" }, path),
          el("span", { class: "about" }, operation.summary || "")));
      box.addEventListener("toggle", () => {
        if (box.open && box.children.length === 1) box.append(operationBody(method, path, operation));
      });
      $("list").append(box);
    }
  }
}

// --- a call from the page: the same requests as by hand, and the result's own events ---

async function ask(method, path, body) {
  const headers = { "X-API-Key": $("key").value };
  if (body) headers["Content-Type"] = "application/json";
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  if (!response.ok) throw new Error(method + " " + path + ": " + response.status + " " + await response.text());
  return response;
}

const post = async (path, body) => (await ask("POST", "/v1/" + path, body)).json();

// Hands each event of a stream (name, data) to `take` until the stream's own end.
async function follow(path, take) {
  const reader = (await ask("GET", path)).body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = "";;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (text + value).split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const field = (name) => (part.match(new RegExp("^" + name + ": ?(.*)$", "m")) || [])[1];
      if (field("event") === "end") return reader.cancel();
      if (field("data")) take(field("event"), JSON.parse(field("data")));
    }
  }
}

function heard(event, entry) {
  if (event === "status") $("state").textContent = entry.status;
  const data = entry.data || {};
  const words = event === "turn.ended" ? data.text || "(no words)" : event === "speech.ended" && entry.side === "dh" ? data.text
    : event === "barge_in" ? "cuts in" : event === "dtmf_sent" || event === "dtmf_received" ? "[DTMF " + data.digits + "]" : null;
  if (!words) return;
  const who = event === "turn.ended" || entry.side === "agent" ? "agent" : "caller";
  const at = (entry.offset_ms / 1000).toFixed(2) + " s";
  $("heard").append(el("tr", {}, el("td", {}, at), el("td", {}, who), el("td", {}, words)));
}

async function call(sip_uri, intent) {
  const name = "Called from the page";
  const agent = await post("add-agent", { name, type: "INBOUND", connection_type: "SIP", sip_uri });
  const simulation = await post("create-simulation", { agent_id: String(agent.agent_id), name });
  const digital_human = { name, intent, language: "en" };
  await post("create-digital-human", { digital_human, simulation_ids: [simulation.simulation_id] });
  const run = await post("queue-simulation-run", { simulation_id: String(simulation.simulation_id) });
  const id = run.simulation_result_ids[0];
  $("made").textContent = "agent " + agent.agent_id + ", simulation " + simulation.simulation_id + ", result " + id;
  await follow("/v1/simulation-result/" + id + "/events", heard);
  const result = (await (await ask("GET", "/v1/retrieve-simulation-result/" + id)).json()).simulation_result;
  const why = result.error_message ? ": " + result.error_message : "";
  const latency = (result.latency || []).map((s) => Math.round(1000 * s) + " ms").join(", ");
  $("state").textContent = result.status + why + (latency ? "; latency of the agent's turns " + latency : "");
  if (result.status !== "COMPLETED") return;
  const sound = await (await ask("GET", "/v1/simulation-result/" + id + "/recording")).blob();
  $("sound").replaceChildren(el("audio", { controls: true, src: URL.createObjectURL(sound) }));
}

$("caller").onsubmit = async (event) => {
  event.preventDefault();
  const form = event.target;
  const button = form.querySelector("button");
  for (const id of ["heard", "sound", "made"]) $(id).replaceChildren();
  $("state").textContent = "...";
  button.disabled = true;
  try {
    await call(form.sip_uri.value, form.intent.value);
  } catch (error) {
    $("state").textContent = error.message;
  }
  button.disabled = false;
};

$("find").oninput = () => spec && show();
// The key of the page, where this tab or another one has it.
const fillKey = () => { if (!$("key").value) $("key").value = kept.get(); };
fillKey();
if (!kept.get()) void askTabs().then(fillKey);
fetch("/openapi.json").then((response) => response.json()).then((document) => {
  spec = document;
  $("title").textContent = spec.info.title + " API " + spec.info.version;
  $("about").textContent = spec.info.description;
  show();
}).catch((error) => { $("about").textContent = String(error); });
