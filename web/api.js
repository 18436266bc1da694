import { el } from "./dom.js";

const STORED = "ringer-key";

/** A refusal of the server, with its status. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} text
   * @param {any} [details] places and texts, where the server names them
   * @param {boolean} [isAct] true where something was to be changed
   */
  constructor(status, text, details, isAct = false) {
    super(text);
    this.status = status;
    this.details = details;
    this.isAct = isAct;
  }
}

/** Tabs of this page tell each other the key; it is kept by each tab alone. */
const tabs = new BroadcastChannel("ringer-key");
/** Time that other tabs have to tell their key, in milliseconds. */
const TELL_MS = 400;

export const key = {
  get: () => sessionStorage.getItem(STORED) || "",
  /**
   * @param {string} text
   * @param {boolean} [isNew] whether other tabs are told
   */
  set: (text, isNew = true) => {
    if (text) sessionStorage.setItem(STORED, text); else sessionStorage.removeItem(STORED);
    if (text && isNew) tabs.postMessage({ key: text });
  },
};

/** Asks the other tabs for their key; done when one has told it, or after a moment. */
export async function askTabs() {
  tabs.postMessage({ ask: true });
  await new Promise((done) => {
    const end = () => { tabs.removeEventListener("message", heard); done(null); };
    const heard = (/** @type {MessageEvent} */ event) => {
      if (event.data.key && !key.get()) key.set(event.data.key, false);
      if (event.data.key) end();
    };
    tabs.addEventListener("message", heard);
    setTimeout(end, TELL_MS);
  });
}

/**
 * Hands over each key that another tab tells, and tells this one's to those that ask.
 * @param {(key: string) => void} take
 * @param {() => string} own key of this tab while it is good; empty where there is none
 */
export function onTabKey(take, own) {
  tabs.addEventListener("message", (event) => {
    if (event.data.key) take(event.data.key);
    else if (event.data.ask && own()) tabs.postMessage({ key: own() });
  });
}

/**
 * What went wrong, in words.
 * @param {any} body
 * @param {number} status
 */
function detail(body, status) {
  const found = body && body.detail;
  if (Array.isArray(found)) return found.map((one) => one.loc.slice(1).join(".") + ": " + one.msg).join("; ");
  return found || "The server answered " + status;
}

/**
 * @param {string} method
 * @param {string} path
 * @param {{ body?: any, headers?: Record<string, string>, signal?: AbortSignal }} [more]
 */
export async function ask(method, path, more = {}) {
  const headers = { ...more.headers };
  if (key.get()) headers["X-API-Key"] = key.get();
  if (more.body !== undefined) headers["Content-Type"] = "application/json";
  const body = more.body === undefined ? undefined : JSON.stringify(more.body);
  let response;
  try {
    response = await fetch(path, { method, headers, body, signal: more.signal });
  } catch (error) {
    if (/** @type {Error} */ (error).name === "AbortError") throw error;
    throw new Refused(0, "The server does not answer", undefined, method !== "GET");
  }
  if (!response.ok) {
    const text = await response.text();
    let body = null;
    try { body = JSON.parse(text); } catch { /* no JSON: its status says enough */ }
    throw new Refused(response.status, detail(body, response.status), body && /** @type {any} */ (body).detail);
  }
  return response;
}

/** @param {string} path */
export async function get(path) {
  return (await ask("GET", path)).json();
}

/** Longest call whose recording is fetched whole; of a longer one what is heard is fetched in parts. */
const WHOLE_MS = 300000;

/**
 * The sound of a call, as its player asks for it. A part comes from this server, where a whole file may lie elsewhere.
 * @param {string | number} id
 * @param {() => number} length of the call, in milliseconds
 */
export function recording(id, length) {
  return async (/** @type {number} */ from, /** @type {number} */ to) => {
    const isLong = length() > WHOLE_MS;
    const response = await ask("GET", "/v1/simulation-result/" + id + "/recording?format=wav&channel=both&from_ms=" + (isLong ? from + "&to_ms=" + to : "0"));
    const begin = response.headers.get("x-from-ms");
    const isPart = isLong && begin !== null;
    return { blob: await response.blob(), from: isPart ? Number(begin) : 0, to: isPart && to < length() ? to : null };
  };
}

/**
 * A part that may not be there: null then.
 * @param {string} path
 */
export async function maybe(path) {
  return get(path).catch((error) => { if (error.status === 404) return null; throw error; });
}

/**
 * @param {string} path
 * @param {any} [body]
 */
export async function post(path, body = {}) {
  return (await ask("POST", path, { body })).json();
}

/**
 * Hands each server-sent event to `take` until the stream's own end or `signal`. A connection that breaks is made anew, and goes on
 * where it broke off; `state` is told.
 * @param {string} path
 * @param {(event: string, data: any) => void} take
 * @param {AbortSignal} signal
 * @param {(connected: boolean) => void} state
 */
export async function follow(path, take, signal, state) {
  let last = "";
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 8000)) {
    try {
      const response = await ask("GET", path, { signal, headers: last ? { "Last-Event-ID": last } : {} });
      state(true);
      wait = 500;
      if (await read(response, take, (id) => { last = id; })) return;
    } catch (error) {
      if (signal.aborted) return;
      const status = error instanceof Refused ? error.status : 0;
      if (status >= 400 && status < 500 && status !== 429) throw error;
    }
    state(false);
    await new Promise((done) => setTimeout(done, wait));
  }
}

/**
 * Reads one stream; true when it came to its own end.
 * @param {Response} response
 * @param {(event: string, data: any) => void} take
 * @param {(id: string) => void} seen
 */
async function read(response, take, seen) {
  if (!response.body) return false;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return false;
    const parts = (text + value).split("\n\n");
    text = parts.pop() || "";
    for (const part of parts) {
      const field = (/** @type {string} */ name) => (part.match(new RegExp("^" + name + ": ?(.*)$", "m")) || [])[1];
      const id = field("id");
      if (field("event") === "end") {
        await reader.cancel();
        return true;
      }
      const data = field("data");
      if (data) take(field("event") || "", JSON.parse(data));
      if (id) seen(id);
    }
  }
}

/**
 * Saves what a path answers. The key is sent in a header, so that it stands in no address.
 * @param {string} path
 * @param {string} name
 */
export async function save(path, name) {
  const blob = await (await ask("GET", path)).blob();
  const url = URL.createObjectURL(blob);
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

/**
 * The outline of a recording.
 * @param {number | string} id
 * @param {number} zoom
 * @param {number} from
 * @param {number | null} to
 */
export async function outline(id, zoom, from, to) {
  const path = "/v1/simulation-result/" + id + "/peaks?format=i8&zoom=" + zoom + "&from_ms=" + from + (to === null ? "" : "&to_ms=" + to);
  const response = await ask("GET", path);
  const figure = (/** @type {string} */ name) => Number(response.headers.get(name));
  return { stepMs: figure("x-step-ms"), fromMs: figure("x-from-ms"), durationMs: figure("x-duration-ms"), levels: new Int8Array(await response.arrayBuffer()) };
}
