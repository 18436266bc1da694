//! Objects of an agent that generation uses where a request names nothing: the profile of attacks, and the workflow.

use serde_json::Value;

use super::Object;
use super::agent::AgentSpec;
use super::scenario::{Definition, GivenDefinition};

/// Members of a profile of attacks.
const PROFILE: [&str; 3] = ["vector_ids", "intents", "exclude"];
/// Members of a workflow.
const WORKFLOW: [&str; 3] = ["nodes", "edges", "viewport"];

/// Profile of attacks of an agent (`red_team_profile`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedTeamProfile {
    /// Vectors that are used; empty: all.
    pub vector_ids: Vec<String>,
    /// Goals of the attackers, in turn; empty: each vector's own.
    pub intents: Vec<String>,
    /// Vectors that are not used.
    pub exclude: Vec<String>,
}

impl AgentSpec {
    /// Returns the profile of attacks; members that are none are left out.
    pub fn attack_profile(&self) -> RedTeamProfile {
        let [vector_ids, intents, exclude] = PROFILE.map(|name| {
            self.red_team_profile.as_ref().and_then(|profile| texts(profile.get(name)?)).unwrap_or_default()
        });
        RedTeamProfile { vector_ids, intents, exclude }
    }

    /// Returns the graph of the workflow; `None` where the agent has none.
    pub fn workflow_graph(&self) -> Option<Definition> {
        GivenDefinition(self.workflow.clone()?).graph()
    }

    /// Returns the members of `red_team_profile` and `workflow` that are stored and not used; `None`: all are used.
    pub fn unused_members(&self) -> Option<String> {
        let mut unused = Vec::new();
        for (name, value) in self.red_team_profile.iter().flatten() {
            match PROFILE.contains(&name.as_str()) {
                true if texts(value).is_none() => {
                    unused.push(format!("red_team_profile.{name}: not a list of texts, not used"));
                }
                true => {}
                false => unused.push(format!("red_team_profile.{name}: not used")),
            }
        }
        if self.workflow.is_some() && self.workflow_graph().is_none() {
            unused.push("workflow: not used, since nodes and edges are not arrays of objects".to_owned());
        } else {
            let others = self.workflow.iter().flatten().filter(|(name, _)| !WORKFLOW.contains(&name.as_str()));
            unused.extend(others.map(|(name, _)| format!("workflow.{name}: not used")));
        }
        (!unused.is_empty()).then(|| unused.join("; "))
    }

    /// Returns the members of these objects that a request sets and nothing uses; `None`: it sets none.
    pub fn unused_in(&self, patch: &Object) -> Option<String> {
        let given = AgentSpec {
            red_team_profile: self.red_team_profile.clone().filter(|_| patch.contains_key("red_team_profile")),
            workflow: self.workflow.clone().filter(|_| patch.contains_key("workflow")),
            ..AgentSpec::default()
        };
        given.unused_members()
    }
}

/// Returns the texts of a list, null being an empty one; `None` for anything else.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn agent(profile: Value, workflow: Value) -> AgentSpec {
        let spec = json!({ "name": "a", "red_team_profile": profile, "workflow": workflow });
        serde_json::from_value(spec).expect("it fits")
    }

    #[test]
    fn unused_members_are_named() {
        let graph = json!({ "nodes": [], "edges": [], "viewport": { "zoom": 1 } });
        let used = json!({ "vector_ids": ["a"], "intents": [], "exclude": null });
        assert_eq!(agent(used.clone(), graph.clone()).unused_members(), None);
        assert_eq!(agent(Value::Null, Value::Null).unused_members(), None);
        let other = agent(json!({ "vector_ids": "a", "severity": 3 }), json!({ "nodes": [], "edges": [], "id": 1 }));
        let expect = "red_team_profile.severity: not used; red_team_profile.vector_ids: not a list of texts, not used; \
                      workflow.id: not used";
        let mut found: Vec<String> = other.unused_members().expect("some").split("; ").map(str::to_owned).collect();
        found.sort();
        assert_eq!(found.join("; "), expect);
        assert_eq!(other.attack_profile(), RedTeamProfile::default());
        let none = agent(used, json!({ "steps": [] }));
        let expect = "workflow: not used, since nodes and edges are not arrays of objects";
        assert_eq!(none.unused_members().as_deref(), Some(expect));
        let patch = json!({ "red_team_profile": {} }).as_object().expect("an object").clone();
        assert_eq!((none.unused_in(&patch), none.workflow_graph()), (None, None));
    }
}
