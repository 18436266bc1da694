import { el, isPressed, section } from "./dom.js";
import { ask, follow, get, maybe, outline, post, recording, save } from "./api.js";
import { againView } from "./again.js";
import { CallView, EARLY } from "./call.js";
import { PER_MS } from "./numbers.js";
import { reviewForm, reviewList } from "./review.js";

/** Newest turns, which may still change while a call goes on; of older ones those may whose words are not known yet. */
const OPEN_TURNS = 2;
/** Time after a turn within which its words may still come, in milliseconds. */
const WORDS_MS = 30000;
/** Least and longest time between two looks at a call that goes on, in milliseconds. */
const PAUSE_MS = 200;
const LONG_PAUSE_MS = 700;
/** Times as long as drawing takes that it rests: a long call leaves the page its time. */
const REST = 20;
/** Time between two looks at a call that waits, in milliseconds. */
const WAIT_MS = 2000;
/** Time between two drawings of the sound of a call that goes on, in milliseconds. */
const SOUND_MS = 1000;
/** States of a call that is not over, in their order. */
const ORDER = ["INITIALIZING", "QUEUED", "READY", "DISPATCHED", "RUNNING", "CONVERSATION_ENDED", "EVALUATING"];
const OVER = ["COMPLETED", "CANCELLED", "NO_CONNECTION", "NO_ANSWER", "CALL_DROPPED", "SYSTEM_ERROR", "OUT_OF_FUNDS"];

/** @param {string} status */
export function isOver(status) {
  return OVER.includes(status);
}

/** Events that are shown; of a call of an hour the others are a megabyte. */
const SHOWN = "call.connected,call.ended,barge_in,probe,dtmf_sent,dtmf_received,hold,unhold,session.answered,late_turn,rx_underrun,rx_overflow,tool_call," +
  "transfer,transferred,reprompt,silence_tool,answering_machine,line_tone,suspected_echo_event,fallback_speaker,scripted_response,agent_error,mark,language.taken";

/**
 * Names of the events that are asked for: those of the network only where something was lost.
 * @param {any} result
 */
function wanted(result) {
  const quality = result.engine_quality;
  return SHOWN + (quality && quality.lost_packets > 0 ? ",network" : "");
}

/** @param {string} id */
async function load(id) {
  const of = "/v1/simulation-result/" + id;
  const { simulation_result: result } = await get("/v1/retrieve-simulation-result/" + id);
  let missed = "";
  const [timeline, transcript, turns, ladder, mails, spans, reviews, agent, human] = await Promise.all([
    maybe(of + "/timeline?events=" + wanted(result)), maybe(of + "/transcript?words=false"), maybe(of + "/turns?words=false"), maybe(of + "/ladder?rtcp=false"), maybe(of + "/mails"), maybe(of + "/spans?attributes=false"),
    maybe(of + "/reviews"),
    maybe("/v1/agents/" + result.agent_id), result.digital_human_id ? maybe("/v1/digital-human/" + result.digital_human_id) : null,
  ].map((one) => Promise.resolve(one).catch((error) => { if (!error.status || error.status === 429 || error.status >= 500) missed = error.message; return null; })));
  const record = human && (human.digital_human || human);
  return { missed, result, timeline, transcript, turns, ladder, mails, spans, reviews, agent: agent && agent.name, caller: record && record.name, human: record, isWritten: Boolean(agent && (agent.mode === "TEXT" || agent.mode === "EMAIL")) };
}

/**
 * Asks for the turns that are new or may have changed, and lays them over those that are known.
 * @param {string} of path of the result
 * @param {any} known
 */
async function newTurns(of, known) {
  const before = (known && known.turns) || [];
  const since = before.length ? before[before.length - 1].to_sample - WORDS_MS * PER_MS : 0;
  const open = before.findIndex((/** @type {any} */ turn) => !turn.text && !turn.text_missing && turn.to_sample >= since);
  const from = Math.max(0, Math.min(before.length - OPEN_TURNS, open < 0 ? before.length : open));
  const fresh = await maybe(of + "/turns?words=false&from=" + from).catch(() => null);
  if (!fresh) return known;
  // A server that does not tell how many there are has sent them all.
  return fresh.total === undefined ? fresh : { ...fresh, turns: before.slice(0, from).concat(fresh.turns).slice(0, fresh.total) };
}

/**
 * The view of one call. While it goes on it moves.
 * @param {string} id
 * @param {import("./app.js").Page} page
 */
export async function callPage(id, page) {
  const of = "/v1/simulation-result/" + id;
  const data = await load(id);
  /** @type {import("./call.js").Source} */
  const source = {
    data,
    peaks: (/** @type {number} */ zoom, /** @type {number} */ from, /** @type {number | null} */ to) => outline(id, zoom, from, to),
    audio: async (from, to) => {
      if (!isOver(data.result.status)) throw new Error("The call can be heard when it is over");
      return recording(id, () => view.lanes.duration)(from, to);
    },
    ladder: () => get(of + "/ladder"),
    actions: () => (isOver(data.result.status) ? [] : [hangUp(id, data.result, page)]),
    tools: (/** @type {CallView} */ shown) => tools(id, shown, page),
  };
  /** @type {CallView} */
  const view = new CallView(source);
  page.key = (event) => view.player.key(event) || neighbour(event, data.result, page);
  page.title("Call " + id);
  page.show(el("p", {}, el("a", { href: "/runs/" + data.result.simulation_run_id }, "Run " + data.result.simulation_run_id)), view.node);
  if (data.missed) page.notice("A part of this call could not be loaded: " + data.missed + ". Reload the page to see it.");
  await view.start();
  page.after(() => view.close());
  if (!isOver(data.result.status)) void watch(id, view, page);
}

/**
 * N and P lead to the next and the previous call of the run.
 * @param {KeyboardEvent} event
 * @param {any} result
 * @param {import("./app.js").Page} page
 */
function neighbour(event, result, page) {
  const by = { n: 1, p: -1 }[event.key.toLowerCase()];
  if (!by || event.ctrlKey || event.metaKey || event.altKey) return false;
  void get("/v1/retrieve-simulation-results/" + result.simulation_run_id).then(({ simulation_results: list }) => {
    const ids = list.map((/** @type {any} */ one) => one.id).sort((/** @type {number} */ one, /** @type {number} */ other) => one - other);
    const next = ids[ids.indexOf(result.id) + by];
    if (next !== undefined) page.go("/results/" + next);
  }).catch(page.refused);
  return true;
}

/**
 * Follows a call that goes on, and shows it whole when it is over.
 * @param {string} id
 * @param {CallView} view
 * @param {import("./app.js").Page} page
 */
async function watch(id, view, page) {
  const of = "/v1/simulation-result/" + id;
  const stop = new AbortController();
  page.after(() => stop.abort());
  /** @type {Map<number, any>} */
  const events = new Map();
  let [asked, isAsking, hasNews, hasMail, rest] = [false, false, true, false, PAUSE_MS];
  // Sound comes later than words: nothing waits for it.
  let isDrawing = false;
  const draw = () => {
    if (isDrawing) return;
    isDrawing = true;
    void view.outline(true).finally(() => setTimeout(() => { isDrawing = false; }, SOUND_MS));
  };
  const refresh = async () => {
    if (isAsking) { asked = true; return; }
    isAsking = true;
    const began = performance.now();
    if (!EARLY.includes(view.data.result.status)) view.data.turns = await newTurns(of, view.data.turns);
    const list = [...events.values()].sort((one, other) => one.sample - other.sample || one.seq - other.seq);
    view.data.timeline = { events: list };
    if (hasNews) {
      hasNews = false;
      view.data.ladder = (await maybe(of + "/ladder?rtcp=false").catch(() => null)) || view.data.ladder;
    }
    if (hasMail) {
      hasMail = false;
      view.data.mails = (await maybe(of + "/mails").catch(() => null)) || view.data.mails;
    }
    if (!stop.signal.aborted && !isOver(view.data.result.status)) {
      const drawn = performance.now();
      // What is being clicked is not taken away.
      if (isPressed()) asked = true; else view.show(true);
      rest = Math.min(LONG_PAUSE_MS, Math.max(PAUSE_MS, REST * (performance.now() - drawn)));
      draw();
    }
    await new Promise((done) => setTimeout(done, Math.max(0, rest - (performance.now() - began))));
    isAsking = false;
    if (asked) { asked = false; void refresh(); }
  };
  // Why it waits, its start and its address are told by the record alone.
  const again = async () => {
    const fresh = await get("/v1/retrieve-simulation-result/" + id).catch(() => null);
    if (!fresh || stop.signal.aborted || isOver(view.data.result.status) || isOver(fresh.simulation_result.status)) return;
    view.data.result = fresh.simulation_result;
    void refresh();
  };
  const look = setInterval(() => { if (EARLY.includes(view.data.result.status) && !document.hidden) void again(); }, WAIT_MS);
  page.after(() => clearInterval(look));
  const take = (/** @type {string} */ name, /** @type {any} */ entry) => {
    if (name === "status") {
      // A new connection tells the states from the first one on; the record tells a new attempt.
      if (ORDER.indexOf(entry.status) >= ORDER.indexOf(view.data.result.status)) view.data.result = { ...view.data.result, status: entry.status };
      void again();
    } else if (entry.seq !== undefined) {
      if (entry.event === "call.dialing") { events.clear(); view.lanes.whole = null; }
      // Messages and keys that the signalling shows.
      if (/^(call\.|session\.|dtmf_|hold|unhold|transfer)/.test(entry.event)) hasNews = true;
      if (/^(message\.|email_)/.test(entry.event)) hasMail = true;
      events.set(entry.seq, entry);
    }
    void refresh();
  };
  try {
    await follow(of + "/events", take, stop.signal, (connected) => page.connected(connected));
  } catch (error) {
    page.refused(error);
    return;
  }
  clearInterval(look);
  if (stop.signal.aborted) return;
  try {
    Object.assign(view.data, await load(id));
  } catch (error) {
    page.refused(error);
    return;
  }
  view.show();
  view.player.forget();
  await view.outline();
}

/**
 * A button that ends a call, or takes one back that waits.
 * @param {string} id
 * @param {any} result
 * @param {import("./app.js").Page} page
 */
function hangUp(id, result, page) {
  const waits = EARLY.includes(result.status);
  const end = el("button", { type: "button", class: "danger", onclick: async () => {
    end.disabled = true;
    await post("/v1/simulation-result/" + id + "/hangup").catch((error) => { page.refused(error); end.disabled = false; });
  } }, waits ? "Cancel" : "Hang up");
  return el("p", { class: "needs-write" }, waits ? "This call waits. " : result.status === "RUNNING" ? "This call is going on. " : "This call is being judged. ", result.status === "RUNNING" || waits ? end : null);
}

/**
 * What can be done with a call that is over: review, downloads.
 * @param {string} id
 * @param {CallView} view
 * @param {import("./app.js").Page} page
 */
function tools(id, view, page) {
  const { result } = view.data;
  if (!isOver(result.status)) return [];
  const evaluated = (result.evaluations || []).length > 0;
  const again = async () => {
    Object.assign(view.data, await load(id));
    view.show();
  };
  return [
    againView(view.data, page),
    evaluated ? section("Review", reviewForm(id, result, again, page), reviewList(view.data.reviews, result)) : "",
    section("Download", el("p", { class: "downloads" }, downloads(id, view.data).map(([name, path, file]) =>
      saver(name, path, file, page)))),
  ];
}

/**
 * A button that saves a file; where the server has not kept it, that is said once.
 * @param {string} name
 * @param {string} path
 * @param {string} file
 * @param {import("./app.js").Page} page
 */
function saver(name, path, file, page) {
  const button = el("button", { type: "button", data: { path }, onclick: () => save(path, file).catch((error) => {
    if (error.status === 404) { button.disabled = true; button.textContent = name + " (not kept)"; } else page.refused(error);
  }) }, name);
  return button;
}

/**
 * What there is of a call that is over.
 * @param {string} id
 * @param {any} data
 * @returns {[string, string, string][]}
 */
function downloads(id, { result, mails, timeline, transcript, ladder }) {
  const of = "/v1/simulation-result/" + id;
  const call = "call-" + id;
  /** @type {(is: any, ...files: [string, string, string][]) => [string, string, string][]} */
  const where = (is, ...files) => (is ? files : []);
  const hasPackets = ladder && ladder.entries.some((/** @type {any} */ entry) => String(entry.protocol).startsWith("SIP"));
  return [["One HTML file", of + "/page", call + ".html"],
    ...where(result.audio_url, ["WAV", of + "/recording?from_ms=0", call + ".wav"], ["FLAC", of + "/recording?format=flac", call + ".flac"], ["Opus", of + "/recording?format=opus", call + ".opus"]),
    ...where(mails, ["Mails (JSON)", of + "/mails", call + "-mails.json"]), ...where(timeline, ["Timeline (JSON)", of + "/timeline", call + "-timeline.json"]),
    ...where(transcript, ["Transcript (JSON)", of + "/transcript", call + "-transcript.json"], ["Transcript (text)", of + "/transcript?format=text", call + ".txt"], ["Transcript (WebVTT)", of + "/transcript?format=vtt", call + ".vtt"]),
    ...where(hasPackets, ["Packets (pcapng)", of + "/capture", call + ".pcapng"]), ["Evidence (tar)", of + "/evidence", call + "-evidence.tar"]];
}
