//! Levers of a scenario: fields of callers by subject, as the API's document describes them, with the numbers behind
//! their levels.

use serde_json::{Map, Value, json};

use super::asking::Fault;
use super::session::Call;

/// Fields of a caller that make its voice.
const VOICE: [&str; 5] = ["language", "accent", "gender", "custom_voice_id", "voice_speed"];

/// Returns the fields of a Digital Human as the document has them, with their definitions put in.
async fn fields(call: &Call<'_>) -> Result<Map<String, Value>, Fault> {
    let document = call.client.get("/openapi.json").await?;
    let schemas = &document["components"]["schemas"];
    let human = schemas["DigitalHumanSpec"]["properties"].as_object();
    let human = human.ok_or_else(|| Fault::from_text("the server's document does not describe Digital Humans"))?;
    Ok(human.iter().map(|(name, field)| (name.clone(), whole(field, schemas))).collect())
}

/// Returns a field with the enumeration that it points to.
fn whole(field: &Value, schemas: &Value) -> Value {
    let pointed = |value: &Value| value["$ref"].as_str().and_then(|at| at.rsplit('/').next()).map(str::to_owned);
    let mut whole = field.clone();
    let parts =
        || field["anyOf"].as_array().into_iter().chain(field["oneOf"].as_array()).chain(field["allOf"].as_array());
    let name = pointed(field).or_else(|| parts().flatten().find_map(pointed));
    let Some(words) = name.map(|name| &schemas[name]) else { return whole };
    for key in ["enum", "oneOf", "properties"] {
        if !words[key].is_null() {
            whole[if key == "oneOf" { "variants" } else { key }] = words[key].clone();
        }
    }
    whole
}

/// Tells what a caller's voice can be.
pub(super) async fn voices(call: &Call<'_>) -> Result<Value, Fault> {
    let mut fields = fields(call).await?;
    fields.retain(|name, _| VOICE.contains(&name.as_str()));
    Ok(json!({ "fields": fields }))
}

/// Tells the noises behind a caller.
pub(super) async fn noises(call: &Call<'_>) -> Result<Value, Fault> {
    let mut fields = fields(call).await?;
    fields.retain(|name, _| name.contains("noise"));
    let uploaded = call.client.get("/v1/custom-background-noises").await?;
    let short = |noise: &Value| json!({ "id": noise["id"], "name": noise["name"] });
    let uploaded: Vec<Value> = uploaded.as_array().into_iter().flatten().map(short).collect();
    let levels = call.client.get("/v1/behaviour-levels").await?;
    let numbers = ["noise_quietest_snr_db", "noise_loudest_snr_db"].map(|name| (name.to_owned(), levels[name].clone()));
    Ok(json!({
        "fields": fields, "uploaded": uploaded, "numbers": Map::from_iter(numbers),
        "use": "background_noise names one; an uploaded one is background_noise custom with its id",
    }))
}

/// Tells all fields of a caller, and the numbers behind the named levels.
pub(super) async fn levers(call: &Call<'_>) -> Result<Value, Fault> {
    let numbers = call.client.get("/v1/behaviour-levels").await?;
    Ok(json!({ "fields": fields(call).await?, "numbers": numbers }))
}
