//! Requests that a stranger made of the OpenAPI document: Schemathesis, from PyPI, against a server on a real socket. Valid and
//! invalid ones, and chains of them; no server error, no answer that the document does not describe.

use std::process::Stdio;
use std::time::Duration;

use ringer::api::{Setup, serve};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::world::World;

/// Requests of one kind for each operation.
const EXAMPLES: &str = "4";

/// Chains of requests, each made of what the ones before it answered.
const CHAINS: &str = "40";

/// 503 is no fault: a part that is needed (here the language model) is not there, and the document says so.
const SETTINGS: &str = r#"
[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 503]
"#;

/// What is looked at in every answer. What a request may hold is judged by the tables of cases: the walker accepts what can be
/// converted, and the service refuses more than a schema can say.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
    response_schema_conformance,missing_required_header,unsupported_method,allow_header_conformance,use_after_free,ignored_auth";

/// How long all of it may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread")]
async fn generated_requests_find_no_fault() {
    let world = World::with_rows().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("http://{}/openapi.json", listener.local_addr().expect("an address"));
    let (stop, stopped) = oneshot::channel::<()>();
    let server = serve(listener, world.service.clone(), Setup::default(), async {
        let _ = stopped.await;
    });
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/.venv/bin/schemathesis");
    let folder = tempfile::tempdir().expect("a folder");
    let key = format!("X-API-Key: {}", world.name("admin"));
    std::fs::write(folder.path().join("schemathesis.toml"), SETTINGS).expect("a file");
    let test = async |phases: &str, examples: &str| {
        let done = Command::new(tool)
            .args(["run", &url, "-H", &key, "--checks", CHECKS, "--phases", phases, "-n", examples, "--seed", "1"])
            .args(["--workers", "2", "--suppress-health-check", "all", "--warnings", "off", "--no-color"])
            .arg("--continue-on-failure")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let done = timeout(PATIENCE, done).await.expect("it ends in time");
        done.unwrap_or_else(|error| panic!("{tool}: {error}; `make peers` installs the Python package schemathesis"))
    };
    let tests = async {
        let done = [test("coverage,fuzzing", EXAMPLES).await, test("stateful", CHAINS).await];
        let _ = stop.send(());
        done
    };
    let (served, done) = tokio::join!(server, tests);
    served.expect("stops cleanly");
    for done in done {
        let said = String::from_utf8_lossy(&done.stdout);
        let tail = said.char_indices().rev().nth(12_000).map_or(0, |(at, _)| at);
        assert!(done.status.success(), "{}\n{}", &said[tail..], String::from_utf8_lossy(&done.stderr));
    }
}
