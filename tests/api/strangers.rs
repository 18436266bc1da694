//! Ids of one organization with the key of another, on every operation whose path names a row: nothing is told, nothing changes.

use serde_json::Value;

use super::world::World;

/// Whose id a parameter of a path is, and the words of the path before it where parameters share a name.
const NAMED: [(&str, &str, &str); 13] = [
    ("", "{agent_id}", "agent"),
    ("", "{simulation_id}", "simulation"),
    ("", "{digital_human_id}", "digital_human"),
    ("", "{metric_id}", "metric"),
    ("", "{workflow_id}", "scenario"),
    ("", "{persona_id}", "persona"),
    ("", "{trait_id}", "trait"),
    ("", "{webhook_id}", "webhook"),
    ("", "{schedule_id}", "schedule"),
    ("community/", "{id}", "community"),
    ("-community/", "{id}", "community"),
    ("community/", "{community_id}", "community"),
    ("-community/", "{community_id}", "community"),
];

/// The path with ids of the first organization; `None`: the world has no such row.
fn filled(world: &World, path: &str) -> Option<String> {
    let mut path = path.to_owned();
    for (before, parameter, row) in NAMED {
        path = path.replace(&format!("{before}{parameter}"), &format!("{before}{}", world.name(row)));
    }
    // What lies below an agent is not asked for when the agent is not there.
    for (parameter, value) in [("{version}", "1"), ("{label_id}", "6a1e0b64-6f0a-4c3b-9a25-0f4f6f7a1c11")] {
        path = path.replace(parameter, value);
    }
    (!path.contains('{')).then_some(path)
}

/// Everything that the first organization can read of the rows that paths name.
async fn readable(world: &World, paths: &[(String, String)]) -> Vec<Value> {
    let mut seen = Vec::new();
    for (_, path) in paths.iter().filter(|(method, _)| method == "GET") {
        seen.push(world.send("GET", path, &[], Vec::new()).await.body.into());
    }
    seen
}

#[tokio::test]
async fn nobody_reaches_the_rows_of_another_organization() {
    let world = World::with_rows().await;
    let document = world.get("/openapi.json").await;
    let mut paths = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for method in item.as_object().expect("methods").keys() {
            if path.contains('{')
                && let Some(path) = filled(&world, path)
            {
                paths.push((method.to_uppercase(), path));
            }
        }
    }
    assert!(paths.len() >= 60, "only {} operations name a row of the world", paths.len());
    let before = readable(&world, &paths).await;
    let key = [("x-api-key".to_owned(), "$foreign".to_owned())];
    let mut leaks = Vec::new();
    for (method, path) in &paths {
        for body in ["", "{}"] {
            let answer = world.send(method, path, &key, body.into()).await;
            // A body that is needed and is not there is told before the row is looked for.
            let allowed: &[u16] = if method == "GET" || method == "DELETE" { &[403, 404] } else { &[403, 404, 422] };
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            let tells = ["Desk", "Booking", "Maria"].iter().any(|name| text.contains(name));
            // Deleting by label asks for the label first.
            let asks = answer.status == 400 && text.contains("label is required");
            if tells || (!allowed.contains(&answer.status) && !asks) {
                leaks.push(format!("{method} {path}: {} {text}", answer.status));
            }
        }
    }
    assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
    assert_eq!(before, readable(&world, &paths).await, "something has changed");
}
