import { el } from "./dom.js";
import { get } from "./api.js";

/** @type {Promise<any> | null} */
let asked = null;

/** The schemas of the API's own document, asked for once: fields, their ranges and descriptions come from there. */
export function schemas() {
  asked = asked || get("/openapi.json").then((document) => document.components.schemas);
  asked.catch(() => { asked = null; });
  return asked;
}

/**
 * A schema without references and without null.
 * @param {any} schema
 * @param {any} all
 * @returns {any}
 */
export function plain(schema, all) {
  if (schema.$ref) return { ...plain(all[schema.$ref.split("/").pop()], all), ...(schema.description ? { description: schema.description } : {}) };
  const some = (schema.anyOf || schema.oneOf || []).filter((/** @type {any} */ one) => one.type !== "null");
  if (some.length === 1) return { ...plain(some[0], all), ...(schema.description ? { description: schema.description } : {}) };
  const type = Array.isArray(schema.type) ? schema.type.find((/** @type {string} */ one) => one !== "null") : schema.type;
  return { ...schema, type: some.length ? "object" : type };
}

/** @param {string} name */
export function inWords(name) {
  const text = name.replace(/_/g, " ").replace(/^./, (first) => first.toUpperCase());
  return text.replace(/\b(sip|url|id|pii|api|sms|http|dtmf)\b/gi, (word) => word.toUpperCase());
}

/** Fields whose texts are long. */
const LONG = /^(intent|success_criteria|role_description|system_prompt|description|agent_description|hangup_instructions|original_transcript|custom_error_prompt)$/;

/**
 * @typedef {{ name: string, node: HTMLElement, control: any, read: () => any, fail: (text: string) => void }} Field
 */

/**
 * A field with its help and a place for its error.
 * @param {string} name
 * @param {any} schema without references
 * @param {any} value
 * @param {string} [label]
 * @returns {Field}
 */
export function field(name, schema, value, label) {
  const help = String(schema.description || "").replaceAll("\x60", "").replace(/; (null|absent|default|a create request)\b.*?(?=\. |\.$|$)/gi, "").replace(/ (Default:|A create request) .*$/, "");
  const id = "f-" + name;
  const about = { id, name, "aria-describedby": id + "-h " + id + "-e" };
  const isText = schema.type === "object" || schema.type === "array" || LONG.test(name);
  let control;
  if (schema.enum || schema.type === "boolean") {
    const options = schema.enum || ["true", "false"];
    const shown = (/** @type {string} */ one) => one === "true" ? "yes" : one === "false" ? "no" : one.replace(/_/g, " ");
    control = el("select", about, [["", "default"], ...options.map((/** @type {string} */ one) => [one, shown(one)])].map(([word, text]) => el("option", { value: word, selected: word === String(value ?? "") }, text)));
  } else if (isText) {
    const text = value === null || value === undefined ? "" : schema.type === "array" ? value.join("\n") : schema.type === "object" ? JSON.stringify(value, null, 1) : value;
    control = el("textarea", { ...about, rows: schema.type === "object" ? 4 : 3, value: text });
  } else {
    const isNumber = schema.type === "integer" || schema.type === "number";
    const isSecret = /password|secret|api_key|token$/.test(name);
    control = el("input", { ...about, type: isNumber ? "number" : isSecret ? "password" : "text", step: isNumber ? (schema.type === "integer" ? "1" : "any") : undefined,
      min: schema.minimum ?? (schema.exclusiveMinimum === 0 && schema.type === "integer" ? 1 : undefined), max: schema.maximum, maxLength: schema.maxLength, value: value ?? "",
      autocomplete: isSecret ? "new-password" : "off" });
  }
  const error = el("span", { class: "error", id: id + "-e", role: "alert" });
  const kind = schema.type === "array" ? " One a line." : schema.type === "object" ? " As JSON." : "";
  const node = el("div", { class: "field" }, el("label", { for: id }, label || inWords(name)), control, el("small", { id: id + "-h" }, help + kind), error);
  const read = () => {
    const text = control.value.trim();
    if (!text) return null;
    if (schema.type === "boolean") return text === "true";
    if (schema.type === "integer" || schema.type === "number") return Number(text);
    if (schema.type === "array") return text.split("\n").map((/** @type {string} */ one) => one.trim()).filter(Boolean);
    if (schema.type !== "object") return LONG.test(name) ? control.value : text;
    try { return JSON.parse(text); } catch { return text; }
  };
  const fail = (/** @type {string} */ text) => {
    error.textContent = text;
    if (text) control.setAttribute("aria-invalid", "true"); else control.removeAttribute("aria-invalid");
  };
  return { name, node, control, read, fail };
}

/** A group of fields of one resource. */
export class Fields {
  /**
   * @param {any} all
   * @param {string} schema name of the resource's schema
   * @param {any} old values as they are; {} for a new one
   */
  constructor(all, schema, old) {
    this.all = all;
    this.properties = all[schema].properties;
    this.old = old;
    /** @type {Map<string, Field>} */
    this.fields = new Map();
  }

  /**
   * Adds fields by name and returns their nodes; names that the API does not know are left out.
   * @param {(string | [string, string])[]} names each alone, or with its label
   */
  add(names) {
    return names.map((one) => {
      const [name, label] = Array.isArray(one) ? one : [one, undefined];
      if (!this.properties[name] || this.fields.has(name)) return null;
      const made = field(name, plain(this.properties[name], this.all), this.old[name], label);
      this.fields.set(name, made);
      return made.node;
    });
  }

  /** The values that were given, and null for those that were taken away. */
  values() {
    /** @type {Record<string, any>} */
    const values = {};
    for (const [name, one] of this.fields) {
      const value = one.read();
      const before = this.old[name];
      const isEmpty = before === null || before === undefined || before === "" || (Array.isArray(before) && !before.length);
      if (value !== null) values[name] = value;
      else if (!isEmpty) values[name] = Array.isArray(before) ? [] : null;
    }
    return values;
  }

  /**
   * Shows a refusal beside the fields that it names, and returns the words that have no place.
   * @param {any} error
   */
  fail(error) {
    const list = Array.isArray(error.details) ? error.details.map((/** @type {any} */ one) => [one.loc.filter((/** @type {any} */ part) => typeof part === "string"), one.msg]) : [[[], error.message]];
    const rest = [];
    let first = null;
    for (const one of this.fields.values()) one.fail("");
    for (const [loc, text] of list) {
      const named = [...this.fields.keys()].filter((name) => loc.includes(name) || new RegExp("\\b" + name + "\\b").test(loc.length ? "" : text));
      const found = named.sort((a, b) => b.length - a.length).map((name) => this.fields.get(name))[0];
      if (!found) { rest.push((loc.length ? loc.slice(-1) + ": " : "") + text); continue; }
      found.fail(text);
      const more = found.node.closest("details");
      if (more) more.open = true;
      first = first || found;
    }
    if (first) first.control.focus();
    return rest.join("; ");
  }
}

/**
 * Fields that are rarely needed, behind a click.
 * @param {string} title
 * @param {...any} nodes
 */
export function more(title, ...nodes) {
  return el("details", { class: "more-fields" }, el("summary", {}, title), ...nodes);
}

/**
 * A form that sends at most once at a time.
 * @param {string} text of its button
 * @param {() => Promise<any>} act
 * @param {...any} nodes
 */
export function form(text, act, ...nodes) {
  const send = el("button", { type: "submit", class: "big" }, text);
  const rest = el("p", { class: "error", role: "alert" });
  const made = el("form", { class: "start", noValidate: true }, ...nodes, rest, el("p", {}, send));
  made.onsubmit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    send.disabled = true;
    rest.textContent = "";
    try { await act(); } catch (error) { rest.textContent = /** @type {Error} */ (error).message; }
    send.disabled = false;
  };
  return made;
}

/**
 * A button that asks once more before it acts.
 * @param {string} text
 * @param {() => Promise<any>} act
 * @param {import("./app.js").Page} page
 */
export function sure(text, act, page) {
  let isAsked = false;
  const button = el("button", { type: "button", class: "danger" }, text);
  button.onclick = async () => {
    if (!isAsked) {
      isAsked = true;
      button.textContent = "Really " + text.toLowerCase() + "?";
      return;
    }
    button.disabled = true;
    await act().catch(page.refused);
    button.disabled = isAsked = false;
    button.textContent = text;
  };
  button.onblur = () => { isAsked = false; button.textContent = text; };
  return button;
}
