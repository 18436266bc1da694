//! Tools that read the OpenAPI document: two linters, and clients that three generators make of it, each with eighteen
//! calls to a server on a real socket. `make test` runs one linter and the client in Python, `make clients` all of
//! them.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use ringer::api::{Setup, serve};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::world::World;
use crate::page::tools::tools;

/// Time limit of one tool on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Number of calls that each client makes.
const CALLS: &str = "18";

/// Returns a folder inside that of the tools, with the document as `openapi.json`. Compilers find modules in the
/// folders above.
fn folder_with_document() -> TempDir {
    let folder = tempfile::tempdir_in(tools()).unwrap_or_else(|error| panic!("{error}: `make peers` makes the folder"));
    std::fs::write(folder.path().join("openapi.json"), ringer::api::document()).expect("a file");
    folder
}

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns a tool of `node_modules`.
fn node_tool(name: &str) -> PathBuf {
    tools().join("node_modules/.bin").join(name)
}

/// Returns the output of a tool, which must succeed.
async fn run(folder: &Path, tool: &Path, arguments: &[&str]) -> String {
    let done = Command::new(tool)
        .args(arguments)
        .current_dir(folder)
        // No tool reports its use or asks for its updates.
        .envs([("CI", "true"), ("REDOCLY_TELEMETRY", "off"), ("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true")])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let done = timeout(PATIENCE, done).await.expect("it ends in time");
    let done = done.unwrap_or_else(|error| panic!("{}: {error}; `make peers` installs it", tool.display()));
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{}: {said}\n{}", tool.display(), String::from_utf8_lossy(&done.stderr));
    said
}

/// Runs a client against a server of its own: `arguments`, then URL and key.
async fn calls(folder: &Path, tool: &Path, arguments: &[&str]) {
    let world = World::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (stop, stopped) = oneshot::channel::<()>();
    let server = serve(listener, world.service.clone(), Setup::default(), async {
        let _ = stopped.await;
    });
    let client = async {
        let arguments = [arguments, &[&url, world.name("admin")]].concat();
        let said = run(folder, tool, &arguments).await;
        let _ = stop.send(());
        said
    };
    let (served, said) = tokio::join!(server, client);
    served.expect("stops cleanly");
    assert_eq!(said.trim(), CALLS, "calls that succeeded");
}

/// Returns the number of operations in the document.
fn operations() -> usize {
    let document: Value = serde_json::from_str(&ringer::api::document()).expect("JSON");
    let paths = document["paths"].as_object().expect("paths");
    paths.values().map(|path| path.as_object().expect("methods").len()).sum()
}

#[tokio::test]
async fn a_linter_finds_nothing_in_the_document() {
    let folder = folder_with_document();
    let lint = ["lint", "--extends=minimal", "--format=json", "--max-problems=20", "openapi.json"];
    let said = run(folder.path(), &node_tool("redocly"), &lint).await;
    let found: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!((&found["totals"]["errors"], &found["totals"]["warnings"]), (&0.into(), &0.into()), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_in_python_makes_calls() {
    let folder = folder_with_document();
    let generator = source(".venv/bin/openapi-python-client");
    let said = run(
        folder.path(),
        &generator,
        &["generate", "--path", "openapi.json", "--output-path", "made", "--meta", "none"],
    )
    .await;
    assert!(!said.contains("will not be generated") && !said.contains("Unable to"), "{said}");
    let functions = walk(&folder.path().join("made/api"));
    assert_eq!(functions, operations(), "modules of operations");
    std::fs::rename(folder.path().join("made"), folder.path().join("ringer_client")).expect("a folder");
    let script = source("tests/python/client_calls.py");
    let arguments = [script.to_str().expect("text"), folder.path().to_str().expect("text")];
    calls(folder.path(), &source(".venv/bin/python"), &arguments).await;
}

/// Counts the modules below a folder, packages aside.
fn walk(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("it was generated").map(|entry| entry.expect("an entry").path());
    let count = |path: PathBuf| match path.is_dir() {
        true => walk(&path),
        false => usize::from(path.extension().is_some_and(|is| is == "py") && !path.ends_with("__init__.py")),
    };
    entries.map(count).sum()
}

#[tokio::test]
async fn another_linter_finds_nothing_in_the_document() {
    if !is_wanted() {
        return;
    }
    let folder = folder_with_document();
    std::fs::write(folder.path().join("rules.yaml"), "extends: [\"spectral:oas\"]\n").expect("a file");
    let lint = ["lint", "openapi.json", "--ruleset", "rules.yaml", "--fail-severity", "hint"];
    run(folder.path(), &node_tool("spectral"), &lint).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_in_typescript_keep_their_types_and_make_calls() {
    if !is_wanted() {
        return;
    }
    let folder = folder_with_document();
    for name in ["fetch.ts", "sdk.ts", "tsconfig.json"] {
        std::fs::copy(source("tests/clients").join(name), folder.path().join(name)).expect("a file");
    }
    let typed = ["openapi.json", "-o", "schema.d.ts"];
    run(folder.path(), &node_tool("openapi-typescript"), &typed).await;
    let sdk = ["-i", "openapi.json", "-o", "sdk", "--no-log-file"];
    run(folder.path(), &node_tool("openapi-ts"), &sdk).await;
    run(folder.path(), &node_tool("tsc"), &["-p", "."]).await;
    let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("it was generated");
    assert_eq!(text("sdk/sdk.gen.ts").matches("\nexport const ").count(), operations(), "functions of operations");
    let types = text("schema.d.ts");
    let types = types.split_once("export interface operations {").expect("operations").1;
    let typed =
        types.lines().filter(|line| line.starts_with("    ") && !line.starts_with("     ") && line.ends_with(": {"));
    assert_eq!(typed.count(), operations(), "types of operations");
    for client in ["built/fetch.js", "built/sdk.js"] {
        calls(folder.path(), Path::new("node"), &[client]).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "no setting of the product: how much is tested")]
fn is_wanted() -> bool {
    std::env::var("RINGER_CLIENTS").is_ok()
}
