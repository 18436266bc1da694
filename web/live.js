import { el, isPressed, section } from "./dom.js";
import { ask, follow, get, maybe, outline, post, save } from "./api.js";
import { CallView } from "./call.js";
import { reviewForm, reviewList } from "./review.js";

/** Longest call that is heard as it was recorded; a longer one is fetched in a smaller form. */
const WAV_MS = 300000;
/** Least time between two looks at a call that goes on, in milliseconds. */
const PAUSE_MS = 200;
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
  const [timeline, transcript, turns, ladder, mails, reviews, agent, human] = await Promise.all([
    maybe(of + "/timeline?events=" + wanted(result)), maybe(of + "/transcript?words=false"), maybe(of + "/turns?words=false"), maybe(of + "/ladder?rtcp=false"), maybe(of + "/mails"),
    maybe(of + "/reviews"),
    maybe("/v1/agents/" + result.agent_id), result.digital_human_id ? maybe("/v1/digital-human/" + result.digital_human_id) : null,
  ].map((one) => Promise.resolve(one).catch(() => null)));
  return { result, timeline, transcript, turns, ladder, mails, reviews, agent: agent && agent.name, caller: human && human.digital_human && human.digital_human.name };
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
    audio: async (/** @type {string} */ track) => {
      if (!isOver(data.result.status)) throw new Error("The call can be heard when it is over");
      const format = (view.lanes.duration > WAV_MS ? "opus" : "wav");
      return (await ask("GET", of + "/recording?format=" + format + "&channel=" + track)).blob();
    },
    ladder: () => get(of + "/ladder"),
    actions: () => (isOver(data.result.status) ? [] : [hangUp(id, page)]),
    tools: (/** @type {CallView} */ shown) => tools(id, shown, page),
  };
  /** @type {CallView} */
  const view = new CallView(source);
  page.key = (event) => view.player.key(event);
  page.title("Call " + id);
  page.show(el("p", {}, el("a", { href: "/runs/" + data.result.simulation_run_id }, "Run " + data.result.simulation_run_id)), view.node);
  await view.start();
  page.after(() => view.player.close());
  if (!isOver(data.result.status)) void watch(id, view, page);
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
  let [asked, isAsking, hasNews, hasMail] = [false, false, true, false];
  // Sound comes later than words: nothing waits for it.
  let isDrawing = false;
  const draw = () => {
    if (isDrawing) return;
    isDrawing = true;
    void view.outline().finally(() => { isDrawing = false; });
  };
  const refresh = async () => {
    if (isAsking) { asked = true; return; }
    isAsking = true;
    const began = performance.now();
    view.data.turns = (await maybe(of + "/turns?words=false").catch(() => null)) || view.data.turns;
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
      // What is being clicked is not taken away.
      if (isPressed()) asked = true; else view.show(true);
      draw();
    }
    await new Promise((done) => setTimeout(done, Math.max(0, PAUSE_MS - (performance.now() - began))));
    isAsking = false;
    if (asked) { asked = false; void refresh(); }
  };
  const take = (/** @type {string} */ name, /** @type {any} */ entry) => {
    if (name === "status") {
      view.data.result.status = entry.status;
    } else if (entry.seq !== undefined) {
      if (entry.event === "call.dialing") events.clear();
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
 * @param {string} id
 * @param {import("./app.js").Page} page
 */
function hangUp(id, page) {
  const end = el("button", { type: "button", class: "danger", onclick: async () => {
    end.disabled = true;
    await post("/v1/simulation-result/" + id + "/hangup").catch((error) => { page.refused(error); end.disabled = false; });
  } }, "Hang up");
  return el("p", {}, "This call is going on. ", end);
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
    evaluated ? section("Review", reviewForm(id, result, again, page), reviewList(view.data.reviews, result)) : "",
    section("Download", el("p", { class: "downloads" }, downloads(id, view.data).map(([name, path, file]) =>
      el("button", { type: "button", data: { path }, onclick: () => save(path, file).catch(page.refused) }, name)))),
  ];
}

/**
 * @param {string} id
 * @param {any} data
 * @returns {[string, string, string][]}
 */
function downloads(id, { result, mails }) {
  const of = "/v1/simulation-result/" + id;
  const call = "call-" + id;
  /** @type {[string, string, string][]} */
  const sound = result.audio_url ? [["WAV", of + "/recording", call + ".wav"], ["FLAC", of + "/recording?format=flac", call + ".flac"],
    ["Opus", of + "/recording?format=opus", call + ".opus"]] : [];
  /** @type {[string, string, string][]} */
  const letters = mails ? [["Mails (JSON)", of + "/mails", call + "-mails.json"]] : [];
  return [["One HTML file", of + "/page", call + ".html"], ...sound, ...letters, ["Timeline (JSON)", of + "/timeline", call + "-timeline.json"],
    ["Transcript (JSON)", of + "/transcript", call + "-transcript.json"], ["Transcript (text)", of + "/transcript?format=text", call + ".txt"],
    ["Transcript (WebVTT)", of + "/transcript?format=vtt", call + ".vtt"], ["Packets (pcapng)", of + "/capture", call + ".pcapng"],
    ["Evidence (tar)", of + "/evidence", call + "-evidence.tar"]];
}
