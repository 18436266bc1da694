//! Requests that a stranger made of the OpenAPI document: Schemathesis, from PyPI, against a server on a real socket.
//! Valid and invalid ones, and chains of them along the document's links; no server error, no answer that the document
//! does not describe, and nothing taken that it does not allow.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use ringer::api::{Setup, serve};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::world::World;

/// Requests of one kind for each operation.
const EXAMPLES: &str = "4";

/// Chains that are drawn before what they have learned is used for the next ones.
const CHAINS: &str = "30";

/// Seconds in which chains are drawn, and the least number of the document's links to follow in them. On two quiet
/// cores 60 to 82 were followed in 45 s; beside compilers about 20.
const SOME_CHAINS: (&str, usize) = ("45", 12);
/// The same where every request is made.
const ALL_CHAINS: (&str, usize) = ("240", 60);

/// Phases of single requests. Every value at its bounds, 16,000 requests of a half hour on a slow machine, is tried
/// where every request is made.
const SOME_PHASES: &str = "fuzzing";
const ALL_PHASES: &str = "coverage,fuzzing";

/// Links that are not followed: a stream that does not end while the result waits, and labels that come back at once
/// (`latest`).
const NOT_WALKED: [&str; 2] =
    ["GET /v1/simulation-result/{id}/events", "DELETE /v1/agents/{agent_id}/versions/{version}/labels"];

/// 503 is no fault: a part that is needed (here the language model) is not there, and the document says so.
const SETTINGS: &str = r#"
[checks]
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 503]
"#;

/// Checks made on every answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
    response_schema_conformance,missing_required_header,unsupported_method,allow_header_conformance,use_after_free,ignored_auth,\
    negative_data_rejection";

/// Time limit of each run of the tool on a busy machine.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Returns settings for chains of requests along the document's links, with ids that exist for the owners of new rows.
fn settings_of_chains(world: &World) -> String {
    let (organization, agent) = (world.name("organization"), world.name("agent"));
    let (simulation, human) = (world.name("simulation"), world.name("digital_human"));
    format!(
        r#"{SETTINGS}
[phases.stateful]
max-steps = 20
[phases.stateful.inference]
algorithms = []
[dictionaries]
agents.values = ["{agent}", {agent}]
simulations.values = ["{simulation}", {simulation}]
humans.values = ["{human}", {human}]
scopes.values = ["read", "write"]
urls.values = ["http://127.0.0.1:9/hook"]
[parameters]
"header.X-Organization-Id" = "{organization}"
"body.agent_id" = {{ dictionary = "agents" }}
"body.agent_ids[*]" = {{ dictionary = "agents" }}
"body.simulation_id" = {{ dictionary = "simulations" }}
"body.simulation_ids[*]" = {{ dictionary = "simulations" }}
"body.digital_human_ids[*]" = {{ dictionary = "humans" }}
"body.scope" = {{ dictionary = "scopes" }}
"body.url" = {{ dictionary = "urls" }}
"#
    )
}

/// True if every request is made: all values at their bounds, all ids in all places (`make requests`).
#[expect(clippy::disallowed_methods, reason = "a target of the Makefile asks for it")]
pub(super) fn every_request() -> bool {
    std::env::var("RINGER_REQUESTS").is_ok_and(|asked| asked == "all")
}

/// Runs the tool in a folder with settings of its own.
async fn run(settings: &str, url: &str, key: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("schemathesis.toml"), settings).expect("a file");
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/schemathesis");
    let done = Command::new(&tool)
        .args(["run", url, "-H", key, "--checks", CHECKS, "--seed", "1"])
        .args(["--workers", "2", "--suppress-health-check", "all", "--warnings", "off", "--no-color"])
        .arg("--continue-on-failure")
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let done = timeout(PATIENCE, done).await.expect("it ends in time");
    done.unwrap_or_else(|error| {
        panic!("{}: {error}; `make peers` installs the Python package schemathesis", tool.display())
    })
}

/// Returns the tool's output, after checking that it found nothing wrong.
fn checked_output(done: &Output) -> String {
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let tail = said.char_indices().rev().nth(12_000).map_or(0, |(at, _)| at);
    assert!(done.status.success(), "{}\n{}", &said[tail..], String::from_utf8_lossy(&done.stderr));
    said
}

/// Returns the links that its report counts as covered: `API Links: 82 covered / 133 selected / 139 total`.
fn links_covered(said: &str) -> usize {
    let counts = said.lines().find_map(|line| line.trim().strip_prefix("API Links:"));
    let count = counts.and_then(|counts| counts.split_whitespace().next()?.parse().ok());
    count.unwrap_or_else(|| panic!("no count of links: {said}"))
}

/// A server on a real socket with rows of its own.
struct Served {
    world: World,
    listener: TcpListener,
    url: String,
    key: String,
}

impl Served {
    async fn new() -> Served {
        let world = World::with_rows().await;
        let humans = json!({ "digital_human_ids": ["$digital_human"] });
        world.post("/v1/simulation/$simulation/add-digital-humans", humans).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let url = format!("http://{}/openapi.json", listener.local_addr().expect("an address"));
        let key = format!("X-API-Key: {}", world.name("admin"));
        Served { world, listener, url, key }
    }

    /// Serves until `tests` are done; returns what they do.
    async fn during<T>(self, tests: impl AsyncFnOnce(&World, &str, &str) -> T) -> T {
        let Served { world, listener, url, key } = self;
        let (stop, stopped) = oneshot::channel::<()>();
        // The tool sends wrong keys by the hundred.
        let setup = Setup { refusal_delay: Duration::ZERO, ..Setup::default() };
        let server = serve(listener, world.service.clone(), setup, async {
            let _ = stopped.await;
        });
        let tests = async {
            let done = tests(&world, &url, &key).await;
            let _ = stop.send(());
            done
        };
        let (served, done) = tokio::join!(server, tests);
        served.expect("stops cleanly");
        done
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_requests_find_no_fault() {
    // The cause of a fault stands in the log alone.
    let _ = tracing_subscriber::fmt().with_max_level(tracing::Level::ERROR).try_init();
    let mut of_chains = vec!["--phases", "stateful", "-n", CHAINS, "--mode", "positive"];
    of_chains.extend(NOT_WALKED.iter().flat_map(|name| ["--exclude-name", *name]));
    let (seconds, least) = if every_request() { ALL_CHAINS } else { SOME_CHAINS };
    of_chains.extend(["--max-time", seconds]);
    let walk = async |world: &World, url: &str, key: &str| run(&settings_of_chains(world), url, key, &of_chains).await;
    let walked = links_covered(&checked_output(&Served::new().await.during(walk).await));
    println!("{walked} links of the document were walked in {seconds} s");
    assert!(walked >= least, "only {walked} links were walked");
    let phases = if every_request() { ALL_PHASES } else { SOME_PHASES };
    let single =
        async |_: &World, url: &str, key: &str| run(SETTINGS, url, key, &["--phases", phases, "-n", EXAMPLES]).await;
    checked_output(&Served::new().await.during(single).await);
}
