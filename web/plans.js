import { el, when, table } from "./dom.js";
import { ask, post } from "./api.js";
import { form, sure } from "./forms.js";

/**
 * When a schedule runs, by this clock where it runs each day.
 * @param {string} cron in UTC
 */
function atWords(cron) {
  const [, minute, hour] = /^(\d+) (\d+) \* \* \*$/.exec(cron) || [];
  if (hour === undefined) return cron + " (cron, UTC)";
  const at = new Date();
  at.setUTCHours(Number(hour), Number(minute), 0, 0);
  return "every day at " + at.toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short" });
}


/**
 * A field that takes the YAML of a suite.
 * @param {() => string} agent
 * @param {import("./app.js").Page} page
 */
export function importing(agent, page) {
  const text = el("textarea", { id: "f-yaml", rows: 6 });
  const file = el("input", { id: "f-file", type: "file", accept: ".yaml,.yml" });
  file.onchange = async () => { text.value = file.files && file.files[0] ? await file.files[0].text() : ""; };
  const read = async () => {
    const suite = await post("/v1/suites/read", { yaml: text.value });
    const made = await post("/v1/create-simulation", { ...suite.simulation, agent_id: agent() });
    for (let at = 0; at < suite.digital_humans.length; at += 100) await post("/v1/create-digital-humans", { digital_humans: suite.digital_humans.slice(at, at + 100), simulation_ids: [made.simulation_id] });
    page.go("/simulations/" + made.simulation_id);
  };
  return form("Read the suite", read, el("div", { class: "field" }, el("label", { for: "f-file" }, "File"), file), el("div", { class: "field" }, el("label", { for: "f-yaml" }, "YAML of a suite"), text));
}

/**
 * @param {string} text
 * @param {string} name
 */
export function keep(text, name) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/yaml" }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

/**
 * @param {string} id
 * @param {any[]} list
 * @param {() => Promise<void>} done
 * @param {import("./app.js").Page} page
 */
export function scheduling(id, list, done, page) {
  const time = el("input", { id: "f-time", type: "time", required: true, value: "02:00" });
  const make = async () => {
    const at = new Date();
    const [hours, minutes] = time.value.split(":").map(Number);
    at.setHours(hours, minutes, 0, 0);
    await post("/v1/create-schedule", { simulation_id: id, schedule: { frequency: "daily", time: at.toISOString().slice(11, 16) } });
    await done();
  };
  return el("div", {}, list.length ? table("Schedules", ["When", "On", "Made", ""], list.map((one) => [atWords(one.cron_expression), one.enabled ? "yes" : "no", when(one.created_at),
    sure("Delete", () => ask("DELETE", "/v1/delete-schedule/" + one.id).then(done), page)])) : el("p", { class: "empty" }, "It runs only when it is started."),
  form("Run every night", make, el("div", { class: "field" }, el("label", { for: "f-time" }, "At (local time)"), time)));
}
