//! Every operation of the interface is described, and nothing else is. `fixtures/api/operations.txt` lists them with their marks,
//! `operations_missing.txt` those that are not served yet.

use std::collections::{BTreeMap, BTreeSet};

use super::world::World;

/// Method and path, however the parameters are called.
fn operation(method: &str, path: &str) -> String {
    let plain = |part: &str| if part.starts_with('{') { "{}".to_owned() } else { part.to_owned() };
    let parts: Vec<String> = path.split('/').map(plain).collect();
    format!("{} {}", method.to_uppercase(), parts.join("/"))
}

/// The lines of a list: operation to mark.
fn list(text: &str) -> BTreeMap<String, String> {
    let mut operations = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut parts = line.split_whitespace();
        let (Some(method), Some(path)) = (parts.next(), parts.next()) else { panic!("no operation: {line}") };
        let mark = parts.next().unwrap_or_default().to_owned();
        assert_eq!(operations.insert(operation(method, path), mark), None, "{line} is listed twice");
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
        let mark = listed.get(operation).unwrap_or_else(|| panic!("{operation} is described and not listed"));
        assert!(["spec", "added", "deprecated"].contains(&mark.as_str()), "{operation} has the mark {mark}");
        assert_eq!(*deprecated, mark == "deprecated", "{operation}");
    }
    let absent: BTreeSet<String> = listed.keys().filter(|one| !described.contains_key(*one)).cloned().collect();
    assert_eq!(absent, missing, "what is listed, and neither described nor listed as missing, or both");
}
