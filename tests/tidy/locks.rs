//! The fuzz targets have a lock file of their own: what they throw broken input at is what is shipped.

use std::collections::{BTreeMap, BTreeSet};

use toml::Value;

use super::read_file;

/// Returns the packages of a lock file by their names.
fn packages(lock: &Value) -> BTreeMap<&str, Vec<&Value>> {
    let mut found = BTreeMap::<_, Vec<&Value>>::new();
    for package in lock["package"].as_array().expect("packages") {
        found.entry(package["name"].as_str().expect("a name")).or_default().push(package);
    }
    found
}

/// Returns the differences of the fuzz targets' lock file from the product's: versions, and missing dependencies of our
/// libraries.
fn differing(ours: &Value, theirs: &Value, needs: &[(&str, BTreeSet<String>)]) -> Vec<String> {
    let (ours, theirs) = (packages(ours), packages(theirs));
    let mut found = Vec::new();
    for (name, of_fuzz) in &theirs {
        let Some(known) = ours.get(name) else { continue };
        for package in of_fuzz {
            if !known.iter().any(|one| one["version"] == package["version"]) {
                found.push(format!("{name} {:?} is another version", package["version"]));
            }
        }
    }
    for (name, needed) in needs {
        let locked =
            theirs.get(name).and_then(|found| found[0]["dependencies"].as_array()).cloned().unwrap_or_default();
        // `name version`, where there are several of that name.
        let name_of = |text: &Value| text.as_str().and_then(|text| text.split(' ').next()).expect("a name").to_owned();
        let locked: BTreeSet<String> = locked.iter().map(name_of).collect();
        if locked != *needed {
            found.push(format!("{name} needs {needed:?}, locked are {locked:?}"));
        }
    }
    found
}

fn parse(path: &str) -> Value {
    toml::from_str(&read_file(path)).expect("it is TOML")
}

/// Returns the dependencies in a library's manifest.
fn needed_by(manifest: &str) -> BTreeSet<String> {
    parse(manifest)["dependencies"].as_table().expect("a table").keys().cloned().collect()
}

#[test]
fn what_is_fuzzed_is_what_is_shipped() {
    let needs = [("ringer-media", needed_by("media/Cargo.toml")), ("ringer-sip", needed_by("sip/Cargo.toml"))];
    let found = differing(&parse("Cargo.lock"), &parse("fuzz/Cargo.lock"), &needs);
    assert_eq!(found, Vec::<String>::new(), "`cargo metadata` in fuzz/ brings its lock file up to date");
}

#[test]
fn a_lock_file_that_was_left_behind_is_found() {
    let lock = |lines: &str| toml::from_str::<Value>(lines).expect("it is TOML");
    let ours = lock("package = [{name = 'a', version = '2'}, {name = 'b', version = '1'}]");
    let theirs = lock(
        "package = [{name = 'a', version = '1'}, {name = 'b', version = '1'}, {name = 'c', version = '9'},
                    {name = 'lib', version = '0', dependencies = ['a', 'c 9']}]",
    );
    let needs = |names: [&str; 2]| [("lib", names.map(str::to_owned).into())];
    assert_eq!(differing(&ours, &theirs, &needs(["a", "b"])).len(), 2, "a version and a need");
    assert_eq!(differing(&ours, &theirs, &needs(["a", "c"])).len(), 1, "a version");
    assert_eq!(differing(&theirs, &theirs, &needs(["a", "c"])), Vec::<String>::new());
}
