import { el } from "./dom.js";
import { maybe, post } from "./api.js";
import { form, more } from "./forms.js";

/**
 * A form by which a language model makes callers: by goal, by stored persona, attackers by the agent's red-team profile.
 * @param {string} simulation
 * @param {number} agent
 * @param {() => Promise<void>} done
 * @param {import("./app.js").Page} page
 */
export function drafting(simulation, agent, done, page) {
  const place = el("div");
  const made = more("Let callers be made", place);
  made.ontoggle = async () => {
    if (place.childElementCount) return;
    const personas = await maybe("/v1/customer-personas-by-agent/" + agent).catch(() => null);
    const list = Array.isArray(personas) ? personas : (personas && (personas.customer_personas || personas.personas)) || [];
    const labelled = (/** @type {string} */ id, /** @type {string} */ label, /** @type {any} */ control) => { control.id = id; return el("div", { class: "field" }, el("label", { for: id }, label), control); };
    const count = (/** @type {number} */ value) => el("input", { type: "number", min: "0", max: "50", value: String(value) });
    const goal = el("textarea", { rows: 2, placeholder: "Book an appointment next week" });
    const goals = count(3);
    const persona = el("select", {}, el("option", { value: "" }, "none"), list.map((/** @type {any} */ one) => el("option", { value: one.id }, one.name)));
    const people = count(1);
    const rules = count(0);
    const attackers = count(0);
    const make = async () => {
      const answer = await post("/v1/generate-digital-humans", { agent_id: String(agent), simulation_id: simulation, system_prompt: Number(rules.value), red_teaming: Number(attackers.value),
        ...(goal.value.trim() ? { goal_adherence: [{ goal: goal.value.trim(), num_calls: Number(goals.value) || 1 }] } : {}), ...(persona.value ? { customer_persona_ids: [{ id: persona.value, num_calls: Number(people.value) || 1 }] } : {}) });
      await done();
      page.notice(answer.digital_humans.length + " callers were made." + (answer.warning ? " " + answer.warning : ""));
    };
    place.replaceChildren(form("Make the callers", make, el("p", { class: "note" }, "A language model words them: [language_model] in ringer.toml."), labelled("f-goal", "Goal", goal), labelled("f-goals", "Callers with this goal", goals),
      labelled("f-persona", "Persona", persona), labelled("f-people", "Callers of this persona", people), labelled("f-rules", "Callers who probe rules of the prompt", rules), labelled("f-attackers", "Attackers, by the agent's red-team profile", attackers)));
  };
  return made;
}
