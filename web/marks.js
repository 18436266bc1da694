import { el, words, table } from "./dom.js";
import { ask, get, post } from "./api.js";
import { Fields, form, more, schemas, sure } from "./forms.js";

/**
 * A form that makes a label, with its colour.
 * @param {string} id
 * @param {() => Promise<void>} done
 */
export function labelForm(id, done) {
  const text = el("input", { id: "f-label", required: true, maxLength: 64 });
  const color = el("input", { id: "f-color", type: "color", value: "#0b57b0" });
  return more("New label", form("Add the label", async () => {
    await post("/v1/agents/" + id + "/labels", { label_text: text.value.trim(), color: color.value });
    await done();
  }, el("div", { class: "field" }, el("label", { for: "f-label" }, "Text"), text), el("div", { class: "field" }, el("label", { for: "f-color" }, "Colour"), color)));
}

/**
 * The own metrics of an agent, and a form that makes one, from a template or from nothing.
 * @param {string} id
 * @param {any} page_ page of metrics; null where they cannot be read
 * @param {() => Promise<void>} done
 * @param {import("./app.js").Page} page
 */
export function metricForm(id, page_, done, page) {
  const metrics = (page_ && page_.metrics) || [];
  const place = el("div");
  const made = more("New metric", place);
  made.ontoggle = async () => {
    if (place.childElementCount) return;
    const [all, templates] = await Promise.all([schemas(), get("/v1/custom-metric-templates")]);
    const fields = new Fields(all, "NewCustomMetric", {});
    const first = fields.add(["name", "response_type", "description", "scoring_guidance"]);
    const rest = fields.add(Object.keys(fields.properties).filter((name) => !["agent_id", "agent_ids", "template_id", "svc_as_code_id"].includes(name)));
    const template = el("select", { id: "f-template" }, el("option", { value: "" }, "none"), templates.map((/** @type {any} */ one) => el("option", { value: one.template_id }, one.name)));
    const add = async () => {
      fields.fail({ details: [] });
      try {
        await post("/v1/create-custom-metric", { ...fields.values(), ...(template.value ? { template_id: template.value } : {}), agent_ids: [Number(id)] });
        await done();
      } catch (error) {
        const rest = fields.fail(error);
        if (rest) throw new Error(rest);
      }
    };
    place.replaceChildren(form("Add the metric", add, el("div", { class: "field" }, el("label", { for: "f-template" }, "From the template"), template, el("small", {}, "Fields that are left empty are the template's.")), first, more("More", rest)));
  };
  return el("div", {}, metrics.length ? table("Metrics", ["Name", "Value", "About", ""], metrics.map((/** @type {any} */ one) => [words(one.name, 80), String(one.response_type).replace(/_/g, " "), words(one.summary || one.description || "", 160),
    sure("Delete", () => ask("POST", "/v1/delete-custom-metrics", { body: { metric_ids: [one.id] } }).then(done), page)])) : el("p", { class: "empty" }, "There is no own metric."), el("div", { class: "needs-write" }, made));
}
