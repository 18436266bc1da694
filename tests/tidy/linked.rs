//! Linked crates: licences and names that `deny.toml` allows.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use spdx::{Expression, ParseMode};

use super::{read_file, root};

/// Returns the faults of packages, given as `cargo metadata` names them.
fn denials(packages: &[Value], deny: &toml::Value) -> Vec<String> {
    let names = |part: &str, list: &str| -> BTreeSet<String> {
        let names = deny[part][list].as_array().expect("a list").iter();
        names.map(|name| name.as_str().expect("a name").to_owned()).collect()
    };
    let (licences, banned) = (names("licenses", "allow"), names("bans", "deny"));
    let mut found = Vec::new();
    for package in packages {
        let (name, licence) = (package["name"].as_str().expect("a name"), package["license"].as_str());
        let allowed = licence.and_then(|text| Expression::parse_mode(text, ParseMode::LAX).ok());
        if !allowed.is_some_and(|licence| licence.evaluate(|wanted| licences.contains(&wanted.to_string()))) {
            found.push(format!("{name}: its licence {licence:?} is not allowed"));
        }
        if banned.contains(name) {
            found.push(format!("{name} is banned"));
        }
        if package["source"].as_str().is_some_and(|source| !source.contains("github.com/rust-lang/crates.io-index")) {
            found.push(format!("{name} is not from crates.io"));
        }
    }
    found
}

fn deny() -> toml::Value {
    toml::from_str(&read_file("deny.toml")).expect("it is TOML")
}

#[test]
fn what_is_linked_in_is_allowed() {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--locked", "--offline", "--format-version", "1"]).current_dir(root());
    let found = command.args(["--filter-platform", "x86_64-unknown-linux-gnu"]).output().expect("cargo runs");
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    let metadata: Value = serde_json::from_slice(&found.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 100, "{}", packages.len());
    assert_eq!(denials(packages, &deny()), Vec::<String>::new());
}

#[test]
fn what_is_denied_is_found() {
    let package = |name: &str, licence: Value, source: &str| serde_json::json!({ "name": name, "license": licence, "source": format!("registry+https://{source}") });
    let ours = "github.com/rust-lang/crates.io-index";
    let packages = [
        package("a", "GPL-3.0-only OR MIT".into(), ours),
        package("b", "GPL-3.0-only".into(), ours),
        package("c", Value::Null, ours),
        package("cmake", "MIT/Apache-2.0".into(), ours),
        package("d", "(MIT OR Apache-2.0) AND Unicode-3.0".into(), "example.com"),
    ];
    let found = denials(&packages, &deny());
    let whose: Vec<&str> = found.iter().map(|text| text.split([':', ' ']).next().expect("a name")).collect();
    assert_eq!(whose, ["b", "c", "cmake", "d"], "{found:?}");
}
