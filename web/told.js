// Codes of the API in words, and what is to be done. One word for each result, the same as in every report.
import { el } from "./dom.js";

const STATES = /** @type {Record<string, string>} */ ({ INITIALIZING: "queued", QUEUED: "queued", READY: "starting", DISPATCHED: "starting", RUNNING: "running", CONVERSATION_ENDED: "being judged", EVALUATING: "being judged", CANCELLED: "cancelled" });
/** Words of the verdicts as the API has them, and as they are shown. */
const VERDICTS = /** @type {Record<string, string>} */ ({ failed: "failed", unreachable: "unreachable", unknown: "not judged", passed: "passed", cancelled: "cancelled" });

/**
 * The one word of a result: its verdict, or how far it is.
 * @param {any} result record, or entry of a list
 */
export function wordOf(result) {
  const verdict = result.verdict && result.verdict.word ? result.verdict.word : result.verdict;
  const word = verdict || (result.outcome === "not_evaluated" ? "unknown" : result.outcome);
  return VERDICTS[word] || word || STATES[result.status] || String(result.status || "").replace(/_/g, " ").toLowerCase();
}

/**
 * The one word of a run. It has passed only where nothing is left unjudged.
 * @param {any} run
 */
export function runWord(run) {
  if (run.status !== "COMPLETED") return "running";
  const counts = countsOf(run);
  if (run.outcome === "passed" && counts["not judged"]) return "warning";
  if (run.outcome === "failed" && !counts.failed && counts.unreachable) return "unreachable";
  if (run.outcome) return run.outcome;
  return counts["not judged"] ? "not judged" : counts.cancelled ? "cancelled" : "completed";
}

/**
 * Numbers of the results of a run by their words, those that need somebody first; words without a result are left out.
 * @param {any} run
 * @returns {Record<string, number>}
 */
export function countsOf(run) {
  const given = run.verdicts || { failed: run.tests_failed, unknown: run.tests_not_evaluated, passed: run.tests_passed, cancelled: run.tests_cancelled };
  const counts = Object.entries(VERDICTS).map(([word, shown]) => [shown, given[word] || 0]);
  return Object.fromEntries([...counts, ["going on", run.total_tests - run.tests_completed]].filter(([, count]) => count > 0));
}

/**
 * The same of a list of results.
 * @param {any[]} results
 * @returns {Record<string, number>}
 */
export function countsIn(results) {
  /** @type {Record<string, number>} */
  const counts = {};
  for (const shown of [...Object.values(VERDICTS), "going on"]) {
    const count = results.filter((one) => groupOf(one) === shown).length;
    if (count) counts[shown] = count;
  }
  return counts;
}

/** @param {any} result */
export function groupOf(result) {
  const word = wordOf(result);
  return Object.values(VERDICTS).includes(word) ? word : "going on";
}

/**
 * A word on a coloured ground. The colour repeats what the word says.
 * @param {string | null | undefined} word
 * @param {string} [more] text before it
 */
export function chip(word, more = "") {
  const text = String(word ?? "").replace(/_/g, " ").toLowerCase();
  const good = ["passed", "pass", "yes", "true", "up", "on", "proven"].includes(text);
  const bad = ["failed", "unreachable", "fail", "false", "no", "down", "lost", "incompleted"].includes(text);
  const odd = ["warning", "not judged", "draining", "unproven", "no card"].includes(text);
  return el("span", { class: "chip " + (good ? "good" : bad ? "bad" : odd ? "odd" : "plain") }, more + (text || "\u2013"));
}

/** @param {Record<string, number>} counts */
export function tally(counts) {
  const list = Object.entries(counts);
  return el("span", { class: "tally" }, list.length ? list.map(([word, count]) => chip(word, count + " ")) : "\u2013");
}

const OWNERS = /** @type {Record<string, string>} */ ({ agent_owner: "whoever runs the agent", simulated_caller: "whoever wrote the simulated caller", engine: "whoever runs this engine", network: "whoever runs the network between both", provider: "the provider (line, platform, speech or language)" });

/** @param {string | null | undefined} owner */
export function ownerWords(owner) {
  return owner ? OWNERS[owner] || owner.replace(/_/g, " ") : "";
}

/** Codes: what happened, and what to do. */
const CODES = /** @type {Record<string, [string, string]>} */ ({
  WEBSOCKET_AUTH_FAILED: ["The agent's WebSocket refused the credentials", "Set the headers or the token of the agent"],
  SIP_AUTH_FAILED: ["The agent refused the SIP credentials", "Set user name and password of the agent"],
  NO_P2_AGENT_NAME: ["The agent has no name of a pipeline", "Set P2_agent_name of the agent"],
  NO_CONNECTION_TYPE: ["The agent has no way to be reached", "Choose how it is connected"],
  CONNECTION_NOT_SUPPORTED: ["This build does not speak the agent's kind of connection", "Choose another kind, or another build"],
  DIAL_PREFIX_REFUSED: ["The trunk may not dial this number", "Add its prefix to allowed_prefixes of the trunk"],
  DIAL_RATE_REFUSED: ["The trunk has started as many calls as it may in this time", "Wait, or raise the rate of the trunk"],
  DIAL_CALLS_REFUSED: ["The trunk has as many calls as it may have", "Wait, or raise its limit of calls"],
  DIAL_MINUTES_REFUSED: ["The minutes of the trunk are used up", "Wait for the next day, or raise its limit of minutes"],
  P2_CONNECTION_FAILED: ["The pipeline was not reached", "Look at the state of the platform, then run it again"],
  WEBSOCKET_CONNECT_FAILED: ["The agent's WebSocket was not reached", "Start the agent, and check its address"],
  BRIDGE_PRE_START_FAILED: ["The bridge to the agent could not be prepared", "Look at the log of the engine"],
  UNUSABLE_CALLER_ID: ["The number of the caller cannot be used", "Give the caller a number of the trunk"],
  INVALID_PHONE_NUMBER: ["The agent's telephone number is not valid", "Correct the number"],
  INVALID_SIP_DESTINATION: ["The SIP address is not known there", "Correct the address"],
  INVALID_EMAIL_ADDRESS: ["The e-mail address is not valid", "Correct the address"],
  SIP_DIAL_FAILED: ["The call could not be set up", "Start the agent, and check address, port and firewall"],
  SIP_NOT_CONFIGURED: ["SIP is not set up here", "Set [sip] in ringer.toml"],
  SMS_NOT_CONFIGURED: ["Text messages are not set up here", "Set [sms] in ringer.toml"],
  EMAIL_NOT_CONFIGURED: ["E-mail is not set up here", "Set [email] in ringer.toml"],
  CUSTOMER_CONCURRENCY_LIMIT: ["The platform has as many calls as it allows", "Run fewer at once, or raise its limit"],
  DYNAMIC_ENDPOINT_FAILED: ["The address of the agent could not be asked for", "Check the server that tells it"],
  OUTBOUND_TRIGGER_FAILED: ["The agent could not be told to call", "Check the webhook that makes it call"],
  HTTP_WEBHOOK_FAILED: ["The agent's webhook failed", "Check the address, and the log of the agent"],
  SMS_SEND_FAILED: ["A text message was not sent", "Look at the account of the provider"],
  EMAIL_SEND_FAILED: ["A mail was not sent", "Look at the relay and its log"],
  ALWAYS_ON_PHONE_IN_USE: ["The number of the caller is in use", "Run it again later, or give the caller another number"],
  SIP_TRUNK_RECYCLED: ["The number went to somebody else before the call", "Run it again"],
  NO_ANSWER: ["Nobody answered", "Check that the agent runs and takes calls"],
  CALL_REJECTED: ["The agent refused the call, or was busy", "Check its limit of calls"],
  AGENT_HUNG_UP_BEFORE_SPEECH: ["The agent hung up before it spoke", "Look at the log of the agent at this time"],
  INBOUND_NO_INCOMING_CALL: ["The agent did not call", "Check what makes it call, and the number that it was given"],
  BRIDGE_DISCONNECTED: ["The platform broke the connection", "Look at the state of the platform, then run it again"],
  MEDIA_TIMEOUT: ["No more sound came", "Check the network, and whether the agent still ran"],
  INSUFFICIENT_BALANCE: ["The minutes are used up", "Raise the limit of minutes"],
  CUSTOM_NOISE_FAILED: ["The noise of the caller could not be fetched", "Check its address"],
  LANGUAGE_MODEL_FAILED: ["The language model failed", "Check [language_model] and its account"],
  SYNTHESIZER_FAILED: ["The voice of the caller failed", "Check [synthesizer] and the log of the engine"],
  RECOGNIZER_FAILED: ["The recognizer failed", "Check [recognizer] and the log of the engine"],
  RECORDING_FAILED: ["The recording could not be written", "Check the space and the rights of the data folder"],
  EVALUATION_TIMEOUT: ["The judgement took too long", "Evaluate it again"],
  ENGINE_RESTARTED: ["The engine was started anew during the call", "Run it again"],
  RESULT_NOT_STORED: ["The result could not be stored", "Check the database"],
  ENGINE_SHUTDOWN: ["The engine was stopped during the call", "Run it again"],
  INTERNAL_ERROR: ["The engine made an error", "Report it with the evidence of the call"],
});
/** Ends of the codes of platforms, P1 to P12. */
const PLATFORM_CODES = /** @type {Record<string, [string, string]>} */ ({
  AUTH_FAILED: ["refused the credentials", "Set its key under integrations"], ADAPTER_NOT_CONFIGURED: ["has no protocol here", "Set [adapters.P] in ringer.toml"],
  INTEGRATION_DECRYPT_FAILED: ["has a key that cannot be read", "Enter its key again"], BRIDGE_CONNECT_FAILED: ["was not reached", "Look at its state, then run it again"],
  SESSION_SETUP_FAILED: ["made no session", "Look at its state, then run it again"], AGENT_ERROR: ["told of an error of the agent", "Look at its log"],
  AGENT_START_FAILED: ["did not start the agent", "Look at its log"], MONITORING_ERROR: ["could not be watched", "Look at its state, then run it again"],
});

/**
 * A code in words, and what to do; a code that is not known stands as it is.
 * @param {string} code
 * @returns {[string, string]}
 */
export function codeWords(code) {
  if (CODES[code]) return CODES[code];
  const [, lacks, place, end] = /^(MISSING_)?(P\d+)_(\w+)$/.exec(code) || [];
  if (lacks) return ["The agent lacks " + end.toLowerCase().replace(/_/g, " ") + " of platform " + place, "Set it"];
  if (place && PLATFORM_CODES[end]) return ["Platform " + place + " " + PLATFORM_CODES[end][0], PLATFORM_CODES[end][1]];
  return [code.replace(/_/g, " ").toLowerCase(), ""];
}

/** What to do about a verdict that no error code explains. */
const ADVICE = /** @type {Record<string, string>} */ ({
  not_evaluated: "Give the caller expectations; success in words is judged where [language_model] is set", credentials: "Set the credentials of the agent", silent: "Look at the log of the agent: it said nothing where it could answer",
  kept_floor: "Let the agent stop when it has said enough", rate_mismatch: "Correct the rate that the agent announces or sends", expectation: "The failed expectations stand under Why", tool_calls: "The expected tool calls stand under Why",
});

/** @param {any} verdict */
export function adviceOn(verdict) {
  return (verdict && ADVICE[verdict.code]) || "";
}

/** Faults of this side: what it was, and what to do. */
const FAULTS = /** @type {Record<string, [string, string]>} */ ({
  recognizer_late: ["Words were recognized too late", "Run fewer calls at once, or choose a smaller model"], recognizer_busy: ["The recognizer had too much to do", "Run fewer calls at once"],
  recognizer_failed: ["The recognizer failed", "Look at the log of the engine"], speech_unclear: ["Words of the agent were not clear enough", "Choose a larger model of speech"],
  model_failed: ["The language model failed", "Check [language_model] and its account"], synthesizer_failed: ["The voice of the caller failed", "Check [synthesizer]"],
  voice_substituted: ["Another voice spoke than was asked for", "Install the voice, or choose another"], pacing: ["Sound was not sent in time", "Run fewer calls at once on this machine"],
  recording: ["The recording has gaps", "Run fewer calls at once, or a faster disk"], rate_mismatch: ["The agent's sound has another rate than was agreed on", "Correct the rate that the agent announces or sends"],
  report_missing: ["The platform's report on the tool calls did not come", "Check its webhooks"],
});

/**
 * @param {string} code
 * @returns {[string, string]}
 */
export function faultWords(code) {
  return FAULTS[code] || [code.replace(/_/g, " "), ""];
}

const ENDS = /** @type {Record<string, string>} */ ({
  dh_end_call: "the Digital Human hung up", hangup_phrase: "the phrase was said that ends it", silence_timeout: "both were silent too long", inactivity_timeout: "nobody spoke or pressed a key", max_duration: "its longest time was over",
  max_turns: "its most turns were taken", agent_hangup: "the agent hung up", transfer: "the agent transferred it", api_hangup: "somebody hung up here", usage_limit: "the minutes are used up", playback_end: "the last step was done",
  rejected: "it was refused", no_answer: "nobody answered", dial_failed: "it could not be set up", media_timeout: "no more sound came", session_expired: "the session was not refreshed", connection_lost: "the connection broke", cancelled: "it was cancelled",
  shutdown: "the engine was stopped", fault: "the engine failed",
});

/** @param {string | null | undefined} end */
export function endWords(end) {
  return end ? ENDS[end] || end.replace(/_/g, " ") : "";
}

const WAITS = /** @type {Record<string, string>} */ ({
  max_concurrent: "a place among the calls that its scenario has at once", sequential: "its turn, because the run makes one call after the other", max_calls: "a place among the calls of this engine (limits.max_calls)",
  start_rate: "its turn, because the engine starts only so many calls a second (limits.start_rate_per_s)", address_in_use: "an address that another call uses", journey_step: "the step before it", journey_wait: "the end of the pause after the step before it",
  retry: "its next attempt", workspace_limit: "a place among the calls of the organization", model_budget: "the budget of the language model",
});

/**
 * Why a result waits, in words.
 * @param {any} result
 */
export function waitWords(result) {
  if (result.queue_reason_text) return "It waits: " + result.queue_reason_text;
  return result.queue_reason ? "It waits for " + (WAITS[result.queue_reason] || result.queue_reason.replace(/_/g, " ")) : "It is about to begin";
}

/** Metrics that a sentence has words for: name, words, unit. */
export const SENTENCES = [["p95_agent_latency", "95 % of the agent's answers come within", "s"], ["p50_agent_latency", "half of the agent's answers come within", "s"], ["max_agent_latency", "the slowest answer comes within", "s"],
  ["time_to_first_agent_utterance", "the first word comes within", "s"], ["agent_interruption_count", "times the agent cuts in", ""], ["yield_rate", "share of interruptions at which the agent falls silent", ""],
  ["response_rate", "share of turns that are answered", ""], ["silence_percentage", "silence of the whole call", "%"]];

/**
 * An expectation as a sentence.
 * @param {any} one
 */
export function sentence(one) {
  const has = (/** @type {any} */ value) => value !== null && value !== undefined;
  const bounds = [has(one.at_most) && "at most " + one.at_most, has(one.at_least) && "at least " + one.at_least].filter(Boolean).join(" and ");
  if (one.metric) {
    const known = SENTENCES.find(([name]) => name === one.metric);
    const unit = known && known[2] ? " " + known[2] : "";
    return known && has(one.at_most) && !has(one.at_least) && known[2] === "s" ? known[1] + " " + one.at_most + " s" : one.metric.replace(/_/g, " ") + ": " + bounds + unit;
  }
  const who = one.speaker === "USER" ? "the caller" : "the agent";
  const quoted = (/** @type {string} */ text) => (one.as === "regex" ? "words like " : "") + "\u201c" + text + "\u201d";
  if (one.heard) return who + " says " + quoted(one.heard);
  if (one.not_heard) return who + " never says " + quoted(one.not_heard);
  if (one.tool) return "the tool " + one.tool + " is called" + (one.args ? " with " + JSON.stringify(one.args) : "") + (has(one.times) ? ", " + one.times + " times" : "") + (has(one.within_ms) ? " within " + one.within_ms + " ms" : "");
  if (one.ended_by) return "ended by " + (one.ended_by === "user" ? "the caller" : "the agent") + (one.within_s ? " within " + one.within_s + " s" : "");
  if (one.dtmf_received) return "the agent keys " + one.dtmf_received;
  if (one.meaning) return "by meaning: " + one.meaning;
  if (one.event) return "the event " + one.event + " occurs " + bounds;
  return JSON.stringify(one);
}
