//! `connect` of an agent on a voice-agent platform: its name there, and fields of its own.

use serde_json::{Map, Value, json};

use super::super::reading::check_known;
use super::super::yaml::{MemberName, Node, Problem};
use super::{AGENT, Connect, INTEGRATION, Made};
use crate::model::agent::AgentSpec;
use crate::model::integration::IntegrationSpec;

/// Platforms with the field of agents that names the agent.
const PLATFORMS: [(&str, &str); 9] = [
    ("P3", "P3_agent_id"),
    ("P4", "P4_agent_id"),
    ("P5", "P5_assistant_id"),
    ("P6", "P6_app_id"),
    ("P7", "P7_agent_id"),
    ("P8", "P8_agent_name"),
    ("P9", "P9_agent_id"),
    ("P10", "P10_agent_token"),
    ("P11", "P11_bot_id"),
];

/// Reads `connect` with `platform`. Members of the platform's own names, such as `P6_deployment_id`, are fields of the
/// agent, or the organization's credentials.
///
/// # Errors
/// Everything that is wrong in it.
pub(super) fn connect(node: &Node, members: &[(MemberName, Node)], named: &Node) -> Result<Connect, Vec<Problem>> {
    let name = named.text().unwrap_or_default();
    let Some((platform, id)) = PLATFORMS.iter().find(|(known, _)| *known == name) else {
        return Err(vec![Problem::new(&named.at, "platform must be one of P3 to P11")]);
    };
    let mut problems = Vec::new();
    let mut agent = Map::from_iter([
        ("type".to_owned(), json!("INBOUND")),
        ("mode".to_owned(), json!(if name == "P11" { "TEXT" } else { "VOICE" })),
        ("connection_type".to_owned(), json!(platform)),
    ]);
    let (mut sources, mut integration) = (Vec::new(), Map::new());
    let fields = fields_of(platform, &json!(AgentSpec::default()));
    let credentials = fields_of(platform, &json!(IntegrationSpec::default()));
    let known = || ["platform", "agent"].into_iter().chain(fields.iter().chain(&credentials).map(String::as_str));
    for (key, value) in members {
        let field = match key.name.as_str() {
            "platform" => continue,
            "agent" => (*id).to_owned(),
            own if fields.iter().chain(&credentials).any(|field| field == own) => own.to_owned(),
            _ => {
                check_known(key, known(), &mut problems);
                continue;
            }
        };
        let is_credential = credentials.contains(&field);
        let read = if is_credential { &INTEGRATION } else { &AGENT }.value(&key.name, &field, value);
        match read {
            Ok(Value::Null) => problems.push(Problem::new(&value.at, format!("{} has no value", key.name))),
            Ok(read) => {
                let into = if is_credential { &mut integration } else { &mut agent };
                into.insert(field.clone(), read);
                sources.push((field, value.clone()));
            }
            Err(wrong) => problems.extend(wrong),
        }
    }
    let at = node.at.clone();
    let made = Made { kind: "platform", agent, codecs: Vec::new(), at, sources, integration, room: None };
    if problems.is_empty() { Ok(Connect::Made(made)) } else { Err(problems) }
}

/// Returns the fields of a resource that are a platform's own.
fn fields_of(platform: &str, resource: &Value) -> Vec<String> {
    let start = format!("{platform}_");
    let names = resource.as_object().into_iter().flatten().map(|(name, _)| name);
    names.filter(|name| name.starts_with(&start)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::yaml::parse;
    use super::*;

    #[test]
    fn agents_on_platforms_are_read() {
        let read = |text: &str| super::super::connect(&parse(text, "f").expect("it is read"));
        for (text, expect) in [
            ("{platform: P4, agent: desk}", json!({ "P4_agent_id": "desk" })),
            ("{platform: P5, agent: a}", json!({ "P5_assistant_id": "a" })),
            ("{platform: P6, agent: a, P6_deployment_id: b}", json!({ "P6_app_id": "a", "P6_deployment_id": "b" })),
        ] {
            let Ok(Connect::Made(made)) = read(text) else { panic!("{text}") };
            assert_eq!(made.agent["mode"], "VOICE");
            for (field, value) in expect.as_object().expect("an object") {
                assert_eq!(made.agent.get(field), Some(value), "{text}");
            }
        }
        for (text, mode, agent, integration) in [
            (
                "{platform: P4, P4_agent_id: a, P4_api_key: k}",
                "VOICE",
                ("P4_agent_id", "a"),
                json!({ "P4_api_key": "k" }),
            ),
            (
                "{platform: P6, agent: a, P6_credentials: {a: b}}",
                "VOICE",
                ("P6_app_id", "a"),
                json!({ "P6_credentials": { "a": "b" } }),
            ),
            ("{platform: P11, agent: b, P11_host: h}", "TEXT", ("P11_bot_id", "b"), json!({})),
        ] {
            let Ok(Connect::Made(made)) = read(text) else { panic!("{text}") };
            assert_eq!((&made.agent["mode"], &made.agent[agent.0]), (&json!(mode), &json!(agent.1)), "{text}");
            assert_eq!(json!(made.integration), integration, "{text}");
            assert!(integration.as_object().is_some_and(|all| all.keys().all(|key| !made.agent.contains_key(key))));
        }
        for (text, expect) in [
            ("{platform: P2, agent: a}", "platform must be one of P3 to P11"),
            ("{platform: P4, agents: a}", "agents"),
            ("{platform: P4, P5_assistant_id: a}", "P5_assistant_id"),
            ("{platform: P4, agent: a, P5_private_key: k}", "P5_private_key"),
            ("{platform: P4, agent: a, P4_api_key: [k]}", "P4_api_key"),
            ("{platform: P4, agent: }", "agent has no value"),
        ] {
            let problems = read(text).map(|_| ()).expect_err("it is refused");
            assert!(problems.iter().any(|problem| problem.to_string().contains(expect)), "{text}: {problems:?}");
        }
    }
}
