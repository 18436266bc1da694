//! Both databases: what holds on SQLite holds on PostgreSQL, and what was acknowledged outlives a kill.

mod dials;
mod journeys;
mod killed;
mod server;
mod two;

use std::path::Path;
use std::process::Command;

use ringer::clock;
use ringer::config::Secret;
use ringer::error::Result;
use ringer::store::db::Database;
use ringer::store::vault::Vault;
use ringer::store::{Location, Store};

pub(crate) use self::server::Server;
pub(crate) use self::two::beside_a_server;

/// Tells the tests that are run a second time where their server is.
const SERVER: &str = "RINGER_TEST_DATABASE_URL";

/// `all`: nothing is left out on PostgreSQL, as `make full` has it.
const HOW_MANY: &str = "RINGER_POSTGRESQL";

/// Tests whose requests take minutes, and whose statements others run too.
const LONGEST: [&str; 2] = ["api::generated::", "api::strangers::no_id_of_another"];

/// An empty database for one test: a file in `folder`, or a schema of its own on the server that [`SERVER`] names.
pub(crate) async fn empty(folder: &Path) -> Location {
    match variable(SERVER) {
        Some(url) => schema_on(&url).await,
        None => Location::File(folder.join("ringer.db")),
    }
}

/// Opens a database, its secrets under the key file of `folder`.
pub(crate) async fn open(location: impl Into<Location>, folder: &Path) -> Result<Store> {
    Store::open(location, Vault::open(folder, None, &[])?).await
}

/// Returns an empty schema, of which the locations made from it know nothing else.
async fn schema_on(url: &str) -> Location {
    let name = format!("test_{}", clock::new_id().simple());
    run(&Location::Server(Secret::new(url.to_owned())), &format!("CREATE SCHEMA {name}")).await;
    Location::Server(Secret::new(format!("{url}?options[search_path]={name}")))
}

/// Runs statements on a database, without its migrations.
pub(crate) async fn run(location: &Location, sql: &str) {
    let database = Database::open(location.clone()).await.expect("the database opens");
    let mut link = database.write().await.expect("nobody writes for long");
    link.script(sql).await.expect("they run");
    link.commit().await.expect("they are kept");
    database.close().await;
}

#[expect(clippy::disallowed_methods, reason = "tests are told by it what to run on, and how often")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[test]
fn every_test_of_the_api_and_the_store_passes_on_postgresql() {
    let server = Server::start(false);
    let tests = std::env::current_exe().expect("it runs");
    let mut again = Command::new(tests);
    again.args(["api::", "store::"]).env(SERVER, server.url());
    if variable(HOW_MANY).is_none_or(|asked| asked != "all") {
        again.args(LONGEST.iter().flat_map(|name| ["--skip", *name]));
    }
    let ran = again.output().expect("it runs again");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "on PostgreSQL:\n{said}\n{}", String::from_utf8_lossy(&ran.stderr));
    let summary = said.lines().find(|line| line.starts_with("test result: ok")).expect("libtest sums up");
    println!("on PostgreSQL: {summary}");
    let passed = summary.split(' ').find_map(|word| word.parse::<usize>().ok());
    assert!(passed.is_some_and(|passed| passed >= 50), "{summary}");
}
