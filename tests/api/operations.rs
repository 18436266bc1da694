//! Every operation of the interface is described, and nothing else is. `fixtures/api/operations.txt` lists them with
//! their marks, `operations_missing.txt` those that are not served yet.

use std::collections::{BTreeMap, BTreeSet};

use super::world::World;

/// Returns method and path, however the parameters are called.
fn operation(method: &str, path: &str) -> String {
    let plain = |part: &str| if part.starts_with('{') { "{}".to_owned() } else { part.to_owned() };
    let parts: Vec<String> = path.split('/').map(plain).collect();
    format!("{} {}", method.to_uppercase(), parts.join("/"))
}

/// Returns the lines of a list: operation to mark and scope.
fn list(text: &str) -> BTreeMap<String, (String, String)> {
    let mut operations = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut parts = line.split_whitespace();
        let (Some(method), Some(path)) = (parts.next(), parts.next()) else { panic!("no operation: {line}") };
        let [mark, scope] = [parts.next(), parts.next()].map(|part| part.unwrap_or_default().to_owned());
        assert_eq!(operations.insert(operation(method, path), (mark, scope)), None, "{line} is listed twice");
    }
    operations
}

#[tokio::test]
async fn the_document_has_the_operations_of_the_interface() {
    let world = World::new().await;
    let document = world.get("/openapi.json").await;
    let listed = list(include_str!("../../fixtures/api/operations.txt"));
    let missing: BTreeSet<String> =
        list(include_str!("../../fixtures/api/operations_missing.txt")).into_keys().collect();
    let mut described = BTreeMap::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, one) in item.as_object().expect("methods") {
            described.insert(operation(method, path), one["deprecated"] == true);
        }
    }
    assert!(listed.len() > 190, "only {} operations are listed", listed.len());
    for (operation, deprecated) in &described {
        let (mark, _) = listed.get(operation).unwrap_or_else(|| panic!("{operation} is described and not listed"));
        assert!(["spec", "added", "deprecated"].contains(&mark.as_str()), "{operation} has the mark {mark}");
        assert_eq!(*deprecated, mark == "deprecated", "{operation}");
    }
    let absent: BTreeSet<String> = listed.keys().filter(|one| !described.contains_key(*one)).cloned().collect();
    assert_eq!(absent, missing, "what is listed, and neither described nor listed as missing, or both");
}

#[tokio::test]
async fn every_operation_takes_the_keys_of_its_scope_and_no_others() {
    let world = World::new().await;
    let document = world.get("/openapi.json").await;
    let listed = list(include_str!("../../fixtures/api/operations.txt"));
    let mut wrong = Vec::new();
    let mut tried = 0;
    for (path, item) in document["paths"].as_object().expect("paths") {
        for method in item.as_object().expect("methods").keys() {
            let scope = listed.get(&operation(method, path)).map_or("", |(_, scope)| scope.as_str());
            let needs = |text: &str| format!("{text}' is required");
            // A key that must not do, what it is told; and one that must.
            let (lacking, status, message, having) = match scope {
                "none" => ("", 0, String::new(), ""),
                "read" => ("", 401, "Invalid or missing API key".to_owned(), "$read"),
                "write" => ("$read", 403, needs("'read' is not sufficient, 'write"), "$write"),
                "admin" => ("$write", 403, needs("'write' is not sufficient, 'admin"), "$admin"),
                "internal" => ("$write", 403, "Invalid internal token".to_owned(), "$admin"),
                "operator" => ("$admin", 403, "Invalid internal token".to_owned(), ""),
                "carrier" | "agent" => ("$admin", 401, "Invalid or missing API key".to_owned(), ""),
                other => panic!("{method} {path} has the scope {other:?}"),
            };
            // No such row: nothing is changed by a request that is let through.
            let filled: Vec<&str> =
                path.split('/').map(|part| if part.starts_with('{') { "999999" } else { part }).collect();
            let filled = filled.join("/");
            let send = async |key: &str| {
                let key = [("x-api-key".to_owned(), key.to_owned())];
                let body = if method == "get" { Vec::new() } else { b"{}".to_vec() };
                world.send(&method.to_uppercase(), &filled, &key, body).await
            };
            if status > 0 {
                let refused = send(lacking).await;
                let text = String::from_utf8_lossy(&refused.body).into_owned();
                if refused.status != status || !text.contains(&message) {
                    wrong.push(format!("{method} {path} with {lacking:?}: {} {text}", refused.status));
                }
            }
            if !["carrier", "agent", "operator"].contains(&scope) {
                let answer = send(having).await;
                if [401, 403].contains(&answer.status) {
                    let text = String::from_utf8_lossy(&answer.body).into_owned();
                    wrong.push(format!("{method} {path} with {having:?}: {} {text}", answer.status));
                }
            }
            tried += 1;
        }
    }
    assert!(tried > 180, "only {tried} operations were tried");
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
