//! Arrows between the packages: each depends on those that this table gives it, and the compiler keeps that. A library
//! without IO depends on no crate that brings a clock, a socket, a thread or randomness.

use std::collections::BTreeSet;

use super::{read_file, root};

/// A package: the folder of its manifest, the packages that it may depend on, and those that its tests may use besides.
struct Package {
    folder: &'static str,
    uses: &'static [&'static str],
    in_tests: &'static [&'static str],
    /// Crates of other people that it may not depend on.
    never: &'static [&'static str],
}

/// The packages below the root package, in their order.
const PACKAGES: [Package; 15] = [
    Package { folder: "sip", uses: &[], in_tests: &[], never: IMPURE_CRATES },
    Package { folder: "media", uses: &[], in_tests: &[], never: IMPURE_CRATES },
    Package { folder: "speech", uses: &[], in_tests: &["media"], never: &[] },
    Package { folder: "src/syntax", uses: &[], in_tests: &[], never: IMPURE_CRATES },
    Package { folder: "src/base", uses: &["media", "sip", "syntax"], in_tests: &[], never: WEB_AND_SQL },
    Package { folder: "src/bus", uses: &["base"], in_tests: &[], never: WEB_AND_SQL },
    Package {
        folder: "src/model",
        uses: &["media", "syntax"],
        in_tests: &[],
        never: &["axum", "reqwest", "sqlx", "rusqlite", "tokio"],
    },
    Package { folder: "src/store", uses: &["base", "model"], in_tests: &[], never: &["axum", "reqwest"] },
    Package { folder: "src/provider", uses: &["base", "media", "speech"], in_tests: &[], never: WEB_AND_SQL },
    Package {
        folder: "src/human",
        uses: &["base", "media", "provider", "syntax"],
        in_tests: &["model"],
        never: WEB_AND_SQL,
    },
    Package { folder: "src/transport", uses: &["base", "media", "sip", "syntax"], in_tests: &[], never: WEB_AND_SQL },
    Package {
        folder: "src/engine",
        uses: &["base", "human", "media", "provider", "sip", "transport"],
        in_tests: &[],
        never: &["axum", "reqwest", "rusqlite", "sqlx"],
    },
    Package {
        folder: "src/judge",
        uses: &["base", "human", "media", "model", "provider", "syntax"],
        in_tests: &[],
        never: WEB_AND_SQL,
    },
    Package {
        folder: "src/service",
        uses: &[
            "base",
            "bus",
            "engine",
            "human",
            "judge",
            "media",
            "model",
            "provider",
            "sip",
            "store",
            "syntax",
            "transport",
        ],
        in_tests: &[],
        never: WEB_AND_SQL,
    },
    Package {
        folder: "src/api",
        uses: &["base", "engine", "media", "model", "service", "store", "syntax", "transport"],
        in_tests: &[],
        never: &["rusqlite", "sqlx"],
    },
];

/// Names of the packages in `src`.
pub(super) const NAMES: [&str; 12] =
    ["api", "base", "bus", "engine", "human", "judge", "model", "provider", "service", "store", "syntax", "transport"];

/// Servers of HTTP and databases.
const WEB_AND_SQL: &[&str] = &["axum", "rusqlite", "sqlx"];

/// Crates that packages without IO may not depend on.
const IMPURE_CRATES: &[&str] = &[
    "tokio",
    "tokio-util",
    "mio",
    "async-std",
    "smol",
    "socket2",
    "rand",
    "getrandom",
    "libc",
    "tracing",
    "log",
    "chrono",
    "crossbeam-channel",
    "parking_lot",
];

/// Returns the names below a table of a manifest.
fn names_below(manifest: &toml::Table, table: &str) -> BTreeSet<String> {
    let names = manifest.get(table).and_then(toml::Value::as_table).into_iter().flat_map(|table| table.keys());
    names.cloned().collect()
}

/// Returns the names of the workspace's own packages, without `ringer-`.
fn own_packages(names: &BTreeSet<String>) -> BTreeSet<&str> {
    names.iter().filter_map(|name| name.strip_prefix("ringer-")).collect()
}

/// Dependencies of a manifest that the table of packages does not give.
fn wrong_arrows(package: &Package, text: &str) -> Vec<String> {
    let manifest: toml::Table = toml::from_str(text).expect("cargo has read this manifest");
    let (uses, in_tests) = (names_below(&manifest, "dependencies"), names_below(&manifest, "dev-dependencies"));
    let expect: BTreeSet<&str> = package.uses.iter().copied().collect();
    let mut wrong = Vec::new();
    if own_packages(&uses) != expect {
        wrong.push(format!("{}: depends on {:?}, the table has {expect:?}", package.folder, own_packages(&uses)));
    }
    let more = |name: &&&str| !expect.contains(**name) && !package.in_tests.contains(*name);
    wrong.extend(
        own_packages(&in_tests).iter().filter(more).map(|name| format!("{}: its tests use {name}", package.folder)),
    );
    let never = uses.iter().filter(|name| package.never.contains(&name.as_str()));
    wrong.extend(never.map(|name| format!("{}: depends on {name}", package.folder)));
    wrong
}

#[test]
fn packages_depend_on_those_before_them_alone() {
    let manifest = |package: &Package| read_file(&format!("{}/Cargo.toml", package.folder));
    let wrong: Vec<String> = PACKAGES.iter().flat_map(|package| wrong_arrows(package, &manifest(package))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (at, package) in PACKAGES.iter().enumerate() {
        let before: BTreeSet<&str> =
            PACKAGES[..at].iter().filter_map(|package| package.folder.rsplit('/').next()).collect();
        assert!(package.uses.iter().all(|name| before.contains(name)), "{} uses what stands behind it", package.folder);
    }
}

#[test]
fn every_package_stands_in_the_table() {
    let manifest: toml::Table = toml::from_str(&read_file("Cargo.toml")).expect("cargo has read this manifest");
    let members = manifest["workspace"]["members"].as_array().expect("a list of folders");
    let members: BTreeSet<&str> = members.iter().filter_map(toml::Value::as_str).collect();
    assert_eq!(members, PACKAGES.iter().map(|package| package.folder).collect());
    let folders = std::fs::read_dir(root().join("src")).expect("the tree is readable").flatten();
    let folders = folders.filter(|entry| entry.path().join("Cargo.toml").exists());
    let folders: BTreeSet<String> = folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(folders, NAMES.iter().map(|name| (*name).to_owned()).collect());
}

#[test]
fn dependencies_outside_of_the_table_are_found() {
    let package = Package { folder: "sip", uses: &["media"], in_tests: &["model"], never: &["tokio"] };
    let check = |text: &str, count: usize| assert_eq!(wrong_arrows(&package, text).len(), count, "{text}");
    check("[dependencies]\nringer-media.workspace = true\nserde = \"1\"\n[dev-dependencies]\nrand = \"1\"", 0);
    check("[dependencies]\nringer-media.workspace = true\n[dev-dependencies]\nringer-model.workspace = true", 0);
    check("[dependencies]\nserde = \"1\"", 1);
    check("[dependencies]\nringer-media.workspace = true\nringer-store.workspace = true", 1);
    check("[dependencies]\nringer-media.workspace = true\ntokio = \"1\"", 1);
    check("[dependencies]\nringer-media.workspace = true\n[dev-dependencies]\nringer-store.workspace = true", 1);
}
